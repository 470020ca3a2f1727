"""A client over standard input and output for the tests of the server: it shows every byte that comes back."""

import json
import os
import select
import subprocess
import time
from typing import Any, Dict, List, Optional

from embedded_client import LIMIT, message
from legacy_client import CLIENT, LATEST, request


class StdioPeer:
    """One process of a server."""

    def __init__(self, command: List[str], **options: Any) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        bufsize=0, **options)
        self.received = b""

    def send(self, *messages: Any) -> None:
        """Send messages, or bytes as they are, in one go."""
        data = b"".join(one if isinstance(one, bytes) else json.dumps(one).encode("utf-8") + b"\n" for one in messages)
        self.process.stdin.write(data)

    def line(self) -> bytes:
        """The next line of standard output."""
        return self.until(b"\n")

    def until(self, mark: bytes) -> bytes:
        """Standard output up to and including a mark."""
        end = time.monotonic() + LIMIT
        while mark not in self.received:
            assert select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))[0], self.received
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, "the output ended: {!r}, {!r}".format(self.received, self.process.stderr.read())
            self.received += data
        head, _, self.received = self.received.partition(mark)
        return head + mark

    def next(self) -> Dict[str, Any]:
        """The next message."""
        return json.loads(self.line().decode("utf-8"))

    def take(self, count: int) -> List[Dict[str, Any]]:
        """The next ``count`` messages."""
        return [self.next() for _ in range(count)]

    def old(self, method: str, params: Optional[Dict[str, Any]] = None, id: Any = 1) -> Dict[str, Any]:
        """Send a request of the legacy era and take the next message."""
        self.send(request(method, params, id))
        return self.next()

    def new(self, method: str, params: Optional[Dict[str, Any]] = None, id: Any = 1) -> Dict[str, Any]:
        """Send a request of the modern era and take the next message."""
        self.send(message(method, params, id))
        return self.next()

    def begin(self, version: str = LATEST) -> Dict[str, Any]:
        """The legacy handshake; the result of ``initialize``."""
        response = self.old("initialize", dict(CLIENT, protocolVersion=version))
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return response["result"]

    def listen(self, *uris: str, id: Any = 1, **wanted: Any) -> None:
        """Ask for a listen stream of the modern era."""
        wanted.setdefault("resourceSubscriptions", list(uris))
        self.send(message("subscriptions/listen", {"notifications": wanted}, id))

    def end(self) -> int:
        """Close the input and wait for the end of the process."""
        self.process.stdin.close()
        return self.process.wait(LIMIT)

    def rest(self) -> bytes:
        """Everything else on standard output."""
        self.received += self.process.stdout.read()
        return self.received

    def close(self) -> None:
        """End the process, however it feels about that."""
        if self.process.poll() is None:
            self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        self.process.wait(LIMIT)
