"""Everything that mcp_sync raises.

::

    MCPSyncError
     +-- TransportError (also OSError)         could not reach the server, bad status, broken stream
     |    +-- RequestTimeout (also TimeoutError)   a limit passed; the message says which
     |    +-- AuthorizationError                   401 or 403
     +-- ProtocolError                         the server's message makes no sense
     |    +-- UnsupportedVersion                   no protocol version in common
     |    +-- MessageTooLarge                      longer than the client is willing to hold
     |    +-- SkillMismatch                        a skill is not what the server said of it
     +-- ServerError                           a JSON-RPC error
     |    +-- ResourceNotFound                     the resource does not exist (any more)
     |    +-- TaskNotFound                         the task does not exist (any more)
     +-- ToolError                             a tool was called, and says that it failed
     +-- InputRequired                         the server asks for input that nobody here can give
     +-- Cancelled                             this program cancelled the call
     +-- StaleError                            only an old copy could be had, and the caller wanted a current one
     +-- NotSupported                          this server, or its protocol revision, cannot do that
     +-- ClientClosed                          the client was closed

No exception of requests, urllib3 or sseclient leaves the package: the original is the ``__cause__``. All of them
survive pickling, since task queues send exceptions from one process to another (the cause does not travel; the message
tells it).
"""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional, Sequence

__all__ = [
    "AuthorizationError",
    "Cancelled",
    "ClientClosed",
    "InputRequired",
    "MCPSyncError",
    "MessageTooLarge",
    "NotSupported",
    "ProtocolError",
    "RequestTimeout",
    "ResourceNotFound",
    "ServerError",
    "SkillMismatch",
    "StaleError",
    "TaskNotFound",
    "ToolError",
    "TransportError",
    "UnsupportedVersion",
    "beginning_of",
]


_json_pieces = json.JSONEncoder(ensure_ascii=False).iterencode


def beginning_of(data: Any, limit: int = 200) -> str:
    """Return the start of something that a server sent, fit for one line of an error message.

    Control characters are escaped: a message may go to a terminal or a log.

    :param data: bytes, text or any JSON value.
    :param limit: how many characters at most.
    """
    if isinstance(data, (bytes, bytearray)):
        text = bytes(data[: limit * 4]).decode("utf-8", "replace")
    elif isinstance(data, str):
        text = data[: limit * 4]
    else:
        text = _start_of_json(data, limit)
    text = " ".join(text[: limit * 4].split())
    if not text.isprintable():
        text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _start_of_json(data: Any, limit: int) -> str:
    # Piece by piece, because a whole answer may be large. It may also be nested so deeply that the stack overflows, and
    # an error message must not raise another error.
    text = ""
    try:
        for piece in _json_pieces(data):
            text += piece[: limit * 4]
            if len(text) >= limit * 4:
                break
    except (RecursionError, TypeError, ValueError):
        text = text or "<%s>" % type(data).__name__
    return text


class MCPSyncError(Exception):
    """The root: ``except MCPSyncError`` catches whatever this package raises on purpose.

    :param message: one sentence that says what happened and, where there is one, what to do.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class TransportError(MCPSyncError, OSError):
    """The server could not be reached, answered with a bad HTTP status, or broke off.

    :param message: what happened.
    :param status: the HTTP status, or None if there was none.
    :param headers: the answer's headers.
    :param body_start: the start of the answer's body.
    :param may_have_run: whether the server may have executed the request. False only where that is certain.
    :param retry_after: how long the server asked to wait, in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        status: Optional[int] = None,
        headers: Optional[Mapping[str, str]] = None,
        body_start: str = "",
        may_have_run: bool = True,
        retry_after: Optional[float] = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self.body_start = body_start
        self.may_have_run = may_have_run
        self.retry_after = retry_after


class RequestTimeout(TransportError, TimeoutError):
    """A limit passed; the message says which, and how long it was."""


class AuthorizationError(TransportError):
    """401 or 403. Copies that this principal held of the refused resource are gone.

    :param challenge: the ``WWW-Authenticate`` header, as it came.
    """

    def __init__(
        self,
        message: str,
        *,
        status: Optional[int] = None,
        headers: Optional[Mapping[str, str]] = None,
        body_start: str = "",
        may_have_run: bool = False,
        retry_after: Optional[float] = None,
        challenge: Optional[str] = None
    ) -> None:
        super().__init__(
            message,
            status=status,
            headers=headers,
            body_start=body_start,
            may_have_run=may_have_run,
            retry_after=retry_after,
        )
        self.challenge = challenge


