"""The requests that a server has received, and waiting for them."""

import threading
from typing import List, Optional, Tuple

from .request import Request


class Recorder:
    """A log of requests.

    Threads: any thread may call any method.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        # Guarded by _changed:
        self._requests: List[Request] = []

    def add(self, request: Request) -> None:
        """Note a request that has arrived."""
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()

    def all(self) -> Tuple[Request, ...]:
        """Every request so far, in the order of arrival."""
        with self._changed:
            return tuple(self._requests)

    def forget(self) -> None:
        """Start again with an empty log."""
        with self._changed:
            self._requests = []

    def count(self, method: Optional[str], uri: Optional[str]) -> int:
        """How many there were with that method and that URI; ``None`` stands for any."""
        with self._changed:
            return self._count_locked(method, uri)

    def wait(self, method: Optional[str], count: int, uri: Optional[str], timeout: float) -> None:
        """Wait until there were ``count`` of them.

        :raises TimeoutError: there were not.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._count_locked(method, uri) >= count, timeout):
                raise TimeoutError("{} of {} requests for {} within {} s; there were: {}".format(
                    self._count_locked(method, uri), count, method or "any method", timeout, self._requests[-20:]))

    def _count_locked(self, method: Optional[str], uri: Optional[str]) -> int:
        return sum(request.concerns(method, uri) for request in self._requests)
