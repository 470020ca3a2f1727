"""One server, one settled era and transport: ``call``, ``listen``, ``close``."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Tuple, cast

from . import _fork, tracing
from ._deadline import Deadline
from .eras.modern import MODERN_VERSIONS
from .errors import ClientClosed, MCPSyncError, RequestTimeout, ServerError, TransportError, UnsupportedVersion
from .jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RequestIds
from .negotiate import MODERN_CODES, Found, Negotiator, says_nothing_about_the_era
from .notices import SubscriptionFilter
from .sessions import Handlers, ModernSession, Session, SessionGone, Stream
from .transports.base import ChannelLost, Transport

if TYPE_CHECKING:
    from .calling import Attempt
    from .sessions.legacy import LegacySession

__all__ = ["Connection"]

INVALID_REQUEST = -32600

#: Requests that change nothing, and may be sent again to a server that has forgotten the session, or turned out to be other
#: than it was.
_READS = frozenset(
    [
        "server/discover",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "tools/list",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "ping",
    ]
)


class Connection:
    """Speaks with one server. Any thread.

    :param transport: how messages move.
    :param client_info: the client's name and version.
    :param handlers: who answers the requests of a legacy server.
    :param capabilities: what those handlers can do, as the protocol says it.
    :param extensions: what else can be done for a modern server, by the names of the extensions.
    :param era: ``"auto"``, ``"modern"`` or ``"legacy"``.
    """

    def __init__(
        self,
        transport: Transport,
        client_info: Mapping[str, Any],
        *,
        handlers: Optional[Handlers] = None,
        capabilities: Optional[Mapping[str, Any]] = None,
        extensions: Optional[Mapping[str, Any]] = None,
        era: str = "auto"
    ) -> None:
        self.transport = transport
        self._negotiator = Negotiator(
            transport, client_info, handlers or {}, capabilities or {}, extensions or {}, RequestIds(), era
        )
        self._session: Optional[Session] = None if self._negotiator.finds_out else self._negotiator.first()
        self._closed = False
        self._made_anew()
        _fork.register(self)

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    @property
    def protocol_version(self) -> str:
        """The revision that is spoken; until a first answer, the newest that is known here."""
        session = self._session
        return MODERN_VERSIONS[0] if session is None else session.era.version

    def call(
        self,
        method: str,
        params: Optional[Dict[str, Any]] = None,
        *,
        deadline: Deadline,
        attempt: "Optional[Attempt]" = None
    ) -> Dict[str, Any]:
        """Send one request and return its result.

        :param attempt: what goes along with it; its deadline is ``deadline``.
        :raises MCPSyncError: whatever went wrong (see :mod:`mcp_sync.errors`).
        """
        asked = params or {}
        span = tracing.span(method, asked, self.transport.where)
        with span as additions:
            if additions:
                asked = dict(asked, _meta=dict(asked.get("_meta", {}), **additions))
            try:
                result = self._call(method, asked, deadline, attempt)
            finally:
                session = self._session
                span.spoken(self.protocol_version, None if session is None else session.era.session_id)
            span.answered(result)
            return result

    def _call(
        self, method: str, asked: Dict[str, Any], deadline: Deadline, attempt: "Optional[Attempt]"
    ) -> Dict[str, Any]:
        # A read may be made once more for each thing that can have happened since the last one.
        left = {"unsent"}
        if method in _READS and "inputResponses" not in asked:
            left |= {"gone", "lost", "other"}
        while True:
            if attempt is not None:
                deadline = attempt.deadline  # a user may have been asked in the meantime
            with contextlib.nullcontext() if attempt is None else attempt.covering():
                session, result = self._settled(method, asked, deadline, attempt is None)
            if result is not None:
                return result
            try:
                return session.call(method, asked, deadline, attempt)
            except SessionGone as gone:
                self._forget(session)
                lost = gone.__cause__
                # What went with its channel before anything was said on it is no repetition.
                why = "unsent" if isinstance(lost, ChannelLost) and not lost.sent and "unsent" in left else "gone"
                if why not in left:
                    raise self._not_repeated(gone, method) from gone
                left.remove(why)
            except UnsupportedVersion as refused:
                # Refused before anything was done, so that even what is not to be done twice is sent again.
                session = self._other_version(session, refused, deadline)
                try:
                    return session.call(method, asked, deadline, attempt)
                except SessionGone as gone:
                    self._forget(session)
                    raise self._not_repeated(gone, method) from gone
            except (TransportError, ServerError) as error:
                if "lost" in left and self._lost_its_channel(session, error):
                    left.remove("lost")
                    if session.is_legacy:
                        self._forget(session)  # which went with it
                elif "other" in left and self._may_be_another_server(session, method, error, deadline):
                    left.remove("other")
                    self._forget(session)
                else:
                    raise

    @property
    def era(self) -> Optional[str]:
        """``"modern"`` or ``"legacy"``; None until that was found out."""
        session = self._session
        return None if session is None else "legacy" if session.is_legacy else "modern"

    @property
    def is_legacy(self) -> bool:
        """Whether the server is known to speak a legacy revision."""
        return self.era == "legacy"

    def settle(self, deadline: Deadline) -> None:
        """Find out what the server speaks, if that is not known."""
        self._settled("server/discover", {}, deadline)

    def listen(self, wanted: SubscriptionFilter, deadline: Deadline) -> Stream:
        """Open a stream of notices.

        :param deadline: for the answer's beginning; set the exchange's own limits afterwards.
        :raises MCPSyncError: whatever went wrong.
        """
        tries = 2
        while True:
            tries -= 1
            session, _ = self._settled("server/discover", {}, deadline)
            try:
                legacy = _as_legacy(session)
                if legacy is not None and not legacy.claim_stream():
                    another = self._negotiator.begin_another(legacy, deadline)
                    another.claim_stream()
                    try:
                        return another.listen(wanted, deadline)
                    except BaseException:
                        another.close(Deadline(0.5, "the goodbye"))
                        raise
                return session.listen(wanted, deadline)
            except SessionGone as gone:
                self._forget(session)
                if not tries:
                    raise self._not_repeated(gone, "the stream of notices") from gone

    def look_again(self, deadline: Deadline) -> None:
        """Ask a legacy server what it is by now, if nothing else would tell.

        It can be replaced by a better one, and nobody notices: one without sessions refuses nothing, not even a session id.
        Where there is a channel, its end tells.
        """
        session = _as_legacy(self._session)
        if session is None or session.transport.shared_channel or session.has_streams:
            return
        if self._negotiator.may_be_modern and self._negotiator.is_modern(deadline):
            self._forget(session)
            session.close(Deadline(0.5, "the goodbye"))

    def close(self) -> None:
        """End all exchanges, and the session."""
        with self._changed:
            self._closed = True
            session, self._session = self._session, None
            self._changed.notify_all()
        if session is not None:
            session.close(Deadline(0.5, "the goodbye"))
        self.transport.close()

    def _made_anew(self) -> None:
        # One lock, with a condition on it; it guards the three below, _session and _closed.
        self._changed = threading.Condition(threading.Lock())
        self._by_request = False  # somebody is finding out by a request of its own
        self._by_asking = False  # somebody is finding out by asking for nothing else
        self._greeting = False  # somebody is beginning a legacy session

    def after_fork_in_child(self) -> None:
        self._made_anew()
        # The parent's session is the parent's; what era it is of will be found out again.
        if self._negotiator.finds_out:
            self._session = None

    # -- settling -----------------------------------------------------------------------------------------------------

    def _settled(
        self, method: str, params: Dict[str, Any], deadline: Deadline, may_request: bool = True
    ) -> Tuple[Session, Optional[Dict[str, Any]]]:
        """Return the session, found out if need be.

        The first caller finds out by the very request that it has to make. Who comes meanwhile does not wait for that, which
        may take long: one of them asks the server what it is, and only for this the others wait.

        :param may_request: whether nothing goes along with the request, so that it may be made on the way.
        :returns: the session, and the request's result if finding out has brought it.
        """
        asks = "server/discover"
        # On a shared channel nothing but that question is asked of a server that is not known.
        may_request = may_request and method in _READS and method != asks and not self.transport.shared_channel
        by_request = False
        with self._changed:
            while True:
                if self._closed:
                    raise ClientClosed()
                if self._session is not None:
                    return self._session, None
                if self._greeting:
                    pass  # it is a legacy server, and about to be spoken with
                elif may_request and not self._by_request and not self._by_asking:
                    by_request = self._by_request = True
                    break
                elif not self._by_asking:
                    self._by_asking = True
                    break
                if not self._changed.wait(deadline.remaining()):
                    raise deadline.error(may_have_run=False)
        found: Optional[Found] = None
        greets = False
        try:
            if by_request:
                found = self._negotiator.find_out(method, params, deadline)
            else:
                found = self._negotiator.find_out(asks, {}, deadline)
        finally:
            with self._changed:
                if found is not None and self._session is None and not self._closed:
                    self._session = found.session
                    if found.session is None and not self._greeting:
                        greets = self._greeting = True
                if by_request:
                    self._by_request = False
                else:
                    self._by_asking = False
                self._changed.notify_all()
        if found.session is None:
            return self._legacy(deadline, found, greets), None
        if not by_request and method != asks:
            return found.session, None
        if found.error is not None and found.result is None:
            raise found.error
        return found.session, found.result

    def _legacy(self, deadline: Deadline, found: Found, greets: bool = False) -> Session:
        """Return a legacy session, begun if need be. Only one thread begins it; the others wait.

        :param greets: whether that is this thread.
        """
        with self._changed:
            while not greets:
                if self._closed:
                    raise ClientClosed()
                if self._session is not None:
                    return self._session
                if not self._greeting:
                    greets = self._greeting = True
                elif not self._changed.wait(deadline.remaining()):
                    raise deadline.error(may_have_run=False)
        session: Optional[Session] = None
        try:
            session = self._negotiator.begin_legacy(deadline, found)
        finally:
            with self._changed:
                closed = self._closed
                if not closed:
                    self._session = session
                self._greeting = False
                self._changed.notify_all()
        if closed:
            raise ClientClosed()
        return session

    def _other_version(self, session: Session, refused: UnsupportedVersion, deadline: Deadline) -> Session:
        other = self._negotiator.other_version(refused)
        with self._changed:
            if self._session is session and not self._closed:
                self._session = other
        return self._legacy(deadline, Found(None, error=refused)) if other is None else other

    def _forget(self, session: Session) -> None:
        with self._changed:
            if self._session is session:
                self._session = None

    def _may_be_another_server(
        self, session: Session, method: str, error: MCPSyncError, deadline: Deadline
    ) -> bool:
        """Return whether an error looks as if a server of the other era had taken the place of the one that was."""
        if not self._negotiator.finds_out or says_nothing_about_the_era(error):
            return False
        if not isinstance(session, ModernSession):
            if not isinstance(error, ServerError) or self.transport.shared_channel:
                return False  # there, a new process has ended the session
            if error.code in MODERN_CODES or "io.modelcontextprotocol/" in error.message:
                return True  # what no legacy server has heard of
            # Legacy servers say such things with 200, where they are about what was asked.
            doubtful = error.status == 400 and error.code in (INVALID_REQUEST, INVALID_PARAMS, METHOD_NOT_FOUND)
            return doubtful and self._negotiator.is_modern(deadline) is True
        if not isinstance(error, ServerError):
            return getattr(error, "status", None) in (400, 404, 405)
        if error.code in MODERN_CODES:
            return False
        if method == "server/discover":
            return True  # which every modern server knows
        if self.transport.shared_channel:
            # A server lasts as long as its process.
            return session.channel is not None and session.channel != self.transport.connect(deadline)
        doubtful = error.code in (-32000, INVALID_REQUEST, METHOD_NOT_FOUND)
        return doubtful and self._negotiator.is_modern(deadline) is False

    def _lost_its_channel(self, session: Session, error: MCPSyncError) -> bool:
        """Return whether a request was lost with a channel that can be had anew."""
        return (
            session.transport.shared_channel
            and isinstance(error, TransportError)
            and not isinstance(error, RequestTimeout)
            and error.status is None
            and not self._closed
        )

    def _not_repeated(self, gone: SessionGone, what: str) -> MCPSyncError:
        cause = gone.__cause__
        if isinstance(cause, (ServerError, TransportError)) and not isinstance(cause, ChannelLost) and what in _READS:
            return cause  # a new session did not help, so it is something else
        return TransportError("%s; call again to begin a new one" % gone.message, may_have_run=gone.may_have_run)


def _as_legacy(session: Optional[Session]) -> "Optional[LegacySession]":
    return cast("LegacySession", session) if session is not None and session.is_legacy else None
