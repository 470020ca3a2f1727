"""How the function of a request learns that nobody waits for its answer any more (basic/patterns/cancellation)."""

import threading
import time
from typing import Optional

from .waiting import Disconnected, Waiting


class Cancelled(threading.Event):
    """Set as soon as nobody waits for the answer any more, or the server stops.

    That a client has closed its HTTP connection is noticed while the thread that serves the request looks or waits here.

    :param wire: where that thread waits.

    Threads: any thread may call any method; it belongs to the one that made it.
    """

    def __init__(self, wire: Waiting) -> None:
        super().__init__()
        self._wire = wire
        self._owner = threading.get_ident()
        wire.tell_end(self)

    def is_set(self) -> bool:
        """Whether it is over."""
        if threading.get_ident() == self._owner and not super().is_set():
            self._look(0.0)
        return super().is_set()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Wait until it is over.

        :param timeout: seconds; ``None`` waits without limit.
        :returns: whether it is over.
        """
        if threading.get_ident() != self._owner:
            return super().wait(timeout)
        end = None if timeout is None else time.monotonic() + timeout
        while not super().is_set():
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                break
            self._look(left)
        return super().is_set()

    def _look(self, timeout: Optional[float]) -> None:
        try:
            if not self._wire.closing:
                self._wire.wait(timeout)
        except Disconnected:
            self.set()
        if self._wire.closing:
            self.set()  # who asks for the end wakes this thread before it sets the event
