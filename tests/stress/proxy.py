"""A proxy between a client and a server that breaks connections as networks do, and not as servers do."""

import collections
import random
import socket
import struct
import threading
import time
from typing import Callable, Counter, List, NamedTuple, Optional

#: What can become of a connection. All but the last two concern what the server sends.
KINDS = (
    "delay",  # every piece comes late, in both directions
    "drip",  # one byte at a time
    "cut",  # the connection ends in the middle of an answer
    "reset",  # likewise, by a TCP reset
    "half-open",  # the server's side is gone, and nobody tells the client, whose own words go nowhere
    "deaf",  # the acknowledgement of a stream comes through, or what there was, and after it nothing any more
    "overtaken",  # every piece waits until another connection has brought something that was sent later
    "repeated",  # the answer to a request comes once more, in the place of the answer to the next one
)

_SIZE = 65536
# After so many bytes one at a time, the rest comes at once, so that a large answer does not last for ever.
_DRIPPED = 3000
_ACKNOWLEDGEMENT = b"acknowledged"


class Fault(NamedTuple):
    """What is to become of a connection.

    :param kind: one of ``KINDS``.
    :param after: how many bytes from the server pass before it happens.
    :param seconds: how long a piece waits at most, where pieces wait.
    """

    kind: str
    after: int = 0
    seconds: float = 0.05


Choose = Callable[[], Optional[Fault]]


class Link:
    """One connection: two sockets, a thread for each direction. Any thread may set ``fault``, and end it."""

    def __init__(self, proxy: "Proxy", client: socket.socket, server: socket.socket, fault: Optional[Fault]) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._over = threading.Event()
        self._lock = threading.Lock()  # guards the two below
        self._running = 2
        self._reset = False
        self._passed = 0
        self._silent = False
        self._last = b""
        self._fault = fault
        for sock in (client, server):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.threads = [
            threading.Thread(target=self._run, args=(work,), name="stress-proxy", daemon=True) for work in (self._down, self._up)
        ]

    @property
    def fault(self) -> Optional[Fault]:
        return self._fault

    @fault.setter
    def fault(self, fault: Optional[Fault]) -> None:
        self._passed = 0
        self._fault = fault
        if fault is None and self._silent:
            self.end()  # nothing that was dropped can be had again

    def end(self, reset: bool = False) -> None:
        """End both sides; the client's by a reset, if that is wanted."""
        with self._lock:
            self._reset = self._reset or reset
        self._over.set()
        for sock, how in ((self._client, socket.SHUT_RD if reset else socket.SHUT_RDWR), (self._server, socket.SHUT_RDWR)):
            try:
                sock.shutdown(how)
            except OSError:
                pass

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError:
            pass
        if not self._silent:
            self.end(self._reset)
        with self._lock:
            self._running -= 1
            last = self._running == 0
        if last:
            if self._reset:
                self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._client.close()
            self._server.close()
            self._proxy.forget(self)

    # -- from the client to the server -----------------------------------------------------------------------------------

    def _up(self) -> None:
        while True:
            data = self._client.recv(_SIZE)
            if not data:
                self._silent = False
                return
            fault = self._fault
            if self._silent and fault is not None and fault.kind == "half-open":
                continue
            if fault is not None and fault.kind == "delay":
                self._bites(fault)
                self._over.wait(fault.seconds)
            self._server.sendall(data)
            if fault is not None and fault.kind == "repeated" and self._last:
                last, self._last = self._last, b""
                self._bites(fault)
                self._client.sendall(last)

    # -- from the server to the client -----------------------------------------------------------------------------------

    def _down(self) -> None:
        while True:
            data = self._server.recv(_SIZE)
            if not data:
                return
            if not self._silent:
                self._pass(data)
            if self._over.is_set():
                return

    def _pass(self, data: bytes) -> None:
        fault = self._fault
        if fault is None:
            self._send(data)
        elif fault.kind in ("cut", "reset", "half-open", "deaf"):
            left = max(0, fault.after - self._passed)
            if fault.kind == "deaf":
                at = data.find(_ACKNOWLEDGEMENT)
                if at >= 0:
                    left = data.find(b"\n", at) + 3  # with the line that ends the event
            self._passed += len(data)
            self._send(data[:left])
            if left < len(data):
                self._bites(fault)
                self._break(fault.kind)
        elif fault.kind == "drip":
            self._bites(fault)
            for at in range(min(len(data), _DRIPPED)):
                self._send(data[at : at + 1])
            self._send(data[_DRIPPED:])
        elif fault.kind == "overtaken":
            if self._proxy.wait_for_another(fault.seconds):
                self._bites(fault)
            self._send(data)
        else:
            if fault.kind == "delay":
                self._bites(fault)
                self._over.wait(fault.seconds)
            self._send(data)
            # Only what is an answer by itself can be taken for one.
            self._last = data if data.startswith(b"HTTP/1.1 200") and data.rstrip().endswith((b"}", b"0")) else b""

    def _break(self, kind: str) -> None:
        if kind in ("cut", "reset"):
            self.end(kind == "reset")
            return
        self._silent = True
        if kind == "half-open":
            try:
                self._server.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _send(self, data: bytes) -> None:
        if data:
            self._client.sendall(data)
            self._proxy.brought()

    def _bites(self, fault: Fault) -> None:
        self._proxy.count(fault.kind)


