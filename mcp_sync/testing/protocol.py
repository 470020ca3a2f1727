"""What messages look like, and which requests a server must refuse.

Pure functions over dictionaries: no socket, no thread, no state. The pages of the specification that each part follows
are named where it starts; they are those of revision 2026-07-28, unless another one is named.
"""

import base64
import binascii
import json
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

Message = Dict[str, Any]
RequestId = Union[str, int, float, None]
#: One thing to put on an event stream: a message, or bytes that go out exactly as they are.
Item = Union[Message, bytes]

# basic/index, "Error Codes"
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022

# server/resources of 2025-11-25, "Error Handling"
RESOURCE_NOT_FOUND = -32002
# Not in any page: what the official TypeScript server of the legacy era puts into its HTTP errors.
LEGACY_BAD_REQUEST = -32000
LEGACY_NO_SESSION = -32001

# basic/index, "_meta"
META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
META_LOG_LEVEL = "io.modelcontextprotocol/logLevel"

#: The extension of which a tool's result may come later (the repository ext-tasks, specification/draft/tasks).
TASKS = "io.modelcontextprotocol/tasks"
#: The extension for skills (the repository ext-skills, specification/stable/skills).
SKILLS = "io.modelcontextprotocol/skills"

LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
RESOURCE_UPDATED = "notifications/resources/updated"
RESOURCES_LIST_CHANGED = "notifications/resources/list_changed"
TOOLS_LIST_CHANGED = "notifications/tools/list_changed"
PROMPTS_LIST_CHANGED = "notifications/prompts/list_changed"
PROGRESS = "notifications/progress"
LOG_MESSAGE = "notifications/message"
TASK_CHANGED = "notifications/tasks"

#: Which field of a subscription filter asks for which notification (basic/patterns/subscriptions).
FILTER_FIELDS = {
    RESOURCES_LIST_CHANGED: "resourcesListChanged",
    TOOLS_LIST_CHANGED: "toolsListChanged",
    PROMPTS_LIST_CHANGED: "promptsListChanged",
}

#: Which parameter the ``Mcp-Name`` header mirrors (basic/transports/streamable-http, "Standard Request Headers"; tasks,
#: "Streamable HTTP: Routing Headers").
NAMED_BY = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name",
            "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}

#: From the least to the most urgent (server/utilities/logging, "Log Levels").
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_SENTINEL_START, _SENTINEL_END = "=?base64?", "?="


class Refusal(Exception):
    """A request that is answered with a JSON-RPC error.

    :param code: the JSON-RPC error code.
    :param message: one sentence.
    :param data: anything that JSON can hold; left out when ``None``.
    :param http_status: the status of the HTTP answer that carries the error.
    """

    def __init__(self, code: int, message: str, data: Any = None, http_status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.http_status = http_status


class NotFound(Refusal):
    """There is no resource with that URI: -32602 here (server/resources), -32002 in the legacy era.

    :param uri: the URI that was asked for.
    """

    def __init__(self, uri: str) -> None:
        super().__init__(INVALID_PARAMS, "Resource not found", {"uri": uri})


def check_level(level: Any) -> None:
    """Refuse what is no log level (server/utilities/logging, "Error Handling").

    :raises Refusal: -32602.
    """
    if level not in LOG_LEVELS:
        raise Refusal(INVALID_PARAMS, "Invalid log level: {!r}".format(level))


class Forbidden(Exception):
    """The principal may not see what it asked for: HTTP 403 (basic/authorization, "Error Handling")."""


def notification(method: str, params: Message) -> Message:
    """A JSON-RPC notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def result_response(request_id: RequestId, result: Message) -> Message:
    """A JSON-RPC response that carries a result."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_response(request_id: RequestId, code: int, message: str, data: Any = None) -> Message:
    """A JSON-RPC response that carries an error; without ``id`` when the request's could not be read."""
    error: Message = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    response: Message = {"jsonrpc": "2.0"}
    if request_id is not None:
        response["id"] = request_id
    response["error"] = error
    return response


def request(request_id: RequestId, method: str, params: Optional[Message]) -> Message:
    """A JSON-RPC request."""
    message: Message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        message["params"] = params
    return message


def error_of_nobody(code: int, message: str) -> Message:
    """A JSON-RPC error with ``id: null``, as legacy servers answer what they cannot make sense of."""
    return {"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": None}


def encode(message: Message) -> bytes:
    """A message as UTF-8 JSON.

    Characters stay themselves instead of becoming ``\\u`` escapes, so that a client meets U+2028 or CJK
    as bytes, the way most servers send them. Only text that UTF-8 cannot hold is escaped.
    """
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":")).encode("ascii")


