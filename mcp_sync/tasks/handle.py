"""``TaskHandle``: one task at a server, in a form that can be kept."""

import datetime
from typing import Any, Callable, Dict, Mapping, Optional

from ..calling import Cancellation, Progress
from ..errors import beginning_of
from ..results.base import mapping_field, moment, text_field
from ..results.tools import CallToolResult
from .base import TaskOwner, TaskState, digest_of

__all__ = ["TaskHandle"]


class TaskHandle:
    """One task at a server, and what was last heard of it.

    ::

        handle = client.start_tool("train", {"epochs": 90})
        store(json.dumps(handle.to_dict()))
        ...
        client.task(json.loads(fetch())).wait(on_progress=lambda progress: print(progress.message))

    It can also be pickled; what comes out is given to :meth:`Client.task` before it is used. Servers may take the id for proof of
    who asks: keep it as you keep credentials. See the extension's specification: Tasks. Any thread.
    """

    def __init__(self, task_id: str, name: str = "", method: str = "tools/call") -> None:
        self.task_id = task_id
        #: The request that began the task, and the tool that it called; empty if only the id was known.
        self.method = method
        self.name = name
        self._state = TaskState()
        self._owner: Optional[TaskOwner] = None
        #: When the state was heard, on the client's clock; None if it comes from elsewhere.
        self.heard_at: Optional[float] = None
        # What was asked and has been answered: a digest of each request, by its key. Replaced, never changed.
        self._answered: Dict[str, str] = {}

    @property
    def status(self) -> str:
        """``"working"``, ``"input_required"``, ``"completed"``, ``"failed"`` or ``"cancelled"``, when it was last heard of."""
        return self._state.status

    @property
    def status_message(self) -> Optional[str]:
        """What the server said about it, for people; None if nothing."""
        return self._state.status_message

    @property
    def poll_interval(self) -> Optional[float]:
        """Seconds that the server wants to pass between two questions; None if it did not say."""
        return self._state.poll_interval

    @property
    def ttl(self) -> Optional[float]:
        """Seconds from its creation that the server keeps the task for; None for ever, or if it did not say."""
        return self._state.ttl

    @property
    def created(self) -> Optional[datetime.datetime]:
        """When the server created it; None if it did not say."""
        return moment(self._state.created)

    @property
    def ended(self) -> bool:
        """Whether it was completed, failed or cancelled, when it was last heard of."""
        return self._state.ended

    @property
    def input_requests(self) -> Dict[str, Any]:
        """What the server asks for before the task can go on and nobody has answered yet, by its own identifiers."""
        asked = self._state.input_requests
        # A key should be used once; a server that asks for something else by it has asked a new question.
        return {key: asked[key] for key in asked if self._answered.get(key) not in ("", digest_of(asked[key]))}

    def refresh(self, *, timeout: Optional[float] = None) -> "TaskHandle":
        """Ask the server once how the task is doing, and return this handle.

        :param timeout: seconds; the client's by default.
        :raises TaskNotFound: if the server does not know the task, or no more.
        :raises MCPSyncError: whatever else went wrong (see :mod:`mcp_sync.errors`).
        """
        self.look(timeout)
        return self

    def update(self, input_responses: Mapping[str, Any], *, timeout: Optional[float] = None) -> None:
        """Give the server what it asked for. Each request is answered once.

        :param input_responses: for identifiers of ``input_requests``, the results of those requests.
        :param timeout: seconds; the client's by default.
        :raises TaskNotFound: if the server does not know the task, or no more.
        :raises MCPSyncError: whatever else went wrong.
        """
        self.give(input_responses, timeout)

    def cancel(self, *, timeout: Optional[float] = None) -> None:
        """Ask the server to cancel the task. It may take its time, or finish it all the same: :meth:`wait` tells.

        :param timeout: seconds; the client's by default.
        :raises TaskNotFound: if the server does not know the task, or no more.
        :raises MCPSyncError: whatever else went wrong.
        """
        self._bound().ask(self.task_id, "tasks/cancel", timeout=timeout)

    def wait(
        self,
        timeout: Optional[float] = None,
        *,
        on_progress: Optional[Callable[[Progress], Any]] = None,
        cancellation: Optional[Cancellation] = None
    ) -> CallToolResult:
        """Wait for the task's end and return the result of its call. Input requests are answered by the client's handlers.

        The task does not mind that a wait ends by an error, unless the error says that it ended itself: wait again.

        :param timeout: seconds; the client's ``max_timeout`` by default.
        :param on_progress: called in this thread when the server says something new: ``.message`` is what, ``.progress`` counts.
        :param cancellation: ends the wait, not the task; for that there is :meth:`cancel`.
        :raises InputRequired: if the server asks for what no handler gives: answer with :meth:`update`, and wait again.
        :raises ServerError: if the task failed.
        :raises Cancelled: if the task was cancelled, or the wait.
        :raises TaskNotFound: if the server does not know the task, or no more.
        :raises RequestTimeout: if it has not ended by then.
        :raises MCPSyncError: whatever else went wrong.
        """
        return self._bound().wait(self, timeout, on_progress, cancellation)

    def to_dict(self) -> Dict[str, Any]:
        """Return it as plain values (JSON), for :meth:`from_dict` or :meth:`Client.task` in another process."""
        return {
            "task_id": self.task_id,
            "method": self.method,
            "name": self.name,
            "status": self.status,
            "status_message": self.status_message,
            "poll_interval": self.poll_interval,
            "ttl": self.ttl,
            "created": self._state.created,
            "answered": dict(self._answered),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "TaskHandle":
        """Return the handle that :meth:`to_dict` wrote; give it to :meth:`Client.task` before it is used.

        :raises ValueError: if it has no ``"task_id"``.
        """
        task_id = data.get("task_id")
        if not isinstance(task_id, str) or not task_id:
            raise ValueError('this is no task: it has no "task_id"')
        handle = cls(task_id, text_field(data, "name") or "", text_field(data, "method") or "tools/call")
        handle._state = TaskState.from_dict(data)
        handle._answered = {str(key): str(digest) for key, digest in mapping_field(data, "answered").items()}
        return handle

    def __reduce__(self) -> Any:
        return TaskHandle.from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        said = "" if self.status_message is None else ": %s" % beginning_of(self.status_message, 60)
        return "<TaskHandle %s of %s, %s%s>" % (beginning_of(self.task_id, 12), self.name or self.method, self.status, said)

    # -- for the client that it belongs to ---------------------------------------------------------------------------------

    def of(self, owner: TaskOwner) -> "TaskHandle":
        """Return a handle of the same task that belongs to ``owner``."""
        handle = self.from_dict(self.to_dict())
        handle._owner = owner
        return handle

    def heard(self, state: TaskState) -> None:
        """Note what the server said. What was asked first may be answered last: what has ended stays so."""
        self.heard_at = self._bound().clock()
        if not (self._state.ended and self._state.told):
            self._state = state

    def look(self, timeout: Optional[float] = None, cancellation: Optional[Cancellation] = None) -> TaskState:
        """Ask once how the task is doing."""
        raw = self._bound().ask(self.task_id, "tasks/get", timeout=timeout, cancellation=cancellation)
        self.heard(TaskState.from_wire(raw, True))
        return self._state

    def give(
        self, responses: Mapping[str, Any], timeout: Optional[float] = None, cancellation: Optional[Cancellation] = None
    ) -> None:
        """Answer what was asked."""
        asked = self._state.input_requests
        params = {"inputResponses": dict(responses)}
        self._bound().ask(self.task_id, "tasks/update", params, timeout=timeout, cancellation=cancellation)
        # Of a request that was asked elsewhere only the key is known.
        digests = {key: digest_of(asked[key]) if key in asked else "" for key in responses}
        self._answered = {**self._answered, **digests}

    def belongs_to(self, owner: TaskOwner) -> bool:
        return self._owner is owner

    @property
    def state(self) -> TaskState:
        """What was last heard of it."""
        return self._state

    def _bound(self) -> TaskOwner:
        if self._owner is None:
            raise ValueError("this handle comes from elsewhere: client.task(handle) gives one that can be used")
        return self._owner
