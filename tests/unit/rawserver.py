"""A server of which a test decides every byte: what is sent, when, and how the connection ends.

::

    def script(peer):
        request = peer.request()
        peer.send(b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\n\\r\\n")
        gate.wait()
        peer.reset()

    with RawServer(script) as server:
        ...                                # server.url

The script runs once for every connection, in a thread of its own, and may use ``peer.number`` to tell connections
apart. Nothing here sleeps; everything ends when the ``with`` block does.
"""

import json
import socket
import ssl
import struct
import threading
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional

#: A bound that only a failure reaches, in seconds.
BOUND = 20.0


class Ended(Exception):
    """The other side, or the test, ended the connection: the script has nothing more to do."""


class Request(NamedTuple):
    """What came: ``headers`` by lower-case name, a list of values each."""

    line: str
    headers: Dict[str, List[str]]
    body: bytes

    @property
    def message(self) -> Any:
        return json.loads(self.body.decode("utf-8"))

    @property
    def id(self) -> Any:
        return self.message["id"]

    def header(self, name: str) -> Optional[str]:
        values = self.headers.get(name.lower())
        return None if values is None else values[0]

    def answer(self, result: Any = None) -> bytes:
        """The JSON of a complete result for this request."""
        whole = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "contents": []}
        whole.update(result or {})
        return json.dumps({"jsonrpc": "2.0", "id": self.id, "result": whole}).encode("utf-8")

    def event(self, result: Any = None) -> bytes:
        """The same as an event."""
        return b"data: " + self.answer(result) + b"\n\n"


def head(*lines: str, status: str = "200 OK") -> bytes:
    """The beginning of an answer, up to the empty line."""
    return ("\r\n".join(("HTTP/1.1 " + status,) + lines) + "\r\n\r\n").encode("latin-1")


