"""``python -m mcp_sync``: the command line, as ``mcp-sync``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
