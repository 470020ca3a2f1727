"""A legacy session: begun by a handshake, with subscriptions and a stream of its own; it can be gone at any moment."""

import collections
import contextlib
import logging
import threading
import weakref
from typing import Any, Callable, Counter, Dict, Iterator, List, Mapping, NoReturn, Optional, Set, Union

from .. import _fork
from .._backoff import Backoff
from .._deadline import Deadline
from .._worker import Worker
from ..calling import Attempt, pause
from ..eras.base import error_parts
from ..eras.legacy import Legacy
from ..errors import (
    AuthorizationError,
    MCPSyncError,
    NotSupported,
    ProtocolError,
    RequestTimeout,
    ResourceNotFound,
    ServerError,
    TransportError,
    beginning_of,
)
from ..jsonrpc import METHOD_NOT_FOUND, Request, RequestIds, Response
from ..notices import Acknowledged, SubscriptionFilter
from ..transports.base import ChannelLost, Exchange, Outgoing, Received, Transport
from .answering import Answering
from .base import Handlers, Said, Session, SessionGone, Stream, answer_to, attended, speaks_of_no_session

__all__ = ["LegacySession"]

_log = logging.getLogger("mcp_sync")

#: How long the beginning of a session waits for the stream on which the server asks, in seconds.
_EAR_PATIENCE = 2.0
#: How often a broken answer is asked for again without any progress.
_MAX_RESUMPTIONS = 10
# Codes under which servers say that a session is gone where the HTTP status says that all is well.
_GONE_CODES = (-32000, -32001, -32600)


