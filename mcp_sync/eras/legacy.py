"""The legacy era: revisions 2024-11-05 to 2025-11-25. A handshake begins a session; the server may ask the client too.

See the specification, 2025-11-25: basic/lifecycle, basic/transports, server/resources.
"""

import logging
from typing import Any, Dict, Mapping, Optional

from ..errors import ProtocolError, UnsupportedVersion, beginning_of
from ..jsonrpc import Message, Notification, Response
from ..notices import LIST_NOTICES, Notice, ResourceUpdated
from ..transports.base import Exchange, Outgoing
from .base import Era, server_error

__all__ = ["LEGACY_VERSIONS", "Legacy"]

#: The revisions of this era that are spoken here, best first.
LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

#: The first revision that has the MCP-Protocol-Version header.
_FIRST_WITH_HEADER = "2025-06-18"

_log = logging.getLogger("mcp_sync")

_REPEATABLE = frozenset(
    [
        "initialize",
        "ping",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "tools/list",
        "prompts/list",
        "prompts/get",
        "completion/complete",
    ]
)

_LIST_NOTICES = dict(LIST_NOTICES)


class Legacy(Era):
    """One legacy revision, as one session speaks it. Immutable; any thread.

    :param version: the revision.
    :param session_id: what the server called the session, or None.
    :param channel: the channel that the session lives on, where the transport has such; see
        :class:`~mcp_sync.transports.base.Outgoing`.
    """

    def __init__(self, version: str, session_id: Optional[str] = None, channel: Optional[int] = None) -> None:
        self.version = version
        self.session_id = session_id
        self.channel = channel
        #: The headers of every message of the session.
        self.headers: Dict[str, str] = {}
        if version >= _FIRST_WITH_HEADER:
            self.headers["MCP-Protocol-Version"] = version
        if session_id is not None:
            self.headers["Mcp-Session-Id"] = session_id

    @classmethod
    def initialize(
        cls, request_id: int, client_info: Mapping[str, Any], capabilities: Mapping[str, Any], channel: Optional[int]
    ) -> Outgoing:
        """Return the message that begins a session."""
        params = {
            "protocolVersion": LEGACY_VERSIONS[0],
            "capabilities": dict(capabilities),
            "clientInfo": dict(client_info),
        }
        message = {"jsonrpc": "2.0", "id": request_id, "method": "initialize", "params": params}
        return Outgoing(message, {}, repeatable=True, channel=channel)

    @classmethod
    def initialized(cls, result: Any, session_id: Optional[str], channel: Optional[int]) -> "Legacy":
        """Return what the two agreed on.

        :raises UnsupportedVersion: if the server wants a revision that is not spoken here.
        :raises ProtocolError: if its answer makes no sense.
        """
        if not isinstance(result, dict):
            raise ProtocolError("the server answered initialize with no object: %s" % beginning_of(result))
        version = result.get("protocolVersion")
        if version not in LEGACY_VERSIONS:
            raise UnsupportedVersion(
                "the server wants to speak revision %s of the protocol, which is not spoken here (%s)"
                % (beginning_of(version), ", ".join(LEGACY_VERSIONS)),
                supported=[version] if isinstance(version, str) else [],
            )
        return cls(version, session_id, channel)

    def request(self, request_id: int, method: str, params: Dict[str, Any]) -> Outgoing:
        message: Dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
        if params:
            message["params"] = dict(params)
        return Outgoing(message, self.headers, method in _REPEATABLE, channel=self.channel)

    def notification(self, method: str, params: Optional[Dict[str, Any]] = None) -> Outgoing:
        """Return a message that nobody answers."""
        message: Dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = params
        return Outgoing(message, self.headers, channel=self.channel)

    def reply(self, request_id: Any, result: Optional[Dict[str, Any]], error: Optional[Dict[str, Any]] = None) -> Outgoing:
        """Return the answer to a request of the server's."""
        message: Dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
        if error is not None:
            message["error"] = error
        else:
            message["result"] = result or {}
        return Outgoing(message, self.headers, channel=self.channel)

    def result(self, outgoing: Outgoing, response: Response, exchange: Exchange) -> Dict[str, Any]:
        if response.error is not None:
            raise server_error(outgoing, response, exchange)
        if not isinstance(response.result, dict):
            raise ProtocolError("the server sent a result that is no object: %s" % beginning_of(response.result))
        return response.result

    def notice(self, message: Message) -> Optional[Notice]:
        """Return what a message says changed, or None for one that says no such thing."""
        if not isinstance(message, Notification):
            return None
        if message.method == "notifications/resources/updated":
            uri = message.params.get("uri")
            if not isinstance(uri, str):
                raise ProtocolError("the server sent an update without a URI: %s" % beginning_of(message.params))
            return ResourceUpdated(uri)
        known: Optional[Notice] = _LIST_NOTICES.get(message.method)
        if known is None:
            _log.debug("ignored %s", beginning_of(message.method))
        return known