class ProtocolError(MCPSyncError):
    """The server sent something that the protocol does not allow; the message shows its start."""


class UnsupportedVersion(ProtocolError):
    """Client and server have no protocol version in common.

    :param supported: the versions that the server named.
    """

    def __init__(self, message: str, *, supported: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.supported = tuple(supported)


class MessageTooLarge(ProtocolError):
    """A message was longer than ``max_message_bytes``; it was not kept in memory."""


class SkillMismatch(ProtocolError):
    """A file of a skill is not what the server said of it, or was not spoken of; its content was not handed out.

    :param uri: the file's URI.
    """

    def __init__(self, message: str, *, uri: str = "") -> None:
        super().__init__(message)
        self.uri = uri


class ServerError(MCPSyncError):
    """The server answered with a JSON-RPC error.

    :param code: the error code (see the specification, basic: Error Codes).
    :param data: whatever the server added.
    :param status: the HTTP status that carried it, or None.
    :param retry_after: how long the server asked to wait, in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        data: Any = None,
        status: Optional[int] = None,
        retry_after: Optional[float] = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.status = status
        self.retry_after = retry_after

    def __str__(self) -> str:
        return "%s (code %d)" % (self.message, self.code)


class ResourceNotFound(ServerError):
    """The resource does not exist, or not for this principal. Copies of it are gone.

    :param uri: the URI that was asked for.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        data: Any = None,
        status: Optional[int] = None,
        retry_after: Optional[float] = None,
        uri: str = ""
    ) -> None:
        super().__init__(message, code=code, data=data, status=status, retry_after=retry_after)
        self.uri = uri


class TaskNotFound(ServerError):
    """The server knows no such task, or not any more: it keeps them only for a time of its choice.

    :param task_id: the id that was asked for.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        data: Any = None,
        status: Optional[int] = None,
        retry_after: Optional[float] = None,
        task_id: str = ""
    ) -> None:
        super().__init__(message, code=code, data=data, status=status, retry_after=retry_after)
        self.task_id = task_id


class ToolError(MCPSyncError):
    """A tool was called, and says that it failed: see :meth:`mcp_sync.CallToolResult.raise_for_error`.

    :param result: all that it answered (:class:`mcp_sync.CallToolResult`).
    """

    def __init__(self, message: str, *, result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class InputRequired(MCPSyncError):
    """The server answered ``input_required`` and nothing here can give that input.

    Whoever can give it makes the same call again with ``input_responses=`` and ``request_state=``, in this process or in
    another: this exception can be pickled, and its fields are JSON. See the specification, basic/patterns/mrtr.

    :param method: the request, for example ``"tools/call"``.
    :param params: its parameters, without earlier answers.
    :param input_requests: what it asks for, by the server's own identifiers: objects with ``method`` and ``params``.
    :param request_state: the opaque text to hand back with the answers, or None.
    :param task: the task that asks, as :meth:`mcp_sync.TaskHandle.to_dict` gives it, if it is one: then the answers go to
        :meth:`mcp_sync.TaskHandle.update`. None otherwise.
    """

    def __init__(
        self,
        message: str,
        *,
        method: str = "",
        params: Optional[Mapping[str, Any]] = None,
        input_requests: Optional[Mapping[str, Any]] = None,
        request_state: Optional[str] = None,
        task: Optional[Mapping[str, Any]] = None
    ) -> None:
        super().__init__(message)
        self.method = method
        self.params = dict(params or {})
        self.input_requests = dict(input_requests or {})
        self.request_state = request_state
        self.task = None if task is None else dict(task)


class StaleError(MCPSyncError):
    """Only a copy older than the caller accepts could be had.

    :param age: how old the copy is, in seconds, or None if there is none.
    """

    def __init__(self, message: str, *, age: Optional[float] = None) -> None:
        super().__init__(message)
        self.age = age


class NotSupported(MCPSyncError):
    """This server, or the protocol revision that it speaks, cannot do what was asked."""


class Cancelled(MCPSyncError):
    """The call was cancelled by this program (:class:`~mcp_sync.Cancellation`), or the task that it began was.

    What the server had done by then is not undone, and it may go on.
    """


class ClientClosed(MCPSyncError):
    """The client was closed, before the call or during it."""

    def __init__(self, message: str = "this client is closed; make a new Client to go on") -> None:
        super().__init__(message)


class Raised(Exception):
    """Carries what a function of the user's raised through code that must not take it for an error of the server's: such a
    function may have called this or another server. Never reaches a user: the client unpacks it.

    :param error: what was raised.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error
