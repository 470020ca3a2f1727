"""What the server does for each method that both eras have: from a checked request to a bare result.

How a result is dressed, which errors there are besides, and how changes are told, is for the eras to say: see
:mod:`mcp_sync.testing.modern` and :mod:`mcp_sync.testing.legacy`.
"""

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from .functions import Functions, key_of
from .invocation import Invocation
from .param_headers import check_param_headers
from .protocol import INVALID_PARAMS, METHOD_NOT_FOUND, SKILLS, TASKS, Message, Refusal, page
from .request import Request
from .resources import Store
from .runs import InputNeeded, ModernInvocation
from .settings import Settings
from .skills import Skills
from .task_methods import TaskMethods
from .tasks import Task, Tasks
from .values import completion_result, prompt_result, required_arguments, tool_failure, tool_result
from .waiting import Disconnected


class Hint(NamedTuple):
    """How long and for whom a result may be kept, where a resource says so itself; ``None`` leaves it to the server."""

    ttl_ms: Any = None
    cache_scope: Optional[str] = None


class Outcome(NamedTuple):
    """A bare result, and its hint if it is one that may be kept."""

    result: Message
    hint: Optional[Hint] = None


#: Which capability a method belongs to; what has none here is always there.
_CAPABILITIES = {"tools/list": "tools", "tools/call": "tools", "prompts/list": "prompts", "prompts/get": "prompts",
                 "completion/complete": "completions", "tasks/get": "tasks", "tasks/update": "tasks",
                 "tasks/cancel": "tasks", "skills/list": "skills", "skills/get": "skills",
                 "resources/directory/read": "skills"}
#: What has to be there for a capability to be told without being asked for.
_KINDS = {"tools": ("tool",), "prompts": ("prompt",), "completions": ("completion",), "logging": ("tool", "prompt"),
          "tasks": ("task",), "skills": ()}
#: What can be told although there is nothing of it.
CAPABILITIES = tuple(_KINDS)