class Proxy:
    """Listens, and carries what comes to a server on this machine. Any thread; a context manager.

    :param port: where the server listens.
    :param choose: says what becomes of each new connection; None for nothing.
    """

    def __init__(self, port: int, choose: Optional[Choose] = None) -> None:
        self.choose = choose
        #: How often each fault was more than an intention.
        self.bitten: Counter[str] = collections.Counter()
        self._target = port
        self._lock = threading.Condition()  # guards everything below, and bitten
        self._links: List[Link] = []
        self._brought = 0
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64) if hasattr(socket, "create_server") else _listening()
        self.port = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, name="stress-proxy-acceptor", daemon=True)
        self._acceptor.start()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def links(self) -> List[Link]:
        """The connections that last, the oldest first."""
        with self._lock:
            return list(self._links)

    def disturb(self, fault: Fault, chance: random.Random) -> None:
        """Let something become of one of the connections that there are."""
        links = self.links
        if links:
            chance.choice(links).fault = fault

    def heal(self) -> None:
        """From now on it is a good network. What has become silent ends."""
        self.choose = None
        for link in self.links:
            link.fault = None

    def close(self) -> None:
        """End everything, and wait for the threads."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._acceptor.join(10.0)
        self._listener.close()
        for link in self.links:
            link.end()
            for thread in link.threads:
                thread.join(10.0)
        assert not self.links, "connections are left"

    # -- for the connections ---------------------------------------------------------------------------------------------

    def count(self, kind: str) -> None:
        with self._lock:
            self.bitten[kind] += 1

    def brought(self) -> None:
        """Note that something has reached the client."""
        with self._lock:
            self._brought += 1
            self._lock.notify_all()

    def wait_for_another(self, seconds: float) -> bool:
        """Wait until something else has reached the client, and return whether it did."""
        with self._lock:
            before = self._brought
            return self._lock.wait_for(lambda: self._brought > before or self._closed, seconds)

    def wait_for_bite(self, kind: str, timeout: float = 15.0) -> None:
        """Wait until a fault has happened. Any of ``KINDS``."""
        end = time.monotonic() + timeout
        while not self.bitten[kind]:
            assert time.monotonic() < end, "%s did not happen" % kind
            threading.Event().wait(0.01)

    def forget(self, link: Link) -> None:
        with self._lock:
            self._links.remove(link)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target), timeout=5.0)
            except OSError:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
                continue
            server.settimeout(None)
            choose = self.choose
            link = Link(self, client, server, None if choose is None else choose())
            with self._lock:
                self._links.append(link)
            for thread in link.threads:
                thread.start()


def _listening() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    return listener


def chooser(chance: random.Random, often: float = 0.5) -> Choose:
    """Return what chooses by chance: ``often`` says how often something happens to a connection."""

    def choose() -> Optional[Fault]:
        return chosen(chance) if chance.random() < often else None

    return choose


def chosen(chance: random.Random) -> Fault:
    """Return a fault that chance has chosen; the ones that end something come later in a connection, or sooner."""
    return Fault(chance.choice(KINDS), int(10 ** chance.uniform(0.0, 5.0)), chance.uniform(0.005, 0.2))
