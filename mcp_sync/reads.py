"""What can be read, and the one way to read it: through the cache.

Everybody who wants a result goes through :meth:`Reads.get`: callers of the client, and the refresher. So a result is stored,
refused, joined and removed by one set of rules.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Hashable, List, NamedTuple, Optional, Set, Tuple, Type, cast

from . import _fork
from ._deadline import Clock, Deadline
from .cache import Coverage, Entry, ResourceCache, Ticket
from .connection import Connection
from .errors import (
    AuthorizationError,
    InputRequired,
    MCPSyncError,
    NotSupported,
    ProtocolError,
    ResourceNotFound,
    ServerError,
    StaleError,
    beginning_of,
)
from .freshness import PUBLIC
from .jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND

if TYPE_CHECKING:
    from .results import CacheableResult, LeftOut, ListResourcesResult, ListResult

__all__ = [
    "CATALOG",
    "DISCOVER",
    "PROMPTS",
    "SKILLS",
    "TEMPLATES",
    "TOOLS",
    "WATCHED_LISTS",
    "Outcome",
    "Query",
    "Reads",
    "read_query",
]

_log = logging.getLogger("mcp_sync")

#: How long somebody else's read is waited for before one reads for oneself, in seconds.
_LEADER_PATIENCE = 10.0

#: More pages than this are taken for a server that never ends.
_MAX_PAGES = 10000


#: After so many warnings of what was left out of lists there are no more: it is known by then what sort of server it is.
_TOLD_AT_MOST = 100


class Query(NamedTuple):
    """Something that can be read: a method, and the one parameter that affects its result."""

    method: str
    uri: Optional[str] = None

    def __str__(self) -> str:
        return self.uri if self.uri is not None else self.method


CATALOG = Query("resources/list")
TEMPLATES = Query("resources/templates/list")
TOOLS = Query("tools/list")
PROMPTS = Query("prompts/list")
SKILLS = Query("skills/list")
DISCOVER = Query("server/discover")

#: The lists that can be watched, by the protocol's names for them.
WATCHED_LISTS: Dict[str, Query] = {"resources": CATALOG, "tools": TOOLS, "prompts": PROMPTS}

# The names of their results, which are loaded only where they are read.
_LISTS: Dict[str, str] = {
    CATALOG.method: "ListResourcesResult",
    TEMPLATES.method: "ListResourceTemplatesResult",
    TOOLS.method: "ListToolsResult",
    PROMPTS.method: "ListPromptsResult",
    SKILLS.method: "ListSkillsResult",
}


def read_query(uri: str) -> Query:
    """Return the query for the content of a resource."""
    return Query("resources/read", uri)


class Outcome:
    """What a read brought.

    :param result: the result.
    :param settled: False if something that was learnt during the read forbids to keep its result as current.
    """

    __slots__ = ("result", "settled")

    def __init__(self, result: "CacheableResult", settled: bool) -> None:
        self.result = result
        self.settled = settled


#: Called with what became known of a query: a result, or why there is none; and with the sequence of its read, since those who
#: call it may overtake each other.
Observer = Callable[[Query, "Optional[CacheableResult]", Optional[MCPSyncError], int], None]


def _ignore(query: Query, result: "Optional[CacheableResult]", error: Optional[MCPSyncError], sequence: int) -> None:
    pass


class Reads:
    """One principal's reads over one connection, through a cache that principals may share. Any thread.

    :param connection: where to read.
    :param cache: what remembers.
    :param principal: whose private copies these are.
    :param share_public: whether results that the server calls public are shared with the other principals of the cache.
    :param default_ttl: the seconds that a result without a hint is fresh.
    :param clock: the clock of the cache.
    """

    def __init__(
        self,
        connection: Connection,
        cache: "ResourceCache[CacheableResult]",
        principal: str,
        share_public: bool,
        default_ttl: float,
        clock: Clock,
    ) -> None:
        self.connection = connection
        self.cache = cache
        self.principal = principal
        self.share_public = share_public
        self.coverage = Coverage()
        #: What is watched, and the key of each: there may be thousands, so they are the same wherever they are kept.
        self.watched: Dict[Query, Hashable] = {}
        self._default_ttl = default_ttl
        self._clock = clock
        self._told_of: "Set[Tuple[Query, LeftOut]]" = set()
        #: Told of every result that was stored and every resource that is gone. Set once, before the first read.
        self.observer: Observer = _ignore

    # -- keys ------------------------------------------------------------------------------------------------------------

    def key(self, query: Query) -> Hashable:
        """Return the key of this principal's copy."""
        key = self.watched.get(query)
        return (self.principal, query.method, query.uri) if key is None else key

    def keys(self, query: Query) -> Tuple[Hashable, ...]:
        """Return the keys of all copies that a notice about ``query`` concerns."""
        if self.share_public:
            return (self.key(query), (None, query.method, query.uri))
        return (self.key(query),)

    # -- without the network ---------------------------------------------------------------------------------------------

    def peek(self, query: Query) -> "Optional[Entry[CacheableResult]]":
        """Return the newest copy that is there, fresh or not: an older one never counts again, even if it is fresh."""
        found: "Optional[Entry[CacheableResult]]" = None
        for key in self.keys(query):
            entry = self.cache.peek(key)
            if entry is not None and (found is None or entry.sequence > found.sequence):
                found = entry
        return found

    def fresh(self, query: Query) -> "Optional[CacheableResult]":
        """Return the copy if it is current."""
        entry = self.peek(query)
        return entry.value if entry is not None and entry.is_fresh(self._clock()) else None

    def changed(self, query: Query) -> None:
        """Note that a server said that ``query``'s result changed."""
        self.cache.changed(*self.keys(query))

    # -- with it ---------------------------------------------------------------------------------------------------------

    def get(self, query: Query, deadline: Deadline, refresh: bool = False) -> Outcome:
        """Return a current result: a fresh copy, someone else's read in progress, or a read of its own.

        :param deadline: for all of it.
        :param refresh: True for a read that begins now, whatever is there.
        :raises MCPSyncError: whatever went wrong with the read.
        """
        key = self.key(query)
        while True:
            if not refresh:
                known = self.fresh(query)
                if known is not None:
                    return Outcome(known, True)
            begun = self.cache.begin_read(key, self.coverage, refresh)
            if isinstance(begun, Entry):
                return Outcome(begun.value, True)
            if isinstance(begun, Ticket):
                return self._lead(query, begun, deadline)
            if not begun.wait(Deadline(deadline.shorter(_LEADER_PATIENCE))):
                if deadline.expired:
                    raise deadline.error()
                # A leader that was torn out of its read (by Ctrl-C, say) may not have been able to say so.
                self.cache.forget_flight(key, begun)
                continue
            if begun.succeeded and begun.value is not None:
                return Outcome(begun.value, False)
            # Its leader failed. This caller asks again, and leads unless another was quicker.

    def get_or_stale(self, query: Query, deadline: Deadline, refresh: bool, max_stale: Optional[float]) -> "CacheableResult":
        """As :meth:`get`, but an old copy, labelled so, is better than an error.

        :param max_stale: the greatest age of such a copy in seconds, or None for any.
        :raises StaleError: if there is only an older one.
        :raises AuthorizationError: if the copy may not be seen any more.
        :raises ResourceNotFound: if the resource is gone.
        :raises InputRequired: if the server asks for something first.
        """
        try:
            return self.get(query, deadline, refresh).result
        except (AuthorizationError, ResourceNotFound, InputRequired):
            raise  # the last one can be dealt with, and better than by an old copy
        except MCPSyncError as error:
            entry = self.peek(query)
            if entry is None:
                raise
            age = entry.value.age
            if max_stale is not None and age > max_stale:
                raise StaleError(
                    "the copy of %s is %.0f s old, more than the %g s that are accepted (max_stale=), and a new one "
                    "cannot be had: %s" % (query, age, max_stale, error),
                    age=age,
                ) from error
            return entry.value.as_stale()

    def uncached(self, query: Query, deadline: Deadline) -> "CacheableResult":
        """Read past the cache: nothing of it is used, nothing is stored."""
        return self._read(query, deadline)

    # -- leading ---------------------------------------------------------------------------------------------------------

    def _lead(self, query: Query, ticket: Ticket, deadline: Deadline) -> Outcome:
        shared: Optional[Ticket] = None
        try:
            if self.share_public:
                # The shared copy is another key, so it needs a ticket of its own, taken at the same time.
                begun = self.cache.begin_read(self.keys(query)[1], self.coverage, refresh=True)
                assert isinstance(begun, Ticket)
                shared = begun
            return self._led(query, ticket, shared, deadline)
        except BaseException:
            # Also for what comes from outside (Ctrl-C, a task queue's time limit), at any moment: nobody waits for this any
            # more. What was finished already is not touched by it.
            self.cache.abandon_read(ticket)
            if shared is not None:
                self.cache.abandon_read(shared)
            raise

    def _led(self, query: Query, ticket: Ticket, shared: Optional[Ticket], deadline: Deadline) -> Outcome:
        try:
            result = self._read(query, deadline)
        except (AuthorizationError, ResourceNotFound) as error:
            settled = self.cache.finish_missing(ticket)
            if shared is not None:
                self.cache.finish_missing(shared)
            if settled:
                self.observer(query, None, error, ticket.sequence)
            raise
        public = shared is not None and result.scope == PUBLIC
        ttl = result.ttl or self._default_ttl
        more: Dict[str, Any] = {"received": result.received, "started": result.started, "ttl": ttl, "size": _size(result)}
        stored = self.cache.finish_read(ticket, result, keep=not public, **more)
        if shared is not None:
            if public:
                stored = self.cache.finish_read(shared, result, **more)
            else:
                self.cache.abandon_read(shared)
        # Also of what is out of date already, if it is newer than what was held: under constant change nothing else comes.
        if stored.kept or not stored.refused:
            self.observer(query, result.as_stale() if stored.refused else result, None, ticket.sequence)
        return Outcome(result, not stored.refused)

    def _read(self, query: Query, deadline: Deadline) -> "CacheableResult":
        try:
            return self._asked(query, deadline)
        except ServerError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            raise NotSupported(
                "%s does not know %s; discover().capabilities says what it can do"
                % (self.connection.transport.where, query.method)
            ) from error

    def _asked(self, query: Query, deadline: Deadline) -> "CacheableResult":
        started_at = time.time()
        started = self._clock()
        if query.method == "resources/read":
            uri = query.uri or ""
            with _fork.held_off():
                from .results.content import ReadResourceResult
            catalog = cast("Optional[ListResourcesResult]", self.fresh(CATALOG))
            listed = None if catalog is None else catalog.find(uri)
            raw = self.connection.call("resources/read", {"uri": uri}, deadline=deadline)
            return ReadResourceResult.from_wire(
                raw,
                uri,
                started,
                self._clock(),
                started_at,
                self._clock,
                None if listed is None else listed.last_modified,
            )
        if query is DISCOVER or query.method == "server/discover":
            with _fork.held_off():
                from .results.discover import DiscoverResult
            raw = self.connection.call("server/discover", deadline=deadline)
            return DiscoverResult.from_wire(raw, started, self._clock(), started_at, self._clock)
        return self._listed(query, deadline, started, started_at)

    def _listed(self, query: Query, deadline: Deadline, started: float, started_at: float) -> "CacheableResult":
        with _fork.held_off():
            from . import results
            from .results.lists import list_from_pages
            from .results.skills import problem_of
            from .tool_headers import problem_with

            kind: "Type[ListResult[Any]]" = getattr(results, _LISTS[query.method])
        pages = self._pages(query.method, deadline)
        # What cannot be said over this transport must not be offered. Other transports have no headers.
        mirrors = query == TOOLS and not self.connection.is_legacy and not self.connection.transport.shared_channel
        checks: Dict[str, Any] = {"problem_with": problem_with} if mirrors else {}
        if query == SKILLS:
            checks = {"problem_with": problem_of}
        result = list_from_pages(kind, pages, started, started_at, self._clock, **checks)
        for item in result.left_out:
            self._tell_of(query, item)
        return result

    def _tell_of(self, query: Query, item: "LeftOut") -> None:
        """Warn of what was left out of a list; once, and not at every listing."""
        if len(self._told_of) < _TOLD_AT_MOST and (query, item) not in self._told_of:
            self._told_of.add((query, item))
            _log.warning(
                "%s: %s: %s was left out: %s",
                self.connection.transport.where,
                query,
                beginning_of(item.name),
                item.reason,
            )

    def _pages(self, method: str, deadline: Deadline) -> List[Tuple[Dict[str, Any], float]]:
        try:
            return self._all_pages(method, deadline)
        except _CursorExpired:
            # The pages before it belong to a list that is no more. From the beginning, once.
            _log.debug("a cursor of %s expired; listing again", method)
        try:
            return self._all_pages(method, deadline)
        except _CursorExpired as again:
            raise again.error from None

    def _all_pages(self, method: str, deadline: Deadline) -> List[Tuple[Dict[str, Any], float]]:
        pages: List[Tuple[Dict[str, Any], float]] = []
        seen = set()
        params: Dict[str, Any] = {}
        while True:
            try:
                page = self.connection.call(method, params, deadline=deadline)
            except ServerError as error:
                if error.code == INVALID_PARAMS and params:
                    raise _CursorExpired(error) from None
                raise
            pages.append((page, self._clock()))
            cursor = page.get("nextCursor")
            # An empty text is a cursor like any other; only absence is the end.
            if cursor is None:
                return pages
            if not isinstance(cursor, str):
                raise ProtocolError("the server sent a cursor of %s that is no text: %r" % (method, cursor))
            if cursor in seen or len(pages) >= _MAX_PAGES:
                raise ProtocolError(
                    "the pages of %s do not end: the server sent %d of them, and then a cursor that it had sent before"
                    % (method, len(pages))
                )
            seen.add(cursor)
            params = {"cursor": cursor}


class _CursorExpired(Exception):
    def __init__(self, error: ServerError) -> None:
        super().__init__(str(error))
        self.error = error


def _size(result: "CacheableResult") -> int:
    """Return about how much memory a result takes, in bytes."""
    # By what it has, and not by its class: that would have to be loaded first.
    contents = getattr(result, "contents", None)
    if contents is not None:
        return 1024 + sum(len(part.text if hasattr(part, "text") else part.blob) for part in contents)
    if hasattr(result, "tools"):
        return 1024 + sum(1024 + 4 * len(str(tool.raw)) for tool in result.tools)
    return 1024 + 1024 * len(cast("ListResult[Any]", result)) if hasattr(result, "SHAPE") else 4096
