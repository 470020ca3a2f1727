"""``manage.py mcp_watch``"""

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mcp_sync.contrib import telling
from mcp_sync.contrib.django import clients


class Command(BaseCommand):
    help = (
        "Follows resources of an MCP server: a line for each as it is, then one for each change, until Ctrl-C. "
        "A line has the time, the kind, the URI and the version, with tabs between them."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("uris", nargs="*", metavar="uri", help="the resources; by default what the settings have watched")
        parser.add_argument("--server", default="default", help="their server's alias in MCP_SERVERS (default: default)")
        parser.add_argument("--count", type=int, help="end after so many changes")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            for line in telling.changes(clients, options["server"], options["uris"], options["count"]):
                self.stdout.write(line)
                self.stdout.flush()
        except telling.ERRORS as error:
            raise CommandError(str(error)) from error
        except BrokenPipeError:
            # Nobody reads any more. What the interpreter still flushes at its end goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(141)
        except KeyboardInterrupt:
            sys.exit(130)
