"""``manage.py mcp_status``"""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from mcp_sync.contrib import telling
from mcp_sync.contrib.django import clients


class Command(BaseCommand):
    help = (
        "Connects to the MCP servers of the settings and prints how they do, as this process sees it. "
        "The exit code is 1 if something that is to be watched could not be read."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON document")
        parser.add_argument("--wait", type=float, default=10.0, help="seconds to wait for the servers (default: 10)")

    def handle(self, *args: Any, **options: Any) -> None:
        found = telling.status(clients, options["wait"])
        for line in telling.status_lines(found, options["json"]):
            self.stdout.write(line)
        if telling.is_failing(found):
            sys.exit(1)
