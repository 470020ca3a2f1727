"""``flask mcp read``, ``flask mcp watch``, ``flask mcp status``"""

import sys
from typing import Any, Optional, Tuple

import click
from flask import current_app
from flask.cli import AppGroup

from .. import telling
from ..clients import Clients

__all__ = ["commands"]

commands: Any = AppGroup("mcp", help="Reads MCP servers of MCP_SERVERS, and follows them.")

_server: Any = click.option("--server", default="default", show_default=True, help="The alias of the server.")


def _clients() -> Clients:
    clients: Clients = current_app.extensions["mcp_sync"]
    return clients


@commands.command("read")
@click.argument("uri")
@_server
def read(uri: str, server: str) -> None:
    """Print what a resource holds."""
    try:
        held = telling.contents(_clients()[server], uri)
    except telling.ERRORS as error:
        raise click.ClickException(str(error)) from error
    click.echo(held, nl=isinstance(held, str) and not held.endswith("\n"))


@commands.command("watch")
@click.argument("uris", nargs=-1)
@_server
@click.option("--count", type=int, help="End after so many changes.")
def watch(uris: "Tuple[str, ...]", server: str, count: "Optional[int]") -> None:
    """Follow resources: a line for each as it is, then one for each change, until Ctrl-C.

    Without URIs, what the settings have watched. A line has the time, the kind, the URI and the version, with tabs between.
    """
    try:
        for line in telling.changes(_clients(), server, uris, count):
            click.echo(line)
    except telling.ERRORS as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        sys.exit(130)


@commands.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--wait", type=float, default=10.0, show_default=True, help="Seconds to wait for the servers.")
def status(as_json: bool, wait: float) -> None:
    """Connect to all servers and print how they do; exit code 1 if something to be watched could not be read."""
    found = telling.status(_clients(), wait)
    for line in telling.status_lines(found, as_json):
        click.echo(line)
    if telling.is_failing(found):
        sys.exit(1)
