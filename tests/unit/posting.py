"""Asking a server over streamable HTTP, without the layers above."""

from typing import Any, List, Optional

from rawserver import BOUND

from mcp_sync._deadline import Deadline
from mcp_sync.eras.modern import Modern
from mcp_sync.jsonrpc import RequestIds, Response
from mcp_sync.notices import SubscriptionFilter
from mcp_sync.transports.base import Outgoing
from mcp_sync.transports.streamable_http import HTTPOptions, StreamableHTTP

URI = "docs://service/config"
ERA = Modern({"name": "test", "version": "1"}, {})
IDS = RequestIds()


def transport(url: str, **options: Any) -> StreamableHTTP:
    return StreamableHTTP(HTTPOptions(url, **options))


def reading(uri: str = URI) -> Outgoing:
    """A request that may be sent twice."""
    return ERA.request(IDS.next(), "resources/read", {"uri": uri})


def calling(name: str = "pay", **arguments: Any) -> Outgoing:
    """A request that must not be sent twice."""
    return ERA.request(IDS.next(), "tools/call", {"name": name, "arguments": arguments})


def listening(*uris: str) -> Outgoing:
    """A request whose answer lasts."""
    return ERA.listen(IDS.next(), SubscriptionFilter(frozenset(uris or (URI,))))


def messages(door: StreamableHTTP, outgoing: "Optional[Outgoing]" = None, timeout: float = BOUND) -> "List[Any]":
    """All messages that answer a request."""
    with door.exchange(outgoing or reading(), Deadline(timeout)) as exchange:
        return list(exchange)


def result(door: StreamableHTTP, outgoing: "Optional[Outgoing]" = None, timeout: float = BOUND) -> Any:
    """The result that answers a request, which has to be the last message."""
    answer = messages(door, outgoing, timeout)[-1]
    assert isinstance(answer, Response), answer
    return answer.result


def result_from(url: str, outgoing: "Optional[Outgoing]" = None, timeout: float = BOUND, **options: Any) -> Any:
    """The same from a URL, over a connection of its own."""
    door = transport(url, **options)
    try:
        return result(door, outgoing, timeout)
    finally:
        door.close()
