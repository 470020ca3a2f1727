"""``manage.py mcp_read URI``"""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mcp_sync.contrib import telling
from mcp_sync.contrib.django import clients


class Command(BaseCommand):
    help = "Prints what a resource of an MCP server holds."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("uri", help="the resource")
        parser.add_argument("--server", default="default", help="its server's alias in MCP_SERVERS (default: default)")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            held = telling.contents(clients[options["server"]], options["uri"])
        except telling.ERRORS as error:
            raise CommandError(str(error)) from error
        if isinstance(held, str):
            self.stdout.write(held, ending="" if held.endswith("\n") else "\n")
        else:
            self.stdout.flush()
            sys.stdout.buffer.write(held)
            sys.stdout.buffer.flush()
