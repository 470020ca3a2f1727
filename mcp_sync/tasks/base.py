"""What a server says of a task, and what a handle needs of the client that it belongs to."""

import abc
import hashlib
import json
import math
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, Optional

from .._deadline import Clock
from ..calling import Cancellation, Progress
from ..errors import ProtocolError, beginning_of
from ..results.base import mapping_field, text_field
from ..results.tools import CallToolResult

__all__ = ["CANCELLED", "COMPLETED", "FAILED", "INPUT_REQUIRED", "WORKING", "TaskOwner", "TaskState", "digest_of"]

WORKING, INPUT_REQUIRED, COMPLETED, FAILED, CANCELLED = "working", "input_required", "completed", "failed", "cancelled"


def _seconds(milliseconds: Any) -> Optional[float]:
    """Return a duration of the wire's in seconds; None for what is none."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, (int, float)):
        return None
    return min(milliseconds, 1e12) / 1000.0 if 0 <= milliseconds < math.inf else None


def digest_of(request: Any) -> str:
    """Return a few digits that tell one input request from another."""
    try:
        return hashlib.sha256(json.dumps(request, sort_keys=True).encode("ascii")).hexdigest()[:16]
    except RecursionError:
        raise ProtocolError("the server asks for an input that is nested too deeply") from None


@dataclass(frozen=True)
class TaskState:
    """What the server said of a task at one moment. Immutable; any thread.

    :param created: the moment of its creation, as the server wrote it.
    :param told: whether it is all that there is to know: a task that is created or handed on comes without its outcome.
    """

    status: str = WORKING
    status_message: Optional[str] = None
    poll_interval: Optional[float] = None
    ttl: Optional[float] = None
    created: Optional[str] = None
    result: Optional[Dict[str, Any]] = field(default=None, repr=False)
    error: Dict[str, Any] = field(default_factory=dict, repr=False)
    input_requests: Dict[str, Any] = field(default_factory=dict, repr=False)
    told: bool = False

    @property
    def ended(self) -> bool:
        return self.status in (COMPLETED, FAILED, CANCELLED)

    @classmethod
    def from_wire(cls, raw: Mapping[str, Any], told: bool) -> "TaskState":
        """Read a ``Task``.

        :raises ProtocolError: if it has no status.
        """
        status = text_field(raw, "status")
        if status is None:
            raise ProtocolError("the server sent a task without a status: %s" % beginning_of(raw))
        result = raw.get("result")
        return cls(
            status,
            text_field(raw, "statusMessage"),
            _seconds(raw.get("pollIntervalMs")),
            _seconds(raw.get("ttlMs")),
            text_field(raw, "createdAt"),
            result if isinstance(result, dict) else None,
            mapping_field(raw, "error"),
            mapping_field(raw, "inputRequests"),
            told,
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "TaskState":
        """Read what a handle has written."""
        durations = [data.get("poll_interval"), data.get("ttl")]
        poll_interval, ttl = [float(it) if isinstance(it, (int, float)) and it >= 0 else None for it in durations]
        status, message, created = (text_field(data, name) for name in ("status", "status_message", "created"))
        return cls(status or WORKING, message, poll_interval, ttl, created)


class TaskOwner(abc.ABC):
    """The client that a handle belongs to. Any thread."""

    clock: Clock

    @abc.abstractmethod
    def ask(
        self,
        task_id: str,
        method: str,
        params: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        cancellation: Optional[Cancellation] = None
    ) -> Dict[str, Any]:
        """Send one request about a task, and return its result.

        :raises TaskNotFound: if the server does not know the task.
        :raises NotSupported: if it knows no tasks.
        :raises MCPSyncError: whatever else went wrong.
        """

    @abc.abstractmethod
    def wait(
        self,
        handle: Any,
        timeout: Optional[float],
        on_progress: Optional[Callable[[Progress], Any]],
        cancellation: Optional[Cancellation],
    ) -> CallToolResult:
        """Wait for the end of a task (a :class:`TaskHandle`)."""