class Methods:
    """The methods of one server.

    :param settings: how the server was made.
    :param store: what can be read.
    :param functions: what can be called.
    :param tasks: what has been called and will have a result later.
    :param skills: which of the resources are skills.

    Threads: any thread may call any method.
    """

    def __init__(self, settings: Settings, store: Store, functions: Functions, tasks: Tasks,
                 skills: Skills) -> None:
        self._settings = settings
        self._store = store
        self._functions = functions
        self._tasks = tasks
        self._skills = skills
        self._task_methods = TaskMethods(tasks)
        self._table: Dict[str, Callable[[Invocation], Outcome]] = {
            "resources/list": self._list_resources,
            "resources/read": self._read_resource,
            "resources/templates/list": self._list_templates,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "skills/list": self._list_skills,
            "skills/get": self._get_skill,
        }
        if settings.directory_read:
            self._table["resources/directory/read"] = self._read_directory
        for name in self._task_methods.table:
            self._table[name] = lambda call: Outcome(self._task_methods.run(call))

    def run(self, call: Invocation) -> Outcome:
        """Do what a request asks for.

        :raises Refusal: it is answered with a JSON-RPC error.
        :raises Forbidden: the principal may not see what it asked for.
        """
        name = call.request.method
        method = self._table.get(name)
        capability = _CAPABILITIES.get(name)
        if method is None or not (capability is None or self.offers(capability)) or (
                capability == "tasks" and not isinstance(call, ModernInvocation)):
            raise Refusal(METHOD_NOT_FOUND, "Method not found: {}".format(name), http_status=404)
        try:
            return method(call)
        except InputNeeded as needed:
            return Outcome(needed.result)

    def check_param_headers(self, request: Request, headers: Mapping[str, str]) -> None:
        """Refuse the call of a tool whose headers do not repeat its parameters.

        :raises Refusal: -32020.
        """
        name, arguments = request.params.get("name"), request.params.get("arguments", {})
        entry = dict(self._functions.entries("tool")).get(name) if isinstance(name, str) else None
        if request.method == "tools/call" and isinstance(entry, dict) and isinstance(arguments, dict):
            check_param_headers(entry.get("inputSchema"), arguments, headers)

    def offers(self, capability: str) -> bool:
        """Whether the server has a capability: it was told to, or has held something that belongs to it."""
        had = any(self._functions.had(kind) for kind in _KINDS[capability])
        if capability == "tasks":
            had = had or bool(self._tasks.all())
        elif capability == "skills":
            had = self._skills.had
        return had or capability in self._settings.capabilities

    def capabilities(self, tasks: bool) -> Message:
        """What the server says that it can do (server/resources, server/tools ..., "Capabilities").

        :param tasks: whether the era has that extension.
        """
        listed: Message = {"listChanged": True} if self._settings.list_changed else {}
        result: Message = {"resources": dict({"subscribe": True} if self._settings.subscribe else {}, **listed)}
        for name in ("tools", "prompts"):
            if self.offers(name):
                result[name] = dict(listed)
        for name in ("completions", "logging"):
            if self.offers(name):
                result[name] = {}
        extensions: Message = {}
        if tasks and self.offers("tasks"):
            extensions[TASKS] = {}
        if self.offers("skills"):
            extensions[SKILLS] = {"directoryRead": True} if self._settings.directory_read else {}
        return dict(result, extensions=extensions) if extensions else result

    def server_info(self) -> Message:
        """The server's name and version."""
        return {"name": self._settings.name, "version": self._settings.version}

    def _page(self, request: Request, field: str, items: List[Tuple[str, Any]]) -> Outcome:
        chosen, following = page(items, request.params.get("cursor"), self._settings.page_size)
        result: Message = {field: chosen}
        if following is not None:
            result["nextCursor"] = following
        return Outcome(result, Hint())

    def _list_resources(self, call: Invocation) -> Outcome:
        return self._page(call.request, "resources", self._store.catalog(call.principal))

    def _read_resource(self, call: Invocation) -> Outcome:
        contents, ttl_ms, cache_scope = self._store.read(uri_of(call.request), call)
        return Outcome({"contents": contents}, Hint(ttl_ms, cache_scope))

    def _list_templates(self, call: Invocation) -> Outcome:
        return self._page(call.request, "resourceTemplates", self._store.list_templates())

    def _list_tools(self, call: Invocation) -> Outcome:
        return self._page(call.request, "tools", self._functions.entries("tool"))

    def _call_tool(self, call: Invocation) -> Outcome:
        tool = self._functions.get("tool", call.request.params.get("name"))
        _check_arguments(call.request)
        try:
            value = tool.run(call.arguments, call)
            if isinstance(value, Task):
                return Outcome(dict(value.seed(), resultType="task"))
            return Outcome(tool_result(value))
        except (Disconnected, InputNeeded, Refusal):
            raise  # it asked a client that is gone; it asks; it refuses
        except Exception as error:
            # A function of the user's: the client is told, as by any server.
            return Outcome(tool_failure(error))

    def _list_prompts(self, call: Invocation) -> Outcome:
        return self._page(call.request, "prompts", self._functions.entries("prompt"))

    def _get_prompt(self, call: Invocation) -> Outcome:
        prompt = self._functions.get("prompt", call.request.params.get("name"))
        _check_arguments(call.request)
        missing = [name for name in required_arguments(prompt.entry) if name not in call.arguments]
        if missing:
            raise Refusal(INVALID_PARAMS, "Missing required arguments: {}".format(", ".join(missing)))
        return Outcome(prompt_result(prompt.run(call.arguments, call), prompt.entry))

    def _complete(self, call: Invocation) -> Outcome:
        completion = self._functions.get("completion", key_of(call.request.params.get("ref")))
        argument = call.request.params.get("argument")
        if not isinstance(argument, dict) or not all(isinstance(argument.get(key), str) for key in ("name", "value")):
            raise Refusal(INVALID_PARAMS, "params.argument must have a name and a value")
        return Outcome(completion_result(completion.run(argument, call)))

    def _list_skills(self, call: Invocation) -> Outcome:
        return self._page(call.request, "skills", self._skills.entries(call.principal))

    def _get_skill(self, call: Invocation) -> Outcome:
        return Outcome({"skill": self._skills.entry(call.request.params.get("uri"), call.principal)}, Hint())

    def _read_directory(self, call: Invocation) -> Outcome:
        children = self._skills.children(call.request.params.get("uri"), call.principal)
        return self._page(call.request, "resources", children)._replace(hint=None)


def uri_of(request: Request) -> str:
    """The URI that a request is about.

    :raises Refusal: it names none.
    """
    uri = request.params.get("uri")
    if not isinstance(uri, str):
        raise Refusal(INVALID_PARAMS, "params.uri must be a string")
    return uri


def _check_arguments(request: Request) -> None:
    if not isinstance(request.params.get("arguments", {}), dict):
        raise Refusal(INVALID_PARAMS, "params.arguments must be an object")
