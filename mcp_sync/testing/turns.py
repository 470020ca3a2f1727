"""Requests that share one channel: each is served by a thread of its own, so that one that is held holds no other."""

import itertools
import threading
import time
from typing import Callable, Dict, Optional

from .waiting import Disconnected, Waiting


class Turn(Waiting):
    """The share of one request in a channel: where its thread waits.

    Threads: as :class:`~mcp_sync.testing.waiting.Waiting`.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        # Guarded by _changed:
        self._woken = False
        self._close_asked = False
        self._reset_asked = False

    def wake(self) -> None:
        """Make the owner's current or next wait return."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def ask_close(self) -> None:
        """Ask for the answer now, whatever holds it back."""
        with self._changed:
            self._close_asked = True
            self._changed.notify_all()
        self._tell()

    def ask_reset(self) -> None:
        """Ask for the end, without an answer."""
        with self._changed:
            self._reset_asked = True
            self._changed.notify_all()
        self._tell()

    @property
    def closing(self) -> bool:
        """Whether somebody asked for the end."""
        with self._changed:
            return self._close_asked or self._reset_asked

    @property
    def reset(self) -> bool:
        """Whether somebody asked for the end without an answer."""
        with self._changed:
            return self._reset_asked

    def wait(self, timeout: Optional[float] = None) -> None:
        """Wait until woken, until asked to end, or until the time is over.

        :param timeout: seconds; ``None`` waits without limit.
        :raises Disconnected: a reset was asked for.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._woken or self._close_asked or self._reset_asked, timeout)
            self._woken = False
            if self._reset_asked:
                raise Disconnected("the request was cancelled, or its channel has ended")


class Turns:
    """The requests of one channel that are being served.

    Threads: any thread may call any method.
    """

    _numbers = itertools.count(1)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._threads: Dict[Turn, threading.Thread] = {}
        self._ended = False

    def start(self, turn: Turn, serve: Callable[[], None]) -> None:
        """Serve a request in a thread of its own; after the end it finds that it was asked for a reset."""
        def run() -> None:
            try:
                serve()
            finally:
                with self._lock:
                    self._threads.pop(turn, None)

        thread = threading.Thread(target=run, name="mcp_sync-testing-turn-{}".format(next(self._numbers)), daemon=True)
        with self._lock:
            self._threads[turn] = thread
            thread.start()  # here, because nobody can wait for the end of a thread that has not begun
            ended = self._ended
        if ended:
            turn.ask_reset()

    def finish(self, grace: float) -> None:
        """Ask all of them for their answers, and wait for that.

        :param grace: seconds to wait at most.
        """
        with self._lock:
            threads = dict(self._threads)
        for turn in threads:
            turn.ask_close()
        _join(threads, grace)

    def end(self, grace: float) -> None:
        """End all of them without an answer, and those that may follow.

        :param grace: seconds to wait at most.
        """
        with self._lock:
            threads = dict(self._threads)
            self._ended = True
        for turn in threads:
            turn.ask_reset()
        _join(threads, grace)


def _join(threads: Dict[Turn, threading.Thread], grace: float) -> None:
    end = time.monotonic() + grace
    for thread in threads.values():
        if thread is not threading.current_thread():  # a tool may stop the server that runs it
            thread.join(max(0.0, end - time.monotonic()))