class LegacySession(Session):
    """Legacy: one session, from its handshake until the server forgets it.

    :param transport: how messages move.
    :param era: what the handshake agrees on; before it, what can be known.
    :param ids: where request ids come from.
    :param handlers: who answers the server's own requests.
    """

    is_legacy = True

    def __init__(self, transport: Transport, era: Legacy, ids: RequestIds, handlers: Handlers) -> None:
        self.transport = transport
        self.era: Legacy = era
        #: What the server said of itself in the handshake, in the modern form.
        self.described: Dict[str, Any] = {}
        #: Whether it serves one stream and ends with it.
        self.private = False
        self._new = True  # nobody has asked since the handshake
        self._log_level: Optional[str] = None  # what was asked for last
        self._ids = ids
        self._over = threading.Event()
        self._made_anew()
        if transport.shared_channel:
            transport.on_unclaimed = self._unclaimed
        self.answering = Answering(transport, handlers, lambda: self.era, lambda: self.gone, self._waiting)
        _fork.register(self)

    def _made_anew(self) -> None:
        self._lock = threading.Lock()  # guards all below
        self._streams: List[Exchange] = []
        self._attempts: List[Attempt] = []  # the calls in progress
        self._claimed = False
        self._subscribed: Counter[str] = collections.Counter()  # how many streams want each
        self._last_event_id: Optional[str] = None
        self._siblings: "weakref.WeakSet[LegacySession]" = weakref.WeakSet()
        self._ear: Optional[Worker] = None

    def after_fork_in_child(self) -> None:
        # It is the parent's: nothing is said on it from here, not even goodbye.
        self._made_anew()
        self._over = threading.Event()
        self._over.set()

    @classmethod
    def begin(
        cls,
        transport: Transport,
        client_info: Mapping[str, Any],
        capabilities: Mapping[str, Any],
        ids: RequestIds,
        handlers: Handlers,
        deadline: Deadline,
        private: bool = False,
    ) -> "LegacySession":
        """Do the handshake.

        :param private: whether it serves one stream and ends with it.
        :raises UnsupportedVersion: if there is no revision in common.
        :raises MCPSyncError: whatever else went wrong.
        """
        channel = transport.connect(deadline)
        outgoing = Legacy.initialize(ids.next(), client_info, capabilities, channel)
        if transport.shared_channel:
            # Nobody gives up a greeting for what he wanted to ask after it: on one channel a server is greeted once.
            outgoing = outgoing.but(begun=lambda exchange: None)
        # Made before the handshake, because the server may ping while it lasts.
        session = cls(transport, Legacy("", None, channel), ids, handlers)
        session.private = private
        with transport.exchange(outgoing, deadline) as exchange:
            result = answer_to(exchange, outgoing, session.era, transport.where, session.answering.elsewhere)
            session_id = exchange.headers.get("Mcp-Session-Id") or None
        if session_id is not None and not all("\x21" <= char <= "\x7e" for char in session_id):
            raise ProtocolError(
                "%s gave the session an id that cannot be sent back: %s" % (transport.where, beginning_of(session_id))
            )
        session.era = Legacy.initialized(result, session_id, channel)
        session.described = _described(result)
        try:
            transport.send(session.era.notification("notifications/initialized"), deadline)
        except TransportError as error:
            # The session has begun; some servers answer this with an error and mean nothing by it.
            if error.status is None or isinstance(error, AuthorizationError):
                raise
            _log.info("%s", error)
        if handlers and not private and not transport.shared_channel:
            session._open_ear(deadline)
        return session

    @property
    def gone(self) -> bool:
        """Whether it is over."""
        return self._over.is_set()

    def call(
        self, method: str, params: Dict[str, Any], deadline: Deadline, attempt: Optional[Attempt] = None
    ) -> Dict[str, Any]:
        if method == "server/discover":
            # The handshake has said all that there is; what is asked here is whether the session is still good.
            if self.gone:
                raise SessionGone("the session is over", may_have_run=False)
            new, self._new = self._new, False
            if not new:
                try:
                    self._call("ping", {}, deadline, self.answering.here, attempt)
                except ServerError:
                    pass  # it has no ping, but it is there, and knows the session
            return self.described
        # In the thread of the call, as the calls of a program are.
        if attempt is not None and attempt.options.log_level is not None:
            with attempt.covering():
                self._set_log_level(attempt.options.log_level, deadline)
        return self._call(method, params, deadline, self.answering.here, attempt)

    def _call(
        self,
        method: str,
        params: Dict[str, Any],
        deadline: Deadline,
        asked: Callable[[Request], bool],
        attempt: Optional[Attempt] = None,
    ) -> Dict[str, Any]:
        if attempt is None:
            return self._once(method, params, deadline, asked, None)
        with self._lock:
            self._attempts.append(attempt)
        try:
            return self._once(method, params, deadline, asked, attempt)
        finally:
            with self._lock:
                if attempt in self._attempts:
                    self._attempts.remove(attempt)

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[None]:
        """Let the time of the calls in progress stand still while a user is busy with what may be a question of one of them."""
        with self._lock:
            held = list(self._attempts)
            for attempt in held:
                attempt.hold()
        try:
            yield
        finally:
            with self._lock:
                for attempt in held:
                    attempt.let_go()

    def _once(
        self,
        method: str,
        params: Dict[str, Any],
        deadline: Deadline,
        asked: Callable[[Request], bool],
        attempt: Optional[Attempt],
    ) -> Dict[str, Any]:
        request_id = self._ids.next()
        meta = {} if attempt is None else attempt.meta(request_id, False)
        if meta:
            params = dict(params, _meta={**params.get("_meta", {}), **meta})
        outgoing = attended(self.era.request(request_id, method, params), attempt)
        resumed = False
        try:
            with self.transport.exchange(outgoing, deadline) as exchange:
                try:
                    return answer_to(exchange, outgoing, self.era, self.transport.where, asked, attempt)
                except TransportError as error:
                    if exchange.last_event_id is None or exchange.interrupted or isinstance(error, RequestTimeout):
                        raise
                    broken, last_event_id, retry = error, exchange.last_event_id, exchange.retry
            resumed = True
            deadline = deadline if attempt is None else attempt.deadline
            return self._resume(outgoing, broken, last_event_id, retry, deadline, asked, attempt)
        except BaseException as error:
            if not isinstance(error, MCPSyncError) or isinstance(error, RequestTimeout) or _cancelled(attempt):
                if not isinstance(error, ServerError) and getattr(error, "may_have_run", True):
                    self._tell_that_nobody_waits(request_id, attempt)
            elif isinstance(error, (TransportError, ServerError)):
                self._look_for_the_end(error, _uri(params), may_have_run=resumed)
            raise

    def _tell_that_nobody_waits(self, request_id: int, attempt: Optional[Attempt]) -> None:
        """Cancel a request: in this era the end of the exchange says nothing (2025-11-25, basic/utilities/cancellation)."""
        if self.transport.cancels or self.gone:
            return
        params: Dict[str, Any] = {"requestId": request_id}
        cancellation = None if attempt is None else attempt.options.cancellation
        if cancellation is not None and cancellation.reason is not None:
            params["reason"] = cancellation.reason
        try:
            self.transport.send(self.era.notification("notifications/cancelled", params), Deadline(0.5, "the cancellation"))
        except MCPSyncError as error:
            _log.debug("could not cancel a request: %s", error)

    def _set_log_level(self, level: str, deadline: Deadline) -> None:
        """Have the server log from this level on; in this era that is a matter of the whole session."""
        if self._log_level == level or not isinstance(self.described["capabilities"].get("logging"), dict):
            return
        try:
            self._call("logging/setLevel", {"level": level}, deadline, self.answering.elsewhere)
        except ServerError as error:
            _log.info("%s does not let its log level be set: %s", self.transport.where, error)
        self._log_level = level

    def claim_stream(self) -> bool:
        """Return whether :meth:`listen` may be called: a server has one stream for each session."""
        with self._lock:
            if self._claimed and not self.transport.shared_channel and self.era.session_id is not None:
                return False
            self._claimed = True
            return True

    def listen(self, wanted: SubscriptionFilter, deadline: Deadline) -> Stream:
        exchange: Optional[Exchange] = None
        opened = False
        try:
            exchange = self._open_stream(deadline)
            with self._lock:
                gone = self.gone
                self._streams.append(exchange)
            if gone:
                raise SessionGone("the session is over", may_have_run=False)
            granted = self._subscribe(wanted, deadline)
            opened = True
        finally:
            if not opened:
                if exchange is not None:
                    exchange.close()
                self._stream_over(exchange)
        assert exchange is not None
        return _LegacyStream(self, exchange, granted)

    def _open_stream(self, deadline: Deadline) -> Exchange:
        with self._lock:
            if self.gone:
                raise SessionGone("the session is over", may_have_run=False)
            after, self._last_event_id = self._last_event_id, None
        try:
            return self._unsolicited(deadline, after)
        except (TransportError, ServerError) as error:
            status = error.status
            if after is not None and status is not None and 400 <= status < 500:
                return self._open_stream(deadline)  # without what it does not know any more
            if status in (400, 404, 405, 501) and self._says_gone(error, ""):
                # Some servers have no such address. Only a request tells the difference.
                try:
                    self._call("ping", {}, deadline, self.answering.elsewhere)
                except ServerError:
                    pass  # it has no ping, but knows the session
            else:
                self._look_for_the_end(error, "")
            if status in (400, 404, 405, 501):
                raise NotSupported("%s has no stream for what it wants to tell" % self.transport.where) from error
            raise

    def _unsolicited(self, deadline: Deadline, after: Optional[str]) -> Exchange:
        """Open a stream of what the server sends unasked, or of the rest of a broken answer.

        :raises ServerError: if that is refused with a JSON-RPC error, which has the HTTP status.
        """
        exchange = self.transport.unsolicited(self.era.headers, deadline, self.era.channel, after)
        if exchange.status is None or exchange.status < 400:
            return exchange
        with exchange:
            message = next(exchange)
            if isinstance(message, Response) and message.error is not None:
                code, text, data = error_parts(message)
                raise ServerError(text, code=code, data=data, status=exchange.status, retry_after=exchange.retry_after)
        raise TransportError("%s refuses a stream" % self.transport.where, status=exchange.status)

    @property
    def has_streams(self) -> bool:
        """Whether a stream of it is open: it would end with the session."""
        with self._lock:
            return bool(self._streams)

    # -- while nobody listens -----------------------------------------------------------------------------------------

    def _open_ear(self, deadline: Deadline) -> None:
        """Have a thread of its own hear what the server asks unprompted: it has no other way than the stream for that."""
        opened = threading.Event()
        self.claim_stream()
        self._ear = Worker("mcp_sync-ear", lambda: self._hear(opened))
        self._ear.start()
        # Requests may cause questions: the stream is to be there before them, if that is quick.
        opened.wait(deadline.shorter(_EAR_PATIENCE))

    def _hear(self, opened: threading.Event) -> None:
        backoff = Backoff(0.5, 30.0)
        try:
            while not self.gone:
                retry: Optional[float] = None
                try:
                    exchange = self._open_stream(Deadline(10.0, "the stream of what the server asks"))
                except SessionGone:
                    return
                except (TransportError, ServerError) as error:
                    _log.debug("%s", error)
                else:
                    opened.set()
                    retry = self._hear_out(exchange)
                    backoff.reset()
                if self._over.wait(max(backoff.next(), retry or 0.0)):
                    return
        except NotSupported:
            pass  # whatever it asks comes with answers
        except MCPSyncError as error:
            _log.info("%s: nobody hears what it asks unprompted: %s", self.transport.where, error)
        finally:
            opened.set()
            self._stream_over(None)

    def _hear_out(self, exchange: Exchange) -> Optional[float]:
        """Take requests from a stream until it ends; return when the server wants to be asked again, in seconds."""
        with self._lock:
            self._streams.append(exchange)
        try:
            if self.gone:
                return None
            exchange.limit(Deadline(None))
            for message in exchange:
                if isinstance(message, Request):
                    self.answering.elsewhere(message)
        except MCPSyncError as error:
            _log.debug("%s", error)
        finally:
            exchange.close()
            with self._lock:
                self._streams.remove(exchange)
                self._last_event_id = exchange.last_event_id
        return exchange.retry

    # -- the end of it ------------------------------------------------------------------------------------------------

    def adopt(self, sibling: "LegacySession") -> None:
        """Let the end of this session be that of the stream of another: a server that forgets one forgets all."""
        with self._lock:
            self._siblings.add(sibling)

    def interrupt(self) -> None:
        """Make the threads that read its streams look what has become of them."""
        with self._lock:
            streams = list(self._streams)
            siblings = list(self._siblings)
        for exchange in streams:
            exchange.interrupt()
        for sibling in siblings:
            sibling.interrupt()

    def close(self, deadline: Deadline) -> None:
        with self._lock:
            if self.gone:
                return
            self._over.set()
            answerers = self.answering.threads
            if self._ear is not None:
                answerers.append(self._ear)
        for exchange in list(self._streams):
            exchange.interrupt()
        if self.era.session_id is not None:
            try:
                self.transport.end_session(self.era.headers, deadline)
            except MCPSyncError:
                pass  # a courtesy; servers may not even allow it
        patience = Deadline(0.2)
        for answerer in answerers:
            answerer.join(patience.remaining() or 0.0)

    # -- resumption ---------------------------------------------------------------------------------------------------

    def _resume(
        self,
        outgoing: Outgoing,
        broken: TransportError,
        last_event_id: str,
        retry: Optional[float],
        deadline: Deadline,
        asked: Callable[[Request], bool],
        attempt: Optional[Attempt] = None,
    ) -> Dict[str, Any]:
        """Fetch an answer whose stream was cut, as often as it takes. Only where events had ids.

        :param broken: what to raise if the server does not go on with it.
        :param retry: when the server wants to be asked, in seconds.
        """
        backoff = Backoff(1.0, 5.0)
        first = True
        while backoff.failures < _MAX_RESUMPTIONS:
            # What the server says, but never in a circle without a pause.
            wait = backoff.next()
            if retry is not None and backoff.failures == 1:
                wait = 0.0
            wait = max(retry or 0.0, wait, 0.0 if first else 0.1)
            pause(deadline.shorter(wait), None if attempt is None else attempt.options.cancellation, self._over.is_set)
            if self.gone or _cancelled(attempt):
                raise broken
            if deadline.expired:
                raise deadline.error()
            first = False
            try:
                exchange = self._unsolicited(deadline, last_event_id)
            except RequestTimeout:
                raise
            except (TransportError, ServerError) as refused:
                if refused.status is None or refused.status in (408, 429) or refused.status >= 500:
                    continue  # it may be starting again
                if isinstance(refused, AuthorizationError) or self._says_gone(refused, ""):
                    raise
                raise broken from refused
            if attempt is not None:
                attempt.begun(exchange)
            with exchange:
                try:
                    return answer_to(exchange, outgoing, self.era, self.transport.where, asked, attempt)
                except TransportError as again:
                    if exchange.interrupted or isinstance(again, RequestTimeout):
                        raise
                    if exchange.last_event_id not in (None, last_event_id):
                        last_event_id = str(exchange.last_event_id)
                        backoff.reset()
                    retry = retry if exchange.retry is None else exchange.retry
        raise broken

    # -- subscriptions ------------------------------------------------------------------------------------------------

    def _subscribe(self, wanted: SubscriptionFilter, deadline: Deadline) -> SubscriptionFilter:
        """Subscribe to each resource; return what the server agreed to."""
        granted: Set[str] = set()
        if self._can("resources", "subscribe"):
            for uri in sorted(wanted.resource_subscriptions):
                try:
                    self._call("resources/subscribe", {"uri": uri}, deadline, self.answering.elsewhere)
                except ServerError as error:
                    _log.info("%s does not let %s be subscribed to: %s", self.transport.where, uri, error)
                    if error.code == METHOD_NOT_FOUND:
                        break  # it said that it could, and cannot
                except AuthorizationError as error:
                    if error.status != 403:
                        raise
                    _log.info("%s does not let %s be subscribed to: %s", self.transport.where, uri, error)
                except RequestTimeout:
                    if not granted:
                        raise
                    break  # the others are polled
                else:
                    granted.add(uri)
            with self._lock:
                self._subscribed.update(granted)
        return SubscriptionFilter(
            frozenset(granted),
            wanted.resources_list_changed and self._can("resources", "listChanged"),
            wanted.tools_list_changed and self._can("tools", "listChanged"),
            wanted.prompts_list_changed and self._can("prompts", "listChanged"),
        )

    def _can(self, what: str, how: str) -> bool:
        abilities = self.described["capabilities"].get(what)
        return isinstance(abilities, dict) and abilities.get(how) is True

    def _unsubscribe(self, uris: "frozenset[str]") -> None:
        """End the subscriptions that no other stream needs."""
        with self._lock:
            self._subscribed.subtract(uris)
            unneeded = sorted(uri for uri in uris if self._subscribed[uri] <= 0)
            for uri in unneeded:
                del self._subscribed[uri]
        deadline = Deadline(1.0)
        for uri in unneeded:
            if self.gone:
                return
            try:
                self._call("resources/unsubscribe", {"uri": uri}, deadline, self.answering.elsewhere)
            except MCPSyncError:
                return  # a courtesy; the end of the session does the same

    # -- the server's own requests ------------------------------------------------------------------------------------

    def _unclaimed(self, message: Received) -> None:
        """Take what came on a shared channel and belongs to no request. Called by the thread that reads the channel."""
        if isinstance(message, Request):
            self.answering.elsewhere(message)

    # -- the end ------------------------------------------------------------------------------------------------------

    def _look_for_the_end(
        self, error: Union[TransportError, ServerError], uri: str, may_have_run: bool = False
    ) -> None:
        """Raise :class:`SessionGone` if that is what an error means, in one of the ways in which servers say it.

        :param uri: what was asked for, and may be repeated in the error's words.
        """
        if self._says_gone(error, uri):
            self.over(error, may_have_run)

    def _says_gone(self, error: Union[TransportError, ServerError], uri: str) -> bool:
        if isinstance(error, (SessionGone, ChannelLost)):
            return True
        if isinstance(error, AuthorizationError):
            return False
        status, has_id = error.status, self.era.session_id is not None
        if isinstance(error, TransportError):
            # Not its message, in which the server's address stands.
            told = error.body_start.replace(uri, " ") if uri else error.body_start
            return (status in (404, 410) and has_id) or (status in (400, 404, 410) and speaks_of_no_session(told))
        told = error.message.replace(uri, " ") if uri else error.message
        if speaks_of_no_session(told):
            return status in (400, 404, 410) or "initiali" in told.lower() or (has_id and error.code in _GONE_CODES)
        # An answer to what was asked, which some servers put under this status.
        answered = isinstance(error, ResourceNotFound) or error.code == METHOD_NOT_FOUND
        return status in (404, 410) and has_id and not answered

    def over(self, error: MCPSyncError, may_have_run: bool = False) -> NoReturn:
        """Mark the session as gone, end its streams, and raise :class:`SessionGone`."""
        self._over.set()
        self.interrupt()
        raise SessionGone(
            "the session with %s is over: %s" % (self.transport.where, error), may_have_run=may_have_run
        ) from error

    def stream_closed(self, exchange: Exchange, granted: SubscriptionFilter, graceful: bool) -> None:
        """Note that a stream is over.

        :param graceful: whether this side ended it, so that the server has to be told.
        """
        self._stream_over(exchange)
        if self.private:
            self.close(Deadline(0.5, "the goodbye"))
        elif graceful and not self.gone:
            self._unsubscribe(granted.resource_subscriptions)
        else:
            with self._lock:
                self._subscribed.subtract(granted.resource_subscriptions)

    def _stream_over(self, exchange: Optional[Exchange]) -> None:
        with self._lock:
            if exchange is not None:
                if exchange in self._streams:
                    self._streams.remove(exchange)
                self._last_event_id = exchange.last_event_id or self._last_event_id
            self._claimed = bool(self._streams)


