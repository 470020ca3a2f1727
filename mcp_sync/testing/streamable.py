"""Streamable HTTP: one path, in the modern era, in the legacy era, or in both.

Pages: basic/transports/streamable-http; basic/transports of 2025-11-25.
"""

import urllib.parse
from typing import Optional, Tuple, Union

from .answer import EVENT_STREAM, JSON, Answer
from .exchange import Core, Exchange
from .face import Face, accepts, plain
from .probe import Probe
from .protocol import (
    CANCELLED,
    INTERNAL_ERROR,
    LEGACY_BAD_REQUEST,
    LEGACY_NO_SESSION,
    Item,
    Message,
    Refusal,
    decode,
    error_of_nobody,
    is_modern,
    is_response,
)
from .request import Request
from .resumption import EventLog, Replay, parse_event_id
from .session import Session, SessionStream
from .sessions import Gone
from .streams import Stream

SESSION_ID = "Mcp-Session-Id"
# How long a client's second stream waits for the end of its first one, in seconds.
_PATIENCE = 0.5


class Streamable(Face):
    """The endpoint of a server that speaks Streamable HTTP.

    :param probe: what a server of the legacy era answers to a modern request.
    """

    def __init__(self, core: Core, host: str, path: str, probe: Probe) -> None:
        super().__init__(core, host, path)
        self._modern = "modern" in self._settings.eras
        self._legacy = "legacy" in self._settings.eras
        self._probe = probe
        self._allowed = ("Allow", "GET, POST, DELETE" if self._settings.get_stream else "POST, DELETE")

    def session(self, request: Request) -> Optional[Session]:
        """The legacy session that a request names."""
        if not self._legacy or self._is_modern(request):
            return None
        try:
            return self._core.sessions.get(request.headers.get(SESSION_ID))
        except Gone:
            return None

    def route(self, exchange: Exchange) -> Answer:
        """The ordinary answer to a request."""
        request = exchange.request
        if urllib.parse.urlsplit(request.path).path != self._path:
            return plain(404, "the endpoint is " + self._path)
        if request.http_method != "POST" and not self._legacy:
            # basic/transports/streamable-http, "Earlier Streamable HTTP Revisions"
            return plain(405, "the endpoint takes POST only", ("Allow", "POST"))
        refused = self.refused(request)
        if refused is not None:
            return refused
        if request.http_method != "POST":
            return self._other_method(exchange)
        if not accepts(request, JSON, EVENT_STREAM):
            return plain(406, "Accept must list {} and {}".format(JSON, EVENT_STREAM))
        message = decode(request.body, responses=self._legacy)
        if self._modern and (not self._legacy or self._is_modern(request)):
            if "id" not in message:
                return Answer(status=202)
            return self._core.modern.answer(exchange, request.headers, exchange.wire)
        if self._is_modern(request):
            return self._probe.answer(exchange)
        return self._legacy_post(exchange)

    def _is_modern(self, request: Request) -> bool:
        # basic/versioning, "Backward Compatibility": the client's opening decides. The header alone counts as well: who
        # names a modern version there and not in the body is to hear what is wrong.
        version = request.headers.get("MCP-Protocol-Version")
        return is_modern(request.message) or version in self._settings.protocol_versions

    # -- the legacy era ------------------------------------------------------------------------------------------

    def _legacy_post(self, exchange: Exchange) -> Answer:
        request = exchange.request
        if request.method == "initialize" and "id" in request.message:
            return self._initialize(exchange)
        session = self._session_or_refusal(request)
        if isinstance(session, Answer):
            return session
        exchange.session = session
        if is_response(request.message):
            session.resolve(request.message)
            return Answer(status=202)
        if "id" not in request.message:
            if request.method == CANCELLED:
                session.cancel(request.params.get("requestId"))
            return Answer(status=202)
        return self._shaped(self._core.legacy.respond(exchange, session))

    def _initialize(self, exchange: Exchange) -> Answer:
        session = self._core.sessions.new(exchange.request.principal)
        response = self._core.legacy.respond(exchange, session)
        if "error" in response:
            self._core.sessions.remove(session)
            return Answer(items=(response,), status=400)
        exchange.session = session
        answer = self._shaped(response)
        return answer if session.id is None else answer.replace(headers=((SESSION_ID, session.id),))

    def _shaped(self, response: Message) -> Answer:
        events = self._settings.answer == "sse"
        return Answer(items=(response,), events=events, resumable=self._settings.resumable,
                      framing=self._settings.stream_framing if events else "length")

    def _session_or_refusal(self, request: Request) -> Union[Session, Answer]:
        # basic/transports, "Session Management", "Protocol Version Header"
        id = request.headers.get(SESSION_ID)
        if id is None and self._settings.sessions:
            return _error(400, LEGACY_BAD_REQUEST, "Bad Request: {} header is required".format(SESSION_ID))
        try:
            session = self._core.sessions.get(id)
        except Gone as gone:
            return _error(gone.status, LEGACY_NO_SESSION, "Session not found")
        if self._core.authenticate is not None and session.principal not in (None, request.principal):
            return _error(404, LEGACY_NO_SESSION, "Session not found")  # of somebody else
        unknown = self._core.legacy.unsupported(request.headers.get("MCP-Protocol-Version"), session)
        if unknown is not None:
            return _error(400, LEGACY_BAD_REQUEST, "Bad Request: Unsupported protocol version: {} (not of {})".format(
                unknown, ", ".join(self._settings.legacy_versions)))
        return session

    def _other_method(self, exchange: Exchange) -> Answer:
        request = exchange.request
        if request.http_method == "DELETE" and self._settings.sessions:
            session = self._session_or_refusal(request)
            if isinstance(session, Answer):
                return session
            self._core.sessions.remove(session)
            return Answer(status=200)
        if request.http_method == "GET" and (self._settings.get_stream or "Last-Event-ID" in request.headers):
            if not accepts(request, EVENT_STREAM):
                return plain(406, "Accept must list " + EVENT_STREAM)
            session = self._session_or_refusal(request)
            return session if isinstance(session, Answer) else self._open_stream(exchange, session)
        return plain(405, "Method not allowed", self._allowed)

    def _open_stream(self, exchange: Exchange, session: Session) -> Answer:
        resumed = exchange.request.headers.get("Last-Event-ID")
        if resumed is not None:
            try:
                key, number = parse_event_id(resumed)
            except ValueError:
                return _error(400, LEGACY_BAD_REQUEST, "Bad Request: Invalid Last-Event-ID")
            log = session.log(key)
            if log is not None:
                return self._resume(exchange, session, log, number)
        if not self._settings.get_stream:
            return plain(405, "Method not allowed", self._allowed)
        log = session.new_log() if self._settings.resumable else None
        stream = SessionStream(session, self._settings.backlog, exchange.wire, log)
        if not session.open(stream, self._settings.sessions, _PATIENCE):
            return _error(409, LEGACY_BAD_REQUEST, "Conflict: Only one SSE stream is allowed per session")
        parked = session.unpark()
        if parked is not None:
            self._core.streams.discard(parked)  # the client has begun anew: that one will get nothing more
        if not self._core.streams.add(stream, self._settings.max_streams):
            session.left(stream)
            raise Refusal(INTERNAL_ERROR, "too many open streams", http_status=503)
        return self._events(() if log is None else (log.prime(self._settings.retry_ms),), stream)

    def _resume(self, exchange: Exchange, session: Session, log: EventLog, number: int) -> Answer:
        # basic/transports, "Resumability and Redelivery": what came after, and of that stream only.
        stream = session.resume(log, exchange.wire, _PATIENCE)
        if stream is not None:
            return self._events(tuple(log.after(number)[0]), stream)
        if session.sends_on(log):
            return _error(409, LEGACY_BAD_REQUEST, "Conflict: Only one SSE stream is allowed per session")
        return self._events((), Replay(log, number, session.principal, exchange.wire))

    def _events(self, items: Tuple[Item, ...], stream: Stream) -> Answer:
        return Answer(items=items, events=True, stream=stream, framing=self._settings.stream_framing)


def _error(status: int, code: int, message: str) -> Answer:
    return Answer(items=(error_of_nobody(code, message),), status=status)
