"""The legacy era (2024-11-05 to 2025-11-25): the handshake, subscriptions, and how a result is dressed.

Pages (revision 2025-11-25): basic/lifecycle, server/resources, basic/utilities/ping, server/utilities/logging.
"""

from typing import Callable, Dict, Optional

from .call import Way
from .methods import Methods, uri_of
from .protocol import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    Message,
    NotFound,
    Refusal,
    check_level,
    error_response,
    result_response,
)
from .request import Request
from .runs import LegacyInvocation
from .session import Session
from .settings import Settings


class Legacy:
    """What a server of this era does with a request.

    :param settings: how the server was made.
    :param methods: the methods that both eras have.

    Threads: any thread may call any method.
    """

    def __init__(self, settings: Settings, methods: Methods) -> None:
        self._settings = settings
        self._methods = methods
        self._table: Dict[str, Callable[[Request, Session], Message]] = {
            "initialize": self._initialize,
            "ping": lambda request, session: {},
        }
        if settings.subscribe:
            self._table["resources/subscribe"] = self._subscribe
            self._table["resources/unsubscribe"] = self._unsubscribe

    def respond(self, way: Way, session: Session) -> Message:
        """The ordinary response to a request, which may be an error.

        :param way: the way of the request.
        :param session: whose request it is; ``initialize`` writes into it what was agreed upon.
        :raises Forbidden: the principal may not see what it asked for.
        """
        request = way.request
        try:
            return result_response(request.id, self._result(way, session))
        except NotFound as refusal:
            return error_response(request.id, RESOURCE_NOT_FOUND, refusal.message, refusal.data)
        except Refusal as refusal:
            return error_response(request.id, refusal.code, refusal.message, refusal.data)

    def _result(self, way: Way, session: Session) -> Message:
        method = self._table.get(way.request.method)
        if method is not None:
            return method(way.request, session)
        if way.request.method == "logging/setLevel" and self._methods.offers("logging"):
            return self._set_level(way.request, session)
        # No resultType, no hints, no name of the server: nothing of this is known here.
        return self._methods.run(LegacyInvocation(way, self._settings.check_capabilities)).result

    def _initialize(self, request: Request, session: Session) -> Message:
        wanted = request.params.get("protocolVersion")
        if not isinstance(wanted, str):
            raise Refusal(INVALID_PARAMS, "params.protocolVersion must be a string")
        # basic/lifecycle, "Version Negotiation": the same if it is supported, else the latest that is.
        versions = self._settings.legacy_versions
        version = wanted if wanted in versions else max(versions)
        session.begin(version, request.params)
        return self.greeting(version)

    def greeting(self, version: Optional[str] = None) -> Message:
        """The result of ``initialize``.

        :param version: the version that was agreed upon; ``None`` for the latest.
        """
        result: Message = {
            "protocolVersion": version or max(self._settings.legacy_versions),
            "capabilities": self._methods.capabilities(False),
            "serverInfo": self._methods.server_info(),
        }
        if self._settings.instructions is not None:
            result["instructions"] = self._settings.instructions
        return result

    def _subscribe(self, request: Request, session: Session) -> Message:
        session.subscribe(uri_of(request))
        return {}

    def _unsubscribe(self, request: Request, session: Session) -> Message:
        session.unsubscribe(uri_of(request))
        return {}

    def _set_level(self, request: Request, session: Session) -> Message:
        level = request.params.get("level")
        check_level(level)
        session.set_log_level(level)
        return {}

    def unsupported(self, version: Optional[str], session: Session) -> Optional[str]:
        """The version that a request is made in, if this server does not speak it.

        :param version: the value of ``MCP-Protocol-Version``; without that header, and where nothing else tells it, it
            is 2025-03-26 (basic/transports, "Protocol Version Header").
        """
        meant = version or session.version or "2025-03-26"
        return None if meant in self._settings.legacy_versions else meant


def method_not_found(request: Request) -> Message:
    """What a server says to a method that it does not have."""
    return error_response(request.id, METHOD_NOT_FOUND, "Method not found: {}".format(request.method))
