"""What a thread that serves a request waits on, so that any other thread can wake it or ask it to end."""

import abc
import threading
import time
from typing import Callable, Optional


class Disconnected(Exception):
    """The peer is gone, or somebody asked for this to end: stop serving it."""


class Waiting(abc.ABC):
    """The place at which one thread waits: a connection, or its share of a channel that many requests use.

    Threads: :meth:`wake`, :meth:`ask_close` and :meth:`ask_reset` are for any thread, the rest for the one that waits.
    """

    @abc.abstractmethod
    def wake(self) -> None:
        """Make the owner's current or next wait return."""

    @abc.abstractmethod
    def ask_close(self) -> None:
        """Ask for the end once the exchange under way is answered."""

    @abc.abstractmethod
    def ask_reset(self) -> None:
        """Ask for the end now, without another word."""

    @property
    @abc.abstractmethod
    def closing(self) -> bool:
        """Whether somebody asked for the end."""

    #: Written by the owner; read by whoever asks for the end.
    _end: Optional[threading.Event] = None

    def tell_end(self, end: Optional[threading.Event]) -> None:
        """Set that event as soon as somebody asks for the end, in the place of the one before; ``None`` sets none."""
        self._end = end
        self._tell()  # who has asked before now has found the one before

    def gone(self) -> None:
        """The owner has found out that the peer is gone."""
        end = self._end
        if end is not None:
            end.set()

    def _tell(self) -> None:
        end = self._end
        if end is not None and self.closing:
            end.set()

    @abc.abstractmethod
    def wait(self, timeout: Optional[float] = None) -> None:
        """Wait until woken or until the time is over. It may return early.

        :param timeout: seconds; ``None`` waits without limit (an ask from another thread ends it).
        :raises Disconnected: the peer is gone or a reset was asked for.
        """

    def wait_until(self, condition: Callable[[], bool], timeout: Optional[float] = None) -> bool:
        """Wait for a condition, or for an ask to end. Whoever makes the condition true must :meth:`wake` this.

        :param timeout: seconds; ``None`` waits without limit.
        :returns: whether the condition holds.
        :raises Disconnected: as :meth:`wait`.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while not condition() and not self.closing:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                break
            self.wait(left)
        if self.closing:
            self.wait(0.0)  # who asked for a reset is not to hear an answer
        return condition()
