"""What a program holds of the resources that it watches: status, waiting, changes, snapshots."""

import abc
import collections
import dataclasses
import datetime
import logging
import threading
from dataclasses import dataclass
from typing import Any, Callable, Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from . import _fork
from ._deadline import Deadline
from .errors import ClientClosed, MCPSyncError, RequestTimeout, StaleError
from .reads import CATALOG, PROMPTS, TOOLS, WATCHED_LISTS, Query, read_query
from .results.base import CacheableResult
from .results.catalog import ListResourcesResult
from .results.content import ReadResourceResult
from .results.lists import ListResult
from .results.prompts import ListPromptsResult
from .results.tools import ListToolsResult
from .status import State, Status

__all__ = ["Change", "Held", "Snapshot", "Watch"]

_log = logging.getLogger("mcp_sync")


@dataclass(frozen=True)
class Change:
    """Something watched is not what it was. Immutable; any thread.

    :param kind: ``"updated"`` (other content), ``"removed"`` (gone, or no longer allowed to be seen), ``"appeared"`` (there
        again), ``"catalog"`` (other resources, or other descriptions of them), ``"tools"``, ``"prompts"`` (likewise); in
        :meth:`Snapshot.moved` also ``"unknown"``: nobody knows at the moment whether it changed.
    :param uri: the resource; None for the catalog and the other lists.
    :param previous: the result before, or None.
    :param current: the result now, or None.
    :param merged: how many later changes are in this one, because nobody had fetched it yet.
    """

    kind: str
    uri: Optional[str]
    previous: Optional[CacheableResult] = None
    current: Optional[CacheableResult] = None
    merged: int = 0

    @property
    def added(self) -> FrozenSet[str]:
        """What is new in the list: URIs in the catalog, names of tools or prompts; empty for a resource."""
        return _keys(self.current) - _keys(self.previous)

    @property
    def removed(self) -> FrozenSet[str]:
        """What is no longer in the list: URIs, or names; empty for a resource."""
        return _keys(self.previous) - _keys(self.current)


def _keys(result: Optional[CacheableResult]) -> FrozenSet[str]:
    return frozenset(result.keys) if isinstance(result, ListResult) else frozenset()


#: What users call the lists.
_KINDS = {CATALOG: "catalog", TOOLS: "tools", PROMPTS: "prompts"}
_BY_KIND = {kind: query for query, kind in _KINDS.items()}


class _Known(NamedTuple):
    """The newest that a watch has seen of one query: a result, or why there is none."""

    result: Optional[CacheableResult]
    missing: Optional[MCPSyncError]
    generation: int
    sequence: int


class Held(NamedTuple):
    """What is held of one watched resource, or list. Immutable; any thread.

    :param result: the newest copy, labelled stale if it is; None if there is none.
    :param error: why there is none, or why there is no newer one; None if nothing went wrong.
    :param current: whether this is how things are, as far as anyone knows; of something missing too.
    """

    result: Optional[CacheableResult]
    error: Optional[MCPSyncError]
    current: bool


class Keeper(abc.ABC):
    """What a watch needs of whoever keeps it current. Called without the watch's lock."""

    @abc.abstractmethod
    def fresh(self, query: Query) -> Optional[CacheableResult]:
        """Return the copy of ``query`` if it is current."""

    @abc.abstractmethod
    def generation(self) -> int:
        """Return a number that moves whenever changes may have been missed."""

    @abc.abstractmethod
    def pending(self, query: Query) -> bool:
        """Return whether ``query`` is being read again, or about to be."""

    @abc.abstractmethod
    def hurry(self, queries: List[Query]) -> None:
        """Have those of ``queries`` read again that are not about to be."""

    @property
    @abc.abstractmethod
    def threadless(self) -> bool:
        """Whether nobody reads again what is not current, but for :meth:`read_now`."""

    @abc.abstractmethod
    def read_now(self, queries: Iterable[Query], deadline: Deadline) -> None:
        """Read those of ``queries`` that are not current, in this thread."""

    @abc.abstractmethod
    def kept(self, query: Query) -> bool:
        """Return whether ``query`` is kept current: covered by a live stream, or polled."""

    @abc.abstractmethod
    def status_of(self, watch: "Watch") -> Status:
        """Return how ``watch`` is doing."""

    @abc.abstractmethod
    def unregister(self, watch: "Watch") -> None:
        """Forget ``watch``."""

    @abc.abstractmethod
    def revive(self) -> None:
        """Start again, in a forked child, what ran in the parent."""


