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
        "                self._entries.pop(old, None)\n        return key",
        "                self._entries.pop(old, None)\n"
        "                self._states.get(old, _KeyState()).stored = 0\n        return key",
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
        "        while len(self._store) > self.max_entries:\n",
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
        "            if old not in self._store:\n                self._entries",
        "            if False:\n                self._entries",
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
)
