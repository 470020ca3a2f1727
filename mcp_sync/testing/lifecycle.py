"""The port, the connections and the threads of a server: how they begin, and how they end without leaving anything."""

import os
import socket
import threading
import time
import weakref
from typing import Callable, Dict, Iterable, Optional

from .acceptor import Acceptor
from .wire import Wire

# How long an end waits for answers under way before it resets what is left, and then for the threads, in seconds.
_GRACE = 1.0
# How long a restart asks for its old port, in seconds.
_PATIENCE = 5.0


class Lifecycle:
    """Listens, and gives every accepted connection a thread of its own.

    :param host: address or name to listen on.
    :param port: TCP port, 0 for a free one; whatever it is after the first start, it stays.
    :param serve: serves one connection from its first byte to its end, and closes it.

    Threads: any thread may call any method.
    """

    def __init__(self, host: str, port: int, serve: Callable[[Wire], None]) -> None:
        self._host = host
        self._serve = serve
        self._changed = threading.Condition(threading.Lock())
        # Guarded by _changed:
        self._port = port
        self._acceptor: Optional[Acceptor] = None
        self._served: Dict[Wire, threading.Thread] = {}
        self._accepted = 0
        _all.add(self)

    @property
    def port(self) -> int:
        """The port; before the first start, the one that was asked for."""
        with self._changed:
            return self._port

    def start(self) -> None:
        """Listen; nothing happens if it does already.

        :raises OSError: the address cannot be had.
        """
        with self._changed:
            port, running = self._port, self._acceptor is not None
        if not running:
            acceptor = Acceptor(self._host, port, self._accept, _PATIENCE if port else 0.0)
            with self._changed:
                self._acceptor, self._port = acceptor, acceptor.port

    def stop(self) -> bool:
        """Refuse new connections, let those that are being served come to their end, then reset what is left.

        :returns: whether there was anything to stop.
        """
        return self._end(Wire.ask_close)

    def kill(self) -> bool:
        """Refuse new connections and reset all others.

        :returns: whether there was anything to kill.
        """
        return self._end(Wire.ask_reset)

    def _end(self, ask: Callable[[Wire], None]) -> bool:
        with self._changed:
            acceptor, self._acceptor = self._acceptor, None
        if acceptor is None:
            return False
        # First of all, or a client that reconnects at once would find this server again.
        acceptor.close()
        with self._changed:
            served = dict(self._served)
        for wire in served:
            ask(wire)
        _join(served.values(), _GRACE)
        for wire in served:
            wire.ask_reset()
        _join(served.values(), _GRACE)
        return True

    def _accept(self, sock: socket.socket) -> None:
        try:
            wire = Wire(sock)
        except OSError:
            sock.close()  # the client was gone already
            return
        with self._changed:
            self._accepted += 1
            name = "mcp_sync-testing-connection-{}-{}".format(self._port, self._accepted)
            thread = threading.Thread(target=self._run, args=(wire,), name=name, daemon=True)
            self._served[wire] = thread
            self._changed.notify_all()
        thread.start()

    def _run(self, wire: Wire) -> None:
        try:
            self._serve(wire)
        finally:
            with self._changed:
                self._served.pop(wire, None)
                self._changed.notify_all()

    @property
    def connections(self) -> int:
        """How many connections are open."""
        with self._changed:
            return len(self._served)

    def wait(self, count: int, timeout: float) -> bool:
        """Wait until exactly that many connections are open.

        :param timeout: seconds.
        :returns: whether that happened.
        """
        with self._changed:
            return self._changed.wait_for(lambda: len(self._served) == count, timeout)

    def forget(self) -> None:
        """In a forked child: drop everything, without a lock and without a word to any peer.

        The threads are the parent's. The child's copies of the descriptors would keep a connection open that the parent
        has closed.
        """
        acceptor, served = self._acceptor, list(self._served)
        self._changed = threading.Condition(threading.Lock())
        self._acceptor, self._served = None, {}
        if acceptor is not None:
            acceptor.forget()
        for wire in served:
            wire.forget()


def _join(threads: Iterable[threading.Thread], seconds: float) -> None:
    end = time.monotonic() + seconds
    for thread in threads:
        if thread is not threading.current_thread():  # a tool may stop the server that runs it
            thread.join(max(0.0, end - time.monotonic()))


_all: "weakref.WeakSet[Lifecycle]" = weakref.WeakSet()


def _forget_all() -> None:
    for lifecycle in list(_all):
        lifecycle.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
