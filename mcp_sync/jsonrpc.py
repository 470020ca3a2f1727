"""Pure messages: JSON-RPC 2.0 as the Model Context Protocol uses it.

See the specification, basic: Messages.
"""

from __future__ import annotations

import json
import os
import threading
from typing import Any, Dict, Optional, Union

from . import _fork
from ._value import Value
from .errors import ProtocolError, beginning_of

__all__ = [
    "INVALID_PARAMS",
    "METHOD_NOT_FOUND",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "Message",
    "Notification",
    "Request",
    "RequestIds",
    "Response",
    "classify_id",
    "decode",
    "encode",
]

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
#: Used for a missing resource by revisions up to 2025-11-25.
LEGACY_RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_REQUIRED_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022

# Values of more levels can be read, but not shown, copied or compared without overflowing the stack.
_MAX_DEPTH = 200

#: An answer whose id is not the request's own: see :func:`classify_id`.
SAME, ALIKE, FOREIGN = "same", "alike", "foreign"


class Response(Value):
    """An answer: ``error`` is None exactly if it is a result."""

    __slots__ = __match_args__ = ("id", "result", "error")
    id: Any
    result: Any
    error: Optional[Dict[str, Any]]

    def __init__(self, id: Any, result: Any, error: Optional[Dict[str, Any]]) -> None:
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "result", result)
        object.__setattr__(self, "error", error)


class Notification(Value):
    """A message that nobody answers."""

    __slots__ = __match_args__ = ("method", "params")
    method: str
    params: Dict[str, Any]

    def __init__(self, method: str, params: Dict[str, Any]) -> None:
        object.__setattr__(self, "method", method)
        object.__setattr__(self, "params", params)


class Request(Value):
    """A request of the server's (legacy revisions only)."""

    __slots__ = __match_args__ = ("id", "method", "params")
    id: Any
    method: str
    params: Dict[str, Any]

    def __init__(self, id: Any, method: str, params: Dict[str, Any]) -> None:
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "method", method)
        object.__setattr__(self, "params", params)


Message = Union[Response, Notification, Request]


class RequestIds:
    """Makes request ids that no other process uses, a parent and its forked children included.

    The ids are integers below 2**53, so that every JSON reader keeps them exact: 21 random bits of this process, then a
    counter of 32 bits. An answer that reaches the wrong process (through a socket shared across a fork, say) is thus
    recognised as foreign. Any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _last
        self._last = self._first()
        _fork.register(self)

    @staticmethod
    def _first() -> int:
        # os.urandom, not random: a forked child inherits the state of the latter and would draw the same bits.
        return (int.from_bytes(os.urandom(3), "big") & 0x1FFFFF or 1) << 32

    def next(self) -> int:
        """Return an id that was never returned before."""
        with self._lock:
            self._last += 1
            return self._last

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()
        self._last = self._first()


def classify_id(sent: int, came: Any) -> str:
    """Say how the id of an answer fits the request that it came for, where something else than the id correlates them.

    :returns: ``SAME``; ``ALIKE`` for a mangled form of it (text, float, null, 0: servers do that); ``FOREIGN`` for the
        id of some other request, whose answer must not be taken for ours.
    """
    if isinstance(came, bool):
        return FOREIGN  # which Python counts among the integers
    if isinstance(came, int) and came == sent:
        return SAME
    if came is None or (isinstance(came, (int, float)) and came in (0, sent)):
        return ALIKE
    if isinstance(came, str) and came.strip() in (str(sent), "%d.0" % sent):
        return ALIKE
    return FOREIGN


_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def encode(message: Dict[str, Any]) -> bytes:
    """Return a message as UTF-8 JSON.

    :raises ProtocolError: if it holds something that JSON has no form for.
    """
    try:
        return _dumps(message).encode("utf-8")
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8 form, but JSON can spell it as an escape.
        return json.dumps(message, allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise ProtocolError("cannot be sent as JSON: %s" % error) from error


def _integer(text: str) -> Union[int, float]:
    # The time that int() takes grows with the square of the length, and newer Pythons refuse from this length on.
    return int(text) if len(text) <= 4300 else float(text)


_loads = json.JSONDecoder(parse_int=_integer).decode
# The same for a text that is too short for a long number, or for many levels: most messages are.
_SHORT = 2 * _MAX_DEPTH
_loads_short = json.JSONDecoder().decode


def decode(data: Union[bytes, str]) -> Message:
    """Read one message.

    :raises ProtocolError: for anything that is not one JSON-RPC message; it shows the start.
    """
    try:
        # Bytes are decoded here: json.loads would guess UTF-16 and UTF-32, which the protocol excludes.
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        if isinstance(data, bytes) and text.startswith("\ufeff"):
            # Not by way of the codec "utf-8-sig": it is imported when it is first used, and a child that is forked at that moment
            # by another thread has half of it for ever.
            text = text[1:]
        short = len(text) <= _SHORT
        value = _loads_short(text) if short else _loads(text)
    except (ValueError, RecursionError) as error:
        told = beginning_of(data) or "nothing"
        raise ProtocolError("the server sent something that is not JSON: %s" % told) from error
    # So many levels need so many brackets: most messages are done with here.
    if not short and text.count("[") + text.count("{") > _MAX_DEPTH and _deeper_than(_MAX_DEPTH, value):
        raise ProtocolError("the server sent a message of more than %d levels: %s" % (_MAX_DEPTH, beginning_of(data)))
    return parse(value)


def _deeper_than(limit: int, value: Any) -> bool:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(limit):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def parse(value: Any) -> Message:
    """Sort one decoded message.

    :raises ProtocolError: if it is none, and for batches, which no current revision has.
    """
    if not isinstance(value, dict):
        kind = "a batch of messages" if isinstance(value, list) else "something that is not a JSON-RPC message"
        raise ProtocolError("the server sent %s: %s" % (kind, beginning_of(value)))
    method = value.get("method")
    if isinstance(method, str):
        params = value.get("params")
        if not isinstance(params, dict):
            params = {}
        if "id" in value:
            return Request(value["id"], method, params)
        return Notification(method, params)
    error = value.get("error")
    if isinstance(error, dict):
        return Response(value.get("id"), None, error)
    if "result" in value and error is None:
        return Response(value.get("id"), value["result"], None)
    raise ProtocolError("the server sent something that is not a JSON-RPC message: %s" % beginning_of(value))
