"""A client of the legacy era for the tests of the server."""

import http.client
import json
from typing import Any, Dict, Optional

from embedded_client import LIMIT, Listener, Reply

LATEST = "2025-11-25"
CLIENT = {"capabilities": {"roots": {}}, "clientInfo": {"name": "peer", "version": "1"}}


def request(method: str, params: Optional[Dict[str, Any]] = None, id: Any = 1) -> Dict[str, Any]:
    """A request as the legacy era writes them."""
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    return message if params is None else dict(message, params=params)


class LegacyPeer:
    """One client with its session; each request takes a connection of its own, as does the GET stream."""

    def __init__(self, server: Any, **headers: Optional[str]) -> None:
        self.server = server
        self.session = None  # type: Optional[str]
        self.version = None  # type: Optional[str]
        self._headers = headers
        self._open = []  # connections, and responses that keep theirs

    def headers(self, **changes: Optional[str]) -> Dict[str, str]:
        """The headers of a request now; a change of ``None`` leaves one out (write ``_`` for ``-``)."""
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
                   "MCP-Protocol-Version": self.version, "Mcp-Session-Id": self.session}
        for name, value in dict(self._headers, **changes).items():
            headers[name.replace("_", "-")] = value
        return {name: value for name, value in headers.items() if value is not None}

    def start(self, message: Any, **headers: Optional[str]) -> http.client.HTTPResponse:
        """Send a message by POST and return the response, unread."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode("utf-8")
        return self.send("POST", body, **headers)

    def send(self, verb: str, body: Optional[bytes] = None, **headers: Optional[str]) -> http.client.HTTPResponse:
        """Send any HTTP request and return the response, unread."""
        connection = self.connect()
        connection.request(verb, self.server.path, body, self.headers(**headers))
        self._open.append(connection.getresponse())
        return self._open[-1]

    def connect(self) -> http.client.HTTPConnection:
        """A connection that is closed in the end."""
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=LIMIT)
        self._open.append(connection)
        return connection

    def post(self, message: Any, **headers: Optional[str]) -> Reply:
        """Send a message by POST and read the answer."""
        return Reply(self.start(message, **headers))

    def call(self, method: str, params: Optional[Dict[str, Any]] = None, id: Any = 1,
             **headers: Optional[str]) -> Reply:
        """Send a request and read its answer."""
        return self.post(request(method, params, id), **headers)

    def read(self, uri: str) -> Reply:
        """Read a resource."""
        return self.call("resources/read", {"uri": uri})

    def begin(self, version: str = LATEST) -> Dict[str, Any]:
        """The handshake; the result of ``initialize``."""
        reply = self.call("initialize", dict(CLIENT, protocolVersion=version), MCP_Protocol_Version=None,
                          Mcp_Session_Id=None)
        self.session = reply.headers["Mcp-Session-Id"]
        self.version = reply.result["protocolVersion"]
        accepted = self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (accepted.status, accepted.body) == (202, b"")
        return reply.result

    def listen(self, **headers: Optional[str]) -> Listener:
        """Open the GET stream."""
        response = self.send("GET", Accept="text/event-stream", Content_Type=None, **headers)
        assert response.status == 200, response.read()
        return Listener(response)

    def respond(self, id: Any, result: Any) -> Reply:
        """Answer a request of the server's."""
        return self.post({"jsonrpc": "2.0", "id": id, "result": result})

    def close(self) -> None:
        """Close everything."""
        for connection in self._open:
            connection.close()
