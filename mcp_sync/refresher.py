"""Threads that read again what is watched: after a notice, after a gap, when a poll is due, after a failure.

Each watched query has one place in a schedule, so any number of notices about it merge into one read, and the schedule is
never longer than the list of what is watched: it cannot overflow. A query is read by one thread at a time, at most once in
``throttle`` seconds, less often while it changes without pause, and with growing pauses while it fails.
"""

import heapq
import logging
import random
import threading
from typing import Callable, Dict, Iterable, List, Optional, Tuple

from . import _fork
from ._backoff import Backoff
from ._deadline import Clock, Deadline, bounded
from ._worker import Worker
from .errors import MCPSyncError, ResourceNotFound
from .freshness import Lease
from .reads import Query, Reads

__all__ = ["Refresher"]

_log = logging.getLogger("mcp_sync")

#: While something changes without pause, it is read again at least once in so many throttles ...
_SLOWEST_PACE = 8.0
#: ... and as soon as no notice came for so many seconds.
_QUIET = 0.1
#: How long the schedule is not looked at, at most, in seconds.
_LOOK_AGAIN = 30.0

# One of each: there may be thousands of tasks.
_NEVER, _LONG_AGO = float("inf"), float("-inf")

Failed = Callable[[Query, MCPSyncError], None]
Done = Callable[[Query], None]


class _Task:
    """One watched query's place in the schedule. The refresher's lock guards it."""

    __slots__ = (
        "query",
        "due",
        "renew_at",
        "asked",
        "running",
        "again",
        "not_before",
        "pace",
        "noticed",
        "backoff",
        "dropped",
    )

    def __init__(self, query: Query) -> None:
        self.query = query
        self.due: Optional[float] = None
        self.renew_at = _NEVER  # from when on a read has to be a new one, even if the copy is fresh
        self.asked = False  # whether somebody wants it read, for another reason than its copy's age
        self.running = False
        self.again = False  # whether it became due while it was running
        self.not_before = _LONG_AGO  # the throttle
        self.pace = 1.0  # how many throttles may pass while it changes without pause
        self.noticed = _LONG_AGO  # when it was last said to have changed
        self.backoff: Optional[Backoff] = None
        self.dropped = False


