"""What a function of the user's can do besides returning something: tell progress, log, ask, and see that it is over.

Pages: basic/patterns/progress, server/utilities/logging, basic/patterns/mrtr, basic/patterns/cancellation; client/roots,
client/sampling and client/elicitation of 2025-11-25 for what a server asks in the legacy era.
"""

import abc
import json
import threading
import time
from typing import Any, Callable, Dict, Mapping, Optional

from .call import Way
from .protocol import (
    LOG_LEVELS,
    LOG_MESSAGE,
    META_CLIENT_CAPABILITIES,
    META_LOG_LEVEL,
    MISSING_CAPABILITY,
    PROGRESS,
    Message,
    Refusal,
    knows_tasks,
    missing_capabilities,
    missing_tasks,
    notification,
)
from .request import Request
from .tasks import Task, TaskOptions, Tasks
from .waiting import Disconnected, Waiting

# What a state begins with that holds answers.
_STATE = "answers:"


class InputNeeded(Exception):
    """The request is to be answered with ``resultType: "input_required"``.

    :param result: that result.
    """

    def __init__(self, result: Message) -> None:
        super().__init__(result)
        self.result = result


class AskedInVain(Exception):
    """The client has answered a question with an error (legacy era).

    :param key: which question.
    :param error: the JSON-RPC error.
    """

    def __init__(self, key: str, error: Any) -> None:
        super().__init__("{}: {}".format(key, error))
        self.key = key
        self.error = error


