"""What two or three threads do at once with one cache, and what must hold in every schedule of it.

Moments are counted; each call is an interval of them. A rule is broken only where the intervals leave no doubt: "the read
began before the notice" means that ``begin_read`` had returned before ``changed`` was called.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from scheduling import Decision, Scheduler

from mcp_sync._deadline import Deadline
from mcp_sync.freshness import Lease

FOREVER = Lease(1e9, polled=False)


class Span(NamedTuple):
    start: int
    end: int


class Read:
    """One read at the server; also the value that it brings."""

    def __init__(self, key: str, began: Span) -> None:
        self.key = key
        self.began = began
        self.content = -1
        self.how = "reading"


class Seen(NamedTuple):
    """A look at the cache's copy."""

    key: str
    span: Span
    read: Read


class SwitchingDict(Dict[Any, Any]):
    """A dictionary, each use of which is a switching point: for what is looked at without a lock."""

    scheduler: Scheduler

    def get(self, key: Any, default: Any = None) -> Any:
        self.scheduler.point()
        return super().get(key, default)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.scheduler.point()
        super().__setitem__(key, value)

    def pop(self, *args: Any) -> Any:
        self.scheduler.point()
        return super().pop(*args)


class World:
    """One server, one client, one cache."""

    def __init__(self, module: Any, scheduler: Scheduler, leased: bool = True, max_entries: int = 100) -> None:
        self.module = module
        self.scheduler = scheduler
        self.cache = module.ResourceCache(max_entries=max_entries, clock=lambda: 0.0)
        self.coverage = self._new_coverage()
        self.moment = 0
        self.ttl = 0.0
        self.version = 0
        self.generation = 0
        self.content = {"a": 0, "b": 0}
        self.listening = leased
        self.reads: List[Read] = []
        self.events: List[Tuple[Optional[str], Span]] = []  # a key or None for all, and when it was told to the cache
        self.seen: List[Seen] = []
        self.gone: List[Tuple[Read, Span]] = []
        self.overlaps = False  # whether reads overlap that no notice has voided
        self.may_vanish = max_entries < 100
        self.gets_what_is_kept = False  # whether what a caller waited for must be in the cache then
        self.flights: Dict[Any, Tuple[Any, bool, str]] = {}  # by whom, whether under a lease, and how it is to end
        self.joined: List[Tuple[Any, Any, bool]] = []  # which flight, by whom, and whether it was told to succeed
        if leased:
            self.cover()
        self.events.clear()

    def _new_coverage(self) -> Any:
        scheduler = self.scheduler
        slot = self.module.Coverage.generation

        class Coverage(self.module.Coverage):  # type: ignore[misc, name-defined]
            """Each look at the generation is a switching point too, since it needs no lock."""

            __slots__ = ()

            @property
            def generation(self) -> Any:
                scheduler.point()
                return slot.__get__(self)

            @generation.setter
            def generation(self, value: int) -> None:
                scheduler.point()
                slot.__set__(self, value)

        return Coverage() if self.module.fine else self.module.Coverage()

    def copy(self, key: str = "a") -> None:
        """Have a fresh copy to begin with."""
        self.read(key)

    def fine(self, flights: bool = False) -> None:
        """Make each use of the dictionaries a switching point, and perhaps each look at what may be joined."""
        if flights:
            self.module._KeyState = self._switching_state()
        for name in ("_entries", "_states"):
            switching = SwitchingDict(getattr(self.cache, name))
            switching.scheduler = self.scheduler
            setattr(self.cache, name, switching)

    def _switching_state(self) -> Any:
        scheduler = self.scheduler
        plain = self.module.PlainState = getattr(self.module, "PlainState", self.module._KeyState)
        slot = plain.flight

        class State(plain):  # type: ignore[misc, valid-type]
            __slots__ = ()

            @property
            def flight(self) -> Any:
                scheduler.point()
                return slot.__get__(self)

            @flight.setter
            def flight(self, value: Any) -> None:
                scheduler.point()
                slot.__set__(self, value)

        return State

    def _span(self, call: Callable[[], Any]) -> Tuple[Any, Span]:
        self.moment += 1
        start = self.moment
        result = call()
        self.moment += 1
        return result, Span(start, self.moment)

    # -- what threads do -------------------------------------------------------------------------------------------------

    def read(
        self,
        key: str = "a",
        refresh: bool = False,
        how: str = "finish",
        patience: Optional[float] = None,
        coverage: Any = None,
    ) -> None:
        self.overlaps = self.overlaps or refresh or patience is not None
        coverage = coverage or self.coverage
        over = None
        while True:
            begun, span = self._span(lambda: self.cache.begin_read(key, coverage, refresh))
            assert begun is not over, "what has failed, or was not waited for any more, is joined again"
            if isinstance(begun, self.module.Entry):
                return self._look(key, begun.value, span, fresh=True)
            if isinstance(begun, self.module.Ticket):
                self.flights[begun.flight] = (coverage, begun.lease is not None, how)
                return self._lead(begun, key, span, how)
            if not begun.wait(Deadline(patience, clock=lambda: 0.0)):
                self.cache.forget_flight(key, begun)
                over, patience = begun, None
                continue
            over = begun
            self.joined.append((begun, coverage, begun.succeeded))
            if begun.succeeded:
                assert isinstance(begun.value, Read), "a failure was told as a success"
                if self.gets_what_is_kept:
                    self._look(key, begun.value, self._span(lambda: None)[1], fresh=False)
                return self._must_be_current(key, begun.value, span, "joined")

    def _lead(self, ticket: Any, key: str, span: Span, how: str) -> None:
        read = Read(key, span)
        self.reads.append(read)
        self.scheduler.point()
        read.content = self.content[key]
        self.scheduler.point()
        if how == "fail":
            self.cache.abandon_read(ticket)
        elif how == "missing":
            _, ended = self._span(lambda: self.cache.finish_missing(ticket))
            self.gone.append((read, ended))
        else:
            self.cache.finish_read(ticket, read, received=0.0, started=0.0, ttl=self.ttl, size=1)
        read.how = how

    def change(self, key: str = "a") -> None:
        """The server changes it; the client is told if it listens."""
        self.scheduler.point()
        self.content[key] += 1
        if self.listening:
            self._told(key, lambda: self.cache.changed(key))

    def gap(self) -> None:
        """The stream is lost, and with it a notice."""
        self.scheduler.point()
        self.content["a"] += 1
        self.generation += 1
        self.cover()

    def cover(self) -> None:
        self.listening = True
        self.version += 1
        version, generation = self.version, self.generation
        leases = {"a": FOREVER, "b": FOREVER}
        self._told(None, lambda: self.cache.cover(self.coverage, leases, generation, version))

    def overtaken(self, version: int, leases: Dict[str, Lease]) -> None:
        """Tell what may be out of date already; then it is nothing that happened."""
        self.cache.cover(self.coverage, leases, 0, version)

    def clear(self) -> None:
        self.may_vanish = True
        self._told(None, self.cache.clear)

    def peek(self, key: str = "a") -> None:
        me = self.scheduler.current
        before = 0 if me is None else me.locks_taken
        (entry, fresh), span = self._span(lambda: self._peek(key))
        assert me is None or me.locks_taken == before, "a look took a lock"
        if entry is not None:
            self._look(key, entry.value, span, fresh)

    def _peek(self, key: str) -> Tuple[Any, bool]:
        entry = self.cache.peek(key)
        return entry, entry is not None and entry.is_fresh(0.0)

    def _told(self, key: Optional[str], tell: Callable[[], Any]) -> None:
        _, span = self._span(tell)
        self.events.append((key, span))

    # -- what must hold --------------------------------------------------------------------------------------------------

    def _must_be_current(self, key: str, read: Read, span: Span, what: str) -> None:
        for of, told in self.events:
            if of in (None, key) and told.end < span.start:
                assert not read.began.end < told.start, "%s: a read that began before what the caller knew" % what

    def _look(self, key: str, read: Read, span: Span, fresh: bool) -> None:
        assert read.key == key
        if fresh:
            self._must_be_current(key, read, span, "fresh")
        for seen in self.seen:
            if seen.key == key and seen.span.end < span.start:
                assert not read.began.end < seen.read.began.start, "the copy went back to a read that began earlier"
                assert self.overlaps or read.content >= seen.read.content, "the copy went back to an older content"
        for missing, ended in self.gone:
            if ended.end < span.start and missing.key == key:
                assert not read.began.end < missing.began.start, "what is gone is still shown"
        self.seen.append(Seen(key, span, read))

    def finally_holds(self) -> None:
        """When all threads have ended."""
        self.cache.check()
        assert not self.cache._states, "something is kept of a key that nobody reads"
        for flight, coverage, succeeded in self.joined:
            leader, leased, how = self.flights[flight]
            assert leased or leader is coverage, "a read that nobody keeps current was joined by another client"
            assert succeeded == (how == "finish"), "the end of a read was not told as it was"
        for key in ("a", "b"):
            (entry, fresh), span = self._span(lambda: self._peek(key))
            reads = [read for read in self.reads if read.key == key]
            if entry is not None:
                self._look(key, entry.value, span, fresh)
                assert not fresh or entry.value.content == self.content[key], "all is told, and an old content is fresh"
            if not reads or self.may_vanish:
                continue
            newest = max(reads, key=lambda read: read.began.start)
            last = max([told.end for of, told in self.events if of in (None, key)], default=0)
            others = max([read.began.end for read in reads if read is not newest], default=0)
            kept = [read for read in reads if read.how == "finish"]
            if kept and not self.gone:
                assert entry is not None, "nothing was kept"
            if newest.how == "finish" and newest.began.start > max(last, others):
                assert entry is not None and entry.value is newest, "the newest read was not kept"
                assert fresh, "nothing was learnt since the newest read, and it is not fresh"


