"""Protocol revision 2026-07-28 by hand, on nothing but ``requests``: what the tests hold against the client's view."""
import itertools
import json
import time

import requests

REVISION = "2026-07-28"
META = "io.modelcontextprotocol/"
LISTEN = "subscriptions/listen"

# Longer than the 15 s after which a quiet stream brings a comment, and than a read can be held.
LIMIT = 25.0

_ids = itertools.count(1)


class Refused(Exception):
    """The server answered with a JSON-RPC error."""

    def __init__(self, status, error):
        super().__init__("HTTP {}, {}".format(status, error))
        self.status = status
        self.code = error["code"]


def open_post(url, method, params=None, **headers):
    """Send one request and return the open HTTP answer, whatever it is. Close it."""
    params = dict(params or {})
    params["_meta"] = {
        META + "protocolVersion": REVISION,
        META + "clientInfo": {"name": "interop-tests", "version": "1.0"},
        META + "clientCapabilities": {},
    }
    sent = {
        "Accept": "application/json, text/event-stream",
        "Connection": "close",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": method,
    }
    name = params.get("name") or params.get("uri")
    if name:
        sent["Mcp-Name"] = name
    sent.update((key.replace("_", "-"), value) for key, value in headers.items())
    message = {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params}
    with requests.Session() as session:
        session.trust_env = False
        return session.post(url, json=message, headers=sent, timeout=LIMIT, stream=True)


class Answer:
    """A complete answer: ``status``, ``headers``, ``body`` (bytes)."""

    def __init__(self, response):
        self.status = response.status_code
        self.headers = response.headers
        self.body = b""
        give_up = time.monotonic() + LIMIT
        for block in response.iter_content(65536):
            self.body += block
            if time.monotonic() > give_up:
                raise AssertionError("the answer does not end: {!r}".format(self.body))

    def messages(self):
        """The JSON-RPC messages in it, whether it is JSON or a stream."""
        if self.headers["Content-Type"].startswith("text/event-stream"):
            lines = self.body.decode("utf-8").splitlines()
            return [json.loads(line[len("data: "):]) for line in lines if line.startswith("data: ")]
        return [json.loads(self.body.decode("utf-8"))]


def post(url, method, params=None, **headers):
    """Send one request and return its complete answer, whatever it is."""
    with open_post(url, method, params, **headers) as response:
        return Answer(response)


def call(url, method, params=None):
    """:returns: the ``result``. :raises Refused: the server answered with an error."""
    answer = post(url, method, params)
    last = answer.messages()[-1]
    if "error" in last:
        raise Refused(answer.status, last["error"])
    return last["result"]


def call_tool(url, name, **arguments):
    """:returns: the first text that the tool answers."""
    result = call(url, "tools/call", {"name": name, "arguments": arguments})
    text = result["content"][0]["text"]
    if result.get("isError"):
        raise AssertionError("the tool {} failed: {}".format(name, text))
    return text


def read(url, uri):
    """:returns: the text of a resource."""
    return call(url, "resources/read", {"uri": uri})["contents"][0]["text"]


class Stream:
    """One ``subscriptions/listen`` stream, byte for byte. A context manager."""

    def __init__(self, url, *uris, **catalog):
        notifications = {"resourceSubscriptions": list(uris)}
        if catalog.get("catalog"):
            notifications["resourcesListChanged"] = True
        self.response = open_post(url, LISTEN, {"notifications": notifications})
        self.request_id = json.loads(self.response.request.body)["id"]
        self.lines = []
        self._bytes = self.response.iter_content(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.response.close()

    def next_line(self):
        """Return the next line with its end, as it was sent; silence for longer than the socket's limit is an error."""
        line = b""
        while not line.endswith(b"\n"):
            byte = next(self._bytes, b"")
            if not byte:
                raise EOFError("the stream ended")
            line += byte
        self.lines.append(line)
        return line

    def next_message(self, timeout=LIMIT):
        """Return the next JSON-RPC message, passing over comments."""
        give_up = time.monotonic() + timeout
        data = []
        while time.monotonic() < give_up:
            line = self.next_line().rstrip(b"\r\n")
            if line.startswith(b"data: "):
                data.append(line[len(b"data: "):])
            elif not line and data:
                return json.loads(b"\n".join(data).decode("utf-8"))
        raise AssertionError("no message, only {!r}".format(self.lines))

    def next_comment(self, timeout=LIMIT):
        """Return the next comment line, passing over messages."""
        give_up = time.monotonic() + timeout
        while time.monotonic() < give_up:
            line = self.next_line()
            if line.startswith(b":"):
                return line
        raise AssertionError("no comment, only {!r}".format(self.lines))
