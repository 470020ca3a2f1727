"""Tools whose result comes later: tasks, as their client sees them and as a test scripts them.

Page: specification/draft/tasks of the repository modelcontextprotocol/ext-tasks (io.modelcontextprotocol/tasks).
"""

import itertools
import threading
import time
import uuid
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from .protocol import INTERNAL_ERROR, INVALID_PARAMS, Message, Refusal
from .request import Request
from .values import tool_failure, tool_result
from .waiting import Disconnected

#: In which a task changes no more ("Task Status").
TERMINAL = ("completed", "failed", "cancelled")
# How long the functions of tasks may take to end with the server, in seconds.
_GRACE = 1.0


class TaskOptions(NamedTuple):
    """How the tasks of a tool are made.

    :param poll_interval_ms: ``pollIntervalMs``, in milliseconds; ``None`` leaves it out.
    :param ttl_ms: ``ttlMs``, in milliseconds; ``None`` for no limit. The server forgets nothing by itself.
    :param message: the first ``statusMessage``; ``None`` leaves it out.
    :param heeds_cancel: whether ``tasks/cancel`` makes it ``cancelled`` at once; if not, it is acknowledged, the task's
        ``cancelled`` is set, and its status stays for you to change.
    :param required: whether a client that knows no tasks is refused; if not, the function answers it directly.
    """

    poll_interval_ms: Any = 10
    ttl_ms: Any = None
    message: Optional[str] = None
    heeds_cancel: bool = True
    required: bool = False


