"""The rules of mcp_sync.cache, each said once, as short as it can be. Which orders of events they hold in is for the other tests.

Each is a function of the module, so that it can also be asked of one with a rule taken out (see :mod:`cachemutants`).
"""

from typing import Any, Callable, Dict, Mapping

import cachecopies
import pytest

from mcp_sync import _fork
from mcp_sync._deadline import Deadline
from mcp_sync.freshness import Lease

LIVE = Lease(300.0, polled=False)
POLLED = Lease(300.0, polled=True)

RULES: Dict[str, Callable[["Bench"], None]] = {}


def rule(check: Callable[["Bench"], None]) -> Callable[["Bench"], None]:
    RULES[check.__name__.replace("_", " ")] = check
    return check


class Bench:
    """A cache, a clock, and some clients."""

    def __init__(self, module: Any, **options: int) -> None:
        self.module = module
        self.now = 0.0
        self.cache = module.ResourceCache(clock=lambda: self.now, **options)
        self.versions: Dict[Any, int] = {}

    def client(self, *keys: str, lease: Lease = LIVE) -> Any:
        """Return the coverage of one more client."""
        coverage = self.module.Coverage()
        self.cover(coverage, {key: lease for key in keys})
        return coverage

    def cover(self, coverage: Any, leases: Mapping[str, Lease], generation: int = 0) -> None:
        self.versions[coverage] = self.versions.get(coverage, 0) + 1
        self.cache.cover(coverage, leases, generation, self.versions[coverage])

    def begin(self, key: str, coverage: Any, refresh: bool = False) -> Any:
        return self.cache.begin_read(key, coverage, refresh)

    def finish(self, ticket: Any, value: str, ttl: float = 0.0, size: int = 1, took: float = 0.0) -> Any:
        assert isinstance(ticket, self.module.Ticket)
        return self.cache.finish_read(ticket, value, received=self.now, started=self.now - took, ttl=ttl, size=size)

    def store(self, key: str, coverage: Any, value: str = "value", **more: Any) -> Any:
        return self.finish(self.begin(key, coverage, refresh=True), value, **more)

    def is_fresh(self, key: str) -> bool:
        entry = self.cache.peek(key)
        return entry is not None and entry.is_fresh(self.now)


# -- 1 -------------------------------------------------------------------------------------------------------------------


@rule
def who_waits_for_a_read_that_finds_nothing_is_released(bench: Bench) -> None:
    client = bench.client("a")
    leader = bench.begin("a", client)
    waiter = bench.begin("a", client)
    bench.cache.finish_missing(leader)
    assert waiter.wait(Deadline(0.0)) and not waiter.succeeded


@rule
def who_waits_for_a_read_that_ends_after_everything_was_forgotten_is_released(bench: Bench) -> None:
    client = bench.client("a")
    for end in (bench.cache.abandon_read, bench.cache.finish_missing, lambda ticket: bench.finish(ticket, "value")):
        leader = bench.begin("a", client)
        bench.cache.clear()
        end(leader)
        assert leader.flight.wait(Deadline(0.0))


@rule
def a_read_that_has_failed_is_not_joined_while_an_older_one_goes_on(bench: Bench) -> None:
    client = bench.client("a")
    bench.begin("a", client)
    bench.cache.abandon_read(bench.begin("a", client, refresh=True))
    assert isinstance(bench.begin("a", client), bench.module.Ticket)


# -- 2 -------------------------------------------------------------------------------------------------------------------


@rule
def a_read_that_began_before_everything_was_forgotten_is_refused(bench: Bench) -> None:
    ticket = bench.begin("a", bench.client("a"))
    bench.cache.clear()
    assert tuple(bench.finish(ticket, "value")) == (False, False, True)
    assert bench.cache.peek("a") is None
    ticket = bench.begin("a", bench.client("a"))
    bench.cache.clear()
    assert bench.cache.finish_missing(ticket) is False


