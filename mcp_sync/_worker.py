"""The only place that makes threads: named, daemon, started at first need, forgotten after a fork."""

from __future__ import annotations

import logging
import os
import threading
from typing import Callable, Optional

__all__ = ["Worker"]

_log = logging.getLogger("mcp_sync")


class Worker:
    """One background thread that runs ``target`` once.

    The thread is a daemon: a program that ends without ``close()`` is not held up by it. Any thread may call any method.

    :param name: the thread's name, shown by debuggers and in logs.
    :param target: what it runs; an exception that escapes it is logged and ends only this thread.
    """

    def __init__(self, name: str, target: Callable[[], None]) -> None:
        self.name = name
        self._target = target
        self._thread: Optional[threading.Thread] = None
        self._pid = 0

    def start(self) -> None:
        """Start the thread, unless it runs already in this process."""
        if self.alive:
            return
        thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        thread.start()
        # Only now: what was not started cannot be waited for.
        self._pid = os.getpid()
        self._thread = thread

    @property
    def alive(self) -> bool:
        """Whether the thread runs, in this process. (After a fork the thread exists only in the parent.)"""
        return self._thread is not None and self._pid == os.getpid() and self._thread.is_alive()

    @property
    def ended(self) -> bool:
        """Whether the thread was started and runs no more."""
        return self._thread is not None and not self.alive

    @property
    def is_current(self) -> bool:
        """Whether the caller is this very thread."""
        return self._thread is threading.current_thread()

    def join(self, timeout: float) -> bool:
        """Wait for the thread's end, at most ``timeout`` seconds; never for the caller's own thread.

        :returns: whether it has ended.
        """
        thread = self._thread
        if thread is None or self._pid != os.getpid() or self.is_current:
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def _run(self) -> None:
        pid = os.getpid()
        try:
            self._target()
        except Exception:
            # The boundary of the thread: nobody above could handle it, and the interpreter's own report goes to stderr.
            _log.exception("thread %s ended by an error of its own", self.name)
        if pid != os.getpid():
            # What gevent makes threads of lives on in a forked child, where threading has forgotten it and would fail at its end.
            threading.Event().wait()
