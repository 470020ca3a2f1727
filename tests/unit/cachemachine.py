"""A state machine over the real cache: a server, three clients of two principals, and all that can happen between them.

After each step the cache is compared with :class:`cachemodel.Model`, and with the server itself: a copy that a live stream
keeps, and about which no notice is on its way, is what the server has now.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from cachemodel import Copy, Key, Model, Read
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mcp_sync._deadline import Deadline
from mcp_sync.freshness import Lease

URIS = ("a", "b")
LIVE = Lease(30.0, polled=False)
SHORT = Lease(4.0, polled=False)
POLLED = Lease(8.0, polled=True)
#: Few, so that it is reached.
LEFT_OUT_AT_MOST = 2

#: What can happen, the frequent more than once. Each takes the same arguments, and makes of them what it needs.
ACTIONS = (
    5 * ("begin",)
    + 3 * ("refresh", "notice")
    + 6 * ("finish",)
    + 2 * ("serve", "change", "time_passes", "fail")
    + ("make_public_or_private", "notice_of_what_did_not_change", "cover", "gap", "an_older_word_comes_late")
    + ("find_it_missing_or_forbidden", "lose_patience", "peek", "forget_all", "fork")
)

which = st.integers(0, 7)
uris = st.sampled_from(URIS)


class Value(NamedTuple):
    """What the server answered to one read."""

    uri: str
    content: int
    principal: str
    public: bool
    read: int


class Caller:
    """One client: its principal, its coverage, and the notices that are on their way to it."""

    def __init__(self, principal: str, shares: bool, coverage: Any) -> None:
        self.principal = principal
        self.shares = shares
        self.coverage = coverage
        self.leases: Dict[Key, Lease] = {}
        self.generation = 0
        self.version = 0
        self.notices: List[str] = []

    def keys(self, uri: str) -> Tuple[Key, ...]:
        return ((self.principal, uri), (None, uri)) if self.shares else ((self.principal, uri),)


class Pending(NamedTuple):
    """A call that leads a read: its tickets (own, shared), and what the server answered."""

    caller: Caller
    uri: str
    tickets: Tuple[Any, ...]
    reads: Tuple[Read, ...]
    answers: List[Value]


class Joined(NamedTuple):
    """A call that waits for another's read."""

    flight: Any
    read: Read
    since: int


