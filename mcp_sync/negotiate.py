"""Which era, which revision, which transport: found out once for a server, by asking.

A server of the modern era says so by any modern answer: a result with a ``resultType``, one of the error codes that only this
era has, a description of itself. Everything else is a legacy server, which is then greeted with ``initialize``; and one that
does not even take that at its address may speak the transport of 2024. What says nothing about the era (no connection, no
credentials, an overloaded server) is raised as it is, and nothing is concluded from it.

See the specification, basic/versioning, and the pages on both transports, "Backward Compatibility".
"""

import logging
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ._deadline import Deadline
from .eras.legacy import LEGACY_VERSIONS
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
from .sessions import Handlers, LegacySession, ModernSession, Session
from .transports.base import Transport

__all__ = ["ERAS", "Negotiator", "Settled", "says_nothing_about_the_era"]

_log = logging.getLogger("mcp_sync")

ERAS = ("auto", "modern", "legacy")

_MODERN_CODES = (HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION)

#: How long a legacy server over stdio may keep silent when it is asked what it is, in seconds: some never answer.
_PROBE_PATIENCE = 5.0

#: What an HTTP server answers that has nothing at this address, or no POST at it.
_NO_ENDPOINT = (400, 404, 405, 406, 415, 501)


class _Verdict(NamedTuple):
    """What a modern request brought.

    :param session: the session, if it is clear by now how to speak with the server.
    :param result: the request's result, if there is one.
    :param error: what it raised, if it did.
    """

    session: Optional[Session]
    result: Optional[Dict[str, Any]] = None
    error: Optional[MCPSyncError] = None


def says_nothing_about_the_era(error: MCPSyncError) -> bool:
    """Return whether an error could have come from a server of any era, or from none at all."""
    if isinstance(error, (AuthorizationError, RequestTimeout)):
        return True
    if isinstance(error, TransportError):
        return error.status is None or error.status in (408, 429) or error.status >= 500 and error.status != 501
    # JSON-RPC errors under an HTTP status that speaks of load, not of what was asked.
    return isinstance(error, ServerError) and error.status in (408, 429, 503)


