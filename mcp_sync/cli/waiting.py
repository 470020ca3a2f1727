"""How to wait so that Ctrl-C is heard, and what other signals do."""

import contextlib
import os
import signal
import threading
from typing import Any, Callable, Generic, Iterator, List, Optional, TypeVar

from .._worker import Worker

__all__ = ["SLICE", "Suspension", "Terminated", "interruptibly", "terminable"]

#: The longest single wait, in seconds. Windows tells of Ctrl-C only between two waits, and no system tells of it while
#: a host's name is looked up. It is also how soon a resized window, or a pipe that nobody reads any more, is noticed.
SLICE = 0.25

T = TypeVar("T")


class Terminated(BaseException):
    """SIGTERM came."""


class _Call(Generic[T]):
    """What one call in another thread brought."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self.ended = threading.Event()
        self.results: List[T] = []
        self.error: Optional[Exception] = None

    def run(self) -> None:
        try:
            self.results.append(self._call())
        except Exception as error:
            # Whatever it is, it belongs to the thread that waits.
            self.error = error
        finally:
            self.ended.set()


def interruptibly(call: Callable[[], T]) -> T:
    """Return what ``call()`` returns, or raise what it raises. Ctrl-C ends the wait, wherever the call hangs."""
    made = _Call(call)
    Worker("mcp_sync-command", made.run).start()
    while not made.ended.wait(SLICE):
        pass
    if made.error is not None:
        raise made.error
    return made.results[0]


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Have SIGTERM raise :class:`Terminated` in the main thread, so that what is open is closed."""

    def terminate(number: int, frame: Any) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears signals
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Suspension:
    """Ctrl-Z: the program stops when it is ready to, having tidied the terminal. For the main thread."""

    def __init__(self) -> None:
        #: Whether the user wants it to stop.
        self.asked = False
        self._before: Any = None
        if hasattr(signal, "SIGTSTP") and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTSTP, self._ask)

    def close(self) -> None:
        """Have Ctrl-Z do again what it did before."""
        if self._before is not None:
            signal.signal(signal.SIGTSTP, self._before)

    def _ask(self, number: int, frame: Any) -> None:
        self.asked = True

    def stop(self) -> None:
        """Stop now. Returns when the program is continued."""
        self.asked = False
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._ask)
