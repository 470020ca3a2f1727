"""A client for the tests of the server: it sends what it is told to and shows what comes back, byte by byte."""

import http.client
import json
import socket
import time
from typing import Any, Dict, List, Optional

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "peer", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
LIMIT = 5.0
NAMED_BY = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name",
            "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}


def message(method: str, params: Optional[Dict[str, Any]] = None, id: Any = 1, meta: Any = META) -> Dict[str, Any]:
    """A request of the modern era."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": dict(params or {}, _meta=meta)}


def headers_for(body: Dict[str, Any], **changes: Optional[str]) -> Dict[str, str]:
    """The headers that belong to a request; a change of ``None`` leaves one out (write ``_`` for ``-``)."""
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": body["method"],
    }  # type: Dict[str, Optional[str]]
    if body["method"] in NAMED_BY:
        headers["Mcp-Name"] = body["params"].get(NAMED_BY[body["method"]])
    headers.update({name.replace("_", "-"): value for name, value in changes.items()})
    return {name: value for name, value in headers.items() if value is not None}


class Reply:
    """An answer, read to its end."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def messages(self) -> List[Dict[str, Any]]:
        """The messages in it, whether it is JSON or an event stream."""
        if self.headers["Content-Type"].startswith("text/event-stream"):
            return events(self.body)
        return [json.loads(self.body.decode("utf-8"))]

    @property
    def result(self) -> Dict[str, Any]:
        """The result of its last message."""
        return self.messages[-1]["result"]

    @property
    def error(self) -> Dict[str, Any]:
        """The error of its last message."""
        return self.messages[-1]["error"]

    @property
    def text(self) -> str:
        """The text of the resource that was read."""
        return self.result["contents"][0]["text"]


def events(stream: bytes) -> List[Dict[str, Any]]:
    """The messages in an event stream with LF line ends; half an event at its end is left out."""
    found = []
    for block in stream.decode("utf-8").split("\n\n")[:-1]:
        data = [line[len("data: "):] for line in block.split("\n") if line.startswith("data: ")]
        if data:
            found.append(json.loads("\n".join(data)))
    return found


class Peer:
    """One keep-alive connection to a server."""

    def __init__(self, server: Any, **headers: str) -> None:
        self._server = server
        self._headers = headers
        self._connection = http.client.HTTPConnection(server.host, server.port, timeout=LIMIT)

    def send(self, method: str, params: Optional[Dict[str, Any]] = None, id: Any = 1,
             **headers: Optional[str]) -> None:
        """Send a request and wait for nothing."""
        body = message(method, params, id)
        self.send_raw(json.dumps(body).encode("utf-8"), headers_for(body, **dict(self._headers, **headers)))

    def send_raw(self, body: bytes, headers: Dict[str, str], verb: str = "POST", path: Optional[str] = None) -> None:
        """Send any body with any headers."""
        self._connection.request(verb, path or self._server.path, body, headers)

    def receive(self) -> Reply:
        """Read the answer to what was sent."""
        return Reply(self._connection.getresponse())

    def call(self, method: str, params: Optional[Dict[str, Any]] = None, id: Any = 1,
             **headers: Optional[str]) -> Reply:
        """Send a request and read its answer."""
        self.send(method, params, id, **headers)
        return self.receive()

    def read(self, uri: str) -> Reply:
        """Read a resource."""
        return self.call("resources/read", {"uri": uri})

    def listen(self, *uris: str, id: Any = 1, **wanted: Any) -> "Listener":
        """Open a listen stream on this connection."""
        wanted.setdefault("resourceSubscriptions", list(uris))
        self.send("subscriptions/listen", {"notifications": wanted}, id)
        return Listener(self._connection.getresponse())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Listener:
    """A listen stream, read event by event."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response
        self.received = b""
        self._seen = 0

    def next(self) -> Dict[str, Any]:
        """The next message."""
        return self.take(1)[0]

    def take(self, count: int) -> List[Dict[str, Any]]:
        """The next ``count`` messages, exactly as many."""
        end = time.monotonic() + LIMIT * 4
        # Counting is cheap where parsing again and again is not.
        while self.received.count(b"data: ") < self._seen + count or not self.received.endswith(b"\n\n"):
            assert time.monotonic() < end, "too slow: {!r}".format(self.received[-200:])
            self._more()
        found = events(self.received)[self._seen:self._seen + count]
        self._seen += count
        return found

    def until(self, mark: bytes) -> bytes:
        """Everything up to and including a mark."""
        while mark not in self.received:
            self._more()
        return self.received

    def _more(self) -> None:
        data = self.response.read1(65536)
        assert data, "the stream ended: {!r}".format(self.received[-200:])
        self.received += data

    def rest(self) -> bytes:
        """Read to the end of the stream; everything that ever came."""
        self.received += self.response.read()
        return self.received

    def close(self) -> None:
        """Close the response and with it the connection that it came on."""
        self.response.close()


def exchange(server: Any, data: bytes) -> bytes:
    """Send bytes on a connection of their own and read until the server ends it."""
    with socket.create_connection((server.host, server.port), LIMIT) as sock:
        sock.sendall(data)
        return drain(sock)


def drain(sock: socket.socket) -> bytes:
    """Read a socket to its end."""
    received = b""
    while True:
        data = sock.recv(65536)
        if not data:
            return received
        received += data


def request_bytes(method: str, params: Optional[Dict[str, Any]] = None, path: str = "/mcp", version: str = "HTTP/1.1",
                  id: Any = 1, **headers: Optional[str]) -> bytes:
    """A request as the bytes that go over the wire."""
    body = message(method, params, id)
    content = json.dumps(body).encode("utf-8")
    lines = ["POST {} {}".format(path, version), "Host: test", "Content-Length: {}".format(len(content))]
    lines += ["{}: {}".format(name, value) for name, value in headers_for(body, **headers).items()]
    return "\r\n".join(lines + ["", ""]).encode("ascii") + content
