"""What a cache that keeps its contract must answer, said without sequences and floors.

Each read remembers whether anything was learnt since it began; that is all. The model looks at every read and every copy at
each event, which a cache could not afford, and forgets nothing of a key, which a cache must.
"""

from typing import Any, Dict, Hashable, List, Mapping, NamedTuple, Optional, Tuple, Union

from mcp_sync.freshness import Lease

Key = Hashable


class Read:
    """One read at the server, from begin to end."""

    def __init__(self, key: Key, begun: int, keeper: Any, lease: Optional[Lease], started: float) -> None:
        self.key = key
        self.begun = begun
        self.keeper = keeper
        self.lease = lease
        self.started = started
        self.spoiled: Optional[int] = None  # when the client first learnt something that makes it old
        self.ended = False

    def spoil(self, moment: int) -> None:
        if self.spoiled is None:
            self.spoiled = moment


class Copy(NamedTuple):
    read: Read
    value: Any
    until: float
    hinted: bool
    size: int

    def is_fresh(self, now: float) -> bool:
        return self.read.spoiled is None and now < self.until


class _Known:
    """All that there is to know of one key."""

    def __init__(self) -> None:
        self.reading: List[Read] = []
        self.joinable: Optional[Read] = None
        self.copy: Optional[Copy] = None
        self.newest = 0  # the newest read that was kept, or set aside
        self.void = 0  # nothing that began up to here may be kept at all
        self.aside: Optional[Copy] = None
        self.left_out = 0  # in a row


Expected = Union[Copy, Read, None]


