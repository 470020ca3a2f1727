"""What the server does for each method: from a checked request to the ordinary, faultless answer."""

import json
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .answer import Answer
from .protocol import (
    ACKNOWLEDGED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LISTEN,
    META_SERVER_INFO,
    META_SUBSCRIPTION_ID,
    METHOD_NOT_FOUND,
    Message,
    Refusal,
    notification,
    page,
    result_response,
)
from .request import Request
from .resources import Store
from .streams import Stream, Streams
from .wire import Wire


class Settings(NamedTuple):
    """What does not change while a server lives; the parameters of ``Server`` under their own names."""

    name: str
    version: str
    instructions: Optional[str]
    subscribe: bool
    list_changed: bool
    ttl_ms: Any
    cache_scope: str
    page_size: Optional[int]
    protocol_versions: Sequence[str]
    answer: str
    keep_alive: Optional[float]
    max_streams: Optional[int]
    chunked: bool
    backlog: int


class Methods:
    """The methods of one server.

    :param settings: how the server was made.
    :param store: what it holds.
    :param streams: who listens.

    Threads: any thread may call any method.
    """

    def __init__(self, settings: Settings, store: Store, streams: Streams) -> None:
        self._settings = settings
        self._store = store
        self._streams = streams
        self._table: Dict[str, Callable[[Request], Message]] = {
            "server/discover": self._discover,
            "resources/list": self._list_resources,
            "resources/read": self._read_resource,
            "resources/templates/list": self._list_templates,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
        }

    def answer(self, request: Request, wire: Wire) -> Answer:
        """The ordinary answer to a request.

        :param request: a request that passed ``check_request``.
        :param wire: the connection that it came on; a listen stream needs it.
        :raises Refusal: it is answered with a JSON-RPC error.
        :raises Forbidden: it is answered with HTTP 403.
        """
        if request.method == LISTEN:
            return self._listen(request, wire)
        method = self._table.get(request.method)
        if method is None:
            raise Refusal(METHOD_NOT_FOUND, "Method not found: {}".format(request.method), http_status=404)
        result = self.complete(method(request))
        return Answer(items=(result_response(request.id, result),), events=self._settings.answer == "sse",
                      framing=self._stream_framing() if self._settings.answer == "sse" else "length")

    def complete(self, result: Message) -> Message:
        """A result with the fields that every result has (basic/index, "ResultType" and "_meta")."""
        info = {"name": self._settings.name, "version": self._settings.version}
        whole: Message = {"resultType": "complete", "_meta": {META_SERVER_INFO: info}}
        whole.update(result)
        return whole

    def _stream_framing(self) -> str:
        return "chunked" if self._settings.chunked else "close"

    def _cacheable(self, result: Message, ttl_ms: Any = None, cache_scope: Optional[str] = None) -> Message:
        # server/utilities/caching, "Cacheable Results"
        result["ttlMs"] = self._settings.ttl_ms if ttl_ms is None else ttl_ms
        result["cacheScope"] = self._settings.cache_scope if cache_scope is None else cache_scope
        return result

    def _page(self, request: Request, field: str, items: List[Tuple[str, Message]]) -> Message:
        chosen, following = page(items, request.params.get("cursor"), self._settings.page_size)
        result: Message = {field: chosen}
        if following is not None:
            result["nextCursor"] = following
        return self._cacheable(result)

    # -- the methods ---------------------------------------------------------------------------------------------

    def _discover(self, request: Request) -> Message:
        resources: Message = {}
        tools: Message = {}
        if self._settings.subscribe:
            resources["subscribe"] = True
        if self._settings.list_changed:
            resources["listChanged"] = tools["listChanged"] = True
        result: Message = {
            "supportedVersions": list(self._settings.protocol_versions),
            "capabilities": {"resources": resources, "tools": tools},
        }
        if self._settings.instructions is not None:
            result["instructions"] = self._settings.instructions
        return self._cacheable(result)

    def _list_resources(self, request: Request) -> Message:
        return self._page(request, "resources", self._store.catalog(request.principal))

    def _read_resource(self, request: Request) -> Message:
        uri: str = request.params["uri"]  # equal to a header, or the request would not have come this far
        contents, ttl_ms, cache_scope = self._store.read(uri, request.principal)
        return self._cacheable({"contents": contents}, ttl_ms, cache_scope)

    def _list_templates(self, request: Request) -> Message:
        return self._page(request, "resourceTemplates", self._store.list_templates())

    def _list_tools(self, request: Request) -> Message:
        return self._page(request, "tools", self._store.list_tools())

    def _call_tool(self, request: Request) -> Message:
        handler = self._store.tool(request.params.get("name"))
        arguments = request.params.get("arguments", {})
        if not isinstance(arguments, dict):
            raise Refusal(INVALID_PARAMS, "params.arguments must be an object")
        try:
            value = handler(arguments)
        except Exception as error:  # a tool's own failure is a result, not an error: server/tools, "Error Handling"
            return {"content": [_text("{}: {}".format(type(error).__name__, error))], "isError": True}
        if isinstance(value, dict) and ("content" in value or "resultType" in value):
            return value
        if isinstance(value, str):
            return {"content": [_text(value)]}
        return {"content": [_text(json.dumps(value))], "structuredContent": value}

    def _listen(self, request: Request, wire: Wire) -> Answer:
        wanted = request.params.get("notifications")
        if not isinstance(wanted, dict):
            raise Refusal(INVALID_PARAMS, "params.notifications must be an object")
        covers = self._honoured(wanted, request.principal)
        stream = Stream(request.id, covers, request.principal, self._settings.backlog, wire)
        if not self._streams.add(stream, self._settings.max_streams):
            raise Refusal(INTERNAL_ERROR, "too many open streams", http_status=503)
        acknowledgement = notification(
            ACKNOWLEDGED, {"_meta": {META_SUBSCRIPTION_ID: request.id}, "notifications": covers})
        return Answer(items=(acknowledgement,), events=True, stream=stream, framing=self._stream_framing())

    def _honoured(self, wanted: Message, principal: Optional[str]) -> Message:
        # basic/patterns/subscriptions, "Acknowledgment": what is not supported is left out, not refused.
        covers: Message = {}
        if self._settings.list_changed:
            for field in ("resourcesListChanged", "toolsListChanged"):
                if wanted.get(field) is True:
                    covers[field] = True
        uris = wanted.get("resourceSubscriptions")
        if uris is not None and not (isinstance(uris, list) and all(isinstance(uri, str) for uri in uris)):
            raise Refusal(INVALID_PARAMS, "params.notifications.resourceSubscriptions must be a list of strings")
        if self._settings.subscribe and uris is not None:
            # A URI that has no resource yet is honoured: it may get one.
            covers["resourceSubscriptions"] = [uri for uri in uris if self._store.may_see(uri, principal)]
        return covers


def _text(text: str) -> Message:
    return {"type": "text", "text": text}
