"""One exchange's hold on the socket that it uses: how long a step may take, and how to end it from outside.

It is found by the connection that works for it through the identity of the thread, since the libraries in between hand
nothing through.
"""

from __future__ import annotations

import socket
import threading
from typing import Any, Dict, List, Optional

from .._deadline import Deadline
from ..errors import MessageTooLarge

__all__ = ["Guard", "current_guard", "forget_guard"]


class Guard:
    """Keeps the deadline of one exchange, and lets any thread interrupt it. Any thread may call :meth:`interrupt` and set
    :attr:`deadline`; the rest is for the thread of the exchange.

    :param deadline: for the whole exchange.
    """

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        #: The longest pause between two pieces of the answer, in seconds; None for none but the deadline.
        self.silence: Optional[float] = None
        #: The same, once the server has shown that it sends signs of life; None for no difference.
        self.lively: Optional[float] = None
        #: Whether any byte of the request went out: if not, the server cannot have executed it.
        self.sent = False
        #: Which limit was the shortest at the last step: ``"deadline"``, ``"silence"`` or ``"connect"``.
        self.limited_by = "deadline"
        #: How many bytes may still be received; None for any number.
        self.budget: Optional[int] = None
        self._connecting: Optional[Deadline] = None
        self._outer: List[Optional[Guard]] = []
        # Guards the three below: an interruption must not hit a socket that was given back and serves another exchange.
        # A thread may take it twice: a handler of a signal may interrupt.
        self._lock = threading.RLock()
        self.interrupted = False
        self._socket: Optional[socket.socket] = None
        self._own: Optional[socket.socket] = None  # the same, if it is to be closed here

    def __enter__(self) -> "Guard":
        """Guard the connections that this thread uses, until the end of the block."""
        me = threading.get_ident()
        self._outer.append(_guarding.get(me))
        _guarding[me] = self
        return self

    def __exit__(self, *_: Any) -> None:
        outer = self._outer.pop()
        if outer is None:
            _guarding.pop(threading.get_ident(), None)
        else:
            _guarding[threading.get_ident()] = outer

    # -- the socket ----------------------------------------------------------------------------------------------------

    def attach(self, sock: socket.socket, own: bool = False) -> None:
        """Note the socket to shut down on an interruption.

        :param own: True if it is a duplicate that is to be closed when the next one is attached.
        """
        with self._lock:
            self._socket = sock
            replaced, self._own = self._own, sock if own else None
            interrupted = self.interrupted
        if replaced is not None:
            replaced.close()
        if interrupted:
            _shut_down(sock)

    def detach(self) -> None:
        """Forget the socket: it belongs to others from now on."""
        with self._lock:
            self._socket = None
            own, self._own = self._own, None
        if own is not None:
            own.close()

    def interrupt(self) -> None:
        """Make the step that the exchange is at end at once. Any thread; never blocks."""
        with self._lock:
            self.interrupted = True
            # The one system call under a lock: it does not block, and must not happen after a detach().
            if self._socket is not None:
                _shut_down(self._socket)

    def put_off(self, deadline: Deadline) -> None:
        """Move the end of the time for all of it. Any thread."""
        self.deadline = deadline

    # -- the limits ----------------------------------------------------------------------------------------------------

    @property
    def connecting(self) -> bool:
        """Whether the connection is still being made."""
        return self._connecting is not None

    def connect_within(self, timeout: Optional[float]) -> None:
        """Begin to count the time of one attempt to connect; the handshakes after it are one more."""
        self._connecting = Deadline(timeout)

    def connected(self) -> None:
        """The connection is made, or not to be had."""
        self._connecting = None

    def seconds(self) -> Optional[float]:
        """Return how long the next step may take.

        :raises socket.timeout: if nothing is left.
        """
        limit, self.limited_by = self.deadline.remaining(), "deadline"
        connect = self._connecting.remaining() if self._connecting is not None else None
        for other, by in ((self.silence, "silence"), (connect, "connect")):
            if other is not None and (limit is None or other < limit):
                limit, self.limited_by = other, by
        if limit is not None and limit <= 0.0:
            raise socket.timeout("timed out")
        return limit

    def received(self, count: int) -> None:
        """Note that bytes came.

        :raises MessageTooLarge: if that are more than the budget.
        """
        if self.budget is not None:
            self.budget -= count
            if self.budget < 0:
                raise MessageTooLarge("the server refuses the request with more words than are read")


#: By thread. Not a threading.local: one that was made before gevent patched that is the same for all its greenlets.
_guarding: Dict[int, Guard] = {}


def current_guard() -> Optional[Guard]:
    """Return the guard of the exchange that this thread is at, if it is at one."""
    return _guarding.get(threading.get_ident())


def forget_guard() -> None:
    """In a forked child: the exchanges were the parent's."""
    _guarding.clear()


def _shut_down(sock: socket.socket) -> None:
    try:
        # Not sock.shutdown(): for TLS that takes the TLS object away under the feet of the thread that reads.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        pass  # it is no longer connected, which is what was wanted
