"""Speaking with a server once it is known how: one class for each era, on any transport.

A modern "session" is no more than the era itself, since every request stands alone. A legacy one begins with a handshake, has
subscriptions and a stream of its own, and can be gone at any moment.
"""

import abc
import logging
import threading
from typing import Any, Callable, Dict, List, Mapping, NoReturn, Optional, Union

from ._deadline import Deadline
from ._worker import Worker
from .eras.base import Ended, Era
from .eras.legacy import Legacy
from .eras.modern import Modern
from .errors import (
    AuthorizationError,
    MCPSyncError,
    NotSupported,
    ProtocolError,
    RequestTimeout,
    ServerError,
    TransportError,
    beginning_of,
)
from .jsonrpc import FOREIGN, METHOD_NOT_FOUND, SAME, Request, RequestIds, Response, classify_id
from .notices import Acknowledged, Notice, SubscriptionFilter
from .transports.base import ChannelLost, Exchange, Outgoing, Received, Transport

__all__ = ["Handlers", "LegacySession", "ModernSession", "Session", "SessionGone", "Stream"]

_log = logging.getLogger("mcp_sync")

#: Answers the server's own requests (legacy): from method to a function of the parameters that returns the result.
Handlers = Mapping[str, Callable[[Dict[str, Any]], Dict[str, Any]]]

#: What a message on a stream says; None for nothing of interest.
Said = Union[Notice, Ended, ProtocolError, None]


class SessionGone(TransportError):
    """The server does not know the session any more. Never reaches a user: a new one is begun."""