class Model:
    """The contract at the head of mcp_sync/cache.py, for one thread."""

    def __init__(self, max_entries: int, max_bytes: int, left_out_at_most: int) -> None:
        self.max_entries = max_entries
        self.max_bytes = max_bytes
        self.left_out_at_most = left_out_at_most
        self.now = 0.0
        self.moment = 0
        self.known: Dict[Key, _Known] = {}
        self.leases: Dict[Any, Mapping[Key, Lease]] = {}
        self.versions: Dict[Any, int] = {}
        self.generations: Dict[Any, int] = {}

    def of(self, key: Key) -> _Known:
        return self.known.setdefault(key, _Known())

    def copies(self) -> Dict[Key, Copy]:
        return {key: known.copy for key, known in self.known.items() if known.copy is not None}

    def busy(self) -> List[Key]:
        """Return the keys that a cache may know something of, beside their entries."""
        return [key for key, known in self.known.items() if known.reading]

    # -- reading ---------------------------------------------------------------------------------------------------------

    def begin(self, key: Key, coverage: Any, refresh: bool) -> Expected:
        """Return the copy or the read in progress that must be the answer; None if the caller must read."""
        self.moment += 1
        known = self.of(key)
        if refresh:
            return None
        if known.copy is not None and known.copy.is_fresh(self.now):
            return known.copy
        read = known.joinable
        if read is not None and read.spoiled is None and (read.lease is not None or read.keeper is coverage):
            if read.lease is not None or (known.copy is not None and known.copy.hinted):
                return read
        return None

    def keepers(self, key: Key, coverage: Any) -> List[Any]:
        """Return the coverages of which one has to keep what a read brings."""
        if key in self.leases.get(coverage, {}):
            return [coverage]
        return [other for other, leases in self.leases.items() if key in leases] or [coverage]

    def began(self, key: Key, keeper: Any) -> Read:
        read = Read(key, self.moment, keeper, self.leases.get(keeper, {}).get(key), self.now)
        known = self.of(key)
        known.reading.append(read)
        known.joinable = read
        return read

    def _end(self, read: Read) -> Optional[_Known]:
        self.moment += 1
        read.ended = True
        known = self.of(read.key)
        if read not in known.reading:
            return None  # all was forgotten since
        known.reading.remove(read)
        if known.joinable is read:
            known.joinable = None
        return known

    def _settle(self, known: _Known) -> None:
        """Without a read in progress nothing better comes than what was set aside."""
        if known.reading:
            return
        if known.aside is not None and known.aside.read.begun > known.void:
            self._put(known, known.aside)
        known.aside = None
        known.left_out = 0

    def finish(self, read: Read, value: Any, ttl: float, size: int, keep: bool) -> Tuple[bool, bool, bool]:
        """Return whether the value must be stored as fresh, kept at all, and refused."""
        known = self._end(read)
        if known is None:
            return False, False, True
        newer = read.begun > known.newest and read.begun > known.void
        allowed = newer and read.spoiled is None
        fresh = kept = False
        if keep and newer:
            leased = None if read.lease is None else read.started + read.lease.seconds
            hinted = self.now + ttl if ttl > 0.0 else float("-inf")
            until = hinted if leased is None else max(leased, hinted) if read.lease and read.lease.polled else leased
            copy = Copy(read, value, until, ttl > 0.0, size)
            known.newest = read.begun
            if not allowed and known.left_out < self.left_out_at_most and any(r.begun > read.begun for r in known.reading):
                known.left_out += 1
                known.aside = copy
            else:
                known.left_out = 0
                known.aside = None
                kept = self._put(known, copy)
                fresh = kept and copy.is_fresh(self.now)
        self._settle(known)
        return fresh, kept, not allowed

    def _put(self, known: _Known, copy: Copy) -> bool:
        fits = copy.size <= self.max_bytes and self.max_entries > 0
        known.copy = copy if fits else None
        return fits

    def missing(self, read: Read) -> bool:
        known = self._end(read)
        if known is None:
            return False
        settled = read.spoiled is None and read.begun > known.newest
        known.void = max(known.void, read.begun)
        for other in known.reading:
            if other.begun < read.begun:
                other.spoil(self.moment)
        if known.copy is not None and known.copy.read.begun < read.begun:
            known.copy = None
        self._settle(known)
        return settled

    def abandon(self, read: Read) -> None:
        known = self._end(read)
        if known is not None:
            self._settle(known)

    def unjoinable(self, read: Read) -> None:
        known = self.of(read.key)
        if known.joinable is read:
            known.joinable = None

    # -- what is learnt --------------------------------------------------------------------------------------------------

    def changed(self, key: Key) -> bool:
        self.moment += 1
        known = self.of(key)
        for read in known.reading:
            read.spoil(self.moment)
        if known.copy is not None:
            known.copy.read.spoil(self.moment)
        return bool(known.reading) or known.copy is not None

    def cover(self, coverage: Any, leases: Mapping[Key, Lease], generation: int, version: int) -> None:
        self.moment += 1
        if version <= self.versions.get(coverage, 0):
            return
        before = self.leases.get(coverage, {})
        self.leases[coverage] = leases
        self.versions[coverage] = version
        if generation > self.generations.get(coverage, 0):
            self.generations[coverage] = generation
            for known in self.known.values():
                for read in known.reading + ([] if known.copy is None else [known.copy.read]):
                    if read.keeper is coverage:
                        read.spoil(self.moment)
            return
        for key in set(before) | set(leases):
            if before.get(key) == leases.get(key):
                continue
            known = self.of(key)
            # What another coverage keeps stays, if nobody is reading it.
            if key not in before or known.copy is None or known.copy.read.keeper is coverage or known.reading:
                self.changed(key)

    def clear(self) -> None:
        self.moment += 1
        for known in self.known.values():
            known.reading, known.joinable, known.copy, known.aside, known.left_out = [], None, None, None, 0

    def forked(self) -> None:
        """In the child: nobody reads any more, and all that is there is old."""
        self.moment += 1
        self.leases.clear()
        for known in self.known.values():
            known.reading, known.joinable, known.aside, known.left_out = [], None, None, 0
            if known.copy is not None:
                known.copy.read.spoil(self.moment)
