"""The same server in all the ways in which one can be spoken with, for tests that are to hold in each of them."""

from typing import Any, Dict, List

from rawserver import BOUND, Outcome

from mcp_sync import Client
from mcp_sync.testing import Server, StdioServer

#: By whom, and over what. The server answers calls by a stream of events where there are such.
KINDS = ("modern http", "legacy http", "http+sse", "modern stdio", "legacy stdio")
MODERN = ("modern http", "modern stdio")
LEGACY = ("legacy http", "http+sse", "legacy stdio")

MADE: Dict[str, Any] = {
    "modern http": lambda **options: Server(answer="sse", **options),
    "legacy http": lambda **options: Server(eras=("legacy",), answer="sse", **options),
    "http+sse": lambda **options: Server(transport="http+sse", **options),
    "modern stdio": lambda **options: StdioServer(**options),
    "legacy stdio": lambda **options: StdioServer(eras=("legacy",), **options),
}


def serving(kind: str, **options: Any) -> Server:
    """A server of one of these kinds, not started yet."""
    server: Server = MADE[kind](**options)
    return server


def connected(server: Server, **options: Any) -> Client:
    """A client of it, whose calls end in any case."""
    options.setdefault("timeout", BOUND)
    return Client(server.command if isinstance(server, StdioServer) else server.url, **options)


def form(message: str = "Sure?", required: "List[str]" = [], **properties: Any) -> "Dict[str, Any]":
    """A question that is answered by filling in a form."""
    schema = {"type": "object", "properties": properties, "required": required}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def params_of(server: Server, method: str) -> "List[Dict[str, Any]]":
    """The parameters of all requests of a method that have arrived, in order."""
    return [request.params for request in server.requests if request.method == method]


def usable(client: Client, server: Server) -> bool:
    """Whether a call is answered."""
    server.add_tool("still-there", lambda arguments: "yes", notify=False)
    return Outcome(lambda: client.call_tool("still-there", validate=False)).value().text == "yes"