@rule
def a_read_that_began_before_everything_was_forgotten_is_not_taken_for_a_later_one(bench: Bench) -> None:
    client = bench.client("a")
    before = bench.begin("a", client)
    bench.cache.clear()
    for _ in range(before.sequence):
        bench.begin("a", client, refresh=True)
    assert bench.finish(before, "value").refused and bench.cache.peek("a") is None


@rule
def a_read_whose_time_is_up_when_it_arrives_is_kept_and_not_fresh(bench: Bench) -> None:
    client = bench.client("a")
    assert tuple(bench.store("a", client, took=LIVE.seconds - 1.0)) == (True, True, False)
    assert tuple(bench.store("a", client, took=LIVE.seconds)) == (False, True, False)


# -- 3 -------------------------------------------------------------------------------------------------------------------


@rule
def a_change_makes_the_copy_old(bench: Bench) -> None:
    bench.store("a", bench.client("a"))
    assert bench.is_fresh("a")
    assert bench.cache.changed("a")
    assert not bench.is_fresh("a") and bench.cache.peek("a").value == "value"


@rule
def what_a_change_makes_old_counts_for_what_it_counted_before(bench: Bench) -> None:
    bench.store("a", bench.client("a"), size=6)
    bench.cache.changed("a")
    assert bench.cache.size == 6
    bench.cache.check()


@rule
def each_of_what_changes_together_is_old(bench: Bench) -> None:
    client = bench.client("a", "b")
    bench.store("a", client)
    bench.store("b", client)
    assert bench.cache.changed("a", "b", "c") and not bench.cache.changed("c")
    assert not bench.is_fresh("a") and not bench.is_fresh("b")


@rule
def nothing_is_kept_of_what_is_named_by_a_change_only(bench: Bench) -> None:
    assert not bench.cache.changed("a")
    assert not bench.cache._states


# -- 4 -------------------------------------------------------------------------------------------------------------------


@rule
def a_refresh_is_a_read_of_its_own(bench: Bench) -> None:
    client = bench.client("a")
    bench.store("a", client)
    first = bench.begin("a", client, refresh=True)
    second = bench.begin("a", client, refresh=True)
    assert isinstance(first, bench.module.Ticket) and isinstance(second, bench.module.Ticket)


@rule
def of_a_key_that_is_never_fresh_two_callers_are_two_reads(bench: Bench) -> None:
    client = bench.client()
    first, second = bench.begin("a", client), bench.begin("a", client)
    assert isinstance(first, bench.module.Ticket) and isinstance(second, bench.module.Ticket)


@rule
def of_a_key_whose_copies_are_old_at_once_two_callers_are_two_reads(bench: Bench) -> None:
    client = bench.client("a")
    bench.store("a", client)
    bench.cover(client, {})
    first, second = bench.begin("a", client), bench.begin("a", client)
    assert isinstance(first, bench.module.Ticket) and isinstance(second, bench.module.Ticket)


@rule
def of_a_key_with_a_hint_two_callers_are_one_read(bench: Bench) -> None:
    client = bench.client()
    bench.store("a", client, ttl=1.0)
    bench.now = 1.0
    leader = bench.begin("a", client)
    assert bench.begin("a", client) is leader.flight
    bench.finish(leader, "value", ttl=1.0)
    bench.cache.changed("a")
    leader = bench.begin("a", client)
    assert bench.begin("a", client) is leader.flight


@rule
def a_read_that_somebody_keeps_current_is_joined_by_every_client(bench: Bench) -> None:
    leader = bench.begin("a", bench.client("a"))
    assert bench.begin("a", bench.client()) is leader.flight


@rule
def a_flight_that_is_forgotten_is_that_one_only(bench: Bench) -> None:
    client = bench.client("a")
    first, second = bench.begin("a", client), bench.begin("a", client, refresh=True)
    bench.cache.forget_flight("a", first.flight)
    bench.cache.forget_flight("b", first.flight)
    assert bench.begin("a", client) is second.flight
    bench.cache.forget_flight("a", second.flight)
    bench.cache.forget_flight("a", second.flight)
    third = bench.begin("a", client)
    assert bench.finish(second, "value").fresh and bench.finish(third, "value").fresh