class Cancelled(threading.Event):
    """Set as soon as nobody waits for the answer any more, or the server stops.

    That a client has closed its HTTP connection is noticed while the thread that serves the request looks or waits here.

    :param wire: where that thread waits.

    Threads: any thread may call any method; it belongs to the one that made it.
    """

    def __init__(self, wire: Waiting) -> None:
        super().__init__()
        self._wire = wire
        self._owner = threading.get_ident()
        wire.tell_end(self)

    def is_set(self) -> bool:
        """Whether it is over."""
        if threading.get_ident() == self._owner and not super().is_set():
            self._look(0.0)
        return super().is_set()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Wait until it is over.

        :param timeout: seconds; ``None`` waits without limit.
        :returns: whether it is over.
        """
        if threading.get_ident() != self._owner:
            return super().wait(timeout)
        end = None if timeout is None else time.monotonic() + timeout
        while not super().is_set():
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                break
            self._look(left)
        return super().is_set()

    def _look(self, timeout: Optional[float]) -> None:
        try:
            if not self._wire.closing:
                self._wire.wait(timeout)
        except Disconnected:
            self.set()
        if self._wire.closing:
            self.set()  # who asks for the end wakes this thread before it sets the event


class Invocation(abc.ABC):
    """One run of a function: what its request says, and what it can do before it returns.

    :param way: the way of the request.
    :param checks: whether the client is asked only what it has said that it can answer.

    Threads: the methods are for the thread that runs the function; what it knows may be read by any thread.
    """

    def __init__(self, way: Way, checks: bool = False) -> None:
        self._way = way
        self._checks = checks
        self._cancelled: Optional[threading.Event] = None
        #: The task that this run is the work of, if there is one.
        self.task: Optional[Task] = None
        #: The request as it came.
        self.request: Request = way.request

    # -- what the request says -----------------------------------------------------------------------------------

    @property
    def arguments(self) -> Dict[str, Any]:
        """The arguments of the tool or prompt; of a completion, what is known already; empty if there are none."""
        holder = self.request.params
        if self.request.method == "completion/complete":
            holder = _object(holder.get("context"))
        return _object(holder.get("arguments"))

    @property
    def meta(self) -> Dict[str, Any]:
        """``params._meta``, empty if there is none."""
        return self.request.meta

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers, looked up without regard to case; empty over stdio."""
        return self.request.headers

    @property
    def principal(self) -> Optional[str]:
        """What ``authenticate`` made of the headers."""
        return self.request.principal

    @property
    def input_responses(self) -> Dict[str, Any]:
        """``inputResponses`` of a request that comes again, empty if there are none (modern era)."""
        return _object(self.request.params.get("inputResponses"))

    @property
    def request_state(self) -> Any:
        """``requestState`` of a request that comes again, exactly as it came; ``None`` if there is none (modern era)."""
        return self.request.params.get("requestState")

    # -- what the function can do --------------------------------------------------------------------------------

    @property
    def cancelled(self) -> threading.Event:
        """Set as soon as nobody waits for the answer any more: the client has gone or has cancelled the request, or the
        server stops. It is first to be asked for in the function itself; any thread may wait for it then."""
        if self._cancelled is None:
            self._cancelled = self._watch()
        return self._cancelled

    def _watch(self) -> threading.Event:
        return Cancelled(self._way.wire)

    def progress(self, progress: Any, total: Any = None, message: Any = None) -> None:
        """Tell the client how far it is, if the request has a progress token. The values are sent as they are.

        :raises Disconnected: the client is gone; let it pass.
        """
        token = self.meta.get("progressToken")
        if isinstance(token, (str, int)) and not isinstance(token, bool):
            params = {"progressToken": token, "progress": progress, "total": total, "message": message}
            self._say(notification(PROGRESS, {name: value for name, value in params.items() if value is not None}))

    def log(self, level: str, data: Any, logger: Optional[str] = None) -> None:
        """Send a log message, if the client asked for that level or a lesser one.

        It asks with the request itself in the modern era, with ``logging/setLevel`` in the legacy era.

        :param level: one of the protocol's levels, such as ``"warning"``; any other is always sent, if it asked at all.
        :raises Disconnected: the client is gone; let it pass.
        """
        wanted = self._log_level()
        if wanted is None or (level in LOG_LEVELS and LOG_LEVELS.index(level) < LOG_LEVELS.index(wanted)):
            return
        params = {"level": level, "data": data}
        self._say(notification(LOG_MESSAGE, params if logger is None else dict(params, logger=logger)))

    def _say(self, message: Message) -> None:
        self._way.say(message)

    def create_task(self, work: Optional[Callable[["Invocation"], Any]] = None,
                    options: TaskOptions = TaskOptions()) -> Task:
        """A task; return it, and the request is answered with it.

        :param work: runs in a thread of its own, with an invocation like this one that asks by way of the task; what it
            returns completes the task. ``None`` for a task that you script.
        :raises Refusal: the client has not said that it knows tasks (-32021).
        """
        raise missing_tasks()

    @property
    def knows_tasks(self) -> bool:
        """Whether the client has said, with this request, that it knows tasks."""
        return False

    def require_tasks(self) -> None:
        """Go on only if the client knows tasks.

        :raises Refusal: it does not (-32021).
        """
        if not self.knows_tasks:
            raise missing_tasks()

    @abc.abstractmethod
    def _log_level(self) -> Optional[str]:
        """From which level on the client wants log messages."""

    @abc.abstractmethod
    def ask(self, requests: Dict[str, Message], state: Optional[str] = None, *, remember: bool = False,
            on: str = "post", timeout: float = 5.0) -> Dict[str, Any]:
        """Ask the client.

        In the modern era the first call ends the function: the request is answered ``input_required``. The client sends
        it again with its answers, the function runs again, and this returns them. If one is missing, it ends again.
        In the legacy era the requests are sent, and this waits for their results.

        :param requests: by keys of your choice, each ``{"method": ..., "params": ...}``.
        :param state: ``requestState`` (modern era); ``None`` sends none.
        :param remember: whether ``requestState`` holds all answers so far instead, so that a function may ask several
            times, one after the other (modern era).
        :param on: ``"post"``, the stream of the answer, or ``"get"``, the client's standalone stream (legacy era).
        :param timeout: seconds to wait for all results (legacy era).
        :returns: the results by the keys.
        :raises AskedInVain: the client has answered with an error (legacy era).
        :raises TimeoutError: it has not answered, or has no standalone stream (legacy era).
        """


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
    return _object(json.loads(state[len(_STATE):])) if isinstance(state, str) and state.startswith(_STATE) else {}


def _object(value: Any) -> Dict[str, Any]:
    return value if isinstance(value, dict) else {}
