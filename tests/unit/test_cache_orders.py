"""The contract of mcp_sync.cache, proven over every order of events.

Two reads of one key (each: begin, served, finish), two changes at the server and their two notices can happen in 8,400
orders. Each is played on the real cache, in one thread. Afterwards, and after every step, the cache may not serve as fresh
what the client knew to be old, nor go back to an older content.
"""

from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import pytest

from mcp_sync.cache import Coverage, Flight, ResourceCache, Ticket
from mcp_sync.freshness import Lease

KEY = "key"
FOREVER = Lease(1e9, polled=False)


def interleavings(chains: Sequence[Tuple[str, ...]]) -> Iterator[Tuple[str, ...]]:
    """Every order of all events in which each chain keeps its own order."""
    if not any(chains):
        yield ()
        return
    for i, chain in enumerate(chains):
        if chain:
            rest = list(chains)
            rest[i] = chain[1:]
            for tail in interleavings(rest):
                yield (chain[0],) + tail


READ_A = ("begin A", "served A", "finish A")
READ_B = ("begin B", "served B", "finish B")
# A notice follows its change, and notices come in the order of the changes.
CHANGES = (
    ("change 1", "change 2", "notice 1", "notice 2"),
    ("change 1", "notice 1", "change 2", "notice 2"),
)


def all_orders(notices: bool = True) -> List[Tuple[str, ...]]:
    if notices:
        return [order for changes in CHANGES for order in interleavings((READ_A, READ_B, changes))]
    return list(interleavings((READ_A, READ_B, ("change 1", "change 2"))))


class World:
    """A server with one resource whose content is the number of its changes, and one client's cache."""

    def __init__(self, refresh: Tuple[str, ...], lease: Optional[Lease]) -> None:
        self.cache: ResourceCache[int] = ResourceCache(clock=lambda: 0.0)
        self.coverage = Coverage()
        if lease is not None:
            self.cache.cover(self.coverage, {KEY: lease}, generation=0, version=1)
        self.refresh = refresh
        self.content = 0
        self.noticed = 0  # the newest content that the client was told of
        self.tickets: Dict[str, Ticket] = {}
        self.joined: Dict[str, Flight] = {}
        self.known_at_begin: Dict[str, int] = {}
        self.answers: Dict[str, int] = {}
        self.best = 0  # the newest content that was ever in the cache
        self.backwards = 0
        self.stale_as_fresh = 0
        self.old_for_caller = 0

    def play(self, order: Sequence[str]) -> None:
        for event in order:
            what, who = event.split()
            getattr(self, "_" + what)(who)
            self._look()
        self.cache.check()

    def _change(self, _: str) -> None:
        self.content += 1

    def _notice(self, which: str) -> None:
        self.noticed = int(which)
        self.cache.changed(KEY)

    def _begin(self, who: str) -> None:
        self.known_at_begin[who] = self.noticed
        begun = self.cache.begin_read(KEY, self.coverage, refresh=who in self.refresh)
        if isinstance(begun, Ticket):
            self.tickets[who] = begun
        elif isinstance(begun, Flight):
            self.joined[who] = begun
        else:
            self._received(who, begun.value)

    def _served(self, who: str) -> None:
        if who in self.tickets:
            self.answers[who] = self.content

    def _finish(self, who: str) -> None:
        if who not in self.tickets:
            return
        value = self.answers[who]
        self.cache.finish_read(self.tickets[who], value, received=0.0, started=0.0, ttl=0.0, size=1)
        self._received(who, value)
        for joiner, flight in self.joined.items():
            if flight is self.tickets[who].flight:
                assert flight.succeeded
                self._received(joiner, value)

    def _received(self, who: str, value: int) -> None:
        # What a caller is given is at least as new as what the client had been told when the call began.
        if value < self.known_at_begin[who]:
            self.old_for_caller += 1

    def _look(self) -> None:
        entry = self.cache.peek(KEY)
        if entry is None:
            return
        if entry.value < self.best:
            self.backwards += 1
        self.best = max(self.best, entry.value)
        if entry.is_fresh(0.0) and entry.value < self.noticed:
            self.stale_as_fresh += 1

    @property
    def ends_stale(self) -> bool:
        """Whether, with all notices read, an old content is left that would be served as fresh."""
        entry = self.cache.peek(KEY)
        return entry is not None and entry.is_fresh(0.0) and entry.value < self.content


