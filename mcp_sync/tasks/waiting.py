"""One wait for the end of a task: ask, answer what the server asks, wait, ask again."""

import logging
from typing import Any, Callable, Dict, Optional, Tuple

from .._backoff import Backoff
from .._deadline import Deadline
from ..calling import Cancellation, Progress
from ..errors import (
    AuthorizationError,
    Cancelled,
    InputRequired,
    MCPSyncError,
    ProtocolError,
    RequestTimeout,
    ServerError,
    TransportError,
)
from ..results.base import text_field
from .base import CANCELLED, FAILED, INPUT_REQUIRED, WORKING, TaskState, digest_of
from .handle import TaskHandle

__all__ = ["Pace", "Waiting"]

_log = logging.getLogger("mcp_sync")

#: Seconds between two questions: never less and never more, whatever a server says.
_SHORTEST, _LONGEST = 0.1, 3600.0
#: Where it says nothing: from the first to the second of these, doubling.
_FIRST, _LAST = 0.5, 5.0
#: The longest wait after a failure, in seconds, unless the server asks for more.
_BACKOFF_CAP = 30.0

#: HTTP statuses that may be others soon.
_PASSING = frozenset([408, 425, 429, 500, 502, 503, 504])


class Pace:
    """How long to wait between two questions about one task. One thread.

    :param uniform: where chance comes from.
    """

    def __init__(self, uniform: Callable[[float, float], float]) -> None:
        self._uniform = uniform
        self._failures = Backoff(1.0, _BACKOFF_CAP, uniform)
        self._unhinted = Backoff(_FIRST, _LAST, lambda least, most: most)

    def after_answer(self, hint: Optional[float]) -> float:
        """Return the seconds to wait after an answer.

        :param hint: what the server asks for, in seconds, or None.
        """
        self._failures.reset()
        seconds = self._unhinted.next() if hint is None else min(max(hint, _SHORTEST), _LONGEST)
        # Not all clients at once; and not sooner than the server said, for it may refuse that.
        return seconds * self._uniform(1.0, 1.2)

    def after_failure(self, retry_after: Optional[float]) -> float:
        """Return the seconds to wait after a failure."""
        at_least = None if retry_after is None else min(retry_after, _LONGEST)
        return max(self._failures.next(at_least), _SHORTEST)


