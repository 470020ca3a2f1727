"""One way to talk to the embedded server in both eras and over every transport, for the tests of what is said between
a request and its answer."""

import json
from typing import Any, Dict, Optional

from embedded_client import META, Listener, Peer, headers_for, message
from legacy_client import LegacyPeer, request
from sse_client import SsePeer
from stdio_client import StdioPeer

from mcp_sync.testing import Server, StdioServer

WAYS = ["modern http", "modern stdio", "legacy http", "legacy sse", "legacy stdio"]


def serving(way: str, **options: Any) -> Server:
    """A server for that way of talking."""
    era, transport = way.split()
    if transport == "stdio":
        return StdioServer(eras=[era], **options)
    if transport == "sse":
        return Server(transport="http+sse", **options)
    return Server(eras=[era], answer="sse", **options)


class Talk:
    """A client that shows all that comes, in the order in which it comes."""

    def __init__(self, server: Server, way: str, capabilities: Optional[Dict[str, Any]] = None) -> None:
        self.era, self.transport = way.split()
        self._meta = dict(META, **{"io.modelcontextprotocol/clientCapabilities": capabilities or {}})
        self._streams = {}  # type: Dict[Any, Listener]
        self._server = server
        self._open = []
        if self.transport == "stdio":
            self.peer = StdioPeer(server.command)
        elif self.transport == "sse":
            self.peer = SsePeer(server)
        else:
            self.peer = Peer(server) if self.era == "modern" else LegacyPeer(server)
        self._open.append(self.peer)
        if self.era == "legacy":
            self.peer.begin()

    def start(self, method: str, params: Dict[str, Any], id: Any = 1, meta: Optional[Dict[str, Any]] = None) -> None:
        """Send a request."""
        if self.era == "modern":
            body = message(method, params, id, dict(self._meta, **meta or {}))
        else:
            body = request(method, dict(params, _meta=meta) if meta else params, id)
        if self.transport == "stdio":
            self.peer.send(body)
        elif self.transport == "sse":
            assert self.peer.post(body).status == 202
        elif self.era == "legacy":
            self._streams[id] = Listener(self.peer.start(body))
        else:
            self.peer = Peer(self._server)
            self._open.append(self.peer)
            self.peer.send_raw(json.dumps(body).encode("utf-8"), headers_for(body))

    def next(self, id: Any = 1) -> Dict[str, Any]:
        """The next message that belongs to that request, as far as the transport tells them apart."""
        if self.transport != "http":
            return self.peer.next()
        if id not in self._streams:
            self._streams[id] = Listener(self.peer._connection.getresponse())
        stream = self._streams[id]
        if stream.response.headers["Content-Type"] == "application/json":
            found = json.loads(stream.rest().decode("utf-8"))  # type: Dict[str, Any]
            return found
        return stream.next()

    def call(self, name: str, id: Any = 1, meta: Optional[Dict[str, Any]] = None, **params: Any) -> Dict[str, Any]:
        """Call a tool; the next message."""
        self.start("tools/call", dict({"name": name, "arguments": {}}, **params), id, meta)
        return self.next(id)

    def respond(self, id: Any, **outcome: Any) -> None:
        """Answer a request of the server's."""
        body = dict({"jsonrpc": "2.0", "id": id}, **outcome)
        self._tell(body)

    def cancel(self, id: Any = 1) -> None:
        """Say that nobody waits for an answer, in the way of this era and transport."""
        if (self.era, self.transport) == ("modern", "http"):
            self.peer.close()
            self._streams[id].close()
        else:
            self._tell({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})

    def _tell(self, body: Dict[str, Any]) -> None:
        if self.transport == "stdio":
            self.peer.send(body)
        else:
            assert self.peer.post(body).status == 202

    def close(self) -> None:
        """Close everything."""
        for stream in self._streams.values():
            stream.close()
        for peer in self._open:
            peer.close()
