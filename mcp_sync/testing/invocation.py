"""What a function of the user's can do besides returning something: tell progress, log, ask, and see that it is over.

Pages: basic/patterns/progress, server/utilities/logging, basic/patterns/mrtr, basic/patterns/cancellation; client/roots,
client/sampling and client/elicitation of 2025-11-25 for what a server asks in the legacy era.
"""

import abc
import threading
from typing import Any, Callable, Dict, Mapping, Optional

from .call import Way
from .capabilities import missing_tasks
from .ending import Cancelled
from .protocol import LOG_LEVELS, LOG_MESSAGE, PROGRESS, Message, notification
from .request import Request
from .tasks import Task, TaskOptions


class AskedInVain(Exception):
    """The client has answered a question with an error (legacy era).

    :param key: which question.
    :param error: the JSON-RPC error.
    """

    def __init__(self, key: str, error: Any) -> None:
        super().__init__("{}: {}".format(key, error))
        self.key = key
        self.error = error


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
            holder = an_object(holder.get("context"))
        return an_object(holder.get("arguments"))

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
        return an_object(self.request.params.get("inputResponses"))

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


def an_object(value: Any) -> Dict[str, Any]:
    """A value that is to be an object; an empty one in the place of anything else."""
    return value if isinstance(value, dict) else {}
