"""Entries, sequence, floor, generation, single flight. Knows no protocol and no network.

The contract, which ``tests/unit/test_cache_orders.py`` proves over every order of events:

1. Two steps, no I/O inside: :meth:`ResourceCache.begin_read` answers a fresh entry, a ticket, or a flight of someone else's
   to wait for; :meth:`ResourceCache.finish_read` stores or refuses; :meth:`ResourceCache.abandon_read` gives up, and the
   next waiter leads.
2. A ticket is refused if its generation is old, or its sequence is not above the key's floor, or not above the sequence of
   the stored entry. Callers that were already waiting for that read still receive its value: it was current as far as anyone
   knew when they asked.
3. :meth:`ResourceCache.changed` raises the floor and makes the entry stale; the value stays for callers that accept old
   data. Floors are kept only of keys with a read in flight (what begins later is above them), so nothing grows with the
   number of keys that somebody names.
4. A second caller joins a read only while that read could still be stored, and only for a key that can be fresh at all: of
   a key that never is, two callers are two reads. A refresh never joins a read that began before it.
5. A refused value that is newer than the stored one replaces it *as stale*: under constant change the old copy still moves
   forward. While a later read is in flight it is left to that one to replace the copy, a few times in a row at most: the
   server may have answered the two in the other order, and then the copy would go back.
6. A new generation (:meth:`ResourceCache.cover`) costs the same for any number of entries, and makes all that a coverage
   kept current stale at once.
7. A hit takes no lock and copies nothing. Bounded by entries and by bytes.
8. Keys carry the principal, the method and the parameters. The cache compares keys and never looks into them.

Words: *sequence*, one counter that orders the starts of reads and the changes; *floor*, the lowest sequence that may still
be stored for a key; *generation*, the number of the world that a read was made in; *ticket*, the right to store one read.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any, Dict, Generic, Hashable, List, Mapping, NamedTuple, Optional, Set, Tuple, TypeVar, Union

import cachetools

from . import _fork
from ._deadline import Clock, Deadline, monotonic
from .freshness import Lease, fresh_until

__all__ = ["Coverage", "Entry", "Flight", "ResourceCache", "Stored", "Ticket"]

Key = Hashable

#: Rule 5: how many refused values in a row are left to a later read.
_LEFT_OUT_AT_MOST = 8
#: How many entries get a second chance in a row.
_SPARED_AT_MOST = 100
V = TypeVar("V")


class Coverage:
    """One source of notices, and the keys that it keeps current. The cache's lock guards it.

    ``generation`` moves when a gap begins; entries remember the one they were read in. Reading it needs no lock.
    """

    __slots__ = ("generation", "leases", "version")

    def __init__(self) -> None:
        self.generation = 0
        self.leases: Mapping[Key, Lease] = {}
        self.version = 0


class Entry(Generic[V]):
    """One cached result. Immutable once it can be seen by more than one thread, but for ``used`` (a hint to the eviction)."""

    __slots__ = ("value", "sequence", "coverage", "generation", "fresh_until", "hinted", "size", "used")

    def __init__(
        self,
        value: V,
        sequence: int,
        coverage: Coverage,
        generation: int,
        fresh_until: float,
        hinted: bool,
        size: int,
    ) -> None:
        self.value = value
        self.sequence = sequence
        self.coverage = coverage
        self.generation = generation
        self.fresh_until = fresh_until
        self.hinted = hinted
        self.size = size
        self.used = False

    def is_fresh(self, now: float) -> bool:
        return now < self.fresh_until and self.generation == self.coverage.generation

    def as_stale(self) -> "Entry[V]":
        return Entry(self.value, self.sequence, self.coverage, -1, self.fresh_until, self.hinted, self.size)


class Ticket:
    """The right to store one read."""

    # Written out, as the messages are (jsonrpc.py).
    __slots__ = ("key", "sequence", "coverage", "generation", "lease", "flight")

    def __init__(
        self,
        key: Key,
        sequence: int,
        coverage: Coverage,
        generation: int,
        lease: Optional[Lease],
        flight: "Flight[Any]",
    ) -> None:
        self.key = key
        self.sequence = sequence
        self.coverage = coverage
        self.generation = generation
        self.lease = lease
        self.flight = flight


class Stored(NamedTuple):
    """What became of a finished read.

    :param fresh: whether it was stored as fresh.
    :param kept: whether it was stored at all.
    :param refused: whether something that was learnt during the read forbade to store it as fresh.
    """

    fresh: bool
    kept: bool
    refused: bool


class Flight(Generic[V]):
    """A read in progress, that others may wait for. Its leader ends it through the cache; any thread may wait."""

    __slots__ = ("_done", "value", "succeeded")

    def __init__(self) -> None:
        self._done = threading.Event()
        self.value: Optional[V] = None
        self.succeeded = False

    def wait(self, deadline: Deadline) -> bool:
        """Wait for the end; return whether it came before the deadline. Then look at ``succeeded`` and ``value``."""
        return self._done.wait(deadline.remaining())

    def _end(self, succeeded: bool, value: Optional[V]) -> None:
        self.value = value
        self.succeeded = succeeded
        self._done.set()


class _KeyState:
    """What is known of a key with a read in flight. Reads that begin when there is none are later than all that was known."""

    __slots__ = ("floor", "void", "stored", "reading", "flight", "left_out", "spare")

    def __init__(self) -> None:
        self.floor = 0  # reads up to this sequence are not fresh any more
        self.void = 0  # reads up to this sequence may not even be kept as old copies
        self.stored = 0  # the newest of these reads that was stored or is the spare, even if it was evicted since
        self.reading: Tuple[int, ...] = ()  # the sequences of the tickets that are out
        self.left_out = 0  # refused values in a row that were not kept, in favour of a later read
        self.spare: Optional[Entry[Any]] = None  # the newest of them, for the case that the later read brings nothing
        self.flight: Optional[Tuple[Ticket, Flight[Any]]] = None  # the newest, if it may still be joined


class _Store(cachetools.Cache):  # type: ignore[type-arg]  # not generic at run time on the oldest versions
    """Least recently used first, where being used is only noted by a hit and honoured at eviction (a second chance).

    A true LRU reorders at each hit and would need the lock there. This one evicts in the order in which entries were stored.
    """

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes, getsizeof=lambda entry: entry.size)
        self.evicted: List[Key] = []  # since somebody emptied the list

    def popitem(self) -> Tuple[Key, "Entry[Any]"]:
        # Those that were read since they were stored or last spared go to the recent end. Only some at once: the lock is held.
        for key in list(itertools.islice(self, _SPARED_AT_MOST)):
            entry = self.pop(key)
            if not entry.used:
                break
            entry.used = False
            self[key] = entry
        else:
            key, entry = super().popitem()
        self.evicted.append(key)
        return key, entry


Begun = Union[Entry[V], Ticket, Flight[V]]


class ResourceCache(Generic[V]):
    """A cache that never takes an old answer for a new one. Any thread; see the module for the contract.

    :param max_entries: how many entries it holds at most.
    :param max_bytes: how large they may be together, as the callers of :meth:`finish_read` measure them.
    :param clock: seconds, never going back.
    """

    def __init__(self, max_entries: int = 20000, max_bytes: int = 64 * 1024 * 1024, clock: Clock = monotonic) -> None:
        self.max_entries = max_entries
        self.max_bytes = max_bytes
        self.clock = clock
        # Guards everything below. Held for a few dictionary operations, never for I/O, callbacks or logging.
        self._lock = threading.Lock()
        self._sequence = 0
        self._states: Dict[Key, _KeyState] = {}
        self._leasing: Tuple[Coverage, ...] = ()  # the coverages that have any leases
        self._store = _Store(max_bytes)
        # A second view of what _store holds, for hits: a plain dictionary can be read without the lock.
        self._entries: Dict[Key, Entry[V]] = {}
        _fork.register(self)

    # -- reading ---------------------------------------------------------------------------------------------------------

    def view(self) -> Mapping[Key, Entry[V]]:
        """Return all entries, fresh or not, to be looked at without a lock and for ever. Who uses one sets its ``used``."""
        return self._entries

    def peek(self, key: Key) -> Optional[Entry[V]]:
        """Return the entry, fresh or not, without a lock: ask it ``is_fresh``."""
        entry = self._entries.get(key)
        if entry is not None and not entry.used:
            entry.used = True
        return entry

    def begin_read(self, key: Key, coverage: Coverage, refresh: bool = False) -> Begun[V]:
        """Ask for ``key``: answer a fresh entry, or a ticket (the caller must read), or someone else's flight to wait for.

        :param coverage: what may keep this key current.
        :param refresh: True for a read that begins now, whatever is there.
        """
        with self._lock:
            entry = self._entries.get(key)
            if not refresh:
                if entry is not None and entry.is_fresh(self.clock()):
                    entry.used = True
                    return entry
                state = self._states.get(key)
                if state is not None and state.flight is not None:
                    ticket, flight = state.flight
                    if (
                        (ticket.coverage is coverage or ticket.lease is not None)
                        and self._may_be_stored_locked(ticket, state)
                        and (ticket.lease is not None or (entry is not None and entry.hinted))
                    ):
                        return flight
            state = self._states.get(key)
            if state is None:
                state = self._states[key] = _KeyState()
            self._sequence += 1
            new_flight: Flight[V] = Flight()
            # Whoever keeps the key current does so for all who read it, whichever client of that principal they are.
            keeping = coverage
            if key not in coverage.leases:
                keeping = next((other for other in self._leasing if key in other.leases), coverage)
            ticket = Ticket(key, self._sequence, keeping, keeping.generation, keeping.leases.get(key), new_flight)
            state.reading += (ticket.sequence,)
            state.flight = (ticket, new_flight)
            return ticket

    def finish_read(
        self, ticket: Ticket, value: V, *, received: float, started: float, ttl: float, size: int, keep: bool = True
    ) -> Stored:
        """Store what a read brought, or refuse it; whoever waits for the read gets the value either way.

        :param received: when the answer had arrived, on this cache's clock.
        :param started: when the read began, likewise.
        :param ttl: the server's hint, in seconds.
        :param size: what it counts for, in bytes.
        :param keep: False for a value that must not be stored at all.
        """
        with self._lock:
            state = self._ended_locked(ticket)
            if state is None:
                stored = Stored(False, False, True)  # begun in another process, or before a clear()
            else:
                newer = ticket.sequence > state.void and ticket.sequence > state.stored
                allowed = self._may_be_stored_locked(ticket, state)
                until = fresh_until(ticket.lease, started, received, ttl)
                generation = ticket.generation if allowed else -1
                new = Entry(value, ticket.sequence, ticket.coverage, generation, until, ttl > 0.0, size)
                kept = False
                if keep and newer:
                    state.stored = ticket.sequence
                    if not allowed and self._later_is_awaited_locked(ticket, state):
                        state.left_out += 1
                        state.spare = new
                    else:
                        state.left_out = 0
                        state.spare = None
                        kept = self._put_locked(ticket.key, new)
                stored = Stored(kept and allowed and until > received, kept, not allowed)
                self._settle_locked(ticket.key, state)
        ticket.flight._end(True, value)
        return stored

    def finish_missing(self, ticket: Ticket) -> bool:
        """End a read that found that there is nothing, or nothing that may be seen: what was read before it is gone at once.

        Reads that began later are not touched: they know better.

        :returns: whether nothing was learnt during the read that forbids to take its answer for current.
        """
        with self._lock:
            state = self._ended_locked(ticket)
            settled = False
            if state is not None:
                settled = self._may_be_stored_locked(ticket, state)
                state.floor = max(state.floor, ticket.sequence)
                state.void = max(state.void, ticket.sequence)
                entry = self._entries.get(ticket.key)
                if entry is not None and entry.sequence < ticket.sequence:
                    self._drop_locked(ticket.key)
                self._settle_locked(ticket.key, state)
        ticket.flight._end(False, None)
        return settled

    def forget_flight(self, key: Key, flight: Flight[V]) -> None:
        """Let nobody join a flight any more that lasts too long: perhaps its leader is gone."""
        with self._lock:
            state = self._states.get(key)
            if state is not None and state.flight is not None and state.flight[1] is flight:
                state.flight = None

    def abandon_read(self, ticket: Ticket) -> None:
        """Give up a read that failed: the next caller, or the first that waited, reads for itself."""
        with self._lock:
            state = self._ended_locked(ticket)
            if state is not None:
                self._settle_locked(ticket.key, state)
        ticket.flight._end(False, None)

    # -- what is learnt --------------------------------------------------------------------------------------------------

    def changed(self, *keys: Key) -> bool:
        """Note that ``keys`` changed: nothing that was read before is fresh any more.

        :returns: whether anything was there to become stale (an entry or a read in flight).
        """
        found = False
        with self._lock:
            for key in keys:
                found = self._changed_locked(key) or found
        return found

    def cover(self, coverage: Coverage, leases: Mapping[Key, Lease], generation: int, version: int) -> None:
        """From now on, ``coverage`` keeps these keys current, and no others.

        Reads that began before do not profit: what changed before the coverage began was not announced. So what comes under a
        lease, loses one, or gets another, becomes stale.

        :param leases: not changed by anybody afterwards.
        :param generation: a higher one than before if changes may have been missed: then all that ``coverage`` kept current is
            stale at once.
        :param version: counts what a coverage's owner says. Its threads may overtake each other on the way here; an older
            word than the last is ignored.
        """
        with self._lock:
            if version <= coverage.version:
                return
            before, coverage.leases, coverage.version = coverage.leases, leases, version
            if (coverage in self._leasing) != bool(leases):  # in a forked child it is not there, whatever it had before
                others = tuple(other for other in self._leasing if other is not coverage)
                self._leasing = others + (coverage,) if leases else others
            if generation > coverage.generation:
                coverage.generation = generation
                return
            # Mostly there is only more than before, and that is quickly seen.
            for key in () if before.items() <= leases.items() else before:
                if leases.get(key) != before[key]:
                    entry = self._entries.get(key)
                    if entry is None or entry.coverage is coverage or key in self._states:
                        self._changed_locked(key)
            for key in leases.keys() - before.keys():
                self._changed_locked(key)

    def clear(self) -> None:
        """Forget everything. Reads in flight will be refused."""
        with self._lock:
            self._reset_locked()

    # -- inspection ------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """The size of all entries together, in bytes."""
        return int(self._store.currsize)

    def check(self) -> None:
        """Raise AssertionError if the cache contradicts itself. For tests."""
        with self._lock:
            assert set(self._store) == set(self._entries), "the two views hold different keys"
            assert all(cachetools.Cache.__getitem__(self._store, k) is e for k, e in self._entries.items())
            assert self._store.currsize <= self.max_bytes and len(self._entries) <= self.max_entries
            idle: Set[Key] = {k for k, s in self._states.items() if not s.reading}
            assert not idle, "states are kept of keys that nobody reads: %r" % idle

    # -- with the lock held ----------------------------------------------------------------------------------------------

    def _may_be_stored_locked(self, ticket: Ticket, state: _KeyState) -> bool:
        return (
            ticket.generation == ticket.coverage.generation
            and ticket.sequence > state.floor
            and ticket.sequence > state.stored
        )

    def _changed_locked(self, key: Key) -> bool:
        self._sequence += 1
        state = self._states.get(key)
        if state is not None:
            state.floor = self._sequence
        entry = self._entries.get(key)
        if entry is not None and entry.generation != -1:
            self._replace_locked(key, entry.as_stale())
        return state is not None or entry is not None

    def _ended_locked(self, ticket: Ticket) -> Optional[_KeyState]:
        state = self._states.get(ticket.key)
        if state is None or ticket.sequence not in state.reading:
            return None
        state.reading = tuple(sequence for sequence in state.reading if sequence != ticket.sequence)
        if state.flight is not None and state.flight[0] is ticket:
            state.flight = None
        return state

    def _later_is_awaited_locked(self, ticket: Ticket, state: _KeyState) -> bool:
        return state.left_out < _LEFT_OUT_AT_MOST and any(sequence > ticket.sequence for sequence in state.reading)

    def _settle_locked(self, key: Key, state: _KeyState) -> None:
        """Forget what was known of a key, if its last read has ended."""
        if not state.reading:
            del self._states[key]
            if state.spare is not None and state.spare.sequence > state.void:
                # It was left to a later read to bring something newer, and there is none any more.
                self._put_locked(key, state.spare)

    def _put_locked(self, key: Key, entry: Entry[V]) -> bool:
        if entry.size > self.max_bytes or self.max_entries < 1:
            # Larger than the whole cache. What was there is older than this, so it must not stay as the newest.
            self._drop_locked(key)
            return False
        self._store.pop(key, None)  # what is stored anew is the last to be evicted
        # Room is made first: it must not be the new one that goes because all others were used.
        while len(self._store) >= self.max_entries:
            self._store.popitem()
        self._store[key] = entry
        self._entries[key] = entry
        evicted, self._store.evicted = self._store.evicted, []
        for old in evicted:
            del self._entries[old]
        return True

    def _replace_locked(self, key: Key, entry: Entry[V]) -> None:
        # Same key, same size: nothing can be evicted.
        self._store[key] = entry
        self._entries[key] = entry

    def _drop_locked(self, key: Key) -> None:
        if self._entries.pop(key, None) is not None:
            del self._store[key]

    def _reset_locked(self) -> None:
        self._states = {}
        self._store = _Store(self.max_bytes)
        self._entries.clear()  # and not another one: see view()

    # -- fork ------------------------------------------------------------------------------------------------------------

    def after_fork_in_child(self) -> None:
        # The parent's threads may have held the lock in the middle of a change of _store; only _entries, a plain
        # dictionary, is whole at every moment. Its values are kept as old copies: who knows what this child has missed.
        self._lock = threading.Lock()
        self._leasing = ()
        old: List[Tuple[Key, Entry[V]]] = list(self._entries.items())
        self._reset_locked()
        for key, entry in old:
            self._put_locked(key, entry.as_stale())
