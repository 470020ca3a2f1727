"""Connections that keep to a deadline, can be interrupted, and are dropped in a forked child.

The limits of ``requests`` count for each read of the socket: a server that sends one byte a second is never late. Here the
socket's own limit is set before every read, headers included, to what is left of the exchange's deadline. The same place
knows the socket that an exchange reads from, so that another thread can wake it up: ``Response.close()`` cannot, it neither
returns nor wakes the reader.
"""

import http.client
import io
import os
import socket
import threading
import weakref
from typing import Any, Dict, Optional, Tuple, cast

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from .. import _fork
from .._deadline import Deadline

__all__ = ["Guard", "GuardedAdapter"]

_open_sockets: "weakref.WeakSet[socket.socket]" = weakref.WeakSet()


class Guard:
    """One exchange's hold on its socket: how long a read may take, and how to end it from outside. Any thread.

    :param deadline: for the whole exchange.
    """

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.silence: Optional[float] = None
        # Guards the two below: an interruption must not hit a socket that was given back and serves another exchange.
        self._lock = threading.Lock()
        self.interrupted = False
        self._socket: Optional[socket.socket] = None

    def __enter__(self) -> "Guard":
        """Guard the connections that this thread uses, until the end of the block."""
        _guarding.guard = self
        return self

    def __exit__(self, *_: Any) -> None:
        _guarding.guard = None

    def attach(self, sock: socket.socket) -> None:
        """Note the socket that the answer will come from."""
        with self._lock:
            self._socket = sock
            interrupted = self.interrupted
        if interrupted:
            _shut_down(sock)

    def detach(self) -> None:
        """Forget the socket: it belongs to others from now on."""
        with self._lock:
            self._socket = None

    def interrupt(self) -> None:
        """Make the reading thread's read end at once."""
        with self._lock:
            self.interrupted = True
            # The one system call under a lock: it does not block, and must not happen after a detach().
            if self._socket is not None:
                _shut_down(self._socket)

    def seconds(self) -> Optional[float]:
        """Return how long the next read may take.

        :raises socket.timeout: if nothing is left.
        """
        limit = self.deadline.shorter(self.silence)
        if limit is not None and limit <= 0.0:
            raise socket.timeout("timed out")
        return limit


class _Guarding(threading.local):
    guard: Optional[Guard] = None


_guarding = _Guarding()


def _shut_down(sock: socket.socket) -> None:
    try:
        # Not sock.shutdown(): for TLS that takes the TLS object away under the feet of the thread that reads.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        pass  # it is no longer connected, which is what was wanted


class _GuardedRead(socket.SocketIO):
    """Sets the socket's limit before every read to what its guard allows."""

    def __init__(self, sock: socket.socket, guard: Guard) -> None:
        super().__init__(sock, "r")
        self._guarded = sock
        self._guard: Guard = guard

    def readinto(self, buffer: Any) -> Optional[int]:
        self._guarded.settimeout(self._guard.seconds())
        return super().readinto(buffer)


class _GuardedSocket:
    """What http.client wants of a socket when it makes a response: something to read from."""

    def __init__(self, sock: socket.socket, guard: Guard) -> None:
        self._sock = sock
        self._guard = guard

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        raw = _GuardedRead(self._sock, self._guard)
        # As socket.makefile() does: the socket stays open until this reader is closed too.
        self._sock._io_refs += 1  # type: ignore[attr-defined]
        return io.BufferedReader(raw, 65536)


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: Any, *args: Any, **kwargs: Any) -> None:
        guard = _guarding.guard
        if guard is not None and isinstance(sock, socket.socket):
            guard.attach(sock)
            sock = _GuardedSocket(sock, guard)
        super().__init__(cast(socket.socket, sock), *args, **kwargs)


class _Connection(HTTPConnection):
    response_class = _Response

    def connect(self) -> None:
        super().connect()
        if isinstance(self.sock, socket.socket):
            _open_sockets.add(self.sock)


class _TLSConnection(HTTPSConnection):
    response_class = _Response

    def connect(self) -> None:
        super().connect()
        if isinstance(self.sock, socket.socket):
            _open_sockets.add(self.sock)


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TLSPool(HTTPSConnectionPool):
    ConnectionCls = _TLSConnection


_POOLS: Dict[str, Any] = {"http": _Pool, "https": _TLSPool}


class GuardedAdapter(HTTPAdapter):
    """An adapter of requests whose connections are guarded.

    :param connections: how many idle connections are kept.
    """

    def __init__(self, connections: int) -> None:
        super().__init__(pool_connections=2, pool_maxsize=connections, max_retries=0, pool_block=False)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)
        # A proxy for SOCKS has pools of its own kind; they work, but without a deadline on headers.
        if manager.pool_classes_by_scheme.get("http") is HTTPConnectionPool:
            manager.pool_classes_by_scheme = _POOLS
        return manager


class _SocketsOfTheParent:
    """Drops inherited sockets in a forked child: no farewell on them, since the parent still speaks through them."""

    def after_fork_in_child(self) -> None:
        for sock in list(_open_sockets):
            try:
                os.close(sock.detach())
            except OSError:
                pass  # it was closed already
        _open_sockets.clear()
        _guarding.guard = None


_sockets_of_the_parent = _SocketsOfTheParent()
_fork.register(_sockets_of_the_parent)


def pool_for(adapter: GuardedAdapter, prepared: Any, verify: Any, cert: Any, proxies: Dict[str, str]) -> Tuple[Any, str]:
    """Return the connection pool for a prepared request, and the target that its request line names."""
    if hasattr(adapter, "get_connection_with_tls_context"):
        pool = adapter.get_connection_with_tls_context(prepared, verify, proxies=proxies, cert=cert)
    else:
        pool = adapter.get_connection(prepared.url, proxies)  # requests before 2.32
    adapter.cert_verify(pool, prepared.url, verify, cert)  # type: ignore[no-untyped-call]
    return pool, str(adapter.request_url(prepared, proxies))