Threads = Sequence[Callable[[], None]]


class Scenario(NamedTuple):
    name: str
    make: Callable[[Any, Scheduler], Tuple[World, Threads]]
    at_the_end: Callable[[World], None] = World.finally_holds
    fine: bool = False


def _in_turn(*calls: Callable[[], None]) -> Callable[[], None]:
    def body() -> None:
        for call in calls:
            call()

    return body


def _two_readers_and_a_change(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    return w, (w.read, _in_turn(w.read, w.peek), w.change)


def _a_refresh_and_two_changes(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    w.copy()
    return w, (lambda: w.read(refresh=True), w.read, _in_turn(w.change, w.peek, w.change))


def _a_leader_that_fails_beside_an_old_copy(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    w.copy()
    w.change()
    return w, (lambda: w.read(how="fail"), w.read)


def _two_clients_that_only_have_a_hint(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler, leased=False)
    w.ttl = 1.0
    w.copy()
    w.listening = True
    w.change()
    other = w.module.Coverage()
    return w, (w.read, lambda: w.read(coverage=other), w.peek)


def _two_refreshes_and_a_look(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    return w, (lambda: w.read(refresh=True), lambda: w.read(refresh=True), _in_turn(w.peek, w.peek))


def _a_gap_during_reads(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    return w, (w.read, _in_turn(w.read, w.peek), w.gap)


def _a_leader_that_fails(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    return w, (lambda: w.read(how="fail"), w.read, w.read)


def _one_read_was_enough(w: World) -> None:
    w.finally_holds()
    # That of the one that fails, if it was the first or came between; and one that succeeds.
    assert len([read for read in w.reads if read.how == "finish"]) == 1, "two callers read what one could have shared"


def _a_resource_that_vanishes(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    w.copy()
    return w, (lambda: w.read(how="missing", refresh=True), lambda: w.read(refresh=True), _in_turn(w.peek, w.peek))


def _a_waiter_without_patience(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    return w, (w.read, _in_turn(lambda: w.read(patience=1.0), w.peek), w.change)


def _what_is_set_aside(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    return w, (lambda: w.read(refresh=True), lambda: w.read(refresh=True, how="fail"), w.change)


def _a_cover_that_begins(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler, leased=False)
    w.ttl = 1.0
    return w, (_in_turn(w.read, w.peek), w.cover, w.change)


def _covers_that_overtake(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    w.may_vanish = True  # what is fresh depends on the order
    return w, (lambda: w.overtaken(3, {"a": FOREVER}), lambda: w.overtaken(2, {}), w.read)


def _the_last_word_counts(w: World) -> None:
    assert (w.coverage.version, dict(w.coverage.leases)) == (3, {"a": FOREVER}), "an older word stands"
    w.finally_holds()


def _forgetting_all(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    return w, (w.read, w.read, _in_turn(w.clear, w.peek))


def _room_for_one(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler, max_entries=1)
    return w, (_in_turn(w.read, w.peek), lambda: w.read("b"), w.change)


def _looks_without_a_lock(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    w.copy()
    w.fine()
    return w, (_in_turn(w.peek, w.peek), w.read, w.change)


def _looks_during_a_gap(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    w.copy()
    w.fine()
    return w, (_in_turn(w.peek, w.peek), _in_turn(w.gap, w.peek))


def _a_read_that_fails_beside_one_that_does_not(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    w.fine()
    return w, (lambda: w.read(refresh=True), lambda: w.read(refresh=True, how="fail"))


def _a_change_beside_a_refresh(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    w.copy()
    w.fine()
    return w, (_in_turn(lambda: w.read(refresh=True), w.peek), w.change)


def _reads_at_once(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    w.fine()
    return w, (lambda: w.read(refresh=True), _in_turn(lambda: w.read(refresh=True), w.peek))


def _a_read_beside_one_that_finds_nothing(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    w.copy()
    w.fine()
    return w, (lambda: w.read(refresh=True, how="missing"), _in_turn(lambda: w.read(refresh=True), w.peek))


def _a_cover_beside_a_read(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler, leased=False)
    w.ttl = 1.0
    w.copy()
    w.fine()
    return w, (w.cover, _in_turn(lambda: w.read(refresh=True), w.peek))


def _what_was_waited_for(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    w.copy()
    w.change()
    w.gets_what_is_kept = True
    return w, (w.read, _in_turn(w.read, w.peek))


def _two_leaders_that_find_nothing(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    return w, (lambda: w.read(how="missing"), lambda: w.read(how="missing"))


def _a_leader_that_never_ends(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    ticket = w.cache.begin_read("a", w.coverage)
    over = scheduler.Event()

    def leader() -> None:
        over.wait()
        w.cache.abandon_read(ticket)

    return w, (leader, _in_turn(lambda: w.read(patience=1.0), over.set))


def _a_waiter_that_gives_up_beside_a_read(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    w.fine(flights=True)
    ticket = w.cache.begin_read("a", w.coverage)

    def refresh() -> None:
        begun = w.cache.begin_read("a", w.coverage, refresh=True)
        joined = w.cache.begin_read("a", w.coverage)
        assert joined is begun.flight, "somebody forgot another flight than the one that lasted too long"
        w.cache.abandon_read(begun)

    return w, (
        lambda: w.cache.forget_flight("a", ticket.flight),
        _in_turn(refresh, lambda: w.cache.abandon_read(ticket)),
    )


def _forgetting_all_in_the_middle(module: Any, scheduler: Scheduler) -> Tuple[World, Threads]:
    w = World(module, scheduler)
    w.copy()
    w.fine()
    return w, (lambda: w.read(refresh=True), _in_turn(w.clear, w.peek))


SCENARIOS = (
    Scenario("two readers and a change", _two_readers_and_a_change),
    Scenario("a refresh and two changes", _a_refresh_and_two_changes),
    Scenario("two refreshes and a look", _two_refreshes_and_a_look),
    Scenario("a gap during reads", _a_gap_during_reads),
    Scenario("a leader that fails", _a_leader_that_fails, _one_read_was_enough),
    Scenario("a leader that fails beside an old copy", _a_leader_that_fails_beside_an_old_copy),
    Scenario("two clients that only have a hint", _two_clients_that_only_have_a_hint),
    Scenario("a resource that vanishes", _a_resource_that_vanishes),
    Scenario("a waiter without patience", _a_waiter_without_patience),
    Scenario("a leader that never ends", _a_leader_that_never_ends),
    Scenario("two leaders that find nothing", _two_leaders_that_find_nothing),
    Scenario("what was waited for", _what_was_waited_for),
    Scenario("what is set aside", _what_is_set_aside),
    Scenario("a cover that begins", _a_cover_that_begins),
    Scenario("covers that overtake", _covers_that_overtake, _the_last_word_counts),
    Scenario("forgetting all", _forgetting_all),
    Scenario("room for one", _room_for_one),
    Scenario("looks without a lock", _looks_without_a_lock, fine=True),
    Scenario("looks during a gap", _looks_during_a_gap, fine=True),
    Scenario("a read that fails beside one that does not", _a_read_that_fails_beside_one_that_does_not, fine=True),
    Scenario("a change beside a refresh", _a_change_beside_a_refresh, fine=True),
    Scenario("reads at once", _reads_at_once, fine=True),
    Scenario("a read beside one that finds nothing", _a_read_beside_one_that_finds_nothing, fine=True),
    Scenario("a cover beside a read", _a_cover_beside_a_read, fine=True),
    Scenario("a waiter that gives up beside a read", _a_waiter_that_gives_up_beside_a_read, fine=True),
    Scenario("forgetting all in the middle", _forgetting_all_in_the_middle, fine=True),
)


def play(scenario: Scenario, module: Any, scheduler: Scheduler, choices: Sequence[int]) -> List[Decision]:
    """Play one schedule of a scenario: to play a failed one again, give its choices."""
    module.threading, module.fine = scheduler, scenario.fine
    world, threads = scenario.make(module, scheduler)
    decisions = scheduler.run(threads, choices)
    scenario.at_the_end(world)
    return decisions