@rule
def a_read_is_still_joined_when_an_older_one_has_ended(bench: Bench) -> None:
    client = bench.client("a")
    older, newer = bench.begin("a", client), bench.begin("a", client, refresh=True)
    bench.cache.abandon_read(older)
    assert bench.begin("a", client) is newer.flight


# -- 5 -------------------------------------------------------------------------------------------------------------------


@rule
def so_many_refused_values_in_a_row_are_left_to_a_later_read(bench: Bench) -> None:
    client, most = bench.client("a"), bench.module._LEFT_OUT_AT_MOST
    tickets = [bench.begin("a", client, refresh=True) for _ in range(most + 2)]
    bench.cache.changed("a")
    assert [bench.finish(ticket, "value").kept for ticket in tickets[:-1]] == [False] * most + [True]


# -- 6 -------------------------------------------------------------------------------------------------------------------


@rule
def what_comes_under_a_lease_is_read_again(bench: Bench) -> None:
    client = bench.client()
    bench.store("a", client, ttl=60.0)
    bench.cover(client, {"a": LIVE})
    assert not bench.is_fresh("a")


@rule
def what_loses_its_lease_is_read_again(bench: Bench) -> None:
    client = bench.client("a", "b")
    bench.store("a", client)
    bench.store("b", client)
    bench.cover(client, {"b": LIVE})
    assert not bench.is_fresh("a") and bench.is_fresh("b")


@rule
def what_gets_another_lease_is_read_again(bench: Bench) -> None:
    client = bench.client("a", "b")
    bench.store("a", client)
    bench.store("b", client)
    bench.cover(client, {"a": POLLED, "b": LIVE})
    assert not bench.is_fresh("a") and bench.is_fresh("b")


@rule
def what_another_client_keeps_current_is_old_after_a_gap_of_that_client(bench: Bench) -> None:
    keeper, other = bench.client("a"), bench.client()
    bench.store("a", other)
    assert bench.is_fresh("a")
    bench.cover(keeper, {"a": LIVE}, generation=1)
    assert not bench.is_fresh("a")


@rule
def a_generation_counts_once_and_never_goes_back(bench: Bench) -> None:
    client = bench.client("a")
    bench.cover(client, {"a": LIVE}, generation=5)
    bench.store("a", client)
    for generation in (5, 4):
        bench.cover(client, {"a": LIVE}, generation=generation)
        assert bench.is_fresh("a") and client.generation == 5


@rule
def an_older_word_is_ignored_altogether(bench: Bench) -> None:
    client = bench.client()
    bench.cover(client, {"a": LIVE}, generation=1)
    bench.store("a", client)
    bench.cache.cover(client, {}, 2, 1)
    assert bench.is_fresh("a") and client.leases == {"a": LIVE}


@rule
def a_gap_touches_no_entry(bench: Bench) -> None:
    client, other = bench.client("a", "b"), bench.client("c")
    for key, reader in (("a", client), ("b", client), ("c", other)):
        bench.store(key, reader)
    before = dict(bench.cache._entries)
    bench.cover(client, {"a": LIVE, "c": LIVE}, generation=1)
    assert all(bench.cache._entries[key] is entry for key, entry in before.items())
    assert not bench.is_fresh("a") and not bench.is_fresh("b") and bench.is_fresh("c")


@rule
def what_one_client_does_not_keep_any_more_is_fresh_for_another_that_read_it(bench: Bench) -> None:
    first, second = bench.client("a"), bench.client("a")
    bench.store("a", second)
    bench.cover(first, {})
    assert bench.is_fresh("a")


