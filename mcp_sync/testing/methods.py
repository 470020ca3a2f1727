"""What the server does for each method that both eras have: from a checked request to a bare result.

How a result is dressed, which errors there are besides, and how changes are told, is for the eras to say: see
:mod:`mcp_sync.testing.modern` and :mod:`mcp_sync.testing.legacy`.
"""

import json
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from .protocol import INVALID_PARAMS, METHOD_NOT_FOUND, Message, Refusal, page
from .request import Request
from .resources import Store
from .settings import Settings
from .waiting import Disconnected


class Hint(NamedTuple):
    """How long and for whom a result may be kept, where a resource says so itself; ``None`` leaves it to the server."""

    ttl_ms: Any = None
    cache_scope: Optional[str] = None


class Outcome(NamedTuple):
    """A bare result, and its hint if it is one that may be kept."""

    result: Message
    hint: Optional[Hint] = None


class Methods:
    """The methods of one server.

    :param settings: how the server was made.
    :param store: what it holds.

    Threads: any thread may call any method.
    """

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._table: Dict[str, Callable[[Request], Outcome]] = {
            "resources/list": self._list_resources,
            "resources/read": self._read_resource,
            "resources/templates/list": self._list_templates,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
        }

    def run(self, request: Request) -> Outcome:
        """Do what a request asks for.

        :raises Refusal: it is answered with a JSON-RPC error.
        :raises Forbidden: the principal may not see what it asked for.
        """
        method = self._table.get(request.method)
        if method is None:
            raise Refusal(METHOD_NOT_FOUND, "Method not found: {}".format(request.method), http_status=404)
        return method(request)

    def capabilities(self) -> Message:
        """What the server says that it can do (server/resources, server/tools, "Capabilities"; equal in both eras)."""
        resources: Message = {}
        tools: Message = {}
        if self._settings.subscribe:
            resources["subscribe"] = True
        if self._settings.list_changed:
            resources["listChanged"] = tools["listChanged"] = True
        return {"resources": resources, "tools": tools}

    def server_info(self) -> Message:
        """The server's name and version."""
        return {"name": self._settings.name, "version": self._settings.version}

    def _page(self, request: Request, field: str, items: List[Tuple[str, Message]]) -> Outcome:
        chosen, following = page(items, request.params.get("cursor"), self._settings.page_size)
        result: Message = {field: chosen}
        if following is not None:
            result["nextCursor"] = following
        return Outcome(result, Hint())

    def _list_resources(self, request: Request) -> Outcome:
        return self._page(request, "resources", self._store.catalog(request.principal))

    def _read_resource(self, request: Request) -> Outcome:
        contents, ttl_ms, cache_scope = self._store.read(uri_of(request), request.principal)
        return Outcome({"contents": contents}, Hint(ttl_ms, cache_scope))

    def _list_templates(self, request: Request) -> Outcome:
        return self._page(request, "resourceTemplates", self._store.list_templates())

    def _list_tools(self, request: Request) -> Outcome:
        return self._page(request, "tools", self._store.list_tools())

    def _call_tool(self, request: Request) -> Outcome:
        handler = self._store.tool(request.params.get("name"))
        arguments = request.params.get("arguments", {})
        if not isinstance(arguments, dict):
            raise Refusal(INVALID_PARAMS, "params.arguments must be an object")
        try:
            value = handler(arguments)
        except Disconnected:
            raise  # it asked a client that is gone
        except Exception as error:  # a tool's own failure is a result, not an error: server/tools, "Error Handling"
            return Outcome({"content": [_text("{}: {}".format(type(error).__name__, error))], "isError": True})
        if isinstance(value, dict) and ("content" in value or "resultType" in value):
            return Outcome(value)
        if isinstance(value, str):
            return Outcome({"content": [_text(value)]})
        return Outcome({"content": [_text(json.dumps(value))], "structuredContent": value})


def uri_of(request: Request) -> str:
    """The URI that a request is about.

    :raises Refusal: it names none.
    """
    uri = request.params.get("uri")
    if not isinstance(uri, str):
        raise Refusal(INVALID_PARAMS, "params.uri must be a string")
    return uri


def _text(text: str) -> Message:
    return {"type": "text", "text": text}
