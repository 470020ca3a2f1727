"""The methods of the tasks extension, for clients that have declared it.

Page: specification/draft/tasks of the repository modelcontextprotocol/ext-tasks.
"""

from typing import Callable, Dict

from .invocation import Invocation
from .protocol import INVALID_PARAMS, Message, Refusal
from .tasks import Tasks


class TaskMethods:
    """``tasks/get``, ``tasks/update`` and ``tasks/cancel``.

    :param tasks: all tasks.

    Threads: any thread may call any method.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self.table: Dict[str, Callable[[Invocation], Message]] = {
            "tasks/get": self._get,
            "tasks/update": self._update,
            "tasks/cancel": self._cancel,
        }

    def run(self, call: Invocation) -> Message:
        """Do what a request asks for.

        :raises Refusal: it is answered with a JSON-RPC error.
        """
        call.require_tasks()
        return self.table[call.request.method](call)

    def _get(self, call: Invocation) -> Message:
        return self._tasks.get(call.request.params.get("taskId"), call.principal).polled()

    def _update(self, call: Invocation) -> Message:
        task = self._tasks.get(call.request.params.get("taskId"), call.principal)
        if not isinstance(call.request.params.get("inputResponses"), dict):
            raise Refusal(INVALID_PARAMS, "params.inputResponses must be an object")
        task.answer(call.input_responses)
        return {}

    def _cancel(self, call: Invocation) -> Message:
        self._tasks.get(call.request.params.get("taskId"), call.principal).ask_cancel()
        return {}