class Waiting:
    """One wait for the end of a task. One thread, but for the event.

    :param handle: the task.
    :param answers: answers input requests, or raises what it was given.
    :param limit: for all of it.
    :param poll_timeout: seconds that one question may take, or None.
    :param max_rounds: how often the server may ask for input.
    :param pace: how long to wait between two questions.
    :param pause: waits so many seconds at most, less if there is no reason any more to wait.
    """

    def __init__(
        self,
        handle: TaskHandle,
        answers: Callable[[InputRequired], Dict[str, Any]],
        limit: Deadline,
        poll_timeout: Optional[float],
        max_rounds: int,
        pace: Pace,
        pause: Callable[[float], None],
        on_progress: Optional[Callable[[Progress], Any]] = None,
        cancellation: Optional[Cancellation] = None,
    ) -> None:
        self._handle = handle
        self._answers = answers
        self._limit = limit
        self._poll_timeout = poll_timeout
        self._max_rounds = max_rounds
        self._pace = pace
        self._pause = pause
        self._on_progress = on_progress
        self._cancellation = cancellation
        self._message: Optional[str] = None
        self._messages = 0
        self._rounds = 0
        # Answers, by key and digest of what was asked. They may not have arrived, and nobody is asked again for them.
        self._given: Dict[Tuple[str, str], Any] = {}

    def to_the_end(self, clock: Callable[[], float]) -> Dict[str, Any]:
        """Return the raw result of the call that began the task."""
        handle = self._handle
        self._tell()
        if not (handle.state.ended and handle.state.told):
            self._wait(self._first(clock))
            while True:
                seconds = self._look()
                if handle.state.ended:
                    break
                self._wait(seconds)
        return _outcome(handle.state)

    def _first(self, clock: Callable[[], float]) -> float:
        """Return the seconds until the first time: what was just heard need not be asked."""
        heard_at = self._handle.heard_at
        if heard_at is None or self._handle.status != WORKING:
            return 0.0
        return heard_at + self._pace.after_answer(self._handle.poll_interval) - clock()

    def _wait(self, seconds: float) -> None:
        if seconds > 0.0:
            left = self._limit.remaining()
            self._pause(seconds if left is None else min(seconds, left))
            self._check_limit()
        if self._cancellation is not None:
            self._cancellation.raise_if_cancelled("the wait for a task")

    def _check_limit(self) -> None:
        if self._limit.expired:
            raise RequestTimeout(
                'the task "%s" has not ended within %g s, and goes on: client.task() with its id gives a handle to wait again'
                % (self._handle.task_id, self._limit.timeout or 0.0)
            )

    def _look(self) -> float:
        """Ask once how the task is doing, answer what it asks for, and return the seconds until the next time."""
        limit = self._limit.shorter(self._poll_timeout)
        seconds = self._failed(lambda: self._handle.look(limit, self._cancellation))
        if seconds is None:
            self._tell()
            responses = self._responses() if self._handle.status == INPUT_REQUIRED else {}
            if responses:
                # Its limit is its own: a user may have spent the other on the answer.
                seconds = self._failed(lambda: self._handle.give(responses, None, self._cancellation))
        return self._pace.after_answer(self._handle.poll_interval) if seconds is None else seconds

    def _failed(self, ask: Callable[[], Any]) -> Optional[float]:
        """Ask; if that fails, and may succeed another time, return the seconds until then."""
        try:
            ask()
            return None
        except (TransportError, ServerError) as error:
            if not _may_pass(error):
                raise
            seconds = self._pace.after_failure(error.retry_after)
            _log.info("a task could not be asked for, again in %.1f s: %s", seconds, error)
            return seconds

    def _tell(self) -> None:
        message = self._handle.status_message
        if message is not None and message != self._message:
            self._message = message
            self._messages += 1
            if self._on_progress is not None:
                self._on_progress(Progress(float(self._messages), None, message))

    def _responses(self) -> Dict[str, Any]:
        """Return the answers to what is asked and was not answered yet."""
        asked = {(key, digest_of(request)): request for key, request in self._handle.input_requests.items()}
        new = {key: request for (key, digest), request in asked.items() if (key, digest) not in self._given}
        if new:
            self._rounds += 1
            if self._rounds > self._max_rounds:
                raise ProtocolError(
                    "the server has asked for input %d times while one task was waited for; that is the limit "
                    "(input_required_max_rounds=)" % self._max_rounds
                )
            answers = self._answers(
                InputRequired(
                    "the server asks for input before the task goes on: client.task(error.task) gives a handle whose "
                    "update() takes it, and whose wait() goes on",
                    method=self._handle.method,
                    input_requests=new,
                    task=self._handle.to_dict(),
                )
            )
            self._given.update({(key, digest_of(new[key])): answer for key, answer in answers.items() if key in new})
        return {key: self._given[key, digest] for key, digest in asked if (key, digest) in self._given}


def _outcome(state: TaskState) -> Dict[str, Any]:
    said = "" if state.status_message is None else ": %s" % state.status_message
    if state.status == FAILED:
        code = state.error.get("code")
        raise ServerError(
            text_field(state.error, "message") or "the task failed%s" % (said or ", and the server does not say why"),
            code=code if isinstance(code, int) else 0,
            data=state.error.get("data"),
        )
    if state.status == CANCELLED:
        raise Cancelled("the task was cancelled%s" % said)
    if state.result is None:
        raise ProtocolError("the server says that the task is completed, and sends no result")
    return state.result


def _may_pass(error: MCPSyncError) -> bool:
    """Return whether a question that failed is worth asking again."""
    if isinstance(error, AuthorizationError):
        return False
    if isinstance(error, ServerError):
        return error.retry_after is not None or error.status in (429, 502, 503, 504)
    return isinstance(error, TransportError) and (error.status is None or error.status in _PASSING)