class Negotiator:
    """Finds out how to speak with one server. Any thread, one at a time.

    :param transport: how messages move.
    :param fallback: the transport to try if a legacy server has nothing at its address; None for none.
    :param client_info: the client's name and version.
    :param handlers: who answers the requests of a legacy server.
    :param capabilities: what those handlers can do, as the protocol says it.
    :param ids: where request ids come from.
    :param era: ``"auto"``, or the only era to try.
    """

    def __init__(
        self,
        transport: Transport,
        fallback: Optional[Transport],
        client_info: Mapping[str, Any],
        handlers: Handlers,
        capabilities: Mapping[str, Any],
        ids: RequestIds,
        era: str,
    ) -> None:
        if era not in ERAS:
            raise ValueError('era is "auto", "modern" or "legacy", not %r' % (era,))
        self._transport = transport
        self._fallback = fallback
        self._client_info = dict(client_info)
        self._handlers = handlers
        self._capabilities = dict(capabilities)
        self._ids = ids
        self._era = era

    def first(self) -> Session:
        """Return the session to begin with where nothing has to be found out; a modern one."""
        return self._modern(MODERN_VERSIONS[0])

    @property
    def finds_out(self) -> bool:
        """Whether there is anything to find out."""
        return self._era != "modern"

    def settle(self, method: str, params: Dict[str, Any], deadline: Deadline) -> Tuple[Session, Optional[Dict[str, Any]]]:
        """Find out, if possible by the request that somebody wants to make anyway.

        :param method: the request; one that may be sent twice, or ``server/discover``.
        :returns: the session, and the result of the request if it was answered on the way.
        :raises Settled: if it is clear how to speak with the server, and the request failed.
        :raises MCPSyncError: if the server cannot be spoken with.
        """
        if self._era == "legacy":
            return self._begin_legacy(deadline, None), None
        if self._transport.shared_channel:
            probe = Deadline(deadline.shorter(_PROBE_PATIENCE), "the answer to server/discover")
            verdict = self._ask("server/discover", {}, probe)
            if verdict.session is not None:
                return verdict.session, verdict.result if method == "server/discover" else None
            return self._begin_legacy(deadline, verdict.error), None
        verdict = self._ask(method, params, deadline)
        if verdict.session is None and method != "server/discover":
            first = verdict
            verdict = self._ask("server/discover", {}, deadline)
            if verdict.session is not None:
                # A modern server after all, which had nothing modern to say to that request.
                verdict = _Verdict(verdict.session, first.result, first.error)
        if verdict.session is None:
            return self._begin_legacy(deadline, verdict.error), None
        if verdict.error is not None:
            raise Settled(verdict.session, verdict.error)
        return verdict.session, verdict.result

    def other_version(self, refused: UnsupportedVersion, deadline: Deadline) -> Session:
        """Return the session to go on with after a modern server refused the revision.

        :raises UnsupportedVersion: if there is none in common.
        """
        for version in MODERN_VERSIONS:
            if version in refused.supported:
                return self._modern(version)
        if self._era == "auto" and any(version in LEGACY_VERSIONS for version in refused.supported):
            return self._begin_legacy(deadline, refused)
        raise UnsupportedVersion(
            "no revision of the protocol in common: the server speaks %s, this client %s"
            % (", ".join(refused.supported) or "none that it names", ", ".join(MODERN_VERSIONS + LEGACY_VERSIONS)),
            supported=refused.supported,
        ) from refused

    def _modern(self, version: str) -> ModernSession:
        return ModernSession(self._transport, Modern(self._client_info, {}, version), self._ids)

    def _ask(self, method: str, params: Dict[str, Any], deadline: Deadline) -> _Verdict:
        """Make a modern request and look at what comes back.

        :raises MCPSyncError: if that says nothing about the era.
        """
        session = self._modern(MODERN_VERSIONS[0])
        try:
            result = session.call(method, params, deadline)
        except UnsupportedVersion as refused:
            other = self.other_version(refused, deadline)
            return _Verdict(other, other.call(method, params, deadline))
        except InputRequired as error:
            return _Verdict(session, error=error)
        except (TransportError, ServerError, ProtocolError) as error:
            if isinstance(error, ServerError) and error.code in _MODERN_CODES:
                return _Verdict(session, error=error)
            if self._transport.shared_channel:
                # Over stdio a legacy server may answer anything, or nothing, or end; only what cannot be started is final.
                if isinstance(error, TransportError) and not isinstance(error, RequestTimeout) and not error.may_have_run:
                    raise
                return _Verdict(None, error=error)
            if says_nothing_about_the_era(error):
                raise
            return _Verdict(None, error=error)
        if "resultType" in result or (method == "server/discover" and _describes_a_modern_server(result)):
            return _Verdict(session, result)
        return _Verdict(None, result)

    def _begin_legacy(self, deadline: Deadline, modern_error: Optional[MCPSyncError]) -> Session:
        """Greet a legacy server.

        :param modern_error: what a modern request brought, for the message if this fails too.
        """
        transports: List[Transport] = [self._transport]
        if self._fallback is not None:
            transports.append(self._fallback)
        failed: Optional[MCPSyncError] = None
        for transport in transports:
            try:
                session = LegacySession.begin(
                    transport, self._client_info, self._capabilities, self._ids, self._handlers, deadline
                )
            except (TransportError, ServerError, ProtocolError) as error:
                # The first transport's error says more about an address than that it has no event stream either.
                failed = failed or error
                if getattr(error, "status", None) not in _NO_ENDPOINT or says_nothing_about_the_era(error):
                    break
                continue
            _log.debug("%s speaks revision %s", transport.where, session.era.version)
            return session
        assert failed is not None
        raise self._neither(failed, modern_error) from failed

    def _neither(self, failed: MCPSyncError, modern_error: Optional[MCPSyncError]) -> MCPSyncError:
        status = getattr(failed, "status", None)
        if isinstance(failed, TransportError) and status in _NO_ENDPOINT:
            failed.message += ". Is this the address of an MCP server? It often ends in /mcp, or in /sse for old ones"
            failed.args = (failed.message,)
        if isinstance(modern_error, UnsupportedVersion):
            return modern_error
        return failed


class Settled(Exception):
    """It was found out how to speak with the server, by a request that failed. Never reaches a user."""

    def __init__(self, session: Session, error: MCPSyncError) -> None:
        super().__init__(str(error))
        self.session = session
        self.error = error


def _describes_a_modern_server(result: Dict[str, Any]) -> bool:
    versions = result.get("supportedVersions")
    return isinstance(versions, list) and any(version in MODERN_VERSIONS for version in versions)
