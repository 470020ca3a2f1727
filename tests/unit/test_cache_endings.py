"""All ways in which three reads of one key can overlap and end, around a change.

Each read brings a result, a result that may not be kept, nothing (missing), or fails; at some moment a notice comes, or the
copy is evicted. Every order of that, with and without a copy from before, is played on the real cache and on
:class:`cachemodel.Model`.
"""

import itertools
from typing import Any, Dict, Iterator, Tuple

import cachecopies
from cachemodel import Model

from mcp_sync.freshness import Lease

KEY = "key"
FOREVER = Lease(1e9, polled=False)
ENDS = ("finish", "unkept", "missing", "fail")


def orders() -> Iterator[Tuple[str, ...]]:
    """Every order of three reads and what happens meanwhile; the reads are named in the order in which they begin."""
    seen = set()
    events = ("begin 1", "begin 2", "begin 3", "end 1", "end 2", "end 3", "meanwhile")
    for order in itertools.permutations(events):
        begins = [event for event in order if event.startswith("begin")]
        if begins == sorted(begins) and all(order.index("begin " + n) < order.index("end " + n) for n in "123"):
            seen.add(order)
    return iter(sorted(seen))


def play(module: Any, order: Tuple[str, ...], ends: Tuple[str, ...], copy: bool, evicts: bool) -> None:
    """Play one order; raise AssertionError if the cache answers otherwise than its contract says."""
    # Without a copy from before, also what happens if only one refused value is left to a later read.
    module._LEFT_OUT_AT_MOST = left_out_at_most = 8 if copy else 1
    cache = module.ResourceCache(max_entries=1, clock=lambda: 0.0)
    coverage, model = module.Coverage(), Model(100, 100, left_out_at_most)
    for side in (cache, model):
        side.cover(coverage, {KEY: FOREVER}, 0, 1)
    tickets: Dict[str, Any] = {}
    reads: Dict[str, Any] = {}

    def begin(name: str) -> None:
        model.begin(KEY, coverage, True)
        tickets[name] = cache.begin_read(KEY, coverage, refresh=True)
        reads[name] = model.began(KEY, coverage)

    def end(name: str, how: str) -> None:
        ticket, read = tickets[name], reads[name]
        if how == "missing":
            assert cache.finish_missing(ticket) == model.missing(read)
        elif how == "fail":
            cache.abandon_read(ticket)
            model.abandon(read)
        else:
            keep = how == "finish"
            stored = cache.finish_read(ticket, name, received=0.0, started=0.0, ttl=0.0, size=1, keep=keep)
            assert stored == model.finish(read, name, 0.0, 1, keep)

    if copy:
        begin("0")
        end("0", "finish")
    for event in order:
        what, _, name = event.partition(" ")
        if what == "begin":
            begin(name)
        elif what == "end":
            end(name, ends[int(name) - 1])
        elif evicts:
            other = cache.begin_read("another key", coverage)
            cache.finish_read(other, 0, received=0.0, started=0.0, ttl=0.0, size=1)
            assert KEY not in cache._entries
            cache.changed("another key")
            cache.finish_missing(cache.begin_read("another key", coverage))
            model.of(KEY).copy = None
        else:
            assert cache.changed(KEY) == model.changed(KEY)
        # Not peek(): what is used is not evicted.
        entry, known = cache._entries.get(KEY), model.of(KEY).copy
        assert (entry is None) == (known is None)
        if entry is not None and known is not None:
            assert (entry.value, entry.is_fresh(0.0)) == (known.value, known.is_fresh(0.0))
        assert set(cache._states) == set(model.busy())
    cache.check()


def play_all(module: Any) -> int:
    count = 0
    for order in orders():
        for ends in itertools.product(ENDS, repeat=3):
            for copy, evicts in ((False, False), (True, False), (True, True)):
                if evicts and not set(ends) <= {"finish", "fail"}:
                    continue
                count += 1
                try:
                    play(module, order, ends, copy, evicts)
                except AssertionError as error:
                    raise AssertionError("%r, ends %r, copy %r, evicts %r" % (order, ends, copy, evicts)) from error
    return count


def test_however_three_overlapping_reads_end_the_newest_that_may_be_kept_is_kept() -> None:
    assert play_all(cachecopies.load()) == 105 * (64 * 2 + 8)


def count_twice(module: Any) -> None:
    """One refused value at most is left to a later read; then one is stored; then it is one again."""
    module._LEFT_OUT_AT_MOST = 1
    cache, coverage = module.ResourceCache(clock=lambda: 0.0), module.Coverage()
    cache.cover(coverage, {KEY: FOREVER}, 0, 1)

    def begin() -> Any:
        return cache.begin_read(KEY, coverage, refresh=True)

    def end(ticket: Any, value: str) -> Tuple[bool, bool]:
        stored = cache.finish_read(ticket, value, received=0.0, started=0.0, ttl=0.0, size=1)
        return stored.fresh, stored.kept

    first, second = begin(), begin()
    cache.changed(KEY)
    third = begin()
    assert end(first, "first") == (False, False), "it must be left to the later ones"
    assert end(third, "third") == (True, True)
    fourth, fifth = begin(), begin()
    cache.changed(KEY)
    assert end(fourth, "fourth") == (False, False), "it must be left to the fifth, since the third was stored"
    assert end(second, "second") == (False, False)
    cache.abandon_read(fifth)
    assert cache.peek(KEY).value == "fourth"


def test_refused_values_in_a_row_are_counted_anew_after_one_that_was_stored() -> None:
    count_twice(cachecopies.load())


def test_what_changes_together_is_out_of_date_together() -> None:
    module = cachecopies.load()
    cache, coverage = module.ResourceCache(clock=lambda: 0.0), module.Coverage()
    cache.cover(coverage, {KEY: FOREVER, "another": FOREVER}, 0, 1)
    held = cache.begin_read(KEY, coverage)
    cache.finish_read(held, "old", received=0.0, started=0.0, ttl=0.0, size=1)
    reading = cache.begin_read("another", coverage)
    assert cache.changed(KEY, "another", "neither held nor read")
    assert cache.changed("neither held nor read", KEY) and cache.changed(KEY, "neither held nor read")
    assert not cache.changed("neither held nor read") and not cache.changed()
    assert not cache.peek(KEY).is_fresh(0.0)
    assert cache.finish_read(reading, "old", received=0.0, started=0.0, ttl=0.0, size=1).refused
    cache.check()