def decode(body: bytes, responses: bool = False) -> Message:
    """The one message that an HTTP body, or a line over stdio, must be.

    :param responses: whether it may be a response, as in the legacy era.
    :raises Refusal: the body is not JSON, or not one JSON-RPC request or notification
        (basic/transports/streamable-http, "Sending Messages": no batches, no responses).
    """
    try:
        message = json.loads(body.decode("utf-8"))
    except ValueError as error:
        raise Refusal(PARSE_ERROR, "not JSON: {}".format(error)) from error
    if not isinstance(message, dict):
        raise Refusal(INVALID_REQUEST, "the body must be a single JSON-RPC message")
    if responses and message.get("jsonrpc") == "2.0" and is_response(message):
        return message
    if message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        raise Refusal(INVALID_REQUEST, "not a JSON-RPC 2.0 request or notification")
    if "id" in message and (isinstance(message["id"], bool) or not isinstance(message["id"], (str, int, float))):
        raise Refusal(INVALID_REQUEST, "the id must be a string or a number")
    if not isinstance(message.get("params", {}), dict):
        raise Refusal(INVALID_PARAMS, "params must be an object")
    return message


def is_response(message: Message) -> bool:
    """Whether this is an answer to a request of the server's."""
    return "method" not in message and "id" in message and ("result" in message or "error" in message)


def decode_header(value: str) -> str:
    """The value of ``Mcp-Name`` after its Base64 form, if it has one, is undone.

    Page: basic/transports/streamable-http, "Value Encoding".

    :raises Refusal: the form is there but what it holds is not Base64 of UTF-8.
    """
    if not (value.startswith(_SENTINEL_START) and value.endswith(_SENTINEL_END)):
        return value
    inner = value[len(_SENTINEL_START):-len(_SENTINEL_END)]
    try:
        return base64.b64decode(inner.encode("ascii"), validate=True).decode("utf-8")
    except (binascii.Error, ValueError) as error:
        raise Refusal(HEADER_MISMATCH, "Header mismatch: {!r} is not Base64 of UTF-8".format(value)) from error


def is_modern(message: Message) -> bool:
    """Whether a message carries its version itself (basic/versioning, "Backward Compatibility")."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and META_VERSION in meta


def check_request(message: Message, headers: Optional[Mapping[str, str]], versions: Sequence[str],
                  supported: Sequence[str]) -> None:
    """Refuse what a server of this era must refuse before it looks at the method.

    Pages: basic/transports/streamable-http, "Server Validation"; basic/index, "_meta"; basic/versioning.

    :param message: a request that :func:`decode` accepted.
    :param headers: the HTTP headers, looked up without regard to case; ``None`` where there are none (stdio).
    :param versions: the modern protocol versions that this server implements.
    :param supported: every version that it implements, for its errors.
    :raises Refusal: -32020, -32022 or -32602, each with HTTP status 400.
    """
    method = message["method"]
    # An old client has no other way to learn why it fails: basic/versioning asks that an error to `initialize`
    # names the supported versions.
    hint = "; this server supports {}".format(", ".join(supported)) if method == "initialize" else ""
    if headers is not None and "MCP-Protocol-Version" not in headers:
        raise Refusal(HEADER_MISMATCH, "Header mismatch: MCP-Protocol-Version is missing" + hint)
    params = message.get("params", {})
    meta = params.get("_meta")
    if not isinstance(meta, dict) or not isinstance(meta.get(META_VERSION), str):
        raise Refusal(INVALID_PARAMS, "params._meta lacks {}{}".format(META_VERSION, hint))
    version = meta[META_VERSION]
    if headers is not None:
        _match("MCP-Protocol-Version", headers["MCP-Protocol-Version"], version, hint)
    if version not in versions:
        raise Refusal(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version",
                      {"supported": list(supported), "requested": version})
    if not isinstance(meta.get(META_CLIENT_CAPABILITIES), dict):
        raise Refusal(INVALID_PARAMS, "params._meta lacks {}".format(META_CLIENT_CAPABILITIES))
    if headers is None:
        return
    _match("Mcp-Method", headers.get("Mcp-Method"), method)
    if method in NAMED_BY:
        name = headers.get("Mcp-Name")
        _match("Mcp-Name", None if name is None else decode_header(name), params.get(NAMED_BY[method]))


def _match(header: str, value: Optional[str], expected: Any, hint: str = "") -> None:
    if value is None:
        raise Refusal(HEADER_MISMATCH, "Header mismatch: {} is missing{}".format(header, hint))
    if value != expected:
        raise Refusal(HEADER_MISMATCH, "Header mismatch: {} header value {!r} does not match body value {!r}{}".format(
            header, value, expected, hint))


def page(items: Sequence[Tuple[str, Message]], cursor: Any,
         size: Optional[int]) -> Tuple[Sequence[Message], Optional[str]]:
    """One page of a list, and the cursor of the next (server/utilities/pagination).

    The cursor names the last item of the page before. So it stays valid while items are added, and
    removing the item that it names makes it invalid, which clients must be ready for.

    :param items: (key, item) pairs in a stable order.
    :param cursor: what the client sent, ``None`` for the first page.
    :param size: items on a page; ``None`` for everything at once.
    :raises Refusal: the cursor is not one of ours.
    """
    start = 0
    if cursor is not None:
        keys = ["after " + key for key, _ in items]
        if cursor not in keys:
            raise Refusal(INVALID_PARAMS, "Invalid cursor")
        start = keys.index(cursor) + 1
    end = len(items) if size is None else start + size
    chosen = items[start:end]
    following = "after " + chosen[-1][0] if chosen and end < len(items) else None
    return [item for _, item in chosen], following