class _LegacyStream(Stream):
    """The standalone stream of a session, with its subscriptions."""

    def __init__(self, session: LegacySession, exchange: Exchange, granted: SubscriptionFilter) -> None:
        super().__init__(exchange)
        self._session = session
        self._granted = granted
        self._told = False
        self._broken = False

    def next(self) -> Said:
        if not self._told:
            self._told = True
            return Acknowledged(self._granted)
        try:
            message = next(self.exchange)
        except (StopIteration, MCPSyncError) as error:
            self._broken = not self.exchange.interrupted
            if isinstance(error, TransportError) and self.exchange.retry is not None:
                # The server's own word on when to come again.
                error.retry_after = self.exchange.retry
            raise
        if isinstance(message, ProtocolError):
            return message
        if isinstance(message, Request):
            self._session.answering.elsewhere(message)
            return None
        return self._session.era.notice(message)

    def widen(self, wanted: SubscriptionFilter, deadline: Deadline) -> Optional[SubscriptionFilter]:
        more = SubscriptionFilter(
            wanted.resource_subscriptions - self._granted.resource_subscriptions,
            wanted.resources_list_changed,
            wanted.tools_list_changed,
            wanted.prompts_list_changed,
        )
        added = self._session._subscribe(more, deadline)
        self._granted = SubscriptionFilter(
            self._granted.resource_subscriptions | added.resource_subscriptions,
            added.resources_list_changed,
            added.tools_list_changed,
            added.prompts_list_changed,
        )
        return self._granted

    def close(self) -> None:
        self.exchange.close()
        self._session.stream_closed(self.exchange, self._granted, not self._broken)


def _cancelled(attempt: Optional[Attempt]) -> bool:
    return attempt is not None and attempt.cancelled


def _uri(params: Dict[str, Any]) -> str:
    uri = params.get("uri")
    return uri if isinstance(uri, str) else ""


def _described(result: Dict[str, Any]) -> Dict[str, Any]:
    """Return the answer to ``initialize`` in the form of an answer to ``server/discover``."""
    capabilities = result.get("capabilities")
    described = {
        "supportedVersions": [result.get("protocolVersion")],
        "capabilities": capabilities if isinstance(capabilities, dict) else {},
        "_meta": {"io.modelcontextprotocol/serverInfo": result.get("serverInfo")},
    }
    if isinstance(result.get("instructions"), str):
        described["instructions"] = result["instructions"]
    return described
