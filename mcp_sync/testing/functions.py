"""What can be called: tools, prompts and completions, each a function of the user's and how it is listed.

Pages: server/tools, server/prompts, server/utilities/completion. A lock, because tests change these while the server
answers.
"""

import inspect
import json
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from .invocation import Invocation
from .protocol import INVALID_PARAMS, Refusal
from .tasks import TaskOptions

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


def later(function: Optional[UserFunction], task: Union[bool, TaskOptions]) -> UserFunction:
    """The function of a tool whose result comes later.

    A client that knows no tasks is answered directly, if that is possible.

    :param function: does the work, in a thread of its own; ``None`` for tasks that a test scripts.
    """
    options = task if isinstance(task, TaskOptions) else TaskOptions()
    run = None if function is None else with_call(function)

    def answer(arguments: Any, call: Invocation) -> Any:
        if run is None:
            return call.create_task(None, options)
        if not call.knows_tasks and not options.required:
            return run(arguments, call)
        work = run
        return call.create_task(lambda inner: work(arguments, inner), options)

    return answer
