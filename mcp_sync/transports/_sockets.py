"""Connections that keep to a deadline, can be interrupted, and are dropped in a forked child.

The limits of ``requests`` count for each operation on the socket: a server that sends one byte a second is never late,
nor is a name with five addresses of which none answers. Here the socket's own limit is set before every step (each
address, each handshake, each piece of the request, each read, headers included) to what is left for the exchange. The
same place tells the exchange's guard which socket to shut down: ``Response.close()`` of another thread neither returns
nor wakes the reader.
"""

from __future__ import annotations

import http.client
import io
import os
import socket
import ssl
import threading
import weakref
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, cast

import urllib3.exceptions
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.connection import allowed_gai_family

from .. import _fork
from ._guard import Guard, current_guard, forget_guard

__all__ = ["GuardedAdapter", "pool_for"]

# Requests are sent in pieces of this size, each with what is then left of the time: one record of TLS.
_PIECE = 16384

_open_sockets: "weakref.WeakSet[socket.socket]" = weakref.WeakSet()
# By thread: the descriptors that are in a handshake, between two objects, with what they lead to.
_in_handshake: Dict[int, Tuple[int, int]] = {}


# -- reading -----------------------------------------------------------------------------------------------------------


class _GuardedRead(socket.SocketIO):
    """Sets the socket's limit before every read to what its guard allows."""

    def __init__(self, sock: socket.socket, guard: Guard) -> None:
        super().__init__(sock, "r")
        self._guarded = sock
        self._guard: Guard = guard
        self.ended = False

    def readinto(self, buffer: Any) -> Optional[int]:
        if self.ended:
            return None
        while True:
            self._guarded.settimeout(self._guard.seconds())
            try:
                count = super().readinto(buffer)
                break
            except socket.timeout:
                # Another thread may have put the deadline off in the meantime.
                if self._guard.limited_by != "deadline" or self._guard.deadline.expired:
                    raise
                self._timeout_occurred = False  # or the base class would never read again
        self._guard.received(count or 0)
        return count


class _Reader(io.BufferedReader):
    """Notices that an answer ends within its headers: http.client takes those that came for all of them."""

    def __init__(self, raw: _GuardedRead) -> None:
        super().__init__(raw, 65536)
        self.in_headers = True
        self._begun = False

    def readline(self, size: Optional[int] = -1) -> bytes:
        line = super().readline(size)
        if self.in_headers and not line.endswith(b"\n") and len(line) != size and (line or self._begun):
            raise http.client.IncompleteRead(line)
        self._begun = True
        return line


class _GuardedSocket:
    """What http.client wants of a socket when it makes a response: something to read from."""

    def __init__(self, sock: socket.socket, guard: Guard) -> None:
        self._sock = sock
        self._guard = guard

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        raw = _GuardedRead(self._sock, self._guard)
        # As socket.makefile() does: the socket stays open until this reader is closed too.
        self._sock._io_refs += 1  # type: ignore[attr-defined]
        return _Reader(raw)


class _Response(http.client.HTTPResponse):
    #: Whether more came than the answer: the two sides do not agree on where answers end.
    surplus = False

    def __init__(self, sock: Any, *args: Any, **kwargs: Any) -> None:
        guard = current_guard()
        if guard is not None and isinstance(sock, socket.socket):
            if not guard.connecting:
                guard.attach(sock)
            sock = _GuardedSocket(sock, guard)
        super().__init__(cast(socket.socket, sock), *args, **kwargs)

    def begin(self) -> None:
        super().begin()
        if isinstance(self.fp, _Reader):
            self.fp.in_headers = False

    def _read_status(self) -> Tuple[str, int, str]:
        # http.client skips "100 Continue" and takes the other interim answers for the final one, whose place on the
        # connection the final one would then have.
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]
            if not 100 < status < 200 or status == 101:
                return version, status, reason
            http.client.parse_headers(self.fp)

    def _close_conn(self) -> None:
        raw = getattr(self.fp, "raw", None)
        if isinstance(raw, _GuardedRead) and not raw.closed:
            raw.ended = True  # look into the buffer, and no further
            self.surplus = bool(self.fp.peek(1))
        super()._close_conn()  # type: ignore[misc]


# -- connecting and sending --------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    _Base = HTTPConnection
else:
    _Base = object