class Task:
    """One task.

    ``id`` is its ``taskId``, ``request`` the ``tools/call`` that made it, ``cancelled`` an event that is set once the
    client has cancelled it, or the server has stopped. Whatever is done to a task that is completed, failed or
    cancelled does nothing.

    Threads: any thread may call any method.
    """

    def __init__(self, id: str, request: Request, options: TaskOptions, tell: Callable[["Task"], None]) -> None:
        self.id = id
        self.request = request
        self.cancelled = threading.Event()
        self._heeds_cancel = options.heeds_cancel
        self._tell = tell
        self._changed = threading.Condition(threading.Lock())
        # Guarded by _changed:
        self._fields: Message = {"taskId": id, "status": "working", "createdAt": _now(), "lastUpdatedAt": _now(),
                                 "ttlMs": options.ttl_ms}
        if options.message is not None:
            self._fields["statusMessage"] = options.message
        if options.poll_interval_ms is not None:
            self._fields["pollIntervalMs"] = options.poll_interval_ms
        self._answers: Dict[str, Any] = {}
        self._polls = 0
        self._vanished = False
        self._seed: Optional[Message] = None

    # -- for a test, or the function of the task -----------------------------------------------------------------

    @property
    def status(self) -> str:
        """Its status."""
        with self._changed:
            return str(self._fields["status"])

    @property
    def input_responses(self) -> Dict[str, Any]:
        """What the client has answered so far, by the keys."""
        with self._changed:
            return dict(self._answers)

    def tell(self, message: Optional[str]) -> None:
        """Give it another ``statusMessage``; ``None`` leaves it out."""
        self._change({"statusMessage": message})

    def set(self, **fields: Any) -> None:
        """Give it any members, exactly as they are: ``task.set(pollIntervalMs=5000, status="odd")``.

        ``None`` leaves one out, except ``ttlMs``.
        """
        self._change(fields)

    def ask(self, requests: Dict[str, Message]) -> None:
        """Let it be ``input_required``, with these requests besides those that are not answered yet.

        :param requests: by keys of your choice, each ``{"method": ..., "params": ...}``.
        """
        with self._changed:
            outstanding = dict(self._fields.get("inputRequests", {}), **requests)
        self._change({"status": "input_required", "inputRequests": outstanding})

    def complete(self, value: Any = "") -> None:
        """Let it be ``completed``.

        :param value: what a tool may return.
        """
        self._change({"status": "completed", "result": tool_result(value), "inputRequests": None})

    def fail(self, code: int = INTERNAL_ERROR, message: str = "Internal error", data: Any = None) -> None:
        """Let it be ``failed`` with a JSON-RPC error."""
        error = {"code": code, "message": message, "data": data}
        self._change({"status": "failed", "inputRequests": None,
                      "error": {key: member for key, member in error.items() if member is not None}})

    def cancel(self) -> None:
        """Let it be ``cancelled``."""
        self._change({"status": "cancelled", "inputRequests": None})

    def vanish(self) -> None:
        """Let the server forget it: its id is unknown from now on."""
        with self._changed:
            self._vanished = True
            self._changed.notify_all()

    def wait_for_input(self, *keys: str, timeout: float = 5.0) -> Dict[str, Any]:
        """Wait until the client has answered what was asked.

        :param keys: which requests; none for all that are outstanding now.
        :param timeout: seconds.
        :returns: the answers by the keys.
        :raises TimeoutError: they did not come.
        :raises Disconnected: the task has been cancelled.
        """
        with self._changed:
            wanted = keys or tuple(self._fields.get("inputRequests", {}))
            self._changed.wait_for(
                lambda: self.cancelled.is_set() or all(key in self._answers for key in wanted), timeout)
            if all(key in self._answers for key in wanted):
                return {key: self._answers[key] for key in wanted}
        if self.cancelled.is_set():
            raise Disconnected("the task has been cancelled")
        raise TimeoutError("the client has not answered {} within {} s".format(list(wanted), timeout))

    def wait_for_polls(self, n: int = 1, timeout: float = 5.0) -> None:
        """Wait until the client has asked for it ``n`` times, counted from the start.

        :param timeout: seconds.
        :raises TimeoutError: it has not.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._polls >= n or self.cancelled.is_set(), timeout):
                raise TimeoutError("{} of {} polls within {} s".format(self._polls, n, timeout))

    def _change(self, fields: Message) -> None:
        with self._changed:
            if self._fields["status"] in TERMINAL:
                return
            self._fields.update(fields, lastUpdatedAt=_now())
            self._fields = {key: member for key, member in self._fields.items() if member is not None or key == "ttlMs"}
            self._changed.notify_all()
        self._tell(self)

    # -- for the server ------------------------------------------------------------------------------------------

    def detail(self) -> Message:
        """All that ``tasks/get`` says of it."""
        with self._changed:
            return dict(self._fields)

    def sow(self) -> None:
        """Keep what it is now for the answer to the call, whatever its function does before that goes out."""
        seed = self.seed()
        with self._changed:
            self._seed = seed

    def seed(self) -> Message:
        """What the answer to the call says of it ("Task Creation")."""
        with self._changed:
            return self._seed or {key: member for key, member in self._fields.items()
                                  if key not in ("inputRequests", "result", "error")}

    @property
    def vanished(self) -> bool:
        """Whether the server has forgotten it."""
        with self._changed:
            return self._vanished

    def polled(self) -> Message:
        """The client has asked for it."""
        with self._changed:
            self._polls += 1
            self._changed.notify_all()
            return dict(self._fields)

    def answer(self, responses: Dict[str, Any]) -> None:
        """The client has answered; what is not outstanding is ignored."""
        with self._changed:
            outstanding = self._fields.get("inputRequests", {})
            self._answers.update({key: value for key, value in responses.items() if key in outstanding})
            left = {key: asked for key, asked in outstanding.items() if key not in responses}
            self._changed.notify_all()
        if len(left) < len(outstanding):
            self._change({"inputRequests": left} if left else {"inputRequests": None, "status": "working"})

    def ask_cancel(self) -> None:
        """The client wants it to end."""
        if self._heeds_cancel:
            self.cancel()
        self.end()

    def end(self) -> None:
        """Nobody waits for it any more."""
        self.cancelled.set()
        with self._changed:
            self._changed.notify_all()


class Tasks:
    """All tasks of one server; they outlive its end, like its resources.

    :param tell: called after each change of a task.

    Threads: any thread may call any method.
    """

    _numbers = itertools.count(1)

    def __init__(self, tell: Callable[[Task], None]) -> None:
        self._tell = tell
        self._changed = threading.Condition(threading.Lock())
        # Guarded by _changed; in the order of beginning:
        self._tasks: Dict[str, Task] = {}
        self._threads: Dict[Task, threading.Thread] = {}

    def new(self, request: Request, options: TaskOptions) -> Task:
        """Begin a task."""
        task = Task(uuid.uuid4().hex, request, options, self._tell)
        with self._changed:
            self._tasks[task.id] = task
            self._changed.notify_all()
        return task

    def run(self, task: Task, work: Callable[[], Any]) -> None:
        """Let a function bring about the result of a task, in a thread of its own."""
        def body() -> None:
            try:
                task.complete(work())
            except Disconnected:
                task.cancel()  # it waited for something when the client cancelled the task
            except Refusal as refusal:
                task.fail(refusal.code, refusal.message, refusal.data)
            except Exception as error:
                # A function of the user's, likewise.
                task.complete(tool_failure(error))
            finally:
                with self._changed:
                    self._threads.pop(task, None)

        task.sow()
        name = "mcp_sync-testing-task-{}".format(next(self._numbers))
        thread = threading.Thread(target=body, name=name, daemon=True)
        with self._changed:
            self._threads[task] = thread
            thread.start()

    def get(self, id: Any, principal: Optional[str]) -> Task:
        """The task with that id.

        :param principal: who asks; the tasks of others are unknown.
        :raises Refusal: there is none (-32602).
        """
        with self._changed:
            task = self._tasks.get(id) if isinstance(id, str) else None
        if task is None or task.vanished or task.request.principal != principal:
            raise Refusal(INVALID_PARAMS, "Task not found: {}".format(id))
        return task

    def all(self) -> List[Task]:
        """Every task, the oldest first."""
        with self._changed:
            return list(self._tasks.values())

    def wait(self, count: int, timeout: float) -> Tuple[Task, ...]:
        """Wait for that many tasks.

        :param timeout: seconds.
        :raises TimeoutError: there were not so many.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._tasks) >= count, timeout):
                raise TimeoutError("{} of {} tasks within {} s".format(len(self._tasks), count, timeout))
            return tuple(self._tasks.values())

    def end(self) -> None:
        """End every function that is still at work; its task fails."""
        with self._changed:
            threads = dict(self._threads)
        for task in threads:
            task.fail(INTERNAL_ERROR, "the server has stopped")
            task.end()
        limit = time.monotonic() + _GRACE
        for thread in threads.values():
            if thread is not threading.current_thread():  # a function may stop the server that runs it
                thread.join(max(0.0, limit - time.monotonic()))


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
