"""Thread that calls the listeners of watches: one, for all watches of a client, one call at a time."""

import threading
from typing import Dict, Optional

from . import _fork
from ._worker import Worker
from .watch import Watch

__all__ = ["Notifier"]


class Notifier:
    """Calls listeners outside all the threads that keep things current, so that a slow one delays nobody. Any thread.

    :param name: a word for the name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._made_anew()
        self._closed = False
        #: Whether listeners are called by whoever posts.
        self.threadless = False
        _fork.register(self)

    def _made_anew(self) -> None:
        # One lock, with a condition on it; it guards everything below and _closed.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting: Dict[Watch, None] = {}  # in order; each watch once, however much it has to tell
        self._worker: Optional[Worker] = None
        self._calling = False  # whether somebody calls who is no thread of ours

    def after_fork_in_child(self) -> None:
        self._made_anew()

    def post(self, watch: Watch) -> None:
        """Have the listeners of ``watch`` called soon."""
        start: Optional[Worker] = None
        here = False
        with self._lock:
            if self._closed:
                return
            self._waiting[watch] = None
            if self.threadless:
                here, self._calling = not self._calling, True
            elif self._worker is None:
                start = self._worker = Worker("mcp_sync-listeners-%s" % self._name, self._work)
            self._changed.notify()
        if here:
            self._call_all()
        if start is not None:
            try:
                start.start()
            except RuntimeError:
                # No thread is to be had at the moment. The next post tries again.
                with self._lock:
                    self._worker = None
                raise

    def _call_all(self) -> None:
        """Call listeners here until nothing is left. What they cause to be posted is called after them, not within them."""
        try:
            while True:
                with self._lock:
                    if not self._waiting:
                        return
                    watch = next(iter(self._waiting))
                    del self._waiting[watch]
                if watch.call_listeners():
                    with self._lock:
                        self._waiting[watch] = None
        finally:
            with self._lock:
                self._calling = False

    def close(self) -> None:
        """Call no more listeners but those that are due already."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()

    def join(self, timeout: float) -> None:
        """Wait for the thread to end, at most ``timeout`` seconds; it does not, while a listener runs."""
        worker = self._worker
        if worker is not None:
            worker.join(timeout)

    def _work(self) -> None:
        changed = self._changed
        while True:
            with self._lock:
                if self._changed is not changed:
                    return  # after a fork: threads that gevent makes live on in the child, which has its own
                while not self._waiting:
                    if self._closed:
                        return
                    changed.wait()
                watch = next(iter(self._waiting))
                del self._waiting[watch]
            if watch.call_listeners():
                # It has more to tell, after the others have had their turn.
                with self._lock:
                    self._waiting[watch] = None
