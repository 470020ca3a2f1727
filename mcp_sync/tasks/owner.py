"""``Tasks``: the tasks that one client knows of."""

import logging
import random
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Union, cast

from .. import _fork
from .._deadline import Clock, Deadline, monotonic
from ..calling import CallOptions, Cancellation, Progress
from ..eras.modern import TASKS
from ..errors import (
    Cancelled,
    ClientClosed,
    InputRequired,
    MCPSyncError,
    NotSupported,
    ProtocolError,
    ServerError,
    TaskNotFound,
    beginning_of,
)
from ..jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND
from ..results.base import text_field
from ..results.tools import CallToolResult
from .base import TaskOwner, TaskState
from .handle import TaskHandle
from .waiting import Pace, Waiting

__all__ = ["TASKS", "Tasks"]

_log = logging.getLogger("mcp_sync")

#: The longest id that is accepted: it goes into a header of every request about the task.
_LONGEST_ID = 4096

#: How long a server may take to note that a task is given up, in seconds.
_GIVING_UP = 2.0


class Tasks(TaskOwner):
    """The tasks that one client knows of. Any thread.

    :param request: sends one request, and returns its result.
    :param answers: answers input requests, by the server's own identifiers; raises what it was given if it cannot.
    :param read: makes what the program receives of the raw result of a call, and the tool's name.
    :param timeout: seconds that one request may take, or None.
    :param max_timeout: seconds that a wait may take, unless it says otherwise; None for no limit.
    :param max_rounds: how often a server may ask for input during one wait.
    :param clock: seconds, never going back.
    :param pause: waits, so many seconds at most; less if the alarm rings.
    :param uniform: where chance comes from.
    """

    def __init__(
        self,
        request: Callable[[str, Dict[str, Any], CallOptions], Dict[str, Any]],
        answers: Callable[[InputRequired], Dict[str, Any]],
        read: Callable[[Any, str], CallToolResult] = CallToolResult.from_wire,
        *,
        timeout: Optional[float] = 30.0,
        max_timeout: Optional[float] = 3600.0,
        max_rounds: int = 10,
        clock: Clock = monotonic,
        pause: "Callable[[_Alarm, float], Any]" = lambda alarm, seconds: alarm.wait(seconds),
        uniform: Callable[[float, float], float] = random.uniform
    ) -> None:
        self._request = request
        self._answers = answers
        self._read = read
        self._timeout = timeout
        self._max_timeout = max_timeout
        self._max_rounds = max_rounds
        self.clock = clock
        self._pause = pause
        self._uniform = uniform
        self._closed = False
        self._made_anew()
        _fork.register(self)

    def _made_anew(self) -> None:
        # Guards the list, and _closed. One that a thread may take twice: a handler of a signal may close the client.
        self._lock = threading.RLock()
        self._waiting: List[_Alarm] = []

    def after_fork_in_child(self) -> None:
        self._made_anew()

    def begun(self, raw: Mapping[str, Any], name: str) -> TaskHandle:
        """Return the handle of a task that the server has just created.

        :param raw: the result of the request, whose ``resultType`` is ``"task"``.
        :param name: the tool.
        :raises ProtocolError: if it has no id, or no status.
        """
        task_id = text_field(raw, "taskId")
        if not task_id or len(task_id) > _LONGEST_ID:
            raise ProtocolError("the server created a task without an id that can be used: %s" % beginning_of(raw))
        handle = TaskHandle(task_id, name).of(self)
        handle.heard(TaskState.from_wire(raw, False))
        return handle

    def handle(self, task: Union[str, Mapping[str, Any], TaskHandle]) -> TaskHandle:
        """Return a handle that belongs here.

        :param task: an id, what :meth:`TaskHandle.to_dict` gave, or a handle that came from elsewhere.
        :raises ValueError: if it is none of these.
        """
        if isinstance(task, str):
            task = {"task_id": task}
        handle = task if isinstance(task, TaskHandle) else TaskHandle.from_dict(task)
        return handle if handle.belongs_to(self) else handle.of(self)

    def ask(
        self,
        task_id: str,
        method: str,
        params: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        cancellation: Optional[Cancellation] = None
    ) -> Dict[str, Any]:
        limit = self._timeout if timeout is None else timeout
        # The result of tasks/get is no task to wait for; but the specification's own examples call it one.
        options = CallOptions(timeout=limit, max_timeout=limit, cancellation=cancellation, accept_task=True)
        try:
            return self._request(method, dict(params or {}, taskId=task_id), options)
        except ServerError as error:
            if error.code == METHOD_NOT_FOUND:
                raise NotSupported("the server does not know %s: it has no tasks" % method) from error
            if error.code != INVALID_PARAMS:
                raise
            if method == "tasks/update":
                # These may also be the answers that it does not like. If it does not know the task, this says so.
                self.ask(task_id, "tasks/get", timeout=timeout, cancellation=cancellation)
                raise
            raise TaskNotFound(
                "the server does not know the task %s, or not any more: %s" % (beginning_of(task_id), error.message),
                code=error.code,
                data=error.data,
                status=error.status,
                task_id=task_id,
            ) from error

    def wait(
        self,
        handle: TaskHandle,
        timeout: Optional[float],
        on_progress: Optional[Callable[[Progress], Any]],
        cancellation: Optional[Cancellation],
    ) -> CallToolResult:
        """Wait for the end of a task; see :meth:`TaskHandle.wait`."""
        return self._read(self._end(handle, timeout, on_progress, cancellation), handle.name)

    def finish(
        self,
        handle: TaskHandle,
        timeout: Optional[float],
        on_progress: Optional[Callable[[Progress], Any]],
        cancellation: Optional[Cancellation],
    ) -> Dict[str, Any]:
        """As :meth:`wait`, for a caller who knows of no task: who cancels the call cancels the task.

        :returns: the raw result of the call.
        """
        try:
            return self._end(handle, timeout, on_progress, cancellation)
        except Cancelled:
            if not handle.ended:
                try:
                    handle.cancel(timeout=_GIVING_UP)
                except MCPSyncError as error:
                    _log.warning("a task that is not waited for any more could not be cancelled: %s", error)
            raise

    def close(self) -> None:
        """End all waits. The tasks go on."""
        with self._lock:
            self._closed = True
            waiting = list(self._waiting)
        for alarm in waiting:
            alarm.interrupt()

    def _end(
        self,
        handle: TaskHandle,
        timeout: Optional[float],
        on_progress: Optional[Callable[[Progress], Any]],
        cancellation: Optional[Cancellation],
    ) -> Dict[str, Any]:
        alarm = _Alarm()
        waiting = Waiting(
            handle,
            self._answers,
            Deadline(self._max_timeout if timeout is None else timeout, clock=self.clock),
            self._timeout,
            self._max_rounds,
            Pace(self._uniform),
            lambda seconds: self._wait_for(alarm, seconds),
            on_progress,
            cancellation,
        )
        interrupted = cast(Any, alarm)
        with self._lock:
            self._waiting.append(alarm)
        try:
            if cancellation is not None:
                cancellation.attach(interrupted)
            return waiting.to_the_end(self.clock)
        finally:
            if cancellation is not None:
                cancellation.detach(interrupted)
            with self._lock:
                if alarm in self._waiting:
                    self._waiting.remove(alarm)

    def _wait_for(self, alarm: "_Alarm", seconds: float) -> None:
        if not self._closed:
            self._pause(alarm, seconds)
        if self._closed:
            raise ClientClosed("the client was closed while a task was waited for; the task goes on")


class _Alarm:
    """What ends a wait early, for good. Any thread, and a handler of a signal: an event has a lock that the very thread may hold
    which the signal interrupts."""

    def __init__(self) -> None:
        self._rung = False
        self._sleeping = threading.Lock()
        self._sleeping.acquire()

    def wait(self, seconds: float) -> None:
        """Wait until it rings, or so many seconds."""
        if not self._rung:
            self._sleeping.acquire(timeout=seconds)

    def interrupt(self) -> None:
        """Let it ring. A cancellation does, as with an exchange."""
        self._rung = True
        try:
            self._sleeping.release()
        except RuntimeError:
            pass  # it has rung before
