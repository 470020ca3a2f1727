"""The rules of mcp_sync.cache, each said once, as short as it can be. Which orders of events they hold in is for the other tests.

Each is a function of the module, so that it can also be asked of one with a rule taken out (see :mod:`cachemutants`).
"""

from typing import Any, Callable, Dict, Mapping

import cachecopies
import pytest

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

    def finish(self, ticket: Any, value: str, ttl: float = 0.0, size: int = 1) -> Any:
        assert isinstance(ticket, self.module.Ticket)
        return self.cache.finish_read(ticket, value, received=self.now, started=self.now, ttl=ttl, size=size)

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
def a_read_that_has_failed_is_not_joined_while_an_older_one_goes_on(bench: Bench) -> None:
    client = bench.client("a")
    bench.begin("a", client)
    bench.cache.abandon_read(bench.begin("a", client, refresh=True))
    assert isinstance(bench.begin("a", client), bench.module.Ticket)


# -- 3 -------------------------------------------------------------------------------------------------------------------


@rule
def a_change_makes_the_copy_old(bench: Bench) -> None:
    bench.store("a", bench.client("a"))
    assert bench.is_fresh("a")
    assert bench.cache.changed("a")
    assert not bench.is_fresh("a") and bench.cache.peek("a").value == "value"


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
