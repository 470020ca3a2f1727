"""``DOCS_MCP_URL=https://docs.example.com/mcp python manage.py mcp_status``, and all other commands of Django."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "docs_site.settings")
    execute_from_command_line(sys.argv)