class _Guarded(_Base):
    """What both kinds of connection have in common. ``timeout`` is that for connecting."""

    response_class = _Response

    def connect(self) -> None:
        guard = current_guard()
        try:
            if guard is None:
                super().connect()
            else:
                try:
                    super().connect()
                except (BrokenPipeError, ConnectionResetError) as error:
                    # urllib3 ignores these two while it sends, since an answer may have come all the same; it takes one of
                    # connecting for one of sending, and then fails over a connection that was never there.
                    _close_half_made(error)
                    raise urllib3.exceptions.ProtocolError("the connection was reset while it was made", error) from error
                except Exception as error:
                    _close_half_made(error)
                    raise
                finally:
                    guard.connected()
        finally:
            with _fork.held_off():
                if isinstance(self.sock, socket.socket):
                    _open_sockets.add(self.sock)
                _in_handshake.pop(threading.get_ident(), None)

    def _new_conn(self) -> socket.socket:
        guard = current_guard()
        if guard is None:
            return super()._new_conn()
        failed: Optional[OSError] = None
        # With the trailing dot that a name may have, which is for the resolver alone; before urllib3 1.23 they are one.
        host = str(getattr(self, "_dns_host", self.host)).strip("[]")
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, self.port, allowed_gai_family(), socket.SOCK_STREAM
        ):
            try:
                with _fork.held_off():
                    sock = socket.socket(family, kind, protocol)
                    _open_sockets.add(sock)
            except OSError as error:
                failed = error
                continue
            try:
                for option in self.socket_options or ():
                    sock.setsockopt(*option)
                guard.attach(sock)
                guard.connect_within(self.timeout)
                sock.settimeout(guard.seconds())
                sock.connect(address)
                self._connected(sock, guard)
                return sock
            except OSError as error:
                guard.detach()
                sock.close()
                failed = error
                if guard.interrupted or guard.deadline.expired:
                    break
        raise failed or OSError("%s has no address" % host)

    def _connected(self, sock: socket.socket, guard: Guard) -> None:
        # What follows, a proxy's answer or a handshake, has as long as one attempt to connect.
        guard.connect_within(self.timeout)
        sock.settimeout(guard.seconds())

    def send(self, data: Any) -> None:
        if self.sock is None and self.auto_open:
            self.connect()  # as the base class would
        guard = current_guard()
        if guard is None or not isinstance(self.sock, socket.socket):
            super().send(data)
            return
        if not guard.connecting:  # what is sent meanwhile is for a proxy
            guard.attach(self.sock)
            guard.sent = True
        view = memoryview(data)
        for begin in range(0, len(view), _PIECE):
            self.sock.settimeout(guard.seconds())
            super().send(view[begin : begin + _PIECE])


def _close_half_made(error: Exception) -> None:
    """Close what ssl was about to make of a socket when the other side went away.

    It then leaves the descriptor open in an object that nobody has, but for the traceback of the error.
    """
    traceback = error.__traceback__
    while traceback is not None:
        made = traceback.tb_frame.f_locals.get("self")
        if isinstance(made, ssl.SSLSocket):
            made.close()
        traceback = traceback.tb_next


class _Connection(_Guarded, HTTPConnection):
    pass


class _TLSConnection(_Guarded, HTTPSConnection):
    def _connected(self, sock: socket.socket, guard: Guard) -> None:
        super()._connected(sock, guard)
        # During the handshake the descriptor passes from one object to another, so that there is none to shut down. A
        # duplicate of it is as good.
        with _fork.held_off():
            copy = sock.dup()
            _open_sockets.add(copy)
            _in_handshake[threading.get_ident()] = (sock.fileno(), os.fstat(sock.fileno()).st_ino)
        guard.attach(copy, own=True)


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

    def close(self) -> None:
        """Close the idle connections now; those in use are closed when they are given back."""
        # urllib3 2 merely forgets its pools, and leaves their connections open while anything still refers to one.
        for manager in [self.poolmanager] + list(self.proxy_manager.values()):
            for key in list(manager.pools.keys()):
                pool = manager.pools.get(key)
                if pool is not None:
                    pool.close()
        super().close()


class _SocketsOfTheParent:
    """Drops inherited sockets in a forked child: no farewell on them, since the parent still speaks through them."""

    def after_fork_in_child(self) -> None:
        for sock in list(_open_sockets):
            try:
                os.close(sock.detach())
            except OSError:
                pass  # it was closed already
        _open_sockets.clear()
        for descriptor, inode in list(_in_handshake.values()):
            try:
                if os.fstat(descriptor).st_ino == inode:
                    os.close(descriptor)
            except OSError:
                pass  # it was closed already
        _in_handshake.clear()
        forget_guard()


_sockets_of_the_parent = _SocketsOfTheParent()
_fork.register(_sockets_of_the_parent)


def pool_for(
    adapter: GuardedAdapter, prepared: Any, verify: Any, cert: Any, proxies: Dict[str, str]
) -> Tuple[Any, str]:
    """Return the connection pool for a prepared request, and the target that its request line names."""
    if hasattr(adapter, "get_connection_with_tls_context"):
        pool = adapter.get_connection_with_tls_context(prepared, verify, proxies=proxies, cert=cert)
    else:
        pool = adapter.get_connection(prepared.url, proxies)  # requests before 2.32
    adapter.cert_verify(pool, prepared.url, verify, cert)  # type: ignore[no-untyped-call]
    return pool, str(adapter.request_url(prepared, proxies))
