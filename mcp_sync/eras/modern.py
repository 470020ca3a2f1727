"""The modern era: revision 2026-07-28 and later. No session; every request carries its own metadata.

See the specification: basic (``_meta``), basic/versioning, basic/patterns/subscriptions, basic/transports/streamable-http.
"""

from __future__ import annotations

import base64
import logging
from typing import Any, Dict, Mapping, Optional, Union

from ..errors import InputRequired, ProtocolError, ServerError, UnsupportedVersion, beginning_of
from ..jsonrpc import FOREIGN, UNSUPPORTED_PROTOCOL_VERSION, Message, Notification, Response, classify_id
from ..notices import LIST_NOTICES, Acknowledged, Notice, ResourceUpdated, SubscriptionFilter
from ..transports.base import Exchange, Outgoing
from .base import Ended, Era, error_parts, server_error

__all__ = ["MODERN_VERSIONS", "TASKS", "Modern", "header_value"]

#: The revisions of this era that are spoken here, best first.
MODERN_VERSIONS = ("2026-07-28",)

#: The extension by which a server makes tasks of calls, in ``capabilities.extensions``.
TASKS = "io.modelcontextprotocol/tasks"

_log = logging.getLogger("mcp_sync")

_PREFIX = "io.modelcontextprotocol/"
_SUBSCRIPTION_ID = _PREFIX + "subscriptionId"

# Which parameter the Mcp-Name header repeats.
_NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}

_REPEATABLE = frozenset(
    [
        "server/discover",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "tools/list",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "subscriptions/listen",
        "tasks/get",
        "skills/list",
        "skills/get",
    ]
)

_LIST_NOTICES = dict(LIST_NOTICES)


def header_value(value: str) -> str:
    """Return a header value that repeats ``value``: as it is if a header can carry it, in marked base64 otherwise.

    See the specification, basic/transports/streamable-http: Value Encoding.
    """
    # Printable ASCII and tabs, and neither of spaces and tabs at the ends.
    plain = value != "" and value.isascii() and value.replace("\t", " ").isprintable() and value == value.strip(" \t")
    if plain and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    encoded = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii")
    return "=?base64?%s?=" % encoded


class Modern(Era):
    """One modern revision, spoken by one client.

    :param client_info: the client's name and version, as the protocol's ``Implementation``.
    :param capabilities: what the client can do for the server.
    :param version: the revision.
    """

    def __init__(
        self, client_info: Mapping[str, Any], capabilities: Mapping[str, Any], version: str = MODERN_VERSIONS[0]
    ) -> None:
        self.version = version
        self._meta = {
            _PREFIX + "protocolVersion": version,
            _PREFIX + "clientInfo": dict(client_info),
            _PREFIX + "clientCapabilities": dict(capabilities),
        }

    def request(self, request_id: int, method: str, params: Dict[str, Any]) -> Outgoing:
        whole = dict(params)
        given = params.get("_meta")
        whole["_meta"] = {**given, **self._meta} if isinstance(given, dict) else self._meta
        headers = {"MCP-Protocol-Version": self.version, "Mcp-Method": method}
        named_by = _NAMED_BY.get(method)
        if named_by is not None and isinstance(params.get(named_by), str):
            headers["Mcp-Name"] = header_value(params[named_by])
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": whole}
        # What goes on with what a user has answered is no mere read.
        repeatable = method in _REPEATABLE and "inputResponses" not in params
        return Outgoing(message, headers, repeatable)

    def listen(self, request_id: int, wanted: SubscriptionFilter) -> Outgoing:
        """Return the message that opens a stream of notices."""
        outgoing = self.request(request_id, "subscriptions/listen", {"notifications": wanted.to_wire()})
        return outgoing.but(streaming=True)

    def result(self, outgoing: Outgoing, response: Response, exchange: Exchange) -> Dict[str, Any]:
        if response.error is not None:
            if error_parts(response)[0] == UNSUPPORTED_PROTOCOL_VERSION:
                raise _unsupported(response.error, self.version)
            raise server_error(outgoing, response, exchange)
        result = response.result
        if not isinstance(result, dict):
            raise ProtocolError("the server sent a result that is no object: %s" % beginning_of(result))
        # Absent means complete: servers of earlier revisions do not know the field.
        kind = result.get("resultType", "complete")
        if kind in outgoing.result_types:
            return result
        if kind == "input_required":
            requests = result.get("inputRequests")
            state = result.get("requestState")
            raise InputRequired(
                "the server asks for input before it answers %s" % outgoing.message.get("method"),
                method=str(outgoing.message.get("method")),
                input_requests=requests if isinstance(requests, dict) else {},
                request_state=state if isinstance(state, str) else None,
            )
        raise ProtocolError("the server sent a result of a type that nobody asked for: %s" % beginning_of(kind))

    def notice(self, request_id: int, message: Message) -> Union[Notice, Ended, None]:
        """Return what a message on a stream of notices says, or None for what is none of ours."""
        if isinstance(message, Response):
            if classify_id(request_id, message.id) == FOREIGN:
                _log.warning("ignored the answer to another request (id %s) on a stream of notices", beginning_of(message.id))
                return None
            if message.error is not None:
                code, text, data = error_parts(message)
                return Ended("error", ServerError(text, code=code, data=data))
            return Ended("result")
        if not isinstance(message, Notification):
            _log.warning("ignored a request of the server's (%s): this revision has none", beginning_of(message.method))
            return None
        params = message.params
        if message.method == "notifications/cancelled":
            return Ended("cancelled") if classify_id(request_id, params.get("requestId")) != FOREIGN else None
        meta = params.get("_meta")
        came = meta.get(_SUBSCRIPTION_ID) if isinstance(meta, dict) else None
        # Over HTTP the stream itself says whose notice it is, so a missing or mangled id does no harm. Another's does.
        if came != request_id and classify_id(request_id, came) == FOREIGN:
            _log.warning("ignored a notice of another subscription (%s)", beginning_of(came))
            return None
        if message.method == "notifications/resources/updated":
            uri = params.get("uri")
            if not isinstance(uri, str):
                raise ProtocolError("the server sent an update without a URI: %s" % beginning_of(params))
            return ResourceUpdated(uri)
        if message.method == "notifications/subscriptions/acknowledged":
            return Acknowledged(SubscriptionFilter.from_wire(params.get("notifications")))
        known: Optional[Notice] = _LIST_NOTICES.get(message.method)
        if known is None:
            _log.debug("ignored %s on a stream of notices", beginning_of(message.method))
        return known


def _unsupported(error: Dict[str, Any], spoken: str) -> UnsupportedVersion:
    data = error.get("data")
    supported = data.get("supported") if isinstance(data, dict) else None
    versions = [v for v in supported if isinstance(v, str)] if isinstance(supported, list) else []
    return UnsupportedVersion(
        "the server does not speak revision %s of the protocol, but %s" % (spoken, ", ".join(versions) or "none that it names"),
        supported=versions,
    )
