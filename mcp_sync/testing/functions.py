"""What can be called: tools, prompts and completions, each a function of the user's and how it is listed.

Pages: server/tools, server/prompts, server/utilities/completion. A lock, because tests change these while the server
answers.
"""

import inspect
import json
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from .invocation import Invocation
from .protocol import INVALID_PARAMS, Message, Refusal

#: From the arguments and the run to a result, or to something that becomes one. The run may be left out.
UserFunction = Callable[..., Any]


class Function(NamedTuple):
    """A tool, a prompt or a completion.

    :param entry: what the list says about it, sent as it is.
    :param run: the function.
    """

    entry: Any
    run: Callable[[Any, Invocation], Any]


class Functions:
    """All tools, prompts and completions.

    Threads: any thread may call any method. Functions of the user run without the lock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Guarded by _lock; by the kind, in the order of insertion:
        self._kinds: Dict[str, Dict[str, Function]] = {}

    def add(self, kind: str, key: str, entry: Any, function: UserFunction) -> None:
        """Add or replace one.

        :param kind: ``"tool"``, ``"prompt"`` or ``"completion"``.
        :param key: its name.
        """
        with self._lock:
            self._kinds.setdefault(kind, {})[key] = Function(entry, with_call(function))

    def remove(self, kind: str, key: str) -> None:
        """Remove one.

        :raises KeyError: there is none with that name.
        """
        with self._lock:
            del self._kinds.get(kind, {})[key]

    def had(self, kind: str) -> bool:
        """Whether there was ever one of that kind."""
        with self._lock:
            return kind in self._kinds

    def entries(self, kind: str) -> List[Tuple[str, Any]]:
        """(name, entry) pairs."""
        with self._lock:
            return [(key, function.entry) for key, function in self._kinds.get(kind, {}).items()]

    def get(self, kind: str, key: Any) -> Function:
        """The one with that name.

        :raises Refusal: there is none (-32602).
        """
        with self._lock:
            found = self._kinds.get(kind, {}).get(key) if isinstance(key, str) else None
        if found is None:
            raise Refusal(INVALID_PARAMS, "Unknown {}: {}".format(kind, key))
        return found


def key_of(ref: Any) -> str:
    """The name under which the completions of a reference are kept.

    :param ref: ``{"type": "ref/prompt", "name": ...}`` or ``{"type": "ref/resource", "uri": ...}``; a title changes
        nothing.
    :raises Refusal: it is neither (-32602).
    """
    if isinstance(ref, dict):
        named = {"ref/prompt": ref.get("name"), "ref/resource": ref.get("uri")}.get(str(ref.get("type")))
        if isinstance(named, str):
            return json.dumps([ref["type"], named])
    raise Refusal(INVALID_PARAMS, "params.ref must be a reference, not {!r}".format(ref))


def with_call(function: UserFunction) -> Callable[[Any, Invocation], Any]:
    """A function that takes two things, from one that may care for the first only.

    A second parameter that has a default and another name than ``call`` is the function's own affair.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return function  # something that tells nothing of itself
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return function
    second = [parameter for parameter in parameters
              if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)][1:2]
    if second and (second[0].default is second[0].empty or second[0].name == "call"):
        return function
    return lambda first, call: function(first)


# -- what functions return ---------------------------------------------------------------------------------------


def tool_result(value: Any) -> Message:
    """The result of ``tools/call`` (server/tools, "Tool Result").

    Text becomes a text block; a list of objects with a ``type`` is the content; a dictionary with ``content`` or
    ``resultType`` is the result; anything else is structured content, and text besides.
    """
    if isinstance(value, dict) and ("content" in value or "resultType" in value):
        return value
    if isinstance(value, str):
        return {"content": [text(value)]}
    if isinstance(value, list) and all(isinstance(block, dict) and "type" in block for block in value):
        return {"content": value}
    return {"content": [text(json.dumps(value))], "structuredContent": value}


def tool_failure(error: Exception) -> Message:
    """A tool's own failure, which is a result and not an error: server/tools, "Error Handling"."""
    return {"content": [text("{}: {}".format(type(error).__name__, error))], "isError": True}


def prompt_result(value: Any, entry: Any) -> Message:
    """The result of ``prompts/get`` (server/prompts, "PromptMessage").

    Text becomes one message of the user's; a list holds messages, or content of the user's; a dictionary with
    ``messages`` or ``resultType`` is the result, any other one message.
    """
    if isinstance(value, dict) and ("messages" in value or "resultType" in value):
        return value
    items = value if isinstance(value, list) else [value]
    result: Message = {"messages": [_prompt_message(item) for item in items]}
    if isinstance(entry, dict) and "description" in entry:
        result["description"] = entry["description"]
    return result


def _prompt_message(item: Any) -> Any:
    if isinstance(item, str):
        item = text(item)
    return {"role": "user", "content": item} if isinstance(item, dict) and "role" not in item else item


def completion_result(value: Any) -> Message:
    """The result of ``completion/complete`` (server/utilities/completion, "Completion Results").

    A list of texts is cut after a hundred; a dictionary with ``values`` is the completion, one with ``completion`` the
    result.
    """
    if isinstance(value, dict):
        return value if "completion" in value else {"completion": value}
    return {"completion": {"values": value[:100], "total": len(value), "hasMore": len(value) > 100}}


def text(value: str) -> Message:
    """A text block."""
    return {"type": "text", "text": value}


def required_arguments(entry: Any) -> List[str]:
    """The names of the arguments that a prompt must be given."""
    arguments = entry.get("arguments") if isinstance(entry, dict) else None
    if not isinstance(arguments, list):
        return []
    return [argument["name"] for argument in arguments
            if isinstance(argument, dict) and argument.get("required") is True and "name" in argument]
