"""One accepted TCP connection, and the rule that keeps it safe: *only the thread that serves it touches it*.

A thread that is blocked in ``recv`` cannot be stopped cleanly from outside: closing the descriptor under it may
hit a stranger who was given the same number. So the owner never blocks on the socket alone. It waits on the socket
**and** on a socket pair of its own; any other thread that wants something (end, reset, "there is an event to send")
says so in a flag and writes one byte to that pair.
"""

import selectors
import socket
import struct
import threading
from typing import Optional

from .waiting import Disconnected, Waiting

#: What to wait with. ``select`` cannot watch descriptors above 1023; ``poll`` can, and needs no descriptor of its own
#: as ``epoll`` does.
Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)

_RECEIVE = 65536


class Wire(Waiting):
    """The bytes of one connection.

    A peer that closes its sending half counts as gone: HTTP clients do not do that while they wait for an answer.

    :param sock: an accepted socket; this object owns it from now on.

    Threads: :meth:`wake`, :meth:`ask_close` and :meth:`ask_reset` are for any thread, the rest for the owner.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        # Without it the kernel holds back a small event while an earlier one is unacknowledged.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._selector = Selector()
        self._bell, self._button = socket.socketpair()
        self._bell.setblocking(False)
        self._button.setblocking(False)
        self._selector.register(self._sock, selectors.EVENT_READ)
        self._selector.register(self._bell, selectors.EVENT_READ)
        self._received = bytearray()
        self._ended = False
        self._hung_up = False
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._rung = False
        self._open = True
        self._close_asked = False
        self._reset_asked = False

    # -- for any thread ------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Make the owner's current or next wait return."""
        with self._lock:
            self._ring_locked()

    def ask_close(self) -> None:
        """Ask for the end of this connection once the exchange under way is answered."""
        with self._lock:
            self._close_asked = True
            self._ring_locked()
        self._tell()

    def ask_reset(self) -> None:
        """Ask for the end of this connection now, with a TCP reset."""
        with self._lock:
            self._reset_asked = True
            self._ring_locked()
        self._tell()

    def _ring_locked(self) -> None:
        # One byte, never blocking, to a socket of our own: the one I/O under a lock. Outside of it the owner might
        # close the pair in between, and the byte would go to whatever has got that descriptor by then.
        if self._open and not self._rung:
            self._rung = True
            self._button.send(b"!")

    # -- for the owner -------------------------------------------------------------------------------------------

    @property
    def closing(self) -> bool:
        """Whether somebody asked for the end of this connection."""
        with self._lock:
            return self._close_asked or self._reset_asked

    def wait(self, timeout: Optional[float] = None, writable: bool = False) -> None:
        """Wait until woken, until the peer sends something, or until the time is over. It may return early.

        :param timeout: seconds; ``None`` waits without limit (an ask from another thread ends it).
        :param writable: also return when the socket takes more bytes.
        :raises Disconnected: the peer is gone or a reset was asked for.
        """
        if not self._hung_up:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writable else 0)
            self._selector.modify(self._sock, events)
        for key, mask in self._selector.select(timeout):
            if key.fileobj is self._bell:
                with self._lock:
                    # In this order under one lock, or a ring between the two would be lost.
                    self._bell.recv(64)
                    self._rung = False
            elif mask & selectors.EVENT_READ:
                self._receive()
        if self._ended:
            raise Disconnected("the peer closed the connection")
        with self._lock:
            if self._reset_asked:
                raise Disconnected("a reset was asked for")

    def _receive(self) -> None:
        try:
            data = self._sock.recv(_RECEIVE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._received += data
        else:
            self._ended = True

    def read_until(self, mark: bytes, limit: int) -> bytes:
        """The bytes up to and including a mark.

        :raises Disconnected: the peer went away first, or the end was asked for while nothing had come yet.
        :raises ValueError: the mark did not come within ``limit`` bytes.
        """
        while True:
            position = self._received.find(mark)
            if position >= 0:
                return self._take(position + len(mark))
            if len(self._received) > limit:
                raise ValueError("no {!r} within {} bytes".format(mark, limit))
            if not self._received and self.closing:
                raise Disconnected("the end was asked for")
            self.wait()

    def read(self, count: int) -> bytes:
        """Exactly ``count`` bytes.

        :raises Disconnected: the peer went away first.
        """
        while len(self._received) < count:
            self.wait()
        return self._take(count)

    def read_now(self, count: int) -> Optional[bytes]:
        """Exactly ``count`` bytes if they have come, else ``None``. For who waits for other things as well."""
        return self._take(count) if len(self._received) >= count else None

    def _take(self, count: int) -> bytes:
        data = bytes(self._received[:count])
        del self._received[:count]
        return data

    def send(self, data: bytes) -> None:
        """Give all bytes to the kernel, in as few system calls as it allows.

        :raises Disconnected: the peer is gone or a reset was asked for.
        """
        view = memoryview(data)
        while view:
            try:
                sent = self._sock.send(view)
            except BlockingIOError:
                self.wait(writable=True)
            except OSError as error:
                raise Disconnected(str(error)) from error
            else:
                view = view[sent:]

    def hang_up(self) -> None:
        """End the connection, and stay as the place where its owner waits until :meth:`close`."""
        self._hung_up = True
        self._selector.unregister(self._sock)
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the peer was faster
        self._sock.close()

    def close(self) -> None:
        """End the connection: with a reset if one was asked for, else in the ordinary way (FIN)."""
        with self._lock:
            reset, self._open = self._reset_asked, False
        try:
            if reset:
                # Lingering for zero seconds throws away what is unsent and sends RST.
                self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                # A forked child may hold a copy of the descriptor; shutdown reaches the peer all the same.
                self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the peer was faster
        self.forget()

    def forget(self) -> None:
        """Drop the descriptors without a word to the peer: for a forked child, whose parent goes on using them."""
        self._selector.close()
        for sock in (self._sock, self._bell, self._button):
            sock.close()