class Stream(abc.ABC):
    """An open stream of notices. Iterates over what is said on it, for ever or until it breaks; the first thing is an
    :class:`~mcp_sync.notices.Acknowledged`, unless something came before it. One thread iterates and closes.

    :param exchange: what it comes through: for limits, interruptions, and how it ended.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange

    @abc.abstractmethod
    def next(self) -> Said:
        """Return what the next message says.

        :raises StopIteration: if the stream is over.
        :raises TransportError: if it broke.
        """

    def widen(self, wanted: SubscriptionFilter, deadline: Deadline) -> Optional[SubscriptionFilter]:
        """Ask for more on this stream; return what is granted, or None if that takes a stream of its own. Any thread."""
        return None

    def close(self) -> None:
        """End it. Only the thread that iterates."""
        self.exchange.close()


class Session(abc.ABC):
    """What all eras can do. Any thread."""

    era: Era

    @abc.abstractmethod
    def call(self, method: str, params: Dict[str, Any], deadline: Deadline) -> Dict[str, Any]:
        """Send one request and return its result.

        :raises SessionGone: if a new session has to be begun first.
        :raises MCPSyncError: whatever else went wrong.
        """

    @abc.abstractmethod
    def listen(self, wanted: SubscriptionFilter, deadline: Deadline) -> Stream:
        """Open a stream of notices.

        :raises SessionGone: if a new session has to be begun first.
        :raises MCPSyncError: whatever else went wrong.
        """

    def close(self, deadline: Deadline) -> None:
        """Say goodbye, if the era knows such a thing."""


def answer_to(exchange: Exchange, request: Outgoing, era: Era, where: str, asked: Callable[[Request], None]) -> Dict[str, Any]:
    """Read an exchange to its response, and return the result.

    :param asked: called for each request of the server's that comes before.
    """
    method = str(request.message.get("method"))
    unreadable: Optional[ProtocolError] = None
    try:
        for message in exchange:
            if isinstance(message, Response):
                _check_id(request.message["id"], message.id, method, where, exchange)
                return era.result(request, message, exchange)
            if isinstance(message, ProtocolError):
                _log.warning("skipped a message before the answer to %s: %s", method, message)
                unreadable = message
            elif isinstance(message, Request):
                asked(message)
            else:
                _log.debug("skipped %s before the answer to %s", beginning_of(message.method), method)
    except RequestTimeout:
        raise
    except TransportError as ended:
        # What was skipped may have been the answer, and tells more than that there was none.
        if unreadable is None or exchange.interrupted:
            raise
        raise unreadable from ended
    raise ProtocolError("%s answered %s with a message that is no answer" % (where, method))


def _check_id(sent: int, came: Any, method: str, where: str, exchange: Exchange) -> None:
    fits = classify_id(sent, came)
    if fits == FOREIGN:
        # Whatever it came over is out of step: it must not serve another request.
        exchange.interrupt()
        raise ProtocolError(
            "%s answered %s with the answer to another request (id %s instead of %d)"
            % (where, method, beginning_of(came), sent)
        )
    if fits != SAME:
        _log.info("%s answered %s with id %s for %d", where, method, beginning_of(came), sent)


# -- modern ------------------------------------------------------------------------------------------------------------------


class ModernSession(Session):
    """Modern: no state at all.

    :param transport: how messages move.
    :param era: the revision.
    :param ids: where request ids come from.
    """

    def __init__(self, transport: Transport, era: Modern, ids: RequestIds) -> None:
        self.transport = transport
        self.era: Modern = era
        self._ids = ids

    def call(self, method: str, params: Dict[str, Any], deadline: Deadline) -> Dict[str, Any]:
        outgoing = self.era.request(self._ids.next(), method, params)
        with self.transport.exchange(outgoing, deadline) as exchange:
            return answer_to(exchange, outgoing, self.era, self.transport.where, self._asked)

    def listen(self, wanted: SubscriptionFilter, deadline: Deadline) -> Stream:
        request_id = self._ids.next()
        outgoing = self.era.listen(request_id, wanted)
        return _ModernStream(self.transport.exchange(outgoing, deadline), self.era, request_id)

    def _asked(self, request: Request) -> None:
        _log.warning("ignored a request of the server's (%s): this revision has none", beginning_of(request.method))


class _ModernStream(Stream):
    def __init__(self, exchange: Exchange, era: Modern, request_id: int) -> None:
        super().__init__(exchange)
        self._era = era
        self._request_id = request_id

    def next(self) -> Said:
        message = next(self.exchange)
        if isinstance(message, ProtocolError):
            return message
        said = self._era.notice(self._request_id, message)
        if isinstance(said, Ended) and said.error is not None:
            said.error.status = self.exchange.status
            said.error.retry_after = self.exchange.retry_after
        return said


# -- legacy ------------------------------------------------------------------------------------------------------------------


class LegacySession(Session):
    """Legacy: one session, from its handshake until the server forgets it.

    :param transport: how messages move.
    :param era: what the handshake agreed on.
    :param described: what the server said of itself in the handshake, in the modern form.
    :param ids: where request ids come from.
    :param handlers: who answers the server's own requests.
    """

    def __init__(
        self, transport: Transport, era: Legacy, described: Dict[str, Any], ids: RequestIds, handlers: Handlers
    ) -> None:
        self.transport = transport
        self.era: Legacy = era
        self.described = described
        self._ids = ids
        self._handlers = handlers
        self._lock = threading.Lock()  # guards the four below
        self._gone = False
        self._streams: List[Exchange] = []
        self._last_event_id: Optional[str] = None
        self._asked: List[Request] = []
        self._answerer: Optional[Worker] = None
        if transport.shared_channel:
            transport.on_unclaimed = self._unclaimed

    @classmethod
    def begin(
        cls,
        transport: Transport,
        client_info: Mapping[str, Any],
        capabilities: Mapping[str, Any],
        ids: RequestIds,
        handlers: Handlers,
        deadline: Deadline,
    ) -> "LegacySession":
        """Do the handshake.

        :raises UnsupportedVersion: if there is no revision in common.
        :raises MCPSyncError: whatever else went wrong.
        """
        channel = transport.connect(deadline)
        outgoing = Legacy.initialize(ids.next(), client_info, capabilities, channel)
        unsettled = Legacy("", None, channel)
        with transport.exchange(outgoing, deadline) as exchange:
            result = answer_to(exchange, outgoing, unsettled, transport.where, lambda request: None)
            session_id = exchange.headers.get("Mcp-Session-Id")
        if session_id is not None and not (session_id and all("\x21" <= char <= "\x7e" for char in session_id)):
            raise ProtocolError(
                "%s gave the session an id that cannot be sent back: %s" % (transport.where, beginning_of(session_id))
            )
        era = Legacy.initialized(result, session_id, channel)
        transport.send(era.notification("notifications/initialized"), deadline)
        return cls(transport, era, _described(result), ids, handlers)

    def call(self, method: str, params: Dict[str, Any], deadline: Deadline) -> Dict[str, Any]:
        if method == "server/discover":
            # The handshake has said all that there is; what is asked here is whether the session is still good.
            if self._gone:
                raise SessionGone("the session is over", may_have_run=False)
            return self.described
        outgoing = self.era.request(self._ids.next(), method, params)
        try:
            with self.transport.exchange(outgoing, deadline) as exchange:
                try:
                    return answer_to(exchange, outgoing, self.era, self.transport.where, self._answer)
                except TransportError as broken:
                    if exchange.last_event_id is None or exchange.interrupted or isinstance(broken, RequestTimeout):
                        raise
                    last_event_id, retry = exchange.last_event_id, exchange.retry
            return self._resume(outgoing, last_event_id, retry, deadline)
        except (TransportError, ServerError) as error:
            self._look_for_the_end(error)
            raise

    def listen(self, wanted: SubscriptionFilter, deadline: Deadline) -> Stream:
        with self._lock:
            if self._gone:
                raise SessionGone("the session is over", may_have_run=False)
            after = self._last_event_id
        try:
            exchange = self.transport.unsolicited(self.era.headers, deadline, self.era.channel, after)
        except (TransportError, ServerError) as error:
            self._look_for_the_end(error)
            if getattr(error, "status", None) in (405, 400, 404, 501):
                raise NotSupported("%s has no stream for what it wants to tell" % self.transport.where) from error
            raise
        try:
            granted = self._subscribe(wanted, deadline)
        except BaseException:
            exchange.close()
            raise
        with self._lock:
            self._streams.append(exchange)
        return _LegacyStream(self, exchange, granted)

    def close(self, deadline: Deadline) -> None:
        with self._lock:
            if self._gone:
                return
            self._gone = True
            answerer = self._answerer
        if self.era.session_id is not None:
            try:
                self.transport.end_session(self.era.headers, deadline)
            except MCPSyncError:
                pass  # a courtesy; servers may not even allow it
        if answerer is not None:
            answerer.join(0.2)

    # -- resumption ------------------------------------------------------------------------------------------------------

    def _resume(self, outgoing: Outgoing, last_event_id: str, retry: Optional[float], deadline: Deadline) -> Dict[str, Any]:
        """Fetch an answer whose stream was cut, as often as it takes. Only where events had ids."""
        pause = threading.Event()
        while True:
            wait = deadline.shorter(1.0 if retry is None else retry)
            pause.wait(wait)
            if deadline.expired:
                raise deadline.error()
            with self.transport.unsolicited(self.era.headers, deadline, self.era.channel, last_event_id) as exchange:
                try:
                    return answer_to(exchange, outgoing, self.era, self.transport.where, self._answer)
                except TransportError as broken:
                    if exchange.interrupted or isinstance(broken, RequestTimeout):
                        raise
                    if exchange.last_event_id is not None:
                        last_event_id = exchange.last_event_id
                    retry = retry if exchange.retry is None else exchange.retry

    # -- subscriptions ---------------------------------------------------------------------------------------------------

    def _subscribe(self, wanted: SubscriptionFilter, deadline: Deadline) -> SubscriptionFilter:
        """Subscribe to each resource; return what the server agreed to."""
        abilities = self.described["capabilities"].get("resources")
        abilities = abilities if isinstance(abilities, dict) else {}
        granted = set()
        if abilities.get("subscribe") is True:
            for uri in sorted(wanted.resource_subscriptions):
                try:
                    self.call("resources/subscribe", {"uri": uri}, deadline)
                except ServerError as error:
                    _log.info("%s does not let %s be subscribed to: %s", self.transport.where, uri, error)
                    if error.code == METHOD_NOT_FOUND:
                        break  # it said that it could, and cannot
                else:
                    granted.add(uri)
        return SubscriptionFilter(
            frozenset(granted), wanted.resources_list_changed and abilities.get("listChanged") is True
        )

    def _unsubscribe(self, uris: "frozenset[str]") -> None:
        deadline = Deadline(1.0)
        for uri in sorted(uris):
            try:
                self.call("resources/unsubscribe", {"uri": uri}, deadline)
            except MCPSyncError:
                return  # a courtesy; the end of the session does the same

    # -- the server's own requests ---------------------------------------------------------------------------------------

    def _unclaimed(self, message: Received) -> None:
        """Take what came on a shared channel and belongs to no request. Called by the thread that reads the channel."""
        if isinstance(message, Request):
            self._answer_elsewhere(message)

    def _answer(self, request: Request) -> None:
        """Answer a request of the server's, in this thread."""
        handler = self._handlers.get(request.method)
        if request.method == "ping":
            reply = self.era.reply(request.id, {})
        elif handler is None:
            told = {"code": METHOD_NOT_FOUND, "message": "Method not found: %s" % beginning_of(request.method)}
            reply = self.era.reply(request.id, None, told)
        else:
            try:
                reply = self.era.reply(request.id, handler(request.params))
            except Exception as error:
                # The boundary between a user's code and ours: the server has to be told something.
                _log.exception("the handler of %s failed", request.method)
                reply = self.era.reply(request.id, None, {"code": -32603, "message": beginning_of(str(error))})
        try:
            self.transport.send(reply, Deadline(10.0, "the answer to %s" % request.method))
        except MCPSyncError as error:
            _log.warning("could not answer %s of %s: %s", beginning_of(request.method), self.transport.where, error)

    def _answer_elsewhere(self, request: Request) -> None:
        """Answer in a thread for that: the one that reads must not wait, and never runs a user's code."""
        start: Optional[Worker] = None
        with self._lock:
            if self._gone or len(self._asked) >= 1000:
                return
            self._asked.append(request)
            if self._answerer is None:
                start = self._answerer = Worker("mcp_sync-answers", self._answer_all)
        if start is not None:
            start.start()

    def _answer_all(self) -> None:
        while True:
            with self._lock:
                if not self._asked or self._gone:
                    self._answerer = None
                    return
                request = self._asked.pop(0)
            self._answer(request)

    # -- the end ---------------------------------------------------------------------------------------------------------

    def _look_for_the_end(self, error: Union[TransportError, ServerError]) -> None:
        """Raise :class:`SessionGone` if that is what an error means, in one of the ways in which servers say it."""
        if isinstance(error, AuthorizationError) or not self._says_gone(error):
            return
        self.over(error)

    def _says_gone(self, error: Union[TransportError, ServerError]) -> bool:
        if isinstance(error, (SessionGone, ChannelLost)):
            return True
        text = str(error).lower()
        says_so = "session" in text or "not initialized" in text or "initialization was" in text
        if error.status == 404 and self.era.session_id is not None:
            return not isinstance(error, ServerError) or error.code != METHOD_NOT_FOUND
        if isinstance(error, ServerError):
            return says_so and (error.status in (400, 404, 410) or "not initialized" in text or "initialization was" in text)
        return error.status in (400, 410) and says_so

    def over(self, error: MCPSyncError) -> NoReturn:
        """Mark the session as gone, end its streams, and raise :class:`SessionGone`."""
        with self._lock:
            self._gone = True
            streams = list(self._streams)
        for exchange in streams:
            exchange.interrupt()
        raise SessionGone("the session with %s is over: %s" % (self.transport.where, error), may_have_run=False) from error

    def stream_closed(self, exchange: Exchange, granted: SubscriptionFilter, graceful: bool) -> None:
        with self._lock:
            if exchange in self._streams:
                self._streams.remove(exchange)
            self._last_event_id = exchange.last_event_id or self._last_event_id
            others, gone = bool(self._streams), self._gone
        if graceful and not others and not gone:
            self._unsubscribe(granted.resource_subscriptions)


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
        except (StopIteration, MCPSyncError):
            self._broken = not self.exchange.interrupted
            raise
        if isinstance(message, ProtocolError):
            return message
        if isinstance(message, Request):
            self._session._answer_elsewhere(message)
            return None
        return self._session.era.notice(message)

    def widen(self, wanted: SubscriptionFilter, deadline: Deadline) -> Optional[SubscriptionFilter]:
        more = SubscriptionFilter(
            wanted.resource_subscriptions - self._granted.resource_subscriptions, wanted.resources_list_changed
        )
        added = self._session._subscribe(more, deadline)
        self._granted = SubscriptionFilter(
            self._granted.resource_subscriptions | added.resource_subscriptions, added.resources_list_changed
        )
        return self._granted

    def close(self) -> None:
        self.exchange.close()
        self._session.stream_closed(self.exchange, self._granted, not self._broken)


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