@rule
def a_read_is_refused_that_loses_its_lease_beside_the_copy_of_another_client(bench: Bench) -> None:
    first, second = bench.client("a"), bench.client("a")
    bench.store("a", second)
    ticket = bench.begin("a", first, refresh=True)
    bench.cover(first, {})
    assert bench.finish(ticket, "value").refused


@rule
def a_client_keeps_current_for_itself_what_another_keeps_too(bench: Bench) -> None:
    other, client = bench.client("a"), bench.client("a")
    bench.store("a", client)
    bench.cover(other, {"a": LIVE}, generation=1)
    assert bench.is_fresh("a")


@rule
def what_only_has_a_hint_is_old_after_a_gap_of_its_client(bench: Bench) -> None:
    bench.client("b")
    client = bench.client()
    bench.store("a", client, ttl=60.0)
    assert bench.is_fresh("a")
    bench.cover(client, {}, generation=1)
    assert not bench.is_fresh("a")


@rule
def what_another_client_keeps_current_is_fresh_however_many_gaps_that_client_had(bench: Bench) -> None:
    keeper, other = bench.client("a"), bench.client()
    bench.cover(keeper, {"a": LIVE}, generation=1)
    assert bench.store("a", other).fresh and bench.is_fresh("a")


@rule
def what_another_client_does_not_keep_any_more_has_nobody_who_keeps_it(bench: Bench) -> None:
    first, second, other = bench.client("a"), bench.client("a"), bench.client()
    bench.cover(second, {})
    assert bench.store("a", other).fresh
    bench.cover(first, {})
    assert not bench.store("a", other).fresh
    assert not bench.cache._leasing, "it holds on to a client that keeps nothing"


@rule
def what_a_client_keeps_in_a_child_is_kept_for_all(bench: Bench) -> None:
    keeper, other = bench.client("a"), bench.client()
    bench.cache.after_fork_in_child()
    assert not bench.store("a", other).fresh
    bench.cover(keeper, {"a": LIVE}, generation=1)
    assert bench.store("a", other).fresh


@rule
def a_child_takes_nothing_from_a_read_of_its_parent(bench: Bench) -> None:
    client = bench.client("a")
    ticket = bench.begin("a", client)
    bench.cache.after_fork_in_child()
    assert isinstance(bench.begin("a", client), bench.module.Ticket)
    assert tuple(bench.finish(ticket, "value")) == (False, False, True)


@rule
def a_child_does_not_wait_for_a_thread_of_its_parent(bench: Bench) -> None:
    lock = bench.cache._lock
    bench.cache.after_fork_in_child()
    assert bench.cache._lock is not lock


@rule
def a_child_is_told_and_looks_at_nothing_that_may_be_half_changed(bench: Bench) -> None:
    bench.store("a", bench.client("a"))
    assert bench.cache in _fork._registered
    bench.cache._store = bench.cache._states = None
    bench.cache.after_fork_in_child()
    assert bench.cache.peek("a").value == "value"
    bench.cache.check()


@rule
def a_child_has_old_copies_only(bench: Bench) -> None:
    bench.store("a", bench.client("a"))
    bench.cache.after_fork_in_child()
    assert not bench.is_fresh("a") and bench.cache.peek("a").value == "value"


# -- 7 -------------------------------------------------------------------------------------------------------------------


@rule
def what_was_stored_is_old_when_its_time_is_up(bench: Bench) -> None:
    bench.store("a", bench.client("a"))
    bench.now = LIVE.seconds
    assert not bench.is_fresh("a")


@rule
def a_lease_counts_from_the_start_of_a_read_and_a_hint_from_its_end(bench: Bench) -> None:
    bench.now = 10.0
    bench.store("a", bench.client("a"), took=10.0)
    assert bench.cache.peek("a").fresh_until == LIVE.seconds
    bench.store("b", bench.client(), ttl=60.0, took=10.0)
    assert bench.cache.peek("b").fresh_until == 70.0
    bench.store("c", bench.client("c", lease=POLLED), ttl=1000.0, took=10.0)
    assert bench.cache.peek("c").fresh_until == 1010.0