class _Pending:
    """Changes that somebody has not fetched yet, one for each query: later ones are merged into it.

    Its owner's lock guards it.
    """

    def __init__(self) -> None:
        self._changes: "collections.OrderedDict[Query, Change]" = collections.OrderedDict()

    def add(self, query: Query, change: Change) -> None:
        before = self._changes.get(query)
        if before is not None:
            kind = change.kind
            if before.kind == "appeared" and kind == "removed":
                del self._changes[query]  # it came and went, and nobody saw it
                return
            if before.kind == "removed" and kind == "appeared":
                kind = "updated"
            elif before.kind == "appeared" and kind == "updated":
                kind = "appeared"
            change = Change(kind, change.uri, before.previous, change.current, before.merged + 1)
        self._changes[query] = change

    def take(self) -> Optional[Change]:
        return self._changes.popitem(last=False)[1] if self._changes else None

    def __len__(self) -> int:
        return len(self._changes)


class Watch:
    """A registration for some resources, and some lists. Made by :meth:`mcp_sync.Client.watch`; any thread.

    It is a context manager; leaving the block ends it.

    :param uris: the resources, as the program spells them.
    :param lists: the lists that are watched, by the protocol's names: ``"resources"`` is the catalog.
    """

    def __init__(
        self,
        keeper: Keeper,
        uris: Tuple[str, ...],
        lists: Tuple[str, ...],
        on_change: Optional[Callable[[Change], Any]],
        on_status: Optional[Callable[[Status], Any]],
    ) -> None:
        self.uris = tuple(dict.fromkeys(uris))
        self.lists = lists
        watched = tuple(WATCHED_LISTS[name] for name in lists)
        self.queries: Tuple[Query, ...] = tuple(read_query(uri) for uri in self.uris) + watched
        self._keeper = keeper
        self._made_anew()
        # Of each query, from the beginning to the end: so whether one is among them can be asked without the lock.
        self._known: Dict[Query, Optional[_Known]] = dict.fromkeys(self.queries)
        self._errors: Dict[Query, MCPSyncError] = {}
        self._unfetched = _Pending()
        self._for_listeners = _Pending()
        self._change_listeners: List[Callable[[Change], Any]] = [] if on_change is None else [on_change]
        self._status_listeners: List[Callable[[Status], Any]] = [] if on_status is None else [on_status]
        self._told: Optional[Status] = None
        self._ticks = 0
        self._closed = False
        #: Kept alive by this: the client is not forgotten while one of its watches is open.
        self.owner: Any = None
        _fork.register(self)

    def _made_anew(self) -> None:
        # One lock, with a condition on it; it guards everything that begins with an underscore but the fixed ones.
        self._lock = threading.Lock()
        self._moved = threading.Condition(self._lock)

    def after_fork_in_child(self) -> None:
        self._made_anew()

    @property
    def catalog(self) -> bool:
        """Whether the catalog is watched."""
        return "resources" in self.lists

    # -- how it is doing -------------------------------------------------------------------------------------------------

    @property
    def status(self) -> Status:
        """How it is doing, as data. Costs nothing but memory; never waits."""
        self._keeper.revive()
        return self._keeper.status_of(self)

    @property
    def is_current(self) -> bool:
        """Whether everything watched has been read, and nothing says that any of it is out of date."""
        return self._first_not_current(0) is None

    def _first_not_current(self, start: int) -> Optional[int]:
        """Return the place of a query that is not current, or None; look at the one at ``start`` first, and then around."""
        for number in range(start, start + len(self.queries)):
            place = number % len(self.queries)
            query = self.queries[place]
            with self._lock:
                known = self._known.get(query)
            if not self._is_current(query, known):
                return place
        return None

    def wait_until_current(self, timeout: Optional[float] = 30.0) -> None:
        """Wait until :attr:`is_current`.

        :param timeout: seconds, or None to wait for ever.
        :raises RequestTimeout: if it takes longer; the message says what is missing and why, as far as is known.
        :raises ClientClosed: if the watch is closed.
        """
        place = 0

        def reached() -> bool:
            # Of thousands, the one that was not current is looked at first, and mostly it alone.
            nonlocal place
            found = self._first_not_current(place)
            place = place if found is None else found
            return found is None

        looked = Deadline(0.0)

        def hurry() -> None:
            # This looks at all of them, so not after each that was read.
            nonlocal looked
            if looked.expired:
                looked = Deadline(1.0)
                self._hurry()

        self._wait(reached, timeout, self._why_not_current, hurry)

    def wait_for_state(self, state: State, timeout: Optional[float] = 30.0) -> None:
        """Wait until ``status.state`` is ``state``.

        :param timeout: seconds, or None to wait for ever.
        :raises RequestTimeout: if it takes longer.
        :raises ClientClosed: if the watch is closed, unless that was waited for.
        """
        self._wait(
            lambda: self._keeper.status_of(self).state is state,
            timeout,
            lambda: "the watch is not %s: %s" % (state.value, self._keeper.status_of(self)),
        )

    def _is_current(self, query: Query, known: Optional[_Known]) -> bool:
        # A lifetime that the server gave is no reason to call it current: this watch is to know of changes.
        if known is None or not self._keeper.kept(query):
            return False
        if known.missing is not None:
            return known.generation == self._keeper.generation() and not self._keeper.pending(query)
        return self._keeper.fresh(query) is not None

    def _hurry(self) -> None:
        """Have read again what nobody is about to read again, and is not current: too old by now, say."""
        with self._lock:
            known = dict(self._known)
        self._keeper.hurry(
            [
                query
                for query in self.queries
                if known[query] is not None and self._keeper.kept(query) and not self._is_current(query, known[query])
            ]
        )

    def _why_not_current(self) -> str:
        with self._lock:
            known, errors = dict(self._known), dict(self._errors)
        missing = [query for query in self.queries if not self._is_current(query, known.get(query))]
        reasons = ["%s (%s)" % (query, errors[query]) if query in errors else str(query) for query in missing[:3]]
        return "%d of %d watched are not current: %s%s; %s" % (
            len(missing),
            len(self.queries),
            ", ".join(reasons),
            ", …" if len(missing) > 3 else "",
            self._keeper.status_of(self),
        )

    def _wait(
        self,
        reached: Callable[[], bool],
        timeout: Optional[float],
        why_not: Callable[[], str],
        hurry: Optional[Callable[[], None]] = None,
    ) -> None:
        self._keeper.revive()
        deadline = Deadline(timeout)
        while True:
            if self._keeper.threadless and hurry is not None and not self._closed:
                self._keeper.read_now(self.queries, deadline)
            if reached():
                return
            with self._lock:
                if self._closed:
                    raise ClientClosed("this watch is closed")
                ticks = self._ticks
            # Asked again without the lock (it asks others, who have locks of their own); a tick in between is not missed.
            if reached():
                return
            if hurry is not None:
                hurry()
            with self._lock:
                if self._ticks == ticks and not self._closed:
                    # Freshness also ends by mere age, which nobody announces; hence the second.
                    if not self._moved.wait(deadline.shorter(1.0)) and deadline.expired:
                        break
            if deadline.expired and not reached():
                break
        raise RequestTimeout("%s (after %g s)" % (why_not(), timeout or 0.0))

    # -- what changed ----------------------------------------------------------------------------------------------------

    def changes(self, timeout: Optional[float] = None) -> Iterator[Change]:
        """Yield each change, waiting for the next one.

        Changes since the watch was made are kept until they are fetched; several of one resource are merged into one, so
        however slow the loop is, memory is bounded and the last state is never missed. One loop at a time: two would share
        the changes among them.

        :param timeout: end after so many seconds without a change; None to end only when the watch is closed.
        """
        self._keeper.revive()
        while True:
            deadline = Deadline(timeout)
            while True:
                threadless = self._keeper.threadless
                if threadless and not self._unfetched and not self._closed:
                    self._keeper.read_now(self.queries, deadline)
                with self._lock:
                    # Waits without end cannot be interrupted by Ctrl-C on every system; a long one can be repeated.
                    if not self._unfetched and not self._closed:
                        self._moved.wait(deadline.shorter(1.0 if threadless else 3600.0))
                    change = self._unfetched.take()
                    over = self._closed or deadline.expired
                if change is not None:
                    yield change
                    break
                if over:
                    return

    def on_change(self, listener: Callable[[Change], Any]) -> None:
        """Have ``listener(change)`` called for each change from now on.

        It runs in a thread of its own, one call at a time, and may call the client, close included. Changes that come while
        it runs are merged. What it raises is logged.
        """
        with self._lock:
            self._change_listeners.append(listener)

    def on_status(self, listener: Callable[[Status], Any]) -> None:
        """Have ``listener(status)`` called when the status has changed; as for :meth:`on_change`."""
        with self._lock:
            self._status_listeners.append(listener)

    def held(self, uri: Optional[str] = None, *, kind: str = "catalog") -> Held:
        """Return what is held of one of its resources, without asking the server: for status pages and the like.

        :param uri: the resource, as it was given to the watch; None for a list.
        :param kind: which list: ``"catalog"``, ``"tools"`` or ``"prompts"``.
        :raises KeyError: if this watch does not watch it.
        """
        query = _BY_KIND[kind] if uri is None else read_query(uri)
        if query not in self._known:
            raise KeyError(uri if uri is not None else kind)
        with self._lock:
            known, error = self._known.get(query), self._errors.get(query)
        fresh = self._keeper.fresh(query)
        if fresh is not None:
            return Held(fresh, None, True)
        if known is None:
            return Held(None, error, False)
        result = None if known.result is None else known.result.as_stale()
        return Held(result, error or known.missing, self._is_current(query, known))

    # -- one task, one version -------------------------------------------------------------------------------------------

    def snapshot(self) -> "Snapshot":
        """Return what is held of everything watched, unchangeable: for a long task that must see one version.

        Copies that are out of date are in it too, and labelled so. Wait for :meth:`wait_until_current` first.

        :raises StaleError: if something was not read even once.
        """
        self._keeper.revive()
        with self._lock:
            known = dict(self._known)
        unread = [str(query) for query in self.queries if known[query] is None]
        if unread:
            raise StaleError("not read yet: %s. Call wait_until_current() first" % ", ".join(unread[:5]))
        results: Dict[Query, Optional[CacheableResult]] = {}
        for query in self.queries:
            seen = known[query]
            result = self._keeper.fresh(query)
            if result is None and seen is not None and seen.result is not None:
                result = seen.result.as_stale()
            results[query] = result
        return Snapshot(self, results)

    # -- end -------------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End it. Any thread, listeners included, any number of times. The last watch of the client ends the stream."""
        _fork.catch_up()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._ticks += 1
            self._moved.notify_all()
        self._keeper.unregister(self)

    @property
    def closed(self) -> bool:
        return self._closed

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        lists = "".join(", %s" % _KINDS[WATCHED_LISTS[name]] for name in self.lists)
        return "<Watch of %d resources%s: %s>" % (len(self.uris), lists, self._keeper.status_of(self))

    # -- for its keeper --------------------------------------------------------------------------------------------------

    def observe(
        self,
        query: Query,
        result: Optional[CacheableResult],
        missing: Optional[MCPSyncError],
        generation: int,
        sequence: int,
    ) -> bool:
        """Take note of the newest result, or of why there is none. Return whether listeners have to be called.

        :param sequence: of the read: what an earlier one brought is not taken note of.
        """
        if query not in self._known:
            return False
        with self._lock:
            if self._closed:
                return False
            before = self._known.get(query)
            if before is not None and sequence < before.sequence:
                return False  # two reads finished in the other order, or two threads overtook each other here
            self._known[query] = _Known(result, missing, generation, sequence)
            self._errors.pop(query, None)
            self._ticks += 1
            change = None if before is None else _difference(query, before, result)
            if change is not None:
                self._unfetched.add(query, change)
                if self._change_listeners:
                    self._for_listeners.add(query, change)
            self._moved.notify_all()
            return change is not None and bool(self._change_listeners)

    def failed(self, query: Query, error: MCPSyncError) -> None:
        """Take note that a read failed."""
        if query in self._known:
            with self._lock:
                self._errors[query] = error

    def status_changed(self) -> bool:
        """Wake whoever waits for a state. Return whether listeners have to be called."""
        with self._lock:
            self._ticks += 1
            self._moved.notify_all()
            return bool(self._status_listeners)

    def call_listeners(self) -> bool:
        """Call the listeners once, in the keeper's thread for that; return whether there is more to tell."""
        with self._lock:
            change = None if self._closed else self._for_listeners.take()
            more = bool(self._for_listeners) and not self._closed
            listeners = tuple(self._change_listeners)
        if change is not None:
            for listener in listeners:
                _call(listener, change)
        status = self._keeper.status_of(self)
        # When the server was heard is no news.
        news = dataclasses.replace(status, last_contact=None)
        with self._lock:
            told, self._told = self._told, news
            status_listeners = tuple(self._status_listeners)
        if news != told:
            for status_listener in status_listeners:
                _call(status_listener, status)
        return more


