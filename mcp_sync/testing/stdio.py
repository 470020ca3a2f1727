"""A server on standard input and output: ``python -m mcp_sync.testing.stdio``.

::

    python -m mcp_sync.testing.stdio --era both --resource docs://config="colour = blue"

It has the tools ``update`` (``uri``, ``text``), which changes or adds a resource, and ``remove`` (``uri``). With
``--control`` it is the process of a :class:`~mcp_sync.testing.StdioServer` that runs elsewhere on this machine.
"""

import argparse
import sys
from typing import Any, Dict, List, NoReturn, Optional, Tuple

from . import relay
from .stdio_server import StdioServer


def _pair(text: str) -> Tuple[str, str]:
    uri, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError("{!r} is not URI=TEXT".format(text))
    return uri, value


def serving(era: str, resources: List[Tuple[str, str]]) -> StdioServer:
    """The server that this program is.

    :param era: ``"modern"``, ``"legacy"`` or ``"both"``.
    :param resources: URIs and texts.
    """
    server = StdioServer(eras=("modern", "legacy") if era == "both" else (era,))
    for uri, text in resources:
        server.add(uri, text)

    def update(arguments: Dict[str, Any]) -> str:
        uri, text = arguments["uri"], arguments["text"]
        try:
            server.update(uri, text)
        except KeyError:
            server.add(uri, text)
        return "{} has changed".format(uri)

    def remove(arguments: Dict[str, Any]) -> str:
        server.remove(arguments["uri"])
        return "{} is gone".format(arguments["uri"])

    server.add_tool("update", update, description="Change or add a resource")
    server.add_tool("remove", remove, description="Remove a resource")
    return server


def main(arguments: Optional[List[str]] = None) -> NoReturn:
    """Serve until the input ends."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if any(argument.split("=")[0] == "--control" for argument in arguments):
        relay.main(arguments)
    parser = argparse.ArgumentParser(prog="python -m mcp_sync.testing.stdio",
                                     description="A Model Context Protocol server to test with, on standard input and "
                                                 "output.")
    parser.add_argument("--era", choices=("modern", "legacy", "both"), default="both", help="what it speaks")
    parser.add_argument("--resource", type=_pair, action="append", default=[], metavar="URI=TEXT",
                        help="what it holds; may be given many times")
    parser.add_argument("--control", metavar="PORT", help="be the process of a StdioServer that listens there")
    options = parser.parse_args(arguments)
    server = serving(options.era, options.resource).start()
    relay.main(server.command[server.command.index("--control"):])


if __name__ == "__main__":
    main()
