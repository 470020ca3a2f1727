"""Which era, which revision, which transport: found out once for a server, by asking.

A server of the modern era says so by any modern answer: a result with a ``resultType``, one of the error codes that only this
era has, a description of itself. Everything else is a legacy server, which is then greeted with ``initialize``; and one that
does not even take that at its address may speak the transport of 2024. What says nothing about the era (no connection, no
credentials, an overloaded server) is raised as it is, and nothing is concluded from it.

See the specification, basic/versioning, and the pages on both transports, "Backward Compatibility".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional

from . import _fork
from ._deadline import Deadline
from .eras.modern import MODERN_VERSIONS, Modern
from .errors import (
    AuthorizationError,
    InputRequired,
    MCPSyncError,
    ProtocolError,
    RequestTimeout,
    ServerError,
    TransportError,
    UnsupportedVersion,
)
from .jsonrpc import (
    HEADER_MISMATCH,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
    RequestIds,
)
from .sessions import Handlers, ModernSession, Session, speaks_of_no_session
from .transports.base import Interrupted, Transport

if TYPE_CHECKING:
    # Loaded when a legacy server is spoken with.
    from .sessions.legacy import LegacySession

__all__ = ["ERAS", "MODERN_CODES", "Found", "Negotiator", "says_nothing_about_the_era"]

_log = logging.getLogger("mcp_sync")

ERAS = ("auto", "modern", "legacy")

#: JSON-RPC errors that only servers of the modern era send.
MODERN_CODES = (HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION)

#: How long a legacy server over stdio may keep silent when it is asked what it is, in seconds: some never answer.
_PROBE_PATIENCE = 5.0

#: What an HTTP server answers that has nothing at this address, or no POST at it.
_NO_ENDPOINT = (400, 404, 405, 406, 415, 501)


class Found:
    """What was found out by a modern request.

    :param session: how to speak with the server; None if it has to be greeted as a legacy one.
    :param result: the request's result, if there is one.
    :param error: what it raised, if it did.
    """

    __slots__ = ("session", "result", "error")

    def __init__(
        self,
        session: Optional[ModernSession],
        result: Optional[Dict[str, Any]] = None,
        error: Optional[MCPSyncError] = None,
    ) -> None:
        self.session = session
        self.result = result
        self.error = error


def says_nothing_about_the_era(error: MCPSyncError) -> bool:
    """Return whether an error could have come from a server of any era, or from none at all."""
    if isinstance(error, (AuthorizationError, RequestTimeout)):
        return True
    if isinstance(error, TransportError):
        # Not reached, broken off in the middle of an answer, sent elsewhere, busy, or failing.
        status = error.status
        return status is None or status < 400 or status in (408, 429) or (status >= 500 and status != 501)
    # JSON-RPC errors under an HTTP status that speaks of load, not of what was asked.
    return isinstance(error, ServerError) and error.status in (408, 429, 503)


class Negotiator:
    """Finds out how to speak with one server. Any thread, one at a time.

    :param transport: how messages move.
    :param client_info: the client's name and version.
    :param handlers: who answers the requests of a legacy server.
    :param capabilities: what those handlers can do, as the protocol says it.
    :param extensions: what else can be done for a modern server, by the names of the extensions.
    :param ids: where request ids come from.
    :param era: ``"auto"``, or the only era to try.
    """

    def __init__(
        self,
        transport: Transport,
        client_info: Mapping[str, Any],
        handlers: Handlers,
        capabilities: Mapping[str, Any],
        extensions: Mapping[str, Any],
        ids: RequestIds,
        era: str,
    ) -> None:
        if era not in ERAS:
            raise ValueError('era is "auto", "modern" or "legacy", not %r' % (era,))
        self._transport = transport
        self._client_info = dict(client_info)
        self._handlers = handlers
        self._capabilities = dict(capabilities)
        self._modern_capabilities = dict(capabilities, extensions=dict(extensions)) if extensions else self._capabilities
        self._ids = ids
        self._era = era
        # Whether the server met the question what it is with silence, or ended: then it is not asked again, which would
        # take as long every time, unless the greeting fails.
        self._deaf = False

    def first(self) -> Session:
        """Return the session to begin with where nothing has to be found out; a modern one."""
        return self._modern(MODERN_VERSIONS[0])

    @property
    def may_be_modern(self) -> bool:
        """Whether a server that was found to be legacy may turn out to be modern when it is asked again."""
        return self._era == "auto" and not self._transport.shared_channel

    @property
    def finds_out(self) -> bool:
        """Whether there is anything to find out."""
        return self._era != "modern"

    def find_out(self, method: str, params: Dict[str, Any], deadline: Deadline) -> Found:
        """Find out, if possible by the request that somebody wants to make anyway.

        :param method: the request; one that may be sent twice, or ``server/discover``.
        :returns: what was found, with the result or the error of that very request if it was made on the way.
        :raises MCPSyncError: if the server cannot be spoken with.
        """
        if self._era == "legacy" or self._deaf:
            return Found(None)
        if self._transport.shared_channel:
            # Half of what is left: the greeting of a server that does not answer needs its time too.
            left = deadline.remaining()
            patience = _PROBE_PATIENCE if left is None else min(_PROBE_PATIENCE, left / 2.0)
            found = self._ask("server/discover", {}, Deadline(patience, "the answer to server/discover"))
            if found.session is None:
                self._deaf = isinstance(found.error, TransportError)
                return found
            found.session.channel = self._transport.connect(deadline)
            return found if method == "server/discover" else Found(found.session)
        found = self._ask(method, params, deadline)
        if found.session is None and method != "server/discover" and not _is_surely_legacy(found.error):
            asked = self._ask("server/discover", {}, deadline)
            # A modern server after all, perhaps, which had nothing modern to say to that request.
            found = asked if asked.session is None else Found(asked.session, found.result, found.error)
        return found

    def begin_legacy(self, deadline: Deadline, found: Found) -> Session:
        """Greet a legacy server.

        :param found: what a modern request brought.
        :returns: a legacy session; or a modern one, if the server was only slow to say that it is modern.
        """
        try:
            try:
                return self._greet(self._transport, deadline)
            except (TransportError, ServerError, ProtocolError) as error:
                return self._greet_otherwise(error, deadline, found)
        except (TransportError, ServerError, ProtocolError) as failed:
            if not says_nothing_about_the_era(failed):
                self._deaf = False  # perhaps it is another server by now
            self._explain(failed)
            if isinstance(found.error, UnsupportedVersion):
                raise found.error from failed
            raise

    def begin_another(self, session: "LegacySession", deadline: Deadline) -> "LegacySession":
        """Begin one more session with the same server, for one stream."""
        with _fork.held_off():
            from .sessions.legacy import LegacySession
        another = LegacySession.begin(
            session.transport, self._client_info, self._capabilities, self._ids, self._handlers, deadline, private=True
        )
        session.adopt(another)
        return another

    def is_modern(self, deadline: Deadline) -> Optional[bool]:
        """Ask a server that is known what it is by now; return whether it is modern, or None if it does not say."""
        try:
            return self._ask("server/discover", {}, deadline).session is not None
        except MCPSyncError:
            return None

    def other_version(self, refused: UnsupportedVersion) -> Optional[ModernSession]:
        """Return the session to go on with after a modern server refused the revision.

        :returns: None if it is to be greeted as a legacy server.

        :raises UnsupportedVersion: if there is no revision in common.
        """
        for version in MODERN_VERSIONS:
            if version in refused.supported:
                return self._modern(version)
        with _fork.held_off():
            from .eras.legacy import LEGACY_VERSIONS
        if self._era == "auto" and any(version in LEGACY_VERSIONS for version in refused.supported):
            return None
        raise UnsupportedVersion(
            "no revision of the protocol in common: the server speaks %s, this client %s"
            % (", ".join(refused.supported) or "none that it names", ", ".join(MODERN_VERSIONS + LEGACY_VERSIONS)),
            supported=refused.supported,
        ) from refused

    def _modern(self, version: str) -> ModernSession:
        return ModernSession(self._transport, Modern(self._client_info, self._modern_capabilities, version), self._ids)

    def _ask(self, method: str, params: Dict[str, Any], deadline: Deadline) -> Found:
        """Make a modern request and look at what comes back.

        :raises MCPSyncError: if that says nothing about the era.
        """
        session = self._modern(MODERN_VERSIONS[0])
        try:
            result = session.call(method, params, deadline)
        except UnsupportedVersion as refused:
            other = self.other_version(refused)
            return Found(other, None if other is None else other.call(method, params, deadline), refused)
        except InputRequired as error:
            return Found(session, error=error)
        except (TransportError, ServerError, ProtocolError) as error:
            if isinstance(error, ServerError) and error.code in MODERN_CODES:
                return Found(session, error=error)
            if isinstance(error, Interrupted):
                raise
            if self._transport.shared_channel:
                # Over stdio a legacy server may answer anything, or nothing, or end.
                if isinstance(error, RequestTimeout) or getattr(error, "may_have_run", True):
                    return Found(None, error=error)
                raise  # it cannot be started
            if says_nothing_about_the_era(error):
                raise
            return Found(None, error=error)
        if "resultType" in result or (method == "server/discover" and _describes_a_modern_server(result)):
            return Found(session, result)
        return Found(None, result)

    def _greet(self, transport: Transport, deadline: Deadline) -> "LegacySession":
        with _fork.held_off():
            from .sessions.legacy import LegacySession
        session = LegacySession.begin(
            transport, self._client_info, self._capabilities, self._ids, self._handlers, deadline
        )
        _log.debug("%s speaks revision %s", transport.where, session.era.version)
        return session

    def _greet_otherwise(self, failed: MCPSyncError, deadline: Deadline, found: Found) -> Session:
        """Try what is left after a greeting failed, and raise that failure if it is nothing."""
        timed_out = isinstance(found.error, RequestTimeout)
        if self._transport.shared_channel:
            ended = isinstance(failed, TransportError) and not isinstance(failed, RequestTimeout)
            if ended and found.error is not None and (timed_out or not isinstance(found.error, TransportError)):
                # Some servers do not survive the modern request, and end when the next one comes. A new child has not
                # seen it.
                return self._greet(self._transport, deadline)
            if timed_out and self._era == "auto" and isinstance(failed, ServerError):
                # It speaks by now, and does not want to be greeted: a modern server that took its time to start.
                asked = self._ask("server/discover", {}, deadline)
                if asked.session is not None:
                    self._deaf = False
                    asked.session.channel = self._transport.connect(deadline)
                    return asked.session
            raise failed
        if not isinstance(failed, TransportError) or failed.status not in _NO_ENDPOINT:
            raise failed
        fallback = self._transport.fallback()
        if fallback is None:
            raise failed
        try:
            return self._greet(fallback, deadline)
        except (TransportError, ServerError, ProtocolError) as error:
            if isinstance(error, TransportError) and (error.status is not None or isinstance(error, RequestTimeout)):
                # The first error says more about an address than that it has no event stream either.
                raise failed from error
            raise

    def _explain(self, failed: MCPSyncError) -> None:
        if isinstance(failed, TransportError) and failed.status in _NO_ENDPOINT:
            failed.message += ". Is this the address of an MCP server? It often ends in /mcp, or in /sse for old ones"
            failed.args = (failed.message,)


def _is_surely_legacy(error: Optional[MCPSyncError]) -> bool:
    """Return whether a modern request was refused as no modern server would."""
    if isinstance(error, (TransportError, UnsupportedVersion)):
        return True  # it would put a JSON-RPC error into its refusal; or it said itself that it is not modern
    return isinstance(error, ServerError) and error.status in (400, 404) and speaks_of_no_session(error.message)


def _describes_a_modern_server(result: Dict[str, Any]) -> bool:
    versions = result.get("supportedVersions")
    return isinstance(versions, list) and any(version in MODERN_VERSIONS for version in versions)
