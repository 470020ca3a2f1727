"""The rules of mcp_sync.cache, each taken out of its text in turn, and the test that notices.

The numbers are those of the contract at the head of ``mcp_sync/cache.py``.
"""

from typing import NamedTuple, Tuple


class Mutant(NamedTuple):
    """One way to break a rule.

    :param rule: which one, and what is done to it.
    :param by: the test that must fail then: "rules: " and the rule, "enumeration" (test_cache_orders), "endings", or
        "schedules: " and the scenario. None is left to "machine": what chance finds depends on the version of hypothesis.
    :param changes: pairs of a text of cache.py and of what stands there instead.
    """

    rule: str
    by: str
    changes: Tuple[Tuple[str, str], ...]


def _m(rule: str, by: str, *texts: str) -> Mutant:
    return Mutant(rule, by, tuple(zip(texts[::2], texts[1::2])))


_LOCKED = "        with self._lock:\n"
_UNLOCKED = "        if True:\n"
_JOIN = "                        and self._may_be_stored_locked(ticket, state)\n"
_MAY = "            ticket.generation == ticket.coverage.generation\n            and ticket.sequence > state.floor\n"
_END_ABANDONED = "                self._settle_locked(ticket.key, state)\n        ticket.flight._end(False, None)\n\n    # --"
_END_MISSING = "        ticket.flight._end(False, None)\n        return settled"
_IDLE = "            del self._states[key]\n"
_ENDED = (
    "        if state.flight is not None and state.flight[0] is ticket:\n"
    "            state.flight = None\n"
    "        return state"
)

