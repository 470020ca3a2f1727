"""The schedule of re-reads, with gates instead of a network."""

import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import pytest

from mcp_sync import MCPSyncError, ResourceNotFound, TransportError
from mcp_sync.cache import Coverage
from mcp_sync.freshness import Lease
from mcp_sync.reads import Outcome, Query, read_query
from mcp_sync.refresher import Refresher

A, B, C = read_query("a"), read_query("b"), read_query("c")


class FakeReads:
    """Counts reads, and holds those that it is told to hold."""

    def __init__(self) -> None:
        self.coverage = Coverage()
        self.lock = threading.Condition()
        self.begun: List[Tuple[Query, bool]] = []
        self.held: Dict[Query, threading.Event] = {}
        self.outcome: Callable[[Query], Any] = lambda query: None
        self.at_once = 0
        self.most_at_once = 0

    def key(self, query: Query) -> Query:
        return query

    def lease(self, *queries: Query, seconds: float = 1e9) -> None:
        self.coverage.leases = {query: Lease(seconds, polled=True) for query in queries}

    def hold(self, query: Query) -> threading.Event:
        self.held[query] = threading.Event()
        return self.held[query]

    def get(self, query: Query, deadline: Any, refresh: bool = False) -> Outcome:
        with self.lock:
            self.begun.append((query, refresh))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.lock.notify_all()
        held = self.held.get(query)
        if held is not None:
            assert held.wait(20)
        with self.lock:
            self.at_once -= 1
            self.lock.notify_all()
        error = self.outcome(query)
        if error is not None:
            raise error
        return Outcome(None, True)  # type: ignore[arg-type]

    def wait(self, what: Callable[[], bool]) -> None:
        with self.lock:
            assert self.lock.wait_for(what, 20), self.begun

    def count(self, query: Query) -> int:
        return sum(1 for begun, _ in self.begun if begun == query)


class Bench:
    def __init__(self, **options: Any) -> None:
        self.reads = FakeReads()
        self.done: List[Query] = []
        self.failed: List[Tuple[Query, MCPSyncError]] = []
        self.told = threading.Condition()
        more: Dict[str, Any] = {"threads": 4, "throttle": 0.0, "timeout": 5.0, "clock": __import__("time").monotonic}
        more.update(options)
        self.refresher = Refresher(
            self.reads, "test", self._done, self._failed, **more  # type: ignore[arg-type]
        )

    def _done(self, query: Query) -> None:
        with self.told:
            self.done.append(query)
            self.told.notify_all()

    def _failed(self, query: Query, error: MCPSyncError) -> None:
        with self.told:
            self.failed.append((query, error))
            self.told.notify_all()

    def wait(self, what: Callable[[], bool]) -> None:
        with self.told:
            assert self.told.wait_for(what, 20), (self.done, self.failed)


@pytest.fixture
def make() -> Iterator[Callable[..., Bench]]:
    benches: List[Bench] = []

    def build(**options: Any) -> Bench:
        benches.append(Bench(**options))
        return benches[-1]

    yield build
    for bench in benches:
        for event in bench.reads.held.values():
            event.set()
        bench.refresher.close()
        bench.refresher.join(10)


def test_notices_about_what_is_being_read_merge_into_one_more_read(make: Any) -> None:
    bench = make()
    bench.refresher.keep([A])
    gate = bench.reads.hold(A)
    bench.refresher.soon([A])
    bench.reads.wait(lambda: bench.reads.count(A) == 1)
    for _ in range(1000):
        bench.refresher.soon([A])
    assert bench.refresher.is_pending(A)
    gate.set()
    bench.wait(lambda: len(bench.done) == 2)
    assert bench.reads.count(A) == 2


def test_a_few_are_read_at_the_same_time_and_no_more(make: Any) -> None:
    bench = make(threads=3)
    queries = [read_query(str(number)) for number in range(10)]
    gates = [bench.reads.hold(query) for query in queries]
    bench.refresher.keep(queries)
    bench.refresher.soon(queries)
    bench.reads.wait(lambda: bench.reads.at_once == 3)
    for gate in gates:
        gate.set()
    bench.wait(lambda: len(bench.done) == 10)
    assert bench.reads.most_at_once == 3


def test_a_poll_that_is_due_sooner_than_what_the_waiting_thread_waits_for_is_not_missed(make: Any) -> None:
    bench = make(threads=2)
    bench.reads.coverage.leases = {A: Lease(0.02, polled=True), B: Lease(1e6, polled=True)}
    bench.refresher.keep([A, B])
    gate = bench.reads.hold(A)
    waiting, real_wait = threading.Event(), bench.refresher._changed.wait

    def wait(timeout: Any = None) -> bool:
        if timeout is not None and timeout > 10.0:
            waiting.set()
        return bool(real_wait(timeout))

    bench.refresher._changed.wait = wait
    bench.refresher.soon([A, B])
    # B is done, and its thread is the one that waits, for a million seconds. Only then A ends, due again in no time.
    assert waiting.wait(20)
    assert bench.done == [B]
    gate.set()
    bench.reads.wait(lambda: bench.reads.count(A) >= 3)
    assert bench.reads.count(B) == 1