class Refresher:
    """Keeps what is watched re-read. Any thread may call any method; none of them blocks.

    :param reads: through what to read.
    :param name: a word for the names of the threads.
    :param done: called, without a lock, after each read that brought a settled result or found the resource gone.
    :param failed: called, without a lock, after each read that failed.
    :param threads: how many read at the same time, at most.
    :param throttle: the least time between the starts of two reads of one query, in seconds.
    :param timeout: for one read, in seconds.
    :param clock: the clock of the cache.
    :param uniform: where chance comes from.
    """

    def __init__(
        self,
        reads: Reads,
        name: str,
        done: Done,
        failed: Failed,
        threads: int,
        throttle: float,
        timeout: float,
        clock: Clock,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._reads = reads
        self._name = name
        self._done = done
        self._failed = failed
        self._threads = max(1, threads)
        self._throttle = throttle
        self._timeout = timeout
        self._clock = clock
        self._uniform = uniform
        self._made_anew()
        self._tasks: Dict[Query, _Task] = {}
        self._registration = 0
        self._closed = False
        _fork.register(self)

    def _made_anew(self) -> None:
        # One lock, with a condition on it; it guards everything below and every _Task.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        # (moment, tie-breaker, task). A task whose ``due`` differs from the moment was rescheduled: its row is skipped.
        self._schedule: List[Tuple[float, int, _Task]] = []
        self._ties = 0
        self._workers: List[Worker] = []
        self._idle = 0

    # -- any thread ------------------------------------------------------------------------------------------------------

    def keep(self, queries: Iterable[Query], registration: int = 0) -> None:
        """Have places for these queries, and for no others. Nothing becomes due by this.

        :param registration: counts what is watched. Threads may overtake each other on the way here; an older word than the
            last is ignored.
        """
        wanted = set(queries)
        with self._lock:
            if registration < self._registration:
                return
            self._registration = registration
            for query in self._tasks.keys() - wanted:
                task = self._tasks.pop(query)
                task.dropped = True
                task.due = None
            for query in wanted - self._tasks.keys():
                self._tasks[query] = _Task(query)

    def soon(self, queries: Iterable[Query], patient: bool = False) -> None:
        """Read these again as soon as the throttle allows, unless their copies turn out to be fresh.

        :param patient: not those that are about to be read anyway, or wait before they are tried again.
        """
        now = self._clock()
        with self._lock:
            if self._closed:
                return
            due = False
            for query in queries:
                task = self._tasks.get(query)
                if task is None:
                    continue
                if patient and (task.asked or task.running or task.backoff is not None):
                    continue
                task.noticed = now
                if task.asked and task.due is not None and task.due > now:
                    continue  # its time is set; when it comes, it is looked at whether all is quiet
                task.asked = True
                if task.running:
                    task.again = True
                else:
                    due = self._schedule_locked(task, max(now, task.not_before)) or due
            start = self._wake_locked() if due else None
        self._start(start)

    def close(self) -> None:
        """Stop. Reads in progress are ended by whoever closes the connection."""
        with self._lock:
            self._closed = True
            self._schedule = []
            self._changed.notify_all()

    def join(self, timeout: float) -> None:
        """Wait for the threads to end, at most ``timeout`` seconds in all."""
        deadline = Deadline(timeout)
        for worker in list(self._workers):
            worker.join(deadline.remaining() or 0.0)

    def is_pending(self, query: Query) -> bool:
        """Whether it is being read, or will be for another reason than its copy's age."""
        with self._lock:
            task = self._tasks.get(query)
            return task is not None and (task.asked or task.running)

    def after_fork_in_child(self) -> None:
        self._made_anew()
        for task in self._tasks.values():
            task.running = task.again = task.asked = False
            task.due = None
            task.renew_at = _NEVER

    def _start(self, worker: Optional[Worker]) -> None:
        if worker is None:
            return
        try:
            worker.start()
        except RuntimeError:
            # No thread is to be had at the moment. What is due stays so, and the next notice tries again.
            _log.exception("could not start a thread to read again")
            with self._lock:
                self._workers.remove(worker)

    # -- with the lock held ----------------------------------------------------------------------------------------------

    def _schedule_locked(self, task: _Task, moment: float) -> bool:
        if task.due is not None and task.due <= moment:
            # It comes sooner anyway; unless it is late, because the one who waits was suspended with the machine.
            return task.due <= self._clock()
        task.due = moment
        self._ties += 1
        heapq.heappush(self._schedule, (moment, self._ties, task))
        if self._idle and self._schedule[0][2] is task:
            self._changed.notify()  # the thread that waits does so for something later
        if len(self._schedule) > 64 + 4 * len(self._tasks):
            # Rows of rescheduled tasks are skipped when their time comes; when they are many, they are thrown out.
            self._schedule = [row for row in self._schedule if row[2].due == row[0] and not row[2].dropped]
            heapq.heapify(self._schedule)
        return True

    def _wake_locked(self) -> Optional[Worker]:
        """Wake a thread that waits, or return one more to be started."""
        if self._idle:
            self._changed.notify()
            return None
        self._workers = [worker for worker in self._workers if not worker.ended]
        if len(self._workers) >= self._threads:
            return None
        worker = Worker("mcp_sync-refresher-%s" % self._name, self._work)
        self._workers.append(worker)
        return worker

    def _next_locked(self) -> Tuple[Optional[_Task], Optional[float]]:
        """Return the task that is due, or the seconds until one will be, or (None, None) if there is none."""
        while self._schedule:
            moment, _, task = self._schedule[0]
            if task.dropped or task.due != moment:
                heapq.heappop(self._schedule)
                continue
            wait = moment - self._clock()
            if wait > 0.0:
                return None, wait
            heapq.heappop(self._schedule)
            task.due = None
            quiet = min(task.noticed + _QUIET, task.not_before + self._throttle * (task.pace - 1.0))
            if task.pace > 1.0 and quiet > moment - wait:
                # It is still changing: what would be read now would be out of date at once.
                self._schedule_locked(task, quiet)
                continue
            return task, None
        return None, None

    def _take_locked(self, task: _Task) -> bool:
        """Begin to read a task that is due; return whether it has to be a new read even if the copy is fresh."""
        now = self._clock()
        refresh = now >= task.renew_at
        task.renew_at, task.running, task.asked = _NEVER, True, False
        # What changes again as soon as it may be read again is read less and less often.
        busy = now < task.not_before + self._throttle * task.pace
        task.pace = min(2.0 * task.pace, _SLOWEST_PACE) if busy else 1.0
        task.not_before = now + self._throttle
        return refresh

    # -- the threads -----------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        changed = self._changed
        while True:
            start: Optional[Worker] = None
            with self._lock:
                while True:
                    # After a fork: threads that gevent makes live on in the child, which has its own.
                    if self._closed or self._changed is not changed:
                        return
                    task, wait = self._next_locked()
                    if task is not None:
                        break
                    if self._idle:
                        return  # one thread waits for all
                    self._idle += 1
                    try:
                        # Not longer: the system's timer stands still while the machine is suspended; this clock does not.
                        changed.wait(_LOOK_AGAIN if wait is None else min(wait, _LOOK_AGAIN))
                    finally:
                        if self._changed is changed:
                            self._idle -= 1
                refresh = self._take_locked(task)
                # If more is due, one more thread helps; it will do the same.
                if self._schedule and self._schedule[0][0] <= self._clock():
                    start = self._wake_locked()
            self._start(start)
            try:
                self._read(task, refresh)
            except BaseException:
                # The boundary of one task: a defect in it (or in a listener) must not end the thread that serves the others.
                _log.exception("reading %s again failed by an error of its own", task.query)
                self._ended(task, Backoff(1.0, 60.0).next())

    def _read(self, task: _Task, refresh: bool) -> None:
        try:
            outcome = self._reads.get(task.query, Deadline(self._timeout, str(task.query)), refresh)
        except ResourceNotFound:
            # An answer like any other: it is gone, until a notice or a poll says otherwise.
            task.backoff = None
            self._ended(task, self._interval(task.query))
            self._done(task.query)
            return
        except MCPSyncError as error:
            if task.backoff is None:
                task.backoff = Backoff(1.0, 60.0, self._uniform)
            wait = task.backoff.next(getattr(error, "retry_after", None))
            lease = self._lease(task.query)
            # Without a lease nobody keeps it current: the reader will say when to read again.
            self._ended(task, wait if lease is not None else None)
            self._failed(task.query, error)
            return
        task.backoff = None
        # What was learnt during the read makes it out of date; or it was somebody else's, and is looked at once more.
        self._ended(task, self._interval(task.query), again=not outcome.settled and self._lease(task.query) is not None)
        if outcome.settled:
            self._done(task.query)

    def _lease(self, query: Query) -> Optional[Lease]:
        return self._reads.coverage.leases.get(self._reads.key(query))

    def _interval(self, query: Query) -> Optional[float]:
        """Return the seconds after which to read again without a notice: a poll, or the age limit of a silent stream.

        A little before the copy stops being fresh, and never for all at the same moment.
        """
        lease = self._lease(query)
        return None if lease is None else lease.seconds * self._uniform(0.75, 0.95)

    def _ended(self, task: _Task, wait: Optional[float], again: bool = False) -> None:
        now = self._clock()
        with self._lock:
            task.running = False
            again, task.again = again or task.again, False
            if self._closed or task.dropped:
                return
            if again:
                self._schedule_locked(task, max(now, task.not_before))
            elif wait is not None and bounded(wait) is not None:
                task.renew_at = moment = now + wait
                self._schedule_locked(task, moment)