def tally(orders: Sequence[Tuple[str, ...]], refresh: Tuple[str, ...] = (), lease: Optional[Lease] = FOREVER) -> Dict[str, Any]:
    counts = {"orders": 0, "ends stale": 0, "stale as fresh": 0, "old for caller": 0}
    backwards = []
    for order in orders:
        world = World(refresh, lease)
        world.play(order)
        counts["orders"] += 1
        counts["ends stale"] += world.ends_stale
        counts["stale as fresh"] += bool(world.stale_as_fresh)
        counts["old for caller"] += bool(world.old_for_caller)
        if world.backwards:
            backwards.append(order)
    return {"backwards": backwards, **counts}


def test_no_order_of_two_reads_two_changes_and_two_notices_leaves_the_cache_stale_or_takes_it_back() -> None:
    result = tally(all_orders())
    assert result == {"orders": 8400, "ends stale": 0, "stale as fresh": 0, "old for caller": 0, "backwards": []}


def reads_overlap(order: Sequence[str]) -> bool:
    return max(order.index("begin A"), order.index("begin B")) < min(order.index("finish A"), order.index("finish B"))


@pytest.mark.parametrize("refresh", [("A",), ("B",), ("A", "B")])
def test_a_refresh_goes_back_only_where_two_overlapping_reads_were_served_in_the_other_order(refresh: Tuple[str, ...]) -> None:
    result = tally(all_orders(), refresh)
    assert result["orders"] == 8400
    assert (result["ends stale"], result["stale as fresh"], result["old for caller"]) == (0, 0, 0)
    for order in result["backwards"]:
        # The read that began later stands, since nothing else about the server's side of the two can be known.
        first, second = ("A", "B") if order.index("begin A") < order.index("begin B") else ("B", "A")
        assert reads_overlap(order)
        assert order.index("served " + second) < order.index("served " + first)
        assert second in refresh, "only a refresh may overlap a read that could still be joined"


def test_without_notices_no_order_takes_the_cache_back_except_where_overlapping_reads_were_served_in_the_other_order() -> None:
    orders = all_orders(notices=False)
    result = tally(orders)
    assert result["backwards"] == []
    result = tally(orders, refresh=("A", "B"))
    assert all(reads_overlap(order) for order in result["backwards"])


def test_for_a_key_that_is_never_fresh_two_callers_are_two_reads_in_every_order() -> None:
    for order in all_orders():
        world = World((), None)
        world.play(order)
        assert len(world.tickets) == 2
        assert not world.stale_as_fresh and not world.ends_stale and not world.old_for_caller


def _without_floor(monkeypatch: Any) -> None:
    monkeypatch.setattr(ResourceCache, "_may_be_stored_locked", lambda self, t, s: t.sequence > s.stored)


def _without_sequence(monkeypatch: Any) -> None:
    real = ResourceCache.finish_read

    def finish_read(self: Any, ticket: Ticket, value: int, **more: Any) -> Any:
        self._states[ticket.key].stored = 0
        return real(self, ticket, value, **more)

    monkeypatch.setattr(ResourceCache, "finish_read", finish_read)
    monkeypatch.setattr(ResourceCache, "check", lambda self: None)


def _join_blindly(monkeypatch: Any) -> None:
    real = ResourceCache.begin_read

    def begin_read(self: Any, key: str, coverage: Coverage, refresh: bool = False) -> Any:
        state = self._states.get(key)
        if state is not None and state.flight is not None and not refresh:
            return state.flight[1]
        return real(self, key, coverage, refresh)

    monkeypatch.setattr(ResourceCache, "begin_read", begin_read)


def _never_join(monkeypatch: Any) -> None:
    real = ResourceCache.begin_read

    def begin_read(self: Any, key: str, coverage: Coverage, refresh: bool = False) -> Any:
        entry = self.peek(key)
        fresh = entry is not None and entry.is_fresh(0.0)
        return real(self, key, coverage, refresh or not fresh)

    monkeypatch.setattr(ResourceCache, "begin_read", begin_read)


def _changes_not_noted(monkeypatch: Any) -> None:
    monkeypatch.setattr(ResourceCache, "changed", lambda self, key: False)


@pytest.mark.parametrize(
    "break_it, refresh",
    [
        (_without_floor, ()),
        (_without_sequence, ("A", "B")),
        (_join_blindly, ()),
        (_never_join, ()),
        (_changes_not_noted, ()),
    ],
)
def test_the_enumeration_notices_when_a_rule_is_taken_out(monkeypatch: Any, break_it: Any, refresh: Tuple[str, ...]) -> None:
    sound = tally(all_orders(), refresh)
    break_it(monkeypatch)
    broken = tally(all_orders(), refresh)
    assert broken != sound
    assert len(broken["backwards"]) > len(sound["backwards"]) or any(
        broken[what] > sound[what] for what in ("ends stale", "stale as fresh", "old for caller")
    )