def test_a_poll_is_a_new_read_and_a_notice_is_content_with_a_fresh_copy(make: Any) -> None:
    bench = make()
    bench.reads.lease(A, seconds=0.02)
    bench.refresher.keep([A])
    bench.refresher.soon([A])
    bench.reads.wait(lambda: bench.reads.count(A) >= 2)
    assert bench.reads.begun[:2] == [(A, False), (A, True)]


def test_polls_are_jittered_so_that_many_clients_do_not_come_at_the_same_moment(make: Any) -> None:
    spans: List[Tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        spans.append((low, high))
        return low

    bench = make(uniform=uniform)
    bench.reads.lease(A, seconds=0.02)
    bench.refresher.keep([A])
    bench.refresher.soon([A])
    bench.reads.wait(lambda: bench.reads.count(A) >= 3)
    assert len(spans) >= 2 and all(low < high <= 1.0 for low, high in spans)


def test_what_fails_is_tried_again_with_growing_pauses_and_what_is_gone_is_not(make: Any) -> None:
    waits: List[float] = []

    def uniform(low: float, high: float) -> float:
        waits.append(high)
        return low

    bench = make(uniform=uniform)
    bench.reads.lease(A, B)
    bench.refresher.keep([A, B])
    failures = iter([TransportError("one"), TransportError("two"), TransportError("three")])
    bench.reads.outcome = lambda query: ResourceNotFound("gone") if query == B else next(failures, None)
    bench.refresher.soon([A])
    bench.wait(lambda: len(bench.done) == 1)
    assert [str(error) for _, error in bench.failed] == ["one", "two", "three"]
    assert waits[:3] == [1.0, 2.0, 4.0]
    assert bench.done == [A]


def test_nothing_is_tried_again_while_nobody_keeps_it_current(make: Any) -> None:
    bench = make()
    bench.refresher.keep([A])  # without a lease: the stream is down, and the reader will say when it is back
    bench.reads.outcome = lambda query: TransportError("down")
    bench.refresher.soon([A])
    bench.wait(lambda: len(bench.failed) == 1)
    assert not bench.refresher.is_pending(A)
    assert bench.refresher._tasks[A].due is None


def test_what_is_no_longer_watched_is_not_read(make: Any) -> None:
    bench = make(threads=1)
    gate = bench.reads.hold(A)
    bench.refresher.keep([A, B, C])
    bench.refresher.soon([A, B, C])
    bench.reads.wait(lambda: bench.reads.count(A) == 1)
    bench.refresher.keep([A, C])
    gate.set()
    bench.wait(lambda: len(bench.done) == 2)
    assert bench.reads.count(B) == 0


def test_an_error_of_our_own_in_one_read_does_not_end_the_thread_that_serves_the_others(make: Any, caplog: Any) -> None:
    bench = make(threads=1)
    bench.refresher.keep([A, B])
    bench.reads.outcome = lambda query: RuntimeError("a defect") if query == A else None
    bench.refresher.soon([A])
    bench.reads.wait(lambda: bench.reads.count(A) >= 1)
    bench.refresher.soon([B])
    bench.wait(lambda: B in bench.done)
    assert "a defect" in caplog.text


def test_the_schedule_does_not_grow_with_the_number_of_notices(make: Any) -> None:
    now = [0.0]
    bench = make(threads=1, throttle=10.0, clock=lambda: now[0])
    bench.refresher.keep([A])
    bench.refresher.soon([A])
    bench.wait(lambda: len(bench.done) == 1)
    for _ in range(100000):
        bench.refresher.soon([A])
    assert len(bench.refresher._schedule) <= 70


class Clockwork:
    """Plays notices against the schedule without threads: what would be read, and when."""

    def __init__(self, throttle: float) -> None:
        self.now = 0.0
        self.refresher = Refresher(
            FakeReads(), "test", lambda query: None, lambda query, error: None,  # type: ignore[arg-type]
            threads=1, throttle=throttle, timeout=1.0, clock=lambda: self.now,
        )
        self.refresher._threads = 0  # nobody reads; the test takes the tasks itself
        self.refresher.keep([A])
        self.reads: List[float] = []

    def until(self, end: float, notices_every: Optional[float]) -> None:
        next_notice = self.now
        while self.now < end:
            if notices_every is not None and self.now >= next_notice:
                self.refresher.soon([A])
                next_notice += notices_every
            with self.refresher._lock:
                task, _ = self.refresher._next_locked()
                if task is not None:
                    self.refresher._take_locked(task)
            if task is not None:
                self.reads.append(round(self.now, 3))
                self.refresher._ended(task, None)
            self.now += 0.005


def test_a_change_is_read_at_once_and_constant_change_less_and_less_often() -> None:
    play = Clockwork(throttle=0.25)
    play.until(0.5, notices_every=10.0)
    assert play.reads == [0.0]
    play.until(8.0, notices_every=0.01)
    first = play.reads[1]
    assert first <= 0.51
    gaps = [round(b - a, 2) for a, b in zip(play.reads[1:], play.reads[2:])]
    assert gaps[0] <= 0.51 and all(a <= b + 0.02 for a, b in zip(gaps, gaps[1:])) and max(gaps) <= 2.02
    last_notice = play.now
    before = len(play.reads)
    play.until(12.0, notices_every=None)
    # When it is quiet again, the last state is read soon, and once.
    assert len(play.reads) == before + 1
    assert play.reads[-1] - last_notice <= 0.12