def _difference(query: Query, before: _Known, result: Optional[CacheableResult]) -> Optional[Change]:
    if before.result is None:
        return None if result is None else Change("appeared", query.uri, None, result)
    if result is None:
        return Change("removed", query.uri, before.result, None)
    if result is before.result or result.content() == before.result.content():
        return None
    return Change(_KINDS.get(query, "updated"), query.uri, before.result, result)


def _call(listener: Callable[[Any], Any], value: Any) -> None:
    try:
        listener(value)
    except BaseException:
        # The boundary between a user's code and our thread: it is their error (even if it is a SystemExit, which is for threads
        # of their own), and the other listeners are called.
        _log.exception("a listener failed")


class Snapshot(Mapping[str, ReadResourceResult]):
    """What was held of some resources at one moment; a mapping from URI to result. Immutable; any thread.

    :param taken_at: when it was taken (UTC).
    """

    def __init__(self, watch: Watch, results: Dict[Query, Optional[CacheableResult]]) -> None:
        self._watch = watch
        self._results = results
        self.taken_at = datetime.datetime.now(datetime.timezone.utc)

    def __getitem__(self, uri: str) -> ReadResourceResult:
        result = self._results[read_query(uri)]
        if not isinstance(result, ReadResourceResult):
            raise KeyError(uri)
        return result

    def __iter__(self) -> Iterator[str]:
        return (query.uri for query, result in self._results.items() if query.uri is not None and result is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def catalog(self) -> Optional[ListResourcesResult]:
        """The catalog as it was, or None if it is not watched."""
        result = self._results.get(CATALOG)
        return result if isinstance(result, ListResourcesResult) else None

    @property
    def tools(self) -> Optional[ListToolsResult]:
        """The list of tools as it was, or None if it is not watched."""
        result = self._results.get(TOOLS)
        return result if isinstance(result, ListToolsResult) else None

    @property
    def prompts(self) -> Optional[ListPromptsResult]:
        """The list of prompts as it was, or None if it is not watched."""
        result = self._results.get(PROMPTS)
        return result if isinstance(result, ListPromptsResult) else None

    @property
    def missing(self) -> FrozenSet[str]:
        """The watched URIs that did not exist, or were not allowed to be seen."""
        return frozenset(query.uri for query, result in self._results.items() if query.uri and result is None)

    @property
    def stale(self) -> bool:
        """Whether any part of it was out of date already when it was taken."""
        return any(result is not None and result.stale for result in self._results.values())

    def is_current(self) -> bool:
        """Whether it is still what a new snapshot would hold, as far as anyone knows."""
        return not self.moved()

    def moved(self) -> Tuple[Change, ...]:
        """Return what is not as it is here any more; ``kind`` is ``"unknown"`` for what cannot be told at the moment."""
        watch = self._watch
        moved = []
        with watch._lock:
            known = dict(watch._known)
        for query, pinned in self._results.items():
            seen = known.get(query)
            now = watch._keeper.fresh(query) or (None if seen is None else seen.result)
            if now is not None and pinned is not None and now.started < pinned.started:
                now = pinned  # what was pinned is news that the watch has not taken note of yet
            change = _difference(query, _Known(pinned, None, 0, 0), now)
            if change is None and (watch.closed or not watch._is_current(query, seen)):
                change = Change("unknown", query.uri, pinned, now)
            if change is not None:
                moved.append(change)
        return tuple(moved)
