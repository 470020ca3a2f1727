"""One server, one settled era and transport: ``call``, ``listen``, ``close``."""

import threading
from typing import Any, Dict, Mapping, Optional, Tuple

from . import _fork
from ._deadline import Deadline
from .errors import ClientClosed, MCPSyncError, ServerError, TransportError, UnsupportedVersion
from .eras.legacy import LEGACY_VERSIONS
from .eras.modern import MODERN_VERSIONS
from .jsonrpc import RequestIds
from .negotiate import Negotiator, Settled, says_nothing_about_the_era
from .notices import SubscriptionFilter
from .sessions import Handlers, ModernSession, Session, SessionGone, Stream
from .transports.base import Transport

__all__ = ["Connection"]

#: Requests that change nothing, and may be sent again to a server that has forgotten the session, or turned out to be other
#: than it was.
_READS = frozenset(
    ["server/discover", "resources/list", "resources/templates/list", "resources/read", "tools/list", "prompts/list", "ping"]
)


class Connection:
    """Speaks with one server. Any thread.

    :param transport: how messages move.
    :param client_info: the client's name and version.
    :param fallback: the transport to try where a legacy server has nothing at its address.
    :param handlers: who answers the requests of a legacy server.
    :param capabilities: what those handlers can do, as the protocol says it.
    :param era: ``"auto"``, ``"modern"`` or ``"legacy"``.
    """

    def __init__(
        self,
        transport: Transport,
        client_info: Mapping[str, Any],
        *,
        fallback: Optional[Transport] = None,
        handlers: Optional[Handlers] = None,
        capabilities: Optional[Mapping[str, Any]] = None,
        era: str = "auto"
    ) -> None:
        self.transport = transport
        self._fallback = fallback
        self._negotiator = Negotiator(
            transport, fallback, client_info, handlers or {}, capabilities or {}, RequestIds(), era
        )
        self._session: Optional[Session] = None if self._negotiator.finds_out else self._negotiator.first()
        self._closed = False
        self._made_anew()
        _fork.register(self)

    @property
    def protocol_version(self) -> str:
        """The revision that is spoken; until a first answer, the newest that is known here."""
        session = self._session
        return MODERN_VERSIONS[0] if session is None else session.era.version

    @property
    def is_legacy(self) -> bool:
        """Whether the server is known to speak a legacy revision."""
        session = self._session
        return session is not None and session.era.version in LEGACY_VERSIONS

    def call(self, method: str, params: Optional[Dict[str, Any]] = None, *, deadline: Deadline) -> Dict[str, Any]:
        """Send one request and return its result.

        :raises MCPSyncError: whatever went wrong (see :mod:`mcp_sync.errors`).
        """
        asked = params or {}
        tries = 2 if method in _READS else 1
        while True:
            tries -= 1
            session, result = self._settled(method, asked, deadline)
            if result is not None:
                return result
            try:
                return session.call(method, asked, deadline)
            except SessionGone as gone:
                self._forget(session)
                if not tries:
                    raise _not_repeated(gone) from gone
            except UnsupportedVersion as refused:
                other = self._negotiator.other_version(refused, deadline)
                self._replace(session, other)
                return other.call(method, asked, deadline)
            except (TransportError, ServerError) as error:
                if not tries or not self._may_be_another_server(session, error):
                    raise
                self._forget(session)

    def listen(self, wanted: SubscriptionFilter, deadline: Deadline) -> Stream:
        """Open a stream of notices.

        :param deadline: for the answer's beginning; set the exchange's own limits afterwards.
        :raises MCPSyncError: whatever went wrong.
        """
        session, _ = self._settled("server/discover", {}, deadline)
        try:
            return session.listen(wanted, deadline)
        except SessionGone:
            self._forget(session)
        session, _ = self._settled("server/discover", {}, deadline)
        try:
            return session.listen(wanted, deadline)
        except SessionGone as gone:
            self._forget(session)
            raise _not_repeated(gone) from gone

    def close(self) -> None:
        """End all exchanges, and the session."""
        with self._changed:
            self._closed = True
            session, self._session = self._session, None
        if session is not None:
            session.close(Deadline(0.5, "the goodbye"))
        self.transport.close()
        if self._fallback is not None:
            self._fallback.close()

    def _made_anew(self) -> None:
        # One lock, with a condition on it; it guards the two below, _session and _closed.
        self._changed = threading.Condition(threading.Lock())
        self._by_request = False  # somebody is finding out by a request of its own
        self._by_asking = False  # somebody is finding out by asking for nothing else

    def after_fork_in_child(self) -> None:
        self._made_anew()
        # The parent's session is the parent's; what era it is of will be found out again.
        if self._negotiator.finds_out:
            self._session = None

    # -- settling --------------------------------------------------------------------------------------------------------

    def _settled(self, method: str, params: Dict[str, Any], deadline: Deadline) -> Tuple[Session, Optional[Dict[str, Any]]]:
        """Return the session, found out if need be.

        The first caller finds out by the very request that it has to make. Who comes meanwhile does not wait for that, which
        may take long: one of them asks the server what it is, and only for this the others wait.

        :returns: the session, and the request's result if finding out has brought it.
        """
        by_request = False
        with self._changed:
            while True:
                if self._closed:
                    raise ClientClosed()
                if self._session is not None:
                    return self._session, None
                if method in _READS and not self._by_request and not self._by_asking:
                    by_request = self._by_request = True
                    break
                if not self._by_asking:
                    self._by_asking = True
                    break
                if not self._changed.wait(deadline.remaining()):
                    raise deadline.error(may_have_run=False)
        session: Optional[Session] = None
        try:
            if by_request:
                session, result = self._negotiator.settle(method, params, deadline)
                return session, result
            session, _ = self._negotiator.settle("server/discover", {}, deadline)
            return session, None
        except Settled as settled:
            session = settled.session
            if by_request:
                raise settled.error from None
            return session, None
        finally:
            with self._changed:
                if self._session is None and not self._closed:
                    self._session = session
                if by_request:
                    self._by_request = False
                else:
                    self._by_asking = False
                self._changed.notify_all()

    def _forget(self, session: Session) -> None:
        with self._changed:
            if self._session is session:
                self._session = None

    def _replace(self, session: Session, other: Session) -> None:
        with self._changed:
            if self._session is session:
                self._session = other

    def _may_be_another_server(self, session: Session, error: MCPSyncError) -> bool:
        """Return whether a modern server's error looks as if a legacy one had taken its place."""
        if not self._negotiator.finds_out or not isinstance(session, ModernSession) or says_nothing_about_the_era(error):
            return False
        if isinstance(error, ServerError):
            return error.status == 400 and error.code in (-32000, -32600)
        return getattr(error, "status", None) in (400, 404, 405)


def _not_repeated(gone: SessionGone) -> TransportError:
    return TransportError("%s; call again to begin a new one" % gone.message, may_have_run=gone.may_have_run)
