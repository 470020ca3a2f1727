"""Threads that run one at a time, in every order: a deterministic scheduler and a search over its schedules.

A *switching point* is a place where the running thread may be replaced by another: each taking and giving back of a
:class:`Lock`, each setting of and waiting for an :class:`Event`, and wherever the code calls :meth:`Scheduler.point`. A
*schedule* is the list of choices at the points where more than one thread could go on; choice 0 is always to let the running
thread go on, if it can. The search goes depth first over all schedules with a bounded number of *preemptions* (a thread is
stopped although it could go on). The same list of choices always gives the same run.
"""

import threading
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

_MOST_POINTS = 5000
#: Seconds of real time for one run.
_RUN_WITHIN = 60.0


class Decision(NamedTuple):
    costs: List[int]  # of each choice, in preemptions
    choice: int


class _Stopped(BaseException):
    """Ends the other threads of a run that has failed."""


def _always() -> bool:
    return True


class _Worker(threading.Thread):
    """A real thread, of which many runs make use."""

    def __init__(self, scheduler: "Scheduler", name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.scheduler = scheduler
        self.gate = threading.Semaphore(0)
        self.body: Optional[Callable[[], None]] = None
        self.ended = True
        self.ready: Callable[[], bool] = _always
        self.timed = False
        self.locks_taken = 0

    def run(self) -> None:
        while True:
            self.gate.acquire()
            if self.body is None:
                return
            try:
                if not self.scheduler.stopping:
                    self.body()
            except _Stopped:
                pass
            except BaseException as error:
                self.scheduler.failed(error)
            self.ended = True
            self.scheduler.pass_on()


class Scheduler:
    """Runs bodies, one thread at a time, as a list of choices says. Also a stand-in for the module ``threading``."""

    def __init__(self, workers: int) -> None:
        self._pool = [_Worker(self, "schedule-%d" % n) for n in range(workers)]
        self._over = threading.Semaphore(0)
        self.current: Optional[_Worker] = None
        self.stopping = False
        for worker in self._pool:
            worker.start()

    def close(self) -> None:
        for worker in self._pool:
            worker.body = None
            worker.gate.release()
            worker.join(10.0)
            assert not worker.is_alive()

    # What a module takes from ``threading``.
    def Lock(self) -> "Lock":
        return Lock(self)

    def Event(self) -> "Event":
        return Event(self)

    def run(self, bodies: Sequence[Callable[[], None]], choices: Sequence[int]) -> List[Decision]:
        """Run all bodies to their end; raise what went wrong."""
        self._choices = choices
        self.decisions: List[Decision] = []
        self.error: Optional[BaseException] = None
        self.stopping = False
        self.points = 0
        self.running = self._pool[: len(bodies)]
        for worker, body in zip(self.running, bodies):
            worker.body, worker.ended, worker.ready, worker.timed = body, False, _always, False
        self.pass_on()
        # Not for ever: a thread may wait for something that this does not know.
        if not self._over.acquire(timeout=_RUN_WITHIN):
            raise AssertionError("a thread waits outside the scheduler: %s" % self.current)
        self.current = None
        if self.error is not None:
            raise self.error
        return self.decisions

    # -- in the running thread -------------------------------------------------------------------------------------------

    def point(self, ready: Callable[[], bool] = _always, timed: bool = False) -> None:
        """Let another thread run, perhaps; return when this one goes on.

        :param ready: whether this thread can go on; asked whenever somebody is chosen.
        :param timed: whether it can also go on without, because its time is up.
        """
        me = self.current
        if me is None:
            return  # before or after the run
        if self.stopping:
            raise _Stopped
        me.ready, me.timed = ready, timed
        chosen = self._choose(me)
        if chosen is not me:
            assert chosen is not None
            self.current = chosen
            chosen.gate.release()
            me.gate.acquire()
        me.ready, me.timed = _always, False
        if self.stopping:
            raise _Stopped

    def pass_on(self) -> None:
        """The running thread has ended: another one goes on, or the run is over."""
        chosen = self._choose(None)
        self.current = chosen
        if chosen is None:
            self._over.release()
        else:
            chosen.gate.release()

    def failed(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error
        self.stopping = True

    def _choose(self, me: Optional[_Worker]) -> Optional[_Worker]:
        alive = [worker for worker in self.running if not worker.ended]
        if self.stopping or not alive:
            return alive[0] if alive else None
        self.points += 1
        able = [worker for worker in alive if worker.ready()]
        late = [worker for worker in alive if worker.timed and worker not in able]
        if me in able:
            able.remove(me)
            able.insert(0, me)
        if not able and not late or self.points > _MOST_POINTS:
            self.failed(AssertionError("threads wait for each other, or for ever: %s" % [worker.name for worker in alive]))
            return alive[0]
        options = able + late
        if len(options) == 1:
            return options[0]
        costs = [0 if me not in able or worker is me else 1 for worker in able] + [1 if able else 0] * len(late)
        number = len(self.decisions)
        choice = self._choices[number] if number < len(self._choices) else 0
        self.decisions.append(Decision(costs, choice))
        return options[choice]


class Lock:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._held = False

    def __enter__(self) -> None:
        self._scheduler.point(lambda: not self._held)
        assert not self._held
        self._held = True
        if self._scheduler.current is not None:
            self._scheduler.current.locks_taken += 1

    def __exit__(self, *_: Any) -> None:
        self._held = False
        self._scheduler.point()


class Event:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._set = False

    def set(self) -> None:
        self._set = True
        self._scheduler.point()

    def wait(self, timeout: Optional[float] = None) -> bool:
        self._scheduler.point(lambda: self._set, timed=timeout is not None)
        return self._set


class Schedules:
    """A search: ``play(choices)`` is called with one schedule after the other, until all were played.

    :param preemptions: how many there may be in one schedule at most, or None for any number.
    :param limit: how many schedules are played at most.
    """

    def __init__(self, preemptions: Optional[int], limit: int) -> None:
        self.preemptions = preemptions
        self.limit = limit
        self.played = 0
        self.complete = False

    def search(self, play: Callable[[Sequence[int]], List[Decision]]) -> None:
        choices: Optional[List[int]] = []
        before: List[Decision] = []
        while choices is not None:
            if self.played >= self.limit:
                return
            try:
                self.played += 1
                decisions = play(choices)
            except AssertionError as error:
                raise AssertionError("schedule %d, choices %r: %s" % (self.played, choices, error)) from error
            # All but the last choice were made before, at the same points; else some orders would silently be left out.
            common = max(len(choices) - 1, 0)
            assert len(decisions) >= len(choices), "the same choices did not give the same run"
            assert decisions[:common] == before[:common], "the same choices did not give the same run"
            before = decisions
            choices = self._next(decisions)
        self.complete = True

    def _next(self, decisions: List[Decision]) -> Optional[List[int]]:
        spent = [0]
        for decision in decisions:
            spent.append(spent[-1] + decision.costs[decision.choice])
        for i in reversed(range(len(decisions))):
            costs, choice = decisions[i]
            for other in range(choice + 1, len(costs)):
                if self.preemptions is None or spent[i] + costs[other] <= self.preemptions:
                    return [decision.choice for decision in decisions[:i]] + [other]
        return None
