"""Keeps what one client watches current: brings reader, refresher, cache and watches together."""

import collections
import logging
import os
import threading
import warnings
from typing import Any, Callable, Counter, Dict, FrozenSet, Hashable, Iterable, List, NamedTuple, Optional, Tuple, Type

from . import _fork, _uwsgi
from ._deadline import Clock, Deadline
from .connection import Connection
from .errors import ClientClosed, MCPSyncError, ResourceNotFound
from .freshness import Lease
from .notices import (
    Notice,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    SubscriptionFilter,
    ToolsListChanged,
)
from .notifier import Notifier
from .reader import Ending, Reader, Sink
from .reads import CATALOG, DISCOVER, PROMPTS, TEMPLATES, TOOLS, WATCHED_LISTS, Query, Reads, read_query
from .refresher import Refresher
from .results.base import CacheableResult
from .results.catalog import ListResourcesResult
from .results.discover import DiscoverResult
from .status import State, Status
from .uris import Matcher
from .watch import Change, Keeper, Watch

__all__ = ["Upkeep", "UpkeepOptions"]

_log = logging.getLogger("mcp_sync")

#: What is said where no thread runs.
_NO_THREADS = (
    "uWSGI runs without threads, so nothing is kept current in the background: what is watched is read again when it is asked "
    "for and older than poll_interval=. Start uWSGI with --enable-threads to have it current"
)

#: What a notice about a list says of. Nobody notifies of templates for themselves.
_LISTS_OF: Dict[Type[Notice], Tuple[Query, ...]] = {
    ResourcesListChanged: (CATALOG, TEMPLATES),
    ToolsListChanged: (TOOLS,),
    PromptsListChanged: (PROMPTS,),
}


class UpkeepOptions(NamedTuple):
    """How to keep things current. All durations are seconds; :class:`mcp_sync.Client` explains them."""

    listen: bool = True
    max_age: float = 300.0
    poll_interval: float = 30.0
    poll_after: float = 10.0
    ack_timeout: float = 10.0
    silence_timeout: float = 60.0
    refresh_threads: int = 4
    throttle: float = 0.25
    timeout: float = 30.0


class _Meanings:
    """What notices about resources mean, remembered: the same ones come again and again. Any thread.

    :param watched: the URIs as their watchers spell them.
    :param reads: whose copies are kept current.
    """

    # A server can name any number of URIs of any length; what is remembered of them must not grow with that.
    _REMEMBERED = 1024
    _REMEMBERED_LENGTH = 2000

    def __init__(self, watched: Iterable[str], reads: Reads) -> None:
        self._matcher = Matcher(watched)
        self._reads = reads
        self._meant: Dict[str, Tuple[Tuple[Hashable, ...], Tuple[Query, ...]]] = {}

    def meant_by(self, uri: str) -> Tuple[Tuple[Hashable, ...], Tuple[Query, ...]]:
        """Return the keys of the copies that are out of date by a notice about ``uri``, and what of it is watched."""
        known = self._meant.get(uri)
        if known is None:
            watched = tuple(read_query(other) for other in self._matcher.concerned(uri))
            queries = dict.fromkeys((read_query(uri),) + watched)
            known = tuple(key for query in queries for key in self._reads.keys(query)), watched
            if len(uri) <= self._REMEMBERED_LENGTH:
                if len(self._meant) >= self._REMEMBERED:
                    self._meant.clear()
                self._meant[uri] = known
        return known


