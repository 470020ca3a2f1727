"""What a test offers to be called: tools, prompts and completions, and what those who listen are told about them."""

from typing import Any, Optional, Sequence, Tuple, Union

from .functions import Functions, UserFunction, key_of, later
from .holdings import Holdings
from .protocol import PROMPTS_LIST_CHANGED, TOOLS_LIST_CHANGED, Message
from .resources import Store
from .streams import Streams
from .tasks import Task, TaskOptions, Tasks


class Offering(Holdings):
    """The part of a server that can be called.

    A function gets the arguments, and an :class:`~mcp_sync.testing.Invocation` with which it can tell progress, log, ask
    the client, and see that its request is cancelled; one that takes a single thing gets the arguments alone::

        def delete(arguments, call):
            call.progress(1, 2, "counting")
            answers = call.ask({"sure": {"method": "elicitation/create", "params": {
                "message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}}})
            return answers["sure"]["action"]

        server.add_tool("delete", delete)

    A :class:`~mcp_sync.testing.Refusal` that it raises is the JSON-RPC error that answers the request.

    :param functions: what can be called.

    Threads: any thread may call any method. Functions run in the thread that serves their request, those of tasks in one
    of their own.
    """

    def __init__(self, store: Store, streams: Streams, functions: Functions) -> None:
        super().__init__(store, streams)
        self._functions = functions
        self._tasks = Tasks(self._notify_task)

    def add_tool(self, name: str, function: Optional[UserFunction], *, title: Optional[str] = None,
                 description: Optional[str] = None, input_schema: Any = None, output_schema: Any = None,
                 annotations: Any = None, raw: Any = None, task: Union[bool, TaskOptions] = False,
                 notify: bool = True) -> None:
        """Add a tool, or put it in the place of one with the same name (server/tools).

        :param function: its result: text becomes a text block; a list of content blocks is the content; a dictionary
            with ``content`` or ``resultType`` is the result; anything else becomes ``structuredContent``, with the JSON
            as text besides. What it raises becomes a result with ``isError``.
        :param input_schema: by default an object with any members.
        :param raw: what the list says, in place of all this, and exactly as it is: another name, no schema, not even an
            object.
        :param task: answer calls with a task, for which the function works on: ``True``, or how these tasks are (the
            repository ext-tasks; modern era). Without a function they are for you to script: see :attr:`tasks`. To
            decide at each call, let the function return ``call.create_task(...)`` instead.
        :param notify: tell listeners that the list of tools has changed.
        """
        if task:
            function = later(function, task)
            self._functions.add("task", name, None, function)
        elif function is None:
            raise ValueError("a tool needs a function, unless its result is a task")
        schema = {"type": "object"} if input_schema is None else input_schema
        self._functions.add("tool", name, _entry(raw, name=name, title=title, description=description,
                                                 inputSchema=schema, outputSchema=output_schema,
                                                 annotations=annotations), function)
        if notify:
            self.notify_tools_list_changed()

    def remove_tool(self, name: str, *, notify: bool = True) -> None:
        """Remove a tool: calls answer "unknown tool".

        :param notify: tell listeners that the list of tools has changed.
        :raises KeyError: there is no such tool.
        """
        self._functions.remove("tool", name)
        if notify:
            self.notify_tools_list_changed()

    def add_prompt(self, name: str, function: UserFunction, *, title: Optional[str] = None,
                   description: Optional[str] = None, arguments: Optional[Sequence[Any]] = None, raw: Any = None,
                   notify: bool = True) -> None:
        """Add a prompt, or put it in the place of one with the same name (server/prompts).

        :param function: its result: text becomes one message of the user's; a list holds messages, or content of the
            user's; a dictionary with ``messages`` or ``resultType`` is the result.
        :param arguments: each ``{"name": ..., "description": ..., "required": ...}``, or its name alone. A request
            without one that is required is refused.
        :param raw: what the list says, in place of all this, and exactly as it is.
        :param notify: tell listeners that the list of prompts has changed.
        """
        listed = None if arguments is None else [
            {"name": argument} if isinstance(argument, str) else argument for argument in arguments]
        self._functions.add("prompt", name, _entry(raw, name=name, title=title, description=description,
                                                   arguments=listed), function)
        if notify:
            self.notify_prompts_list_changed()

    def remove_prompt(self, name: str, *, notify: bool = True) -> None:
        """Remove a prompt.

        :param notify: tell listeners that the list of prompts has changed.
        :raises KeyError: there is no such prompt.
        """
        self._functions.remove("prompt", name)
        if notify:
            self.notify_prompts_list_changed()

    def add_completion(self, ref: Message, function: UserFunction) -> None:
        """Add completions for the arguments of a prompt or a resource template (server/utilities/completion).

        :param ref: ``{"type": "ref/prompt", "name": ...}`` or ``{"type": "ref/resource", "uri": ...}``.
        :param function: gets the argument, ``{"name": ..., "value": ...}``; what is known of the others are the
            ``arguments`` of the invocation. Its result: a list of texts; or a dictionary with ``values``, which is the
            completion; or one with ``completion``, which is the result.
        """
        self._functions.add("completion", key_of(ref), None, function)

    @property
    def tasks(self) -> Tuple[Task, ...]:
        """Every task that a call of a tool has begun, the oldest first."""
        return tuple(self._tasks.all())

    def wait_for_task(self, n: int = 1, timeout: float = 5.0) -> Task:
        """Wait for the ``n``-th task, counted from the start.

        :param timeout: seconds.
        :raises TimeoutError: it has not been begun.
        """
        return self._tasks.wait(n, timeout)[n - 1]

    def _notify_task(self, task: Task) -> None:
        for stream in self._streams.all():
            stream.notify_task(task.id, task.detail())

    def notify_tools_list_changed(self, times: int = 1) -> None:
        """Tell those who listen for it that the list of tools has changed.

        :param times: how often, in one burst.
        """
        self._notify(TOOLS_LIST_CHANGED, None, times)

    def notify_prompts_list_changed(self, times: int = 1) -> None:
        """Tell those who listen for it that the list of prompts has changed.

        :param times: how often, in one burst.
        """
        self._notify(PROMPTS_LIST_CHANGED, None, times)


def _entry(raw: Any, **members: Any) -> Any:
    return {key: member for key, member in members.items() if member is not None} if raw is None else raw