def machine_for(module: Any) -> Any:
    """Return the machine for one text of the cache."""

    class CacheMachine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            module._LEFT_OUT_AT_MOST = LEFT_OUT_AT_MOST
            self.content = {uri: 0 for uri in URIS}
            self.public = {uri: False for uri in URIS}
            self.pending: List[Pending] = []
            self.joined: List[Joined] = []
            self.flights: Dict[Read, Any] = {}
            self.newest_seen: Dict[Key, int] = {}
            self.callers: List[Caller] = []
            self.forgets = False

        # Few things at first: what goes wrong in a small world is found there sooner.
        @initialize(
            roomy=st.booleans(),
            leased=st.booleans(),
            crowd=st.integers(1, 3),
            scope=st.sampled_from((URIS[:1], URIS)),
            forgets=st.booleans(),
        )
        def start(self, roomy: bool, leased: bool, crowd: int, scope: Tuple[str, ...], forgets: bool) -> None:
            entries, size = (10, 100) if roomy else (1, 6)
            self.cache = module.ResourceCache(entries, size, lambda: self.model.now)
            self.model = Model(entries, size, LEFT_OUT_AT_MOST)
            self.callers = [
                Caller(principal, shares, module.Coverage())
                for principal, shares in (("ann", False), ("ann", True), ("bob", True))[:crowd]
            ]
            self.scope = scope
            self.forgets = forgets
            if leased:
                for caller in self.callers:
                    self._cover(caller, {key: LIVE for uri in URIS for key in caller.keys(uri)})

        @rule(action=st.sampled_from(ACTIONS), n=which, m=which, uri=uris, yes=st.booleans())
        def step(self, action: str, n: int, m: int, uri: str, yes: bool) -> None:
            # One rule for all, since hypothesis leaves out rules at random, and does not weigh them.
            getattr(self, action)(n, m, uri if uri in self.scope else self.scope[0], yes)

        def _caller(self, n: int) -> Caller:
            return self.callers[n % len(self.callers)]

        # -- the server ----------------------------------------------------------------------------------------------

        def change(self, n: int, m: int, uri: str, yes: bool) -> None:
            self.content[uri] += 1
            for caller in self.callers:
                if any(key in caller.leases for key in caller.keys(uri)):
                    caller.notices.append(uri)

        def make_public_or_private(self, n: int, m: int, uri: str, yes: bool) -> None:
            self.public[uri] = not self.public[uri]

        def serve(self, n: int, m: int, uri: str, yes: bool) -> None:
            for p in self.pending[n : n + 1]:
                self._serve(p)

        def _serve(self, p: Pending) -> Value:
            if not p.answers:
                uri = p.uri
                p.answers.append(Value(uri, self.content[uri], p.caller.principal, self.public[uri], p.reads[0].begun))
            return p.answers[0]

        # -- what is learnt ------------------------------------------------------------------------------------------

        def notice(self, n: int, m: int, uri: str, yes: bool) -> None:
            told = [c for c in self.callers if c.notices]
            if told:
                caller = told[n % len(told)]
                for key in caller.keys(caller.notices.pop(0)):
                    self._changed(key)

        def notice_of_what_did_not_change(self, n: int, m: int, uri: str, yes: bool) -> None:
            for key in self._caller(n).keys("never read" if yes else uri):
                self._changed(key)

        def _changed(self, key: Key) -> None:
            assert self.cache.changed(key) == self.model.changed(key)

        def cover(self, n: int, m: int, uri: str, yes: bool) -> None:
            caller, lease = self._caller(n), (LIVE, LIVE, SHORT, POLLED, None)[m % 5]
            chosen = URIS if yes else (uri,)
            leases = {} if lease is None else {key: lease for uri in chosen for key in caller.keys(uri)}
            self._cover(caller, leases)

        def gap(self, n: int, m: int, uri: str, yes: bool) -> None:
            caller = self._caller(n)
            caller.notices.clear()
            caller.generation += 1
            self._cover(caller, {} if m < 2 else caller.leases)

        def _cover(self, caller: Caller, leases: Dict[Key, Lease]) -> None:
            caller.version += 1
            caller.leases = leases
            for side in (self.cache, self.model):
                side.cover(caller.coverage, leases, caller.generation, caller.version)

        def an_older_word_comes_late(self, n: int, m: int, uri: str, yes: bool) -> None:
            caller = self._caller(n)
            for side in (self.cache, self.model):
                side.cover(caller.coverage, {(caller.principal, "a"): LIVE}, caller.generation, caller.version - 1)

        def time_passes(self, n: int, m: int, uri: str, yes: bool) -> None:
            self.model.now += (1.0, 3.0, 20.0)[m % 3]

        # -- reads ---------------------------------------------------------------------------------------------------

        def refresh(self, n: int, m: int, uri: str, yes: bool) -> None:
            self._begin(self._caller(n), uri, True)

        def begin(self, n: int, m: int, uri: str, yes: bool) -> None:
            self._begin(self._caller(n), uri, False)

        def _begin(self, caller: Caller, uri: str, refresh: bool) -> None:
            if len(self.pending) == 6:
                return
            key = caller.keys(uri)[0]
            expected = self.model.begin(key, caller.coverage, refresh)
            begun = self.cache.begin_read(key, caller.coverage, refresh)
            if isinstance(expected, Copy):
                assert isinstance(begun, module.Entry) and begun.value is expected.value
            elif isinstance(expected, Read):
                assert begun is self.flights[expected], "it must join the read that is in progress, and no other"
                self.joined.append(Joined(begun, expected, self.model.moment))
            else:
                assert isinstance(begun, module.Ticket), "it must read for itself"
                tickets, reads = [begun], [self._began(key, caller, begun)]
                if caller.shares:
                    shared = caller.keys(uri)[1]
                    self.model.begin(shared, caller.coverage, True)
                    tickets.append(self.cache.begin_read(shared, caller.coverage, refresh=True))
                    reads.append(self._began(shared, caller, tickets[1]))
                self.pending.append(Pending(caller, uri, tuple(tickets), tuple(reads), []))

        def _began(self, key: Key, caller: Caller, ticket: Any) -> Read:
            keepers = self.model.keepers(key, caller.coverage)
            assert any(ticket.coverage is keeper for keeper in keepers)
            read = self.model.began(key, ticket.coverage)
            assert ticket.lease == read.lease
            self.flights[read] = ticket.flight
            return read

        def finish(self, n: int, m: int, uri: str, yes: bool) -> None:
            if not self.pending:
                return
            p = self.pending.pop(n % len(self.pending))
            ttl, size, keep = 5.0 if yes else 0.0, (1, 1, 1, 1, 2, 2, 4, 7)[m], m != 3
            value = self._serve(p)
            public = value.public and len(p.tickets) > 1
            self._finish(p.tickets[0], p.reads[0], value, ttl, size, keep and not public)
            if len(p.tickets) > 1:
                if public:
                    self._finish(p.tickets[1], p.reads[1], value, ttl, size, keep)
                else:
                    self.cache.abandon_read(p.tickets[1])
                    self.model.abandon(p.reads[1])
                    self._room_was_made()
            self._ended(p, value)

        def _finish(self, ticket: Any, read: Read, value: Value, ttl: float, size: int, keep: bool) -> None:
            stored = self.cache.finish_read(
                ticket, value, received=self.model.now, started=read.started, ttl=ttl, size=size, keep=keep
            )
            fresh, kept, refused = self.model.finish(read, value, ttl, size, keep)
            assert stored == (fresh, kept, refused)
            self._room_was_made()
            assert not kept or ticket.key in self.cache._entries, "what was just read is the last to go"

        def find_it_missing_or_forbidden(self, n: int, m: int, uri: str, yes: bool) -> None:
            if not self.pending:
                return
            p = self.pending.pop(n % len(self.pending))
            for ticket, read in zip(p.tickets, p.reads):
                assert self.cache.finish_missing(ticket) == self.model.missing(read)
                copy = self.cache._entries.get(ticket.key)
                assert copy is None or copy.sequence > ticket.sequence, "what may not be seen any more is gone at once"
                self._room_was_made()
            self._ended(p, None)

        def fail(self, n: int, m: int, uri: str, yes: bool) -> None:
            if not self.pending:
                return
            p = self.pending.pop(n % len(self.pending))
            for ticket, read in zip(p.tickets, p.reads):
                self.cache.abandon_read(ticket)
                self.model.abandon(read)
                self._room_was_made()
            self._ended(p, None)
            # Once more changes nothing: it may be done at any moment.
            self.cache.abandon_read(p.tickets[0])

        def _ended(self, p: Pending, value: Optional[Value]) -> None:
            for joined in [j for j in self.joined if j.read is p.reads[0]]:
                self.joined.remove(joined)
                assert joined.flight.wait(Deadline(0.0)), "whoever waits is released"
                assert joined.flight.succeeded == (value is not None) and joined.flight.value is value
                spoiled = joined.read.spoiled
                assert value is None or spoiled is None or spoiled > joined.since, "older than what was known when it asked"

        def lose_patience(self, n: int, m: int, uri: str, yes: bool) -> None:
            if not self.joined:
                return
            joined = self.joined.pop(n % len(self.joined))
            self.cache.forget_flight(joined.read.key, joined.flight)
            self.model.unjoinable(joined.read)

        def peek(self, n: int, m: int, uri: str, yes: bool) -> None:
            for key in self._caller(n).keys(uri):
                entry = self.cache.peek(key)
                copy = self.model.of(key).copy
                assert (None if entry is None else entry.value) is (None if copy is None else copy.value)

        # -- the whole -----------------------------------------------------------------------------------------------

        def forget_all(self, n: int, m: int, uri: str, yes: bool) -> None:
            if self.forgets:
                self.cache.clear()
                self.model.clear()

        def fork(self, n: int, m: int, uri: str, yes: bool) -> None:
            """Go on in the child."""
            if not self.forgets:
                return
            self.pending, self.joined = [], []
            self.cache.after_fork_in_child()
            self.model.forked()
            assert not any(entry.is_fresh(self.model.now) for entry in self.cache._entries.values())
            for caller in self.callers:
                caller.notices.clear()
                caller.generation += 1
                self._cover(caller, {})

        def _room_was_made(self) -> bool:
            """Take over what was evicted; only for want of room may it have been."""
            copies = self.model.copies()
            gone = [key for key in copies if key not in self.cache._entries]
            size = sum(copy.size for copy in copies.values())
            assert not gone or len(copies) > self.model.max_entries or size > self.model.max_bytes
            for key in gone:
                self.model.of(key).copy = None
            return bool(gone)

        @invariant()
        def the_cache_is_what_the_model_is(self) -> None:
            if not self.callers:
                return
            self.cache.check()
            copies, now = self.model.copies(), self.model.now
            assert set(self.cache._entries) == set(copies)
            for key, entry in self.cache._entries.items():
                assert entry.value is copies[key].value and entry.is_fresh(now) == copies[key].is_fresh(now), key
                # Never backwards, and nobody's copy but one's own.
                assert entry.value.read >= self.newest_seen.get(key, 0)
                self.newest_seen[key] = entry.value.read
                assert entry.value.uri == key[1]
                assert entry.value.principal == key[0] if key[0] is not None else entry.value.public

        @invariant()
        def nothing_is_known_of_keys_without_a_read_in_flight(self) -> None:
            if self.callers:
                assert set(self.cache._states) == set(self.model.busy())

        @invariant()
        def what_a_stream_keeps_is_what_the_server_has(self) -> None:
            if not self.callers:
                return
            keeping = {caller.coverage: caller for caller in self.callers}
            for key, entry in self.cache._entries.items():
                caller = keeping[entry.coverage]
                lease = caller.leases.get(key)
                if lease is not None and not lease.polled and entry.value.uri not in caller.notices:
                    if entry.is_fresh(self.model.now):
                        assert entry.value.content == self.content[entry.value.uri], "an old content is served as fresh"

        def teardown(self) -> None:
            while self.pending:
                self.fail(0, 0, URIS[0], False)
            assert all(flight.wait(Deadline(0.0)) for read, flight in self.flights.items() if read.ended)
            if self.callers:
                assert not self.cache._states

    return CacheMachine
