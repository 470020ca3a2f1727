"""The legacy eras by hand, on nothing but ``requests`` and pipes: what the tests hold against the client's view."""
import itertools
import json
import queue
import subprocess
import threading
import time

import requests

from .environments import clean_environ

# Longer than a server takes to start, in seconds.
LIMIT = 25.0
ACCEPT = {"Accept": "application/json, text/event-stream"}

_ids = itertools.count(1)


def request(method, **params):
    return {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params}


def initialize(revision="2025-11-25"):
    client = {"name": "interop-tests", "version": "1.0"}
    return request("initialize", protocolVersion=revision, capabilities={}, clientInfo=client)


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def messages(response):
    """:returns: the JSON-RPC messages of a complete HTTP answer, whether it is JSON or a stream."""
    if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
        return [response.json()]
    lines = response.content.decode("utf-8").splitlines()
    return [json.loads(line[len("data: "):]) for line in lines if line.startswith("data: {")]


class HTTPSession:
    """A session over streamable HTTP."""

    def __init__(self, url, **headers):
        self.url = url
        self.headers = dict(ACCEPT, **headers)
        self.http = requests.Session()
        self.http.trust_env = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.close()

    def post(self, message):
        return self.http.post(self.url, json=message, headers=self.headers, timeout=LIMIT)

    def greet(self):
        """Do the handshake. :returns: what the server says of itself."""
        response = self.post(initialize())
        result = messages(response)[-1]["result"]
        if "Mcp-Session-Id" in response.headers:
            self.headers["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
        self.headers["MCP-Protocol-Version"] = result["protocolVersion"]
        assert self.post(INITIALIZED).status_code == 202
        return result

    def call(self, method, **params):
        """:returns: the answer, a JSON-RPC message with ``result`` or ``error``."""
        return messages(self.post(request(method, **params)))[-1]

    def stream(self):
        """Open the stream of what the server sends unasked. Close it."""
        return self.http.get(self.url, headers=self.headers, timeout=LIMIT, stream=True)


def events(response):
    """Yield the name and the data of each event of an open stream."""
    name, data = "message", []
    for line in response.iter_lines(chunk_size=1):
        text = line.decode("utf-8")
        if text.startswith("event:"):
            name = text[len("event:"):].strip()
        elif text.startswith("data:"):
            data.append(text[len("data:"):].strip())
        elif not text and data:
            yield name, "\n".join(data)
            name, data = "message", []


class StdioSession:
    """A server on pipes, line by line. A context manager, which ends it the hard way."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            list(command.argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(clean_environ(), **{name: text for name, text in command.env.items() if text is not None}),
            cwd=command.cwd,
        )
        self._lines = queue.Queue()
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def _receive(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(timeout=10)
        self._thread.join(timeout=10)
        for stream in (self.process.stdin, self.process.stdout):
            try:
                stream.close()
            except OSError:
                pass  # it did not read the last line

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode("utf-8") + b"\n")
        self.process.stdin.flush()

    def next(self, timeout=LIMIT):
        """:returns: the next message; None at the end of the output. :raises queue.Empty: there is none in time."""
        line = self._lines.get(timeout=timeout)
        return None if line is None else json.loads(line.decode("utf-8"))

    def greet(self):
        """Do the handshake. :returns: what the server says of itself."""
        self.send(initialize())
        result = self.next()["result"]
        self.send(INITIALIZED)
        return result

    def call(self, method, **params):
        """:returns: the answer; messages before it are dropped."""
        asked = request(method, **params)
        self.send(asked)
        give_up = time.monotonic() + LIMIT
        while time.monotonic() < give_up:
            message = self.next()
            if message is None or message.get("id") == asked["id"]:
                return message
        raise AssertionError("no answer to {}".format(method))

    def ends(self, timeout):
        """Return whether it ends in time."""
        try:
            self.process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            return False
        return True
