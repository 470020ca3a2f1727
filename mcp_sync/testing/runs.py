"""The runs of functions: in each era, and as the work of a task. They differ in how the client is asked.

Pages: basic/patterns/mrtr; client/roots, client/sampling and client/elicitation of 2025-11-25; specification/draft/tasks of
the repository modelcontextprotocol/ext-tasks.
"""

import json
import threading
import time
from typing import Any, Callable, Dict, Optional

from .call import Way
from .capabilities import knows_tasks, missing_capabilities
from .invocation import AskedInVain, Invocation, an_object
from .protocol import META_CLIENT_CAPABILITIES, META_LOG_LEVEL, MISSING_CAPABILITY, Message, Refusal
from .tasks import Task, TaskOptions, Tasks

# What a state begins with that holds answers.
_STATE = "answers:"


class InputNeeded(Exception):
    """The request is to be answered with ``resultType: "input_required"``.

    :param result: that result.
    """

    def __init__(self, result: Message) -> None:
        super().__init__(result)
        self.result = result


class ModernInvocation(Invocation):
    """A run in the modern era.

    :param tasks: where tasks are made.
    """

    def __init__(self, way: Way, checks: bool, tasks: Tasks) -> None:
        super().__init__(way, checks)
        self._tasks = tasks

    @property
    def knows_tasks(self) -> bool:
        """Whether the client has said, with this request, that it knows tasks."""
        return knows_tasks(self.meta.get(META_CLIENT_CAPABILITIES))

    def create_task(self, work: Optional[Callable[["Invocation"], Any]] = None,
                    options: TaskOptions = TaskOptions()) -> Task:
        """A task; return it, and the request is answered with it."""
        self.require_tasks()
        task = self._tasks.new(self.request, options)
        if work is not None:
            run, invocation = work, TaskInvocation(self._way, task)
            self._tasks.run(task, lambda: run(invocation))
        return task

    def _log_level(self) -> Optional[str]:
        return self.meta.get(META_LOG_LEVEL)

    def ask(self, requests: Dict[str, Message], state: Optional[str] = None, *, remember: bool = False,
            on: str = "post", timeout: float = 5.0) -> Dict[str, Any]:
        """Ask the client: the function ends, and runs again with the answers."""
        comes_again = "inputResponses" in self.request.params or "requestState" in self.request.params
        missing = missing_capabilities(requests, self.meta.get(META_CLIENT_CAPABILITIES)) if self._checks else {}
        if missing:
            raise Refusal(MISSING_CAPABILITY, "Missing required client capability", {"requiredCapabilities": missing})
        answers = dict(_remembered(self.request_state) if remember else {}, **self.input_responses)
        if comes_again and all(key in answers for key in requests):
            return {key: answers[key] for key in requests}
        result: Message = {"resultType": "input_required"}
        if requests:
            result["inputRequests"] = requests
        if remember:
            state = _STATE + json.dumps(answers)
        if state is not None:
            result["requestState"] = state
        raise InputNeeded(result)


class LegacyInvocation(Invocation):
    """A run in the legacy era."""

    def _log_level(self) -> Optional[str]:
        return None if self._way.session is None else self._way.session.log_level

    def ask(self, requests: Dict[str, Message], state: Optional[str] = None, *, remember: bool = False,
            on: str = "post", timeout: float = 5.0) -> Dict[str, Any]:
        """Ask the client, and wait for its answers."""
        if on not in ("get", "post"):
            raise ValueError('on must be "get" or "post", not {!r}'.format(on))
        session = self._way.session
        if session is None:
            raise ValueError("only a request that belongs to a session can carry a request of the server's")
        missing = missing_capabilities(requests, session.client.get("capabilities")) if self._checks else {}
        if missing:
            raise ValueError("the client has not said that it has {}".format(missing))
        end = time.monotonic() + timeout
        questions = {key: session.question(asked["method"], asked.get("params")) for key, asked in requests.items()}
        for question in questions.values():
            if on == "post":
                self._say(question.message)
            else:
                session.send(question.message, max(0.0, end - time.monotonic()))
        results: Dict[str, Any] = {}
        for key, question in questions.items():
            answer = question.wait_at(self._way.wire, max(0.0, end - time.monotonic()))
            if "result" not in answer:
                raise AskedInVain(key, answer.get("error"))
            results[key] = answer["result"]
        return results


class TaskInvocation(Invocation):
    """A run that is the work of a task: the request has been answered already.

    :param task: the task.
    """

    def __init__(self, way: Way, task: Task) -> None:
        super().__init__(way)
        self.task: Task = task

    def _watch(self) -> threading.Event:
        return self.task.cancelled

    def progress(self, progress: Any, total: Any = None, message: Any = None) -> None:
        """Tasks have no progress ("Task Status Notifications"); a message becomes the status message."""
        if message is not None:
            self.task.tell(message)

    def _log_level(self) -> Optional[str]:
        return None  # nor log messages

    def ask(self, requests: Dict[str, Message], state: Optional[str] = None, *, remember: bool = False,
            on: str = "post", timeout: float = 5.0) -> Dict[str, Any]:
        """Ask the client by way of the task, and wait for its answers.

        :raises Disconnected: the task has been cancelled; let it pass.
        """
        self.task.ask(requests)
        return self.task.wait_for_input(*requests, timeout=timeout)


def _remembered(state: Any) -> Dict[str, Any]:
    return an_object(json.loads(state[len(_STATE):])) if isinstance(state, str) and state.startswith(_STATE) else {}
