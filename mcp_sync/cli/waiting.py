"""How to wait so that Ctrl-C is heard, and what other signals do."""

import contextlib
import os
import signal
import threading
from typing import Any, Callable, Generic, Iterator, List, Optional, TypeVar

from .._worker import Worker

__all__ = ["Begun", "SLICE", "Suspension", "Terminated", "interruptibly", "terminable"]

#: The longest single wait, in seconds. Windows tells of Ctrl-C only between two waits, and no system tells of it while
#: a host's name is looked up. It is also how soon a resized window, or a pipe that nobody reads any more, is noticed.
SLICE = 0.25

T = TypeVar("T")


class Terminated(BaseException):
    """SIGTERM came."""


class Begun(Generic[T]):
    """One call in another thread, and what it brings. For the thread that waits for it.

    :param call: what to call.
    :param at_end: called in that other thread when it is over.
    """

    def __init__(self, call: Callable[[], T], at_end: Callable[[], None] = lambda: None) -> None:
        self._call = call
        self._at_end = at_end
        self._results: List[T] = []
        self._error: Optional[Exception] = None
        self.ended = threading.Event()
        Worker("mcp_sync-command", self._run).start()

    def _run(self) -> None:
        try:
            self._results.append(self._call())
        except Exception as error:
            # Whatever it is, it belongs to the thread that waits.
            self._error = error
        finally:
            self.ended.set()
            self._at_end()

    def result(self) -> T:
        """Return what the call returned, or raise what it raised. Only when it has ended."""
        if self._error is not None:
            raise self._error
        return self._results[0]


def interruptibly(call: Callable[[], T]) -> T:
    """Return what ``call()`` returns, or raise what it raises. Ctrl-C ends the wait, wherever the call hangs."""
    begun = Begun(call)
    while not begun.ended.wait(SLICE):
        pass
    return begun.result()


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