MUTANTS = (
    _m(
        "1: who waits for a read that succeeded is not released",
        "schedules: two readers and a change",
        "        ticket.flight._end(True, value)\n",
        "",
    ),
    _m(
        "1: who waits for a read that failed is not released",
        "schedules: a leader that fails",
        _END_ABANDONED,
        _END_ABANDONED.replace("        ticket.flight._end(False, None)\n", ""),
    ),
    _m(
        "1: who waits for what is missing is not released",
        "rules: who waits for a read that finds nothing is released",
        _END_MISSING,
        "        return settled",
    ),
    _m(
        "1: a failure is told as a success",
        "schedules: a leader that fails",
        _END_ABANDONED,
        _END_ABANDONED.replace("(False", "(True"),
    ),
    _m(
        "1: a read that has ended can still be joined",
        "rules: a read that has failed is not joined while an older one goes on",
        _ENDED,
        "        return state",
    ),
    _m(
        "1: a read that lasts too long is joined again",
        "schedules: a waiter without patience",
        "state.flight[1] is flight:\n                state.flight = None",
        "state.flight[1] is flight:\n                pass",
    ),
    _m(
        "2: an old generation is not refused",
        "schedules: a gap during reads",
        _MAY,
        _MAY.split("\n", 1)[1].replace("and ", ""),
    ),
    _m("2: what is below the floor is not refused", "enumeration", _MAY, _MAY.split("\n")[0] + "\n"),
    _m(
        "2: what is older than the stored entry replaces it",
        "enumeration",
        "            and ticket.sequence > state.stored\n",
        "",
        "newer = ticket.sequence > state.void and ticket.sequence > state.stored",
        "newer = ticket.sequence > state.void",
    ),
    _m(
        "2: the order of the reads is forgotten with the entry",
        "endings",
        "            del self._entries[old]\n",
        "            del self._entries[old]\n            self._states.get(old, _KeyState()).stored = 0\n",
    ),
    _m(
        "2: who waits for a read that is refused gets nothing",
        "schedules: two readers and a change",
        "        ticket.flight._end(True, value)\n",
        "        ticket.flight._end(not stored.refused, value)\n",
    ),
    _m(
        "3: a change does not raise the floor",
        "schedules: a refresh and two changes",
        "            state.floor = self._sequence\n",
        "            pass\n",
    ),
    _m(
        "3: a change does not make the entry stale",
        "rules: a change makes the copy old",
        "        if entry is not None and entry.generation != -1:\n",
        "        if False:\n",
    ),
    _m(
        "3: a change takes the old copy away",
        "endings",
        "            self._replace_locked(key, entry.as_stale())\n        return state",
        "            self._drop_locked(key)\n        return state",
    ),
    _m(
        "3: a floor is kept for a key that nobody reads or holds",
        "rules: nothing is kept of what is named by a change only",
        "        if state is not None:\n            state.floor",
        "        if state is None:\n            state = self._states[key] = _KeyState()\n"
        "        if True:\n            state.floor",
    ),
    _m(
        "3: a change of what nobody reads is not noted",
        "rules: a change makes the copy old",
        "            state.floor = self._sequence\n",
        "            state.floor = self._sequence\n        else:\n            return False\n",
    ),
    _m("3: what is known of a key is never forgotten", "endings", _IDLE, "            pass\n"),
    _m(
        "3: what is known of a key is forgotten with the first of its reads",
        "endings",
        "        if not state.reading:\n            del",
        "        if True:\n            del",
    ),
    _m("4: a read that is out of date already is joined", "enumeration", _JOIN, ""),
    _m(
        "4: no read is ever joined",
        "schedules: a leader that fails",
        "                        return flight\n",
        "                        pass\n",
    ),
    _m(
        "4: a refresh is answered by what is there, or joins",
        "rules: a refresh is a read of its own",
        "            if not refresh:\n",
        "            if True:\n",
    ),
    _m(
        "4: a read of a key that is never fresh is joined",
        "rules: of a key that is never fresh two callers are two reads",
        "                        and (ticket.lease is not None or (entry is not None and entry.hinted))\n",
        "",
    ),
    _m(
        "4: a read that nobody keeps current is joined by another client",
        "schedules: two clients that only have a hint",
        "                        (ticket.coverage is coverage or ticket.lease is not None)\n                        and ",
        "                        ",
    ),
    _m(
        "5: a refused value is not kept, even if it is newer",
        "endings",
        "                if keep and newer:\n                    state.stored",
        "                if keep and newer and allowed:\n                    state.stored",
    ),
    _m("5: a refused value is kept as fresh", "endings", "ticket.generation if allowed else -1", "ticket.generation"),
    _m(
        "5: a refused value does not wait for a later read",
        "enumeration",
        "        return state.left_out < _LEFT_OUT_AT_MOST and any(",
        "        return False and any(",
    ),
    _m(
        "5: refused values wait for later reads for ever",
        "endings",
        "        return state.left_out < _LEFT_OUT_AT_MOST and any(",
        "        return any(",
    ),
    _m(
        "5: it is not in a row that they are counted",
        "endings",
        "                        state.left_out = 0\n                        state.spare = None\n",
        "                        state.spare = None\n",
    ),
    _m(
        "5: what was set aside is lost when the later read fails",
        "schedules: what is set aside",
        "            if state.spare is not None and state.spare.sequence > state.void:\n",
        "            if False:\n",
    ),
    _m(
        "5: an older value takes the place of the one that was set aside",
        "endings",
        "                    state.stored = ticket.sequence\n                    if not allowed",
        "                    if not allowed",
        "                        state.left_out = 0\n                        state.spare = None\n",
        "                        state.left_out = 0\n                        state.stored = ticket.sequence\n"
        "                        state.spare = None\n",
    ),
    _m("5: what was set aside is kept although it is gone", "endings", " and state.spare.sequence > state.void:", ":"),
    _m(
        "6: a gap does not move the generation",
        "schedules: looks during a gap",
        "                coverage.generation = generation\n",
        "",
    ),
    _m(
        "6: an entry of an old generation is fresh",
        "schedules: looks during a gap",
        "now < self.fresh_until and self.generation == self.coverage.generation",
        "now < self.fresh_until and self.generation != -1",
    ),
    _m(
        "6: an older word about the coverage is taken",
        "schedules: covers that overtake",
        "            if version <= coverage.version:\n",
        "            if False:\n",
    ),
    _m(
        "6: what comes under a lease stays fresh",
        "rules: what comes under a lease is read again",
        "            for key in leases.keys() - before.keys():\n",
        "            for key in ():\n",
    ),
    _m(
        "6: what loses its lease stays fresh",
        "rules: what loses its lease is read again",
        "                if leases.get(key) != before[key]:\n",
        "                if False:\n",
    ),
    _m(
        "6: what gets another lease stays fresh",
        "rules: what gets another lease is read again",
        "                if leases.get(key) != before[key]:\n",
        "                if key not in leases:\n",
    ),
    _m(
        "6: a lease of another client counts, but not its gaps",
        "rules: what another client keeps current is old after a gap of that client",
        "Ticket(key, self._sequence, keeping, keeping.generation,",
        "Ticket(key, self._sequence, coverage, coverage.generation,",
    ),
    _m(
        "6: reads that wait for their answer when everything is forgotten are stored",
        "schedules: forgetting all",
        "    def _reset_locked(self) -> None:\n        self._states = {}\n",
        "    def _reset_locked(self) -> None:\n",
    ),
    _m(
        "6: a child trusts what its parent had",
        "rules: a child has old copies only",
        "            self._put_locked(key, entry.as_stale())\n",
        "            self._put_locked(key, entry)\n",
    ),
    _m(
        "7: an entry does not age",
        "rules: what was stored is old when its time is up",
        "now < self.fresh_until and self.gen",
        "self.gen",
    ),
    _m(
        "7: a hit takes the lock",
        "schedules: looks without a lock",
        "        entry = self._entries.get(key)\n        if entry is not None and not entry.used:\n",
        "        with self._lock:\n"
        "            entry = self._entries.get(key)\n"
        "        if entry is not None and not entry.used:\n",
    ),
    _m(
        "7: changes are noted without the lock",
        "schedules: a change beside a refresh",
        "        with self._lock:\n            for key in keys:\n",
        "        if True:\n            for key in keys:\n",
    ),
    _m(
        "7: reads fail without the lock",
        "schedules: a read that fails beside one that does not",
        "        with self._lock:\n            state = self._ended_locked(ticket)\n            if state is not None:\n"
        "                self._settle_locked(ticket.key, state)\n",
        "        state = self._ended_locked(ticket)\n        if state is not None:\n"
        "            self._settle_locked(ticket.key, state)\n",
    ),
    _m(
        "7: reads begin without the lock",
        "schedules: a read beside one that finds nothing",
        _LOCKED + "            entry = self._entries.get(key)\n            if not refresh:\n",
        _UNLOCKED + "            entry = self._entries.get(key)\n            if not refresh:\n",
    ),
    _m(
        "7: reads end without the lock",
        "schedules: reads at once",
        _LOCKED + "            state = self._ended_locked(ticket)\n            if state is None:\n",
        _UNLOCKED + "            state = self._ended_locked(ticket)\n            if state is None:\n",
    ),
    _m(
        "7: what is gone is noted without the lock",
        "schedules: a read beside one that finds nothing",
        _LOCKED + "            state = self._ended_locked(ticket)\n            settled = False\n",
        _UNLOCKED + "            state = self._ended_locked(ticket)\n            settled = False\n",
    ),
    _m(
        "7: coverage changes without the lock",
        "schedules: a cover beside a read",
        _LOCKED + "            if version <= coverage.version:\n",
        _UNLOCKED + "            if version <= coverage.version:\n",
    ),
    _m(
        "7: entries are not counted",
        "schedules: room for one",
        "        while len(self._store) >= self.max_entries:\n",
        "        while False:\n",
    ),
    _m(
        "7: what is larger than the cache is taken",
        "rules: what is larger than the cache is not kept and ends what was there",
        "        if entry.size > self.max_bytes or self.",
        "        if self.",
    ),
    _m(
        "7: what was evicted can still be seen",
        "rules: what is evicted cannot be seen any more",
        "            del self._entries[old]\n",
        "            pass\n",
    ),
    _m(
        "8: keys are looked into, and the principal is lost",
        "rules: keys that differ in their first part only are different keys",
        "        with self._lock:\n            entry = self._entries.get(key)\n            if not refresh:\n",
        "        key = (None,) + key[1:]\n"
        "        with self._lock:\n            entry = self._entries.get(key)\n            if not refresh:\n",
    ),
    _m(
        "8: what must not be stored is",
        "endings",
        "                if keep and newer:\n",
        "                if newer:\n",
    ),
    _m(
        "what is gone is still shown",
        "schedules: a resource that vanishes",
        "                if entry is not None and entry.sequence < ticket.sequence:\n",
        "                if False:\n",
    ),
    _m(
        "what is gone takes along what was read later",
        "endings",
        "                if entry is not None and entry.sequence < ticket.sequence:\n",
        "                if entry is not None:\n",
    ),
    _m(
        "what is gone comes back with a read that began before",
        "endings",
        "                state.void = max(state.void, ticket.sequence)\n",
        "",
    ),
    _m(
        "what is gone comes back as fresh",
        "endings",
        "                state.floor = max(state.floor, ticket.sequence)\n"
        "                state.void = max(state.void, ticket.sequence)\n",
        "",
    ),
    _m(
        "1: a read that ends after everything was forgotten releases nobody",
        "rules: who waits for a read that ends after everything was forgotten is released",
        "                self._settle_locked(ticket.key, state)\n        ticket.flight._end(False, None)\n\n    # --",
        "                self._settle_locked(ticket.key, state)\n                ticket.flight._end(False, None)\n\n    # --",
    ),
    _m(
        "1: who waits is released before the value is there",
        "schedules: two readers and a change",
        "        self.value = value\n        self.succeeded = succeeded\n        self._done.set()",
        "        self._done.set()\n        self.value = value\n        self.succeeded = succeeded",
    ),
    _m(
        "1: who waits has no deadline",
        "schedules: a leader that never ends",
        "self._done.wait(deadline.remaining())",
        "self._done.wait(None)",
    ),
    _m(
        "1: another flight than the one that lasts too long is forgotten",
        "rules: a flight that is forgotten is that one only",
        " and state.flight[1] is flight:",
        ":",
    ),
    _m(
        "1: a flight that lasts too long is forgotten with its read",
        "rules: a flight that is forgotten is that one only",
        "state.flight[1] is flight:\n                state.flight = None",
        "state.flight[1] is flight:\n"
        "                state.reading = tuple(s for s in state.reading if s != state.flight[0].sequence)\n"
        "                state.flight = None",
    ),
    _m(
        "2: a read from before everything was forgotten is not told as refused",
        "rules: a read that began before everything was forgotten is refused",
        "Stored(False, False, True)",
        "Stored(False, False, False)",
    ),
    _m(
        "2: of what was forgotten it is taken for current that it is gone",
        "rules: a read that began before everything was forgotten is refused",
        "            settled = False\n",
        "            settled = True\n",
    ),
    _m(
        "2: what is old when it arrives is told as fresh",
        "rules: a read whose time is up when it arrives is kept and not fresh",
        "kept and allowed and until > received",
        "kept and allowed",
    ),
    _m(
        "3: what is old counts for nothing",
        "rules: what a change makes old counts for what it counted before",
        "self.hinted, self.size)",
        "self.hinted, 0)",
    ),
    _m(
        "3: of what changes together only the first that is held is noted",
        "rules: each of what changes together is old",
        "self._changed_locked(key) or found",
        "found or self._changed_locked(key)",
    ),
    _m(
        "4: what had a hint has none when it is old",
        "rules: of a key with a hint two callers are one read",
        "-1, self.fresh_until, self.hinted,",
        "-1, self.fresh_until, False,",
    ),
    _m(
        "4: what had no hint is joined when it is old",
        "rules: of a key whose copies are old at once two callers are two reads",
        "(entry is not None and entry.hinted)",
        "entry is not None",
    ),
    _m(
        "4: what was under a lease counts as what had a hint",
        "rules: of a key whose copies are old at once two callers are two reads",
        "until, ttl > 0.0, size)",
        "until, ttl > 0.0 or ticket.lease is not None, size)",
    ),
    _m(
        "4: a read under a lease is joined by its own client only",
        "rules: a read that somebody keeps current is joined by every client",
        "(ticket.coverage is coverage or ticket.lease is not None)\n",
        "ticket.coverage is coverage\n",
    ),
    _m(
        "6: a client leaves to another what it keeps itself",
        "rules: a client keeps current for itself what another keeps too",
        "            if key not in coverage.leases:\n                keep",
        "            if True:\n                keep",
    ),
    _m(
        "6: any client that keeps anything is taken for the keeper",
        "rules: what only has a hint is old after a gap of its client",
        "(other for other in self._leasing if key in other.leases)",
        "(other for other in self._leasing)",
    ),
    _m(
        "6: it is the generation of who asks that counts",
        "rules: what another client keeps current is fresh however many gaps that client had",
        "keeping, keeping.generation, keep",
        "keeping, coverage.generation, keep",
    ),
    _m(
        "6: a client that keeps nothing any more is never let go",
        "rules: what another client does not keep any more has nobody who keeps it",
        "others + (coverage,) if leases else others",
        "others + (coverage,)",
    ),
    _m(
        "6: a child does not share what a client keeps",
        "rules: what a client keeps in a child is kept for all",
        "if (coverage in self._leasing) != bool(leases):",
        "if bool(before) != bool(leases):",
    ),
    _m(
        "7: a lease counts from the end of a read",
        "rules: a lease counts from the start of a read and a hint from its end",
        "fresh_until(ticket.lease, started,",
        "fresh_until(ticket.lease, received,",
    ),
    _m(
        "7: a hint counts from the start of a read",
        "rules: a lease counts from the start of a read and a hint from its end",
        "started, received, ttl)",
        "started, started, ttl)",
    ),
    _m(
        "7: what was used is not spared",
        "rules: what was used is spared once",
        "            if not entry.used:\n                break",
        "            break",
    ),
    _m(
        "7: what was used is spared for ever",
        "rules: what was used is spared once",
        "            entry.used = False\n            self[key]",
        "            self[key]",
    ),
    _m(
        "7: a look is no use",
        "rules: what was used is spared once",
        "            entry.used = True\n        return entry",
        "            pass\n        return entry",
    ),
    _m(
        "7: a hit with the lock is no use",
        "rules: what was used is spared once",
        "                    entry.used = True\n                    return entry",
        "                    return entry",
    ),
    _m(
        "7: as many as there are are spared at once",
        "rules: only so many are spared at once",
        "itertools.islice(self, _SPARED_AT_MOST)",
        "self",
    ),
    _m(
        "7: what is new makes no room for itself",
        "rules: what was all used makes room for what is new the oldest first",
        "        while len(self._store) >= self.max_entries:\n"
        "            self._store.popitem()\n"
        "        self._store[key] = entry\n",
        "        self._store[key] = entry\n"
        "        while len(self._store) > self.max_entries:\n"
        "            self._store.popitem()\n",
    ),
    _m(
        "7: what is stored anew goes as early as before",
        "rules: what is stored anew is the last to go",
        "        self._store.pop(key, None)  # what is stored anew is the last to be evicted\n",
        "",
    ),
    _m(
        "7: what is as large as the cache is not taken",
        "rules: what is as large as the cache is kept and what is evicted for it is gone",
        "entry.size > self.max_bytes or",
        "entry.size >= self.max_bytes or",
    ),
    _m(
        "7: a cache for no entries",
        "rules: a cache for nothing keeps nothing",
        " or self.max_entries < 1:",
        ":",
    ),
    _m(
        "7: a flight is forgotten without the lock",
        "schedules: a waiter that gives up beside a read",
        "        with self._lock:\n"
        "            state = self._states.get(key)\n"
        "            if state is not None and state.flight is not None and state",
        "        if True:\n"
        "            state = self._states.get(key)\n"
        "            if state is not None and state.flight is not None and state",
    ),
    _m(
        "7: everything is forgotten without the lock",
        "schedules: forgetting all in the middle",
        "        with self._lock:\n            self._reset_locked()",
        "        self._reset_locked()",
    ),
    _m(
        "what is gone releases who waits before it is gone",
        "schedules: two leaders that find nothing",
        "        with self._lock:\n            state = self._ended_locked(ticket)\n            settled = False\n",
        "        ticket.flight._end(False, None)\n"
        "        with self._lock:\n"
        "            state = self._ended_locked(ticket)\n"
        "            settled = False\n",
    ),
    _m(
        "a read that fails releases who waits before it is over",
        "schedules: a leader that fails",
        "        with self._lock:\n"
        "            state = self._ended_locked(ticket)\n"
        "            if state is not None:\n"
        "                self._settle",
        "        ticket.flight._end(False, None)\n"
        "        with self._lock:\n"
        "            state = self._ended_locked(ticket)\n"
        "            if state is not None:\n"
        "                self._settle",
    ),
    _m(
        "what is read releases who waits before it is stored",
        "schedules: what was waited for",
        "        with self._lock:\n            state = self._ended_locked(ticket)\n            if state is None:\n",
        "        ticket.flight._end(True, value)\n"
        "        with self._lock:\n"
        "            state = self._ended_locked(ticket)\n"
        "            if state is None:\n",
    ),
    _m(
        "a child waits for a thread of its parent",
        "rules: a child does not wait for a thread of its parent",
        "        self._lock = threading.Lock()\n        self._leasing = ()\n        old",
        "        self._leasing = ()\n        old",
    ),
    _m(
        "a child joins a read of its parent",
        "rules: a child takes nothing from a read of its parent",
        "        self._reset_locked()\n        for key",
        "        states = self._states\n        self._reset_locked()\n        self._states = states\n        for key",
    ),
    _m(
        "a child believes what other clients kept in the parent",
        "rules: what a client keeps in a child is kept for all",
        "        self._leasing = ()\n        old",
        "        old",
    ),
    _m(
        "5: half as many refused values wait for a later read",
        "rules: so many refused values in a row are left to a later read",
        "                        state.left_out += 1\n",
        "                        state.left_out += 2\n",
    ),
    _m(
        "6: a generation can go back",
        "rules: a generation counts once and never goes back",
        "            if generation > coverage.generation:\n",
        "            if generation != coverage.generation:\n",
    ),
    _m(
        "6: a generation counts more than once",
        "rules: a generation counts once and never goes back",
        "                coverage.generation = generation\n",
        "                coverage.generation += 1\n",
    ),
    _m(
        "6: a gap looks at what is kept",
        "rules: a gap touches no entry",
        "                coverage.generation = generation\n                return\n",
        "                coverage.generation = generation\n",
    ),
    _m(
        "6: what one client lets go is old for all",
        "rules: what one client does not keep any more is fresh for another that read it",
        "if entry is None or entry.coverage is coverage or key in self._states:",
        "if True:",
    ),
    _m(
        "6: a read that loses its lease is stored beside the copy of another client",
        "rules: a read is refused that loses its lease beside the copy of another client",
        "if entry is None or entry.coverage is coverage or key in self._states:",
        "if entry is None or entry.coverage is coverage:",
    ),
    _m(
        "6: an older word can bring a gap",
        "rules: an older word is ignored altogether",
        "            if version <= coverage.version:\n",
        "            if version <= coverage.version:\n"
        "                coverage.generation = max(coverage.generation, generation)\n",
    ),
    _m(
        "2: sequences begin again when everything is forgotten",
        "rules: a read that began before everything was forgotten is not taken for a later one",
        "    def _reset_locked(self) -> None:\n",
        "    def _reset_locked(self) -> None:\n        self._sequence = 0\n",
    ),
    _m(
        "4: a read is not joined any more when an older one has ended",
        "rules: a read is still joined when an older one has ended",
        "        if state.flight is not None and state.flight[0] is ticket:\n",
        "        if True:\n",
    ),
    _m(
        "a child is not told",
        "rules: a child is told and looks at nothing that may be half changed",
        "        _fork.register(self)\n",
        "",
    ),
    _m(
        "a child looks at what may be half changed",
        "rules: a child is told and looks at nothing that may be half changed",
        "list(self._entries.items())",
        "list(self._store.items())",
    ),
)