@rule
def what_was_used_is_spared_once(bench: Bench) -> None:
    for hit in (False, True):
        bench = Bench(bench.module, max_entries=2)
        client = bench.client()
        bench.store("a", client, ttl=60.0)
        bench.store("b", client, ttl=60.0)
        assert (bench.begin("a", client) if hit else bench.cache.peek("a")).value == "value"
        bench.store("c", client, ttl=60.0)
        assert set(bench.cache._entries) == set("ac")
        bench.store("d", client, ttl=60.0)
        assert set(bench.cache._entries) == set("cd")


@rule
def what_was_all_used_makes_room_for_what_is_new_the_oldest_first(bench: Bench) -> None:
    for bench in (Bench(bench.module, max_entries=3), Bench(bench.module, max_bytes=3)):
        client = bench.client("a", "b", "c", "d")
        for key in "abc":
            bench.store(key, client)
            bench.cache.peek(key)
        assert bench.store("d", client).kept
        assert set(bench.cache._entries) == set("bcd")
        bench.cache.check()


@rule
def only_so_many_are_spared_at_once(bench: Bench) -> None:
    bench = Bench(bench.module, max_entries=3)
    bench.module._SPARED_AT_MOST = 1
    client = bench.client()
    for key in "abc":
        bench.store(key, client)
        bench.cache.peek(key)
    bench.store("d", client)
    assert set(bench.cache._entries) == set("acd")


@rule
def what_is_stored_anew_is_the_last_to_go(bench: Bench) -> None:
    bench = Bench(bench.module, max_entries=2)
    client = bench.client()
    for key in "abac":
        bench.store(key, client)
    assert set(bench.cache._entries) == set("ac")


@rule
def what_is_as_large_as_the_cache_is_kept_and_what_is_evicted_for_it_is_gone(bench: Bench) -> None:
    bench = Bench(bench.module, max_bytes=10)
    client = bench.client()
    bench.store("a", client, size=5)
    bench.store("b", client, size=5)
    assert bench.store("c", client, size=10).kept
    assert list(bench.cache._entries) == ["c"] and (len(bench.cache), bench.cache.size) == (1, 10)
    bench.cache.check()
    bench.cache.clear()
    assert (len(bench.cache), bench.cache.size) == (0, 0)
    bench.cache.check()


@rule
def a_cache_for_nothing_keeps_nothing(bench: Bench) -> None:
    bench = Bench(bench.module, max_entries=0)
    assert tuple(bench.store("a", bench.client("a"))) == (False, False, False)
    bench.cache.check()


@rule
def what_is_larger_than_the_cache_is_not_kept_and_ends_what_was_there(bench: Bench) -> None:
    bench = Bench(bench.module, max_bytes=10)
    client = bench.client("a")
    bench.store("a", client)
    stored = bench.store("a", client, size=11)
    assert (stored.fresh, stored.kept) == (False, False) and bench.cache.peek("a") is None


@rule
def what_is_evicted_cannot_be_seen_any_more(bench: Bench) -> None:
    bench = Bench(bench.module, max_bytes=10)
    client = bench.client("a", "b")
    bench.store("a", client, size=6)
    bench.store("b", client, size=6)
    assert bench.cache.peek("a") is None and bench.is_fresh("b")
    bench.cache.check()


# -- 8 -------------------------------------------------------------------------------------------------------------------


@rule
def keys_that_differ_in_their_first_part_only_are_different_keys(bench: Bench) -> None:
    client = bench.client()
    bench.store(("ann", "a"), client, "for ann", ttl=60.0)  # type: ignore[arg-type]
    found = bench.begin(("bob", "a"), client)  # type: ignore[arg-type]
    assert isinstance(found, bench.module.Ticket) and found.key == ("bob", "a")


@pytest.mark.parametrize("name", RULES)
def test_this_rule_holds(name: str) -> None:
    RULES[name](Bench(cachecopies.load()))