def json_answer(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    """A whole answer of JSON with its length."""
    return head("Content-Type: application/json", "Content-Length: %d" % len(body), *lines, status=status) + body


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


JSON_HEAD = head("Content-Type: application/json", "Connection: close")
EVENTS_HEAD = head("Content-Type: text/event-stream", "Connection: close")
CHUNKED_EVENTS_HEAD = head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")


class Peer:
    """One accepted connection, for the thread of its script."""

    def __init__(self, server: "RawServer", sock: Any, number: int) -> None:
        self._server = server
        self._sock = sock
        self._received = b""
        #: The first connection is 1.
        self.number = number

    def request(self) -> Request:
        """Read the next request; :class:`Ended` if there is none."""
        while b"\r\n\r\n" not in self._received:
            self._more()
        start, _, self._received = self._received.partition(b"\r\n\r\n")
        lines = start.decode("latin-1").split("\r\n")
        headers: Dict[str, List[str]] = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers.setdefault(name.lower(), []).append(value.strip(" "))
        length = int(headers.get("content-length", ["0"])[0])
        while len(self._received) < length:
            self._more()
        body, self._received = self._received[:length], self._received[length:]
        request = Request(lines[0], headers, body)
        self._server.add(request)
        return request

    def _more(self) -> None:
        try:
            data = self._sock.recv(65536)
        except OSError as error:
            raise Ended() from error
        if not data:
            raise Ended()
        self._received += data

    def send(self, data: bytes) -> None:
        """Send bytes."""
        try:
            self._sock.sendall(data)
        except OSError as error:
            raise Ended() from error

    def drip(self, data: Iterable[int]) -> None:
        """Send one byte at a time, some hundred a second, until the data or the test ends."""
        for byte in data:
            self.send(bytes([byte]))
            self._server.pace()

    def wait_gone(self) -> None:
        """Wait until the client ends the connection, and say so."""
        try:
            while True:
                self._more()
        except Ended:
            self._server.gone.release()
            raise

    def idle(self) -> None:
        """Neither read nor send until the test ends."""
        self._server.wait_ending()
        raise Ended()

    def shut(self) -> None:
        """Send no more; go on reading."""
        self._sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """End the connection with a TCP reset."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()

    def start_tls(self, context: ssl.SSLContext) -> None:
        """Speak TLS from here on."""
        try:
            self._sock = self._server.swapped(self._sock, context.wrap_socket(self._sock, server_side=True))
        except OSError as error:
            traceback = error.__traceback__
            while traceback is not None:
                # What was made before the client went away is in the frames of the error alone.
                made = traceback.tb_frame.f_locals.get("self")
                if isinstance(made, ssl.SSLSocket):
                    made.close()
                traceback = traceback.tb_next
            raise Ended() from error


class RawServer:
    """Listens on a port of this machine's own; see the head of this file.

    :param script: what is done on each connection.
    :param tls: the context to speak TLS with, or None.
    """

    def __init__(self, script: Callable[[Peer], None], tls: Optional[ssl.SSLContext] = None) -> None:
        self._script = script
        self._tls = tls
        self._ending = threading.Event()
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._sockets: List[socket.socket] = []
        self._threads: List[threading.Thread] = []
        self._requests: List[Request] = []
        self._connections = 0
        self._failed: List[BaseException] = []
        #: Released each time that a script has seen the client go (``wait_gone``).
        self.gone = threading.Semaphore(0)
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        self.port: int = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, name="rawserver-acceptor", daemon=True)
        self._acceptor.start()

    @property
    def url(self) -> str:
        return "%s://127.0.0.1:%d/mcp" % ("http" if self._tls is None else "https", self.port)

    @property
    def requests(self) -> List[Request]:
        """All requests so far, in the order in which they came."""
        with self._lock:
            return list(self._requests)

    @property
    def connections(self) -> int:
        """How many connections were accepted so far."""
        with self._lock:
            return self._connections

    def wait_gone(self) -> None:
        """Wait until a script has seen its client go."""
        assert self.gone.acquire(timeout=BOUND), "the client did not end its connection"

    def add(self, request: Request) -> None:
        with self._lock:
            self._requests.append(request)

    def wait_ending(self) -> None:
        self._ending.wait()

    def pace(self) -> None:
        if self._ending.wait(0.005):
            raise Ended()

    def swapped(self, old: socket.socket, new: socket.socket) -> socket.socket:
        with self._lock:
            self._sockets = [new if sock is old else sock for sock in self._sockets]
        return new

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._ending.is_set():
                    sock.close()
                    return
                self._connections += 1
                number = self._connections
                self._sockets.append(sock)
                thread = threading.Thread(
                    target=self._serve, args=(sock, number), name="rawserver-%d" % number, daemon=True
                )
                self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(self, sock, number)
        try:
            if self._tls is not None:
                peer.start_tls(self._tls)
            self._script(peer)
        except (Ended, OSError):
            pass
        except BaseException as error:
            with self._lock:
                self._failed.append(error)
        finally:
            _end(peer._sock)

    def close(self) -> None:
        """End all connections and threads, and raise what a script raised."""
        self._ending.set()
        # Closing does not wake a thread that accepts; a connection does.
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=BOUND).close()
        except OSError:
            pass
        self._acceptor.join(BOUND)
        self._listener.close()
        with self._lock:
            sockets, threads = list(self._sockets), list(self._threads)
        for sock in sockets:
            # Wakes the thread, which closes the socket.
            try:
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in threads:
            thread.join(BOUND)
            assert not thread.is_alive(), "%s hangs" % thread.name
        for error in self._failed:
            raise error

    def __enter__(self) -> "RawServer":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            self.close()
        except Exception:
            if kind is None:
                raise


def _end(sock: socket.socket) -> None:
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        pass
    sock.close()


class Outcome:
    """Runs a call in a thread of its own and keeps what comes of it, so that a test waits for it with a bound.

    :param call: the call.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._value: Any = None
        self._error: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._run, name="outcome", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:
            self._error = error

    def _wait(self) -> None:
        self._thread.join(BOUND)
        assert not self._thread.is_alive(), "the call hangs"

    def value(self) -> Any:
        """Wait for the call's end and return its value, or raise its error."""
        self._wait()
        if self._error is not None:
            raise self._error
        return self._value

    def error(self) -> BaseException:
        """Wait for the call's end and return its error."""
        self._wait()
        assert self._error is not None, "the call returned %r" % (self._value,)
        return self._error