class Upkeep(Sink, Keeper):
    """Owns the threads of one client. Any thread; nothing runs until something is watched.

    :param reads: through what to read.
    :param connection: where to listen.
    :param name: a word for the names of the threads.
    :param options: how.
    :param clock: the clock of the cache.
    """

    def __init__(self, reads: Reads, connection: Connection, name: str, options: UpkeepOptions, clock: Clock) -> None:
        self._reads = reads
        self._connection = connection
        self._options = options
        self._pid = os.getpid()
        # Guards everything below down to the threads. Whoever changes one of them calls _publish() afterwards.
        self._lock = threading.Lock()
        self._watches: Tuple[Watch, ...] = ()
        self._wanted = SubscriptionFilter()
        # The same: thousands of watches may come one by one. And how many more watches than one want each, if any do.
        self._watching = reads.watched
        self._more: Counter[Query] = collections.Counter()
        self._registration = 0  # counts what is wanted
        self._between = False  # nothing was wanted, and the reader has not been heard since
        self._order = 0
        self._state = State.CONNECTING
        self._asked = SubscriptionFilter()
        self._covered = SubscriptionFilter()
        self._generation = 0
        self._version = 0
        self._last_error: Optional[str] = None
        self._last_ending: Optional[str] = None
        self._streams = 0
        self._gaps = 0
        self._catalog: FrozenSet[str] = frozenset()
        self._closed = False
        self._matcher: Optional[_Meanings] = None  # made when it is needed
        self._polled = Lease(options.poll_interval, polled=True)
        self._listened = Lease(options.max_age, polled=False)
        self._reader = Reader(
            connection,
            self._discover,
            self,
            name,
            listen=options.listen,
            ack_timeout=options.ack_timeout,
            silence=options.silence_timeout,
            patience=max(options.max_age, options.silence_timeout),
            poll_after=options.poll_after,
            clock=clock,
        )
        self._refresher = Refresher(
            reads,
            name,
            self._done,
            self._failed,
            threads=options.refresh_threads,
            throttle=options.throttle,
            timeout=options.timeout,
            clock=clock,
        )
        self._notifier = Notifier(name)
        #: Whether everything is done in the threads that use this, because others do not run; or must not, for now.
        self._threadless = False
        self._about_to_fork = False
        _fork.register(self)

    # -- for the client --------------------------------------------------------------------------------------------------

    def watch(
        self,
        uris: Tuple[str, ...],
        lists: Tuple[str, ...],
        on_change: Optional[Callable[[Change], Any]],
        on_status: Optional[Callable[[Status], Any]],
    ) -> Watch:
        """Register a watch, and start whatever it needs."""
        self.revive()
        self._reads.observer = self._observed
        watch = Watch(self, uris, lists, on_change, on_status)
        if not self._threadless and (_uwsgi.is_about_to_fork() or not _uwsgi.runs_threads()):
            self._do_without_threads()
        with self._lock:
            if self._closed:
                raise ClientClosed()
            self._watches += (watch,)
            self._rewanted_locked(watch, 1)
            wanted, registration, queries = self._wanted, self._registration, tuple(self._watching)
        self._refresher.keep(queries, registration)
        if self._threadless:
            self._poll_when_asked()
            return watch
        self._publish()
        try:
            told = self._reader.want(wanted, registration)
        except BaseException:
            watch.close()
            raise
        if told.goes_on:
            # It never stopped, because the word that nothing is wanted was overtaken by this one.
            with self._lock:
                resumed, self._between = self._between, False
            if resumed:
                self._publish()
        # What another watch keeps current already need not be waited for.
        self._refresher.soon([query for query in watch.queries if self._lease(query) is not None])
        for query in watch.queries:
            self._done(query)
        return watch

    def unregister(self, watch: Watch) -> None:
        with self._lock:
            others = tuple(other for other in self._watches if other is not watch)
            if len(others) < len(self._watches):
                self._watches = others
                self._rewanted_locked(watch, -1)
            wanted, registration, queries = self._wanted, self._registration, tuple(self._watching)
            closed = self._closed
        if watch.status_changed():
            self._notifier.post(watch)
        if closed:
            return
        self._refresher.keep(queries, registration)
        if self._threadless:
            self._publish()
            return
        told = self._reader.want(wanted, registration)
        if told.given_up is not None:
            self._given_up(told.given_up)
        self._publish()

    @property
    def watches(self) -> Tuple[Watch, ...]:
        """The open watches."""
        with self._lock:
            return self._watches

    def revive(self) -> None:
        """Start again, in a forked child, what ran in the parent. Cheap; called at every use."""
        if self._pid == os.getpid() and not self._about_to_fork:
            return
        _fork.catch_up()
        with self._lock:
            begins = self._about_to_fork and not _uwsgi.is_about_to_fork()
            if self._pid == os.getpid() and not begins:
                return
            self._pid = os.getpid()
            if begins:
                self._about_to_fork = self._threadless = self._notifier.threadless = False
                self._generation += 1
                self._state = State.CLOSED if self._closed else State.CONNECTING
            wanted, registration = self._wanted, self._registration
            if self._closed:
                return
        if self._threadless:
            self._poll_when_asked()
            return
        self._publish()
        if wanted:
            self._reader.want(wanted, registration)

    def _do_without_threads(self) -> None:
        self._threadless = self._notifier.threadless = True
        if _uwsgi.runs_threads():
            self._about_to_fork = True
            return
        _log.error("%s", _NO_THREADS)
        # Also to whoever has not set up logging: at the line that called Client.watch().
        warnings.warn(_NO_THREADS, RuntimeWarning, stacklevel=4)

    def _poll_when_asked(self) -> None:
        with self._lock:
            self._between = False
            self._state = State.CLOSED if self._closed else State.POLLING
        self._publish()
        self._tell_status()

    def close(self) -> None:
        """Stop everything, for good. The first half; the caller closes the connection and then calls :meth:`join`."""
        with self._lock:
            self._closed = True
            watches, self._watches = self._watches, ()
            self._state = State.CLOSED
        self._publish()
        # The reader before the refresher: what it would still tell would only be thrown away.
        self._reader.close()
        self._refresher.close()
        for watch in watches:
            watch.close()
        self._notifier.close()

    def join(self, timeout: float) -> None:
        """Wait for the threads, at most ``timeout`` seconds in all; never for the caller's own."""
        deadline = Deadline(timeout)
        self._reader.join(deadline.remaining() or 0.0)
        self._refresher.join(deadline.remaining() or 0.0)
        self._notifier.join(deadline.remaining() or 0.0)

    def after_fork_in_child(self) -> None:
        if self._lock.locked():
            # By a thread that is not here: a watch was coming or going, and may be counted by half.
            self._recounted()
        self._lock = threading.Lock()
        # Who knows what this process misses until its own stream is open.
        self._generation += 1
        if not self._closed:
            self._state = State.CONNECTING
        self._order = 0
        self._asked = SubscriptionFilter()
        self._covered = SubscriptionFilter()
        # What went wrong, and how often, went wrong in the parent.
        self._last_error = self._last_ending = None
        self._streams = self._gaps = 0

    # -- for watches -----------------------------------------------------------------------------------------------------

    def fresh(self, query: Query) -> Optional[CacheableResult]:
        return self._reads.fresh(query)

    def generation(self) -> int:
        return self._generation

    def pending(self, query: Query) -> bool:
        return self._refresher.is_pending(query)

    def hurry(self, queries: List[Query]) -> None:
        if not self._threadless:
            self._refresher.soon(queries, patient=True)

    @property
    def threadless(self) -> bool:
        return self._threadless

    def read_now(self, queries: Iterable[Query], deadline: Deadline) -> None:
        for query in queries:
            if self._reads.fresh(query) is None and not deadline.expired:
                try:
                    self._reads.get(query, Deadline(deadline.shorter(self._options.timeout), str(query)))
                except ResourceNotFound:
                    pass  # an answer like any other, and observed
                except MCPSyncError as error:
                    self._failed(query, error)
                else:
                    self._done(query)

    def kept(self, query: Query) -> bool:
        return self._lease(query) is not None

    def status_of(self, watch: Watch) -> Status:
        contact = self._reader.last_contact
        with self._lock:
            if watch.closed or self._closed:
                return Status(State.CLOSED, last_contact=contact, last_error=self._last_error, last_ending=self._last_ending)
            live = self._state is State.LIVE
            covered = self._covered.resource_subscriptions.intersection(watch.uris) if live else frozenset()
            listened = self._covered.lists if live else frozenset()
            lists: Dict[str, str] = {}
            for name in watch.lists:
                lists[name] = "poll" if self._lease(WATCHED_LISTS[name]) is not None else "none"
                if name in listened:
                    lists[name] = "listen"
            return Status(
                self._state,
                covered,
                frozenset(watch.uris) - covered,
                lists.get("resources"),
                contact,
                self._last_error or (_NO_THREADS if self._threadless and not self._about_to_fork else None),
                self._last_ending,
                max(0, self._streams - 1),
                self._gaps,
                lists.get("tools"),
                lists.get("prompts"),
                notified_by=("subscribe" if self._connection.is_legacy else "listen") if live else None,
            )

    # -- what the reader tells -------------------------------------------------------------------------------------------

    def stream_opened(
        self, order: int, asked: SubscriptionFilter, covered: SubscriptionFilter, gapless: bool
    ) -> None:
        with self._lock:
            if order <= self._order or self._closed:
                return
            self._order = order
            self._between = False
            before = self._leases_locked() if gapless else {}
            if not gapless:
                # Entries that were polled until now are read again too: this is a new beginning.
                self._generation += 1
                self._streams += 1
            self._state = State.LIVE
            self._asked, self._covered = asked, covered
            self._last_error = None
            self._matcher = None
            leases, keys = self._leases_locked(), list(self._watching.items())
        self._publish()
        self._refresher.soon([query for query, key in keys if before.get(key) != leases.get(key)])
        self._tell_status()

    def noticed(self, notice: Notice) -> None:
        # The cache first: from here on nobody is given the old copy. Then the threads that read again.
        if isinstance(notice, ResourceUpdated):
            if self._matcher is None:
                # To find out whom it concerns takes a moment the first time, if thousands of URIs are watched.
                self._reads.changed(read_query(notice.uri))
            keys, watched = self._matching().meant_by(notice.uri)
            self._reads.cache.changed(*keys)
            if watched:
                self._refresher.soon(watched)
            return
        for query in _LISTS_OF.get(type(notice), ()):
            self._reads.changed(query)
            self._refresher.soon((query,))

    def _matching(self) -> "_Meanings":
        matcher = self._matcher
        while matcher is None:
            with self._lock:
                uris, registration = self._wanted.resource_subscriptions | self._asked.resource_subscriptions, self._registration
            # Not under the lock: it looks at every URI.
            made = _Meanings(uris, self._reads)
            with self._lock:
                if registration == self._registration and uris >= self._asked.resource_subscriptions:
                    matcher = self._matcher = made
        return matcher

    def notice_lost(self) -> None:
        with self._lock:
            if self._state is not State.LIVE:
                return
            self._generation += 1
            self._gaps += 1
            queries = tuple(self._watching)
        self._publish()
        self._refresher.soon(queries)

    def stream_ended(self, order: int, ending: Ending, gap: bool) -> None:
        with self._lock:
            if order <= self._order or self._closed:
                return
            self._order = order
            self._last_ending = ending.how
            self._last_error = str(ending.error) if ending.error is not None else None
            if gap:
                self._generation += 1
                self._gaps += 1
            if gap or self._state is State.CONNECTING:
                self._state = State.INTERRUPTED
        self._publish()
        self._tell_status()

    def must_poll(self, order: int) -> None:
        with self._lock:
            if order <= self._order or self._closed:
                return
            self._order = order
            self._between = False
            self._state = State.POLLING
            queries = tuple(self._watching)
        self._publish()
        self._refresher.soon(queries)
        self._tell_status()

    def _given_up(self, order: int) -> None:
        """The reader ended its stream because nothing was wanted. By now something may be again."""
        with self._lock:
            if order <= self._order:
                return
            self._order = order
            self._between = False
            # Otherwise no gap: what was covered or polled loses its lease, and with it its freshness; what the server gave a
            # lifetime for keeps it.
            if self._wanted:
                self._generation += 1
            self._state = State.CONNECTING
            self._asked = self._covered = SubscriptionFilter()

    # -- what reads bring ------------------------------------------------------------------------------------------------

    def _observed(
        self, query: Query, result: Optional[CacheableResult], error: Optional[MCPSyncError], sequence: int
    ) -> None:
        watches = self._watches
        if not watches:
            return
        for watch in watches:
            if watch.observe(query, result, error, self._generation, sequence):
                self._notifier.post(watch)
        if query == CATALOG and isinstance(result, ListResourcesResult):
            self._catalog_read(frozenset(result.uris))

    def _catalog_read(self, uris: FrozenSet[str]) -> None:
        """Resources that left the catalog, or came into it, are looked at again."""
        with self._lock:
            before, self._catalog = self._catalog, uris
            moved = [read_query(uri) for uri in (before ^ uris) & self._wanted.resource_subscriptions] if before else []
        for query in moved:
            self._reads.changed(query)
        if not self._threadless:
            self._refresher.soon(moved)

    def _done(self, query: Query) -> None:
        entry = self._reads.peek(query)
        if entry is not None and self._reads.fresh(query) is entry.value:
            self._observed(query, entry.value, None, entry.sequence)

    def _failed(self, query: Query, error: MCPSyncError) -> None:
        for watch in self._watches:
            watch.failed(query, error)
        with self._lock:
            self._last_error = "%s: %s" % (query, error)

    def _discover(self, deadline: Deadline) -> DiscoverResult:
        if self._last_ending in ("refused", "unreachable"):
            # What is there now need not be what was there then. (A session whose stream ended says itself if it is gone.)
            self._connection.look_again(deadline)
        result = self._reads.get(DISCOVER, deadline, refresh=True).result
        assert isinstance(result, DiscoverResult)
        return result

    # -- how all this becomes known --------------------------------------------------------------------------------------

    def _tell_status(self) -> None:
        for watch in self._watches:
            if watch.status_changed():
                self._notifier.post(watch)

    def _rewanted_locked(self, watch: Watch, more: int) -> None:
        """Note what is wanted after a watch has come (1) or gone (-1)."""
        self._registration += 1
        self._matcher = None
        for query in watch.queries:
            if more > 0 and query not in self._watching:
                self._watching[query] = self._reads.key(query)
            elif more > 0 or query in self._more:
                self._more[query] += more
                if not self._more[query]:
                    del self._more[query]
            else:
                del self._watching[query]
        moved = frozenset(uri for uri in watch.uris if (read_query(uri) in self._watching) is (more > 0))
        before = self._wanted.resource_subscriptions
        uris = before | moved if more > 0 else before - moved
        self._wanted = SubscriptionFilter.of(uris, [name for name, query in WATCHED_LISTS.items() if query in self._watching])
        self._between = self._between or not self._wanted

    def _recounted(self) -> None:
        self._watching.clear()
        self._more.clear()
        self._wanted = SubscriptionFilter()
        for watch in self._watches:
            self._rewanted_locked(watch, 1)

    def _lease(self, query: Query) -> Optional[Lease]:
        return self._reads.coverage.leases.get(self._reads.key(query))

    def _leases_locked(self) -> Dict[Hashable, Lease]:
        """Return what keeps each key current, from the state as it is."""
        if self._closed or self._between or self._state not in (State.LIVE, State.POLLING):
            return {}
        # Quick: thousands of watches may come one by one, and each comes here.
        watching, listened, polled = self._watching, self._listened, self._polled
        if self._state is State.POLLING:
            leases = dict.fromkeys(watching.values(), polled)
        else:
            # What is wanted since the stream was opened is in neither; a wider one is on its way.
            asked, covered = self._asked.resource_subscriptions, self._covered.resource_subscriptions
            leases = {key: listened if uri in covered else polled for (_, uri), key in watching.items() if uri in asked}
            for name, query in WATCHED_LISTS.items():
                if query in watching and name in self._asked.lists:
                    leases[watching[query]] = listened if name in self._covered.lists else polled
        if self._reads.share_public:
            for query, key in watching.items():
                if key in leases:
                    leases.update(dict.fromkeys(self._reads.keys(query), leases[key]))
        return leases

    def _publish(self) -> None:
        """Tell the cache. Threads may overtake each other between the two steps; the version puts that right."""
        with self._lock:
            self._version += 1
            version, generation, leases = self._version, self._generation, self._leases_locked()
        self._reads.cache.cover(self._reads.coverage, leases, generation, version)
