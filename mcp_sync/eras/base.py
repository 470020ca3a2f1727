"""What an era does: it turns (method, parameters) into messages, and messages into results or notices."""

from __future__ import annotations

import abc
import re
from typing import Any, Dict, Optional, Tuple

from .._value import Value
from ..errors import ResourceNotFound, ServerError, beginning_of
from ..jsonrpc import INVALID_PARAMS, LEGACY_RESOURCE_NOT_FOUND, Response
from ..transports.base import Exchange, Outgoing

__all__ = ["Ended", "Era", "error_parts", "server_error"]


class Ended(Value):
    """A stream's own word that it is over. Immutable; any thread.

    :param how: ``"result"``, ``"error"`` or ``"cancelled"``.
    :param error: the server's error, if that is how.
    """

    __slots__ = ("how", "error")
    __match_args__ = ("how", "error")
    how: str
    error: Optional[ServerError]

    def __init__(self, how: str, error: Optional[ServerError] = None) -> None:
        object.__setattr__(self, "how", how)
        object.__setattr__(self, "error", error)


class Era(abc.ABC):
    """One age of the protocol. Immutable; any thread."""

    #: The protocol revision that is spoken.
    version: str = ""

    #: What the server calls the session, in the legacy era and over HTTP; None where there is none.
    session_id: Optional[str] = None

    @abc.abstractmethod
    def request(self, request_id: int, method: str, params: Dict[str, Any]) -> Outgoing:
        """Return the message that asks for ``method``."""

    @abc.abstractmethod
    def result(self, outgoing: Outgoing, response: Response, exchange: Exchange) -> Dict[str, Any]:
        """Return the result that a response carries.

        :raises ServerError: if it carries an error.
        :raises InputRequired: if the server asks for input instead.
        :raises ProtocolError: if it carries neither.
        """


# Codes with no meaning of their own that servers are known to use for a missing resource, if the text says so.
_VAGUE_CODES = (-32001, 0)
# Compiled when it is needed, which is rare.
_DECIMAL = r"-?[0-9]{1,18}"
_SAYS_MISSING = ("not found", "unknown resource", "does not exist", "no such resource")


def server_error(outgoing: Outgoing, response: Response, exchange: Exchange) -> ServerError:
    """Return the exception for a request's JSON-RPC error; tolerant of errors that are not quite well-formed."""
    code, message, data = error_parts(response)
    method = outgoing.message.get("method")
    status, retry_after = exchange.status, exchange.retry_after
    missing = code in (INVALID_PARAMS, LEGACY_RESOURCE_NOT_FOUND) or (
        code in _VAGUE_CODES and any(words in message.lower() for words in _SAYS_MISSING)
    )
    if method == "resources/read" and missing:
        uri = outgoing.message.get("params", {}).get("uri", "")
        return ResourceNotFound(
            "%s: %s" % (uri, message), code=code, data=data, status=status, retry_after=retry_after, uri=uri
        )
    return ServerError(message, code=code, data=data, status=status, retry_after=retry_after)


def error_parts(response: Response) -> Tuple[int, str, Any]:
    """Return code, message and data of a JSON-RPC error, whatever it looks like."""
    error = response.error or {}
    text = error.get("message")
    message = text if isinstance(text, str) and text.strip() else "the server answered with an error: %s" % beginning_of(error)
    return _error_code(error.get("code")), message, error.get("data")


def _error_code(code: Any) -> int:
    if isinstance(code, str) and re.fullmatch(_DECIMAL, code):
        return int(code)
    if isinstance(code, float) and code.is_integer():
        return int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) else 0
