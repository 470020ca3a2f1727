"""A client of HTTP+SSE for the tests of the server."""

import http.client
import json
import urllib.parse
from typing import Any, Dict, List, NamedTuple, Optional

from embedded_client import LIMIT
from legacy_client import CLIENT, LATEST, request

Event = NamedTuple("Event", [("kind", str), ("data", str)])
Posting = NamedTuple("Posting", [("status", int), ("body", bytes)])


class SsePeer:
    """One event stream, and a connection for each message that is posted."""

    def __init__(self, server: Any, **headers: str) -> None:
        self.server = server
        self._headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self._open = []
        self._received = b""
        connection = self._connect()
        connection.request("GET", server.path, None, dict(self._headers, Accept="text/event-stream"))
        self.response = connection.getresponse()
        self.endpoint = None  # type: Optional[str]

    def _connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=LIMIT)
        self._open.append(connection)
        return connection

    def event(self) -> Event:
        """The next event."""
        while b"\n\n" not in self._received:
            data = self.response.read1(65536)
            assert data, "the stream ended: {!r}".format(self._received)
            self._received += data
        block, _, self._received = self._received.partition(b"\n\n")
        fields = dict(line.split(": ", 1) for line in block.decode("utf-8").split("\n") if not line.startswith(":"))
        return Event(fields["event"], fields["data"])

    def next(self) -> Dict[str, Any]:
        """The next message."""
        event = self.event()
        assert event.kind == "message"
        return json.loads(event.data)

    def take(self, count: int) -> List[Dict[str, Any]]:
        """The next ``count`` messages."""
        return [self.next() for _ in range(count)]

    def post(self, message: Any, endpoint: Optional[str] = None) -> Posting:
        """Post a message, or bytes, and read the answer to the POST."""
        target = urllib.parse.urlsplit(endpoint or self.endpoint)
        body = message if isinstance(message, bytes) else json.dumps(message).encode("utf-8")
        connection = self._connect()
        connection.request("POST", target.path + "?" + target.query, body,
                           dict(self._headers, **{"Content-Type": "application/json"}))
        response = connection.getresponse()
        return Posting(response.status, response.read())

    def call(self, method: str, params: Optional[Dict[str, Any]] = None, id: Any = 1) -> Dict[str, Any]:
        """Post a request and take the next message from the stream."""
        posting = self.post(request(method, params, id))
        assert posting.status == 202, posting
        return self.next()

    def begin(self, version: str = LATEST) -> Dict[str, Any]:
        """Everything from the first event to the end of the handshake; the result of ``initialize``."""
        event = self.event()
        assert event.kind == "endpoint"
        self.endpoint = event.data
        response = self.call("initialize", dict(CLIENT, protocolVersion=version))
        assert self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
        return response["result"]

    def rest(self) -> bytes:
        """Everything that is left on the stream."""
        return self._received + self.response.read()

    def close(self) -> None:
        """Close everything."""
        self.response.close()
        for connection in self._open:
            connection.close()
