"""From the libraries' exceptions to this package's: what broke, by which limit, whether the request may have run."""

from __future__ import annotations

import http.client
import socket
import ssl
from typing import Any, Iterator, Tuple

import urllib3.exceptions

from ..errors import MCPSyncError, RequestTimeout, TransportError, beginning_of
from ._guard import Guard
from .base import Interrupted

__all__ = ["failure", "is_from_outside", "lost_connection"]

# What the end of a connection looks like if the server closed it while it lay idle in the pool.
_GONE = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError, http.client.RemoteDisconnected)

# What this package and the libraries raise, and where what else comes from that they let through.
_THEIRS = (MCPSyncError, OSError, http.client.HTTPException, urllib3.exceptions.HTTPError)
_MODULES = {"builtins", "binascii", "email", "idna", "OpenSSL", "requests", "ssl", "struct", "urllib3", "zlib"}

# Before Python 3.10 socket.timeout is a class of its own.
_TIMEOUTS = (TimeoutError, socket.timeout, urllib3.exceptions.TimeoutError)


def failure(
    error: Exception, guard: Guard, where: str, method: str, connect_timeout: float, answering: bool
) -> Tuple[TransportError, str]:
    """Return the exception to raise for one of the libraries', and how the exchange ended (see ``Exchange.ending``).

    :param where: the server, for people.
    :param method: what was asked for.
    :param answering: whether the answer had begun.
    """
    ran = guard.sent
    if guard.interrupted:
        return Interrupted("the exchange with %s (%s) was interrupted" % (where, method), may_have_run=ran), "reset"
    chain = list(_chain(error))
    if any(isinstance(inner, _TIMEOUTS) for inner in chain):
        if guard.deadline.expired or guard.limited_by == "deadline":
            return guard.deadline.error(may_have_run=ran), "silence"
        if guard.limited_by == "connect":
            told = "%s did not take a connection within %g s (connect_timeout=)" % (where, connect_timeout)
        else:
            told = "%s sent nothing for %g s" % (where, guard.silence or 0.0)
        return RequestTimeout(told, may_have_run=ran), "silence"
    told = _told(chain[-1])
    if not ran:
        return TransportError("%s cannot be reached: %s" % (where, told), may_have_run=False), "reset"
    if answering:
        ending = "end of stream" if isinstance(chain[-1], http.client.IncompleteRead) else "reset"
        return TransportError("the connection to %s broke while it answered %s: %s" % (where, method, told)), ending
    return TransportError("the connection to %s broke while it was asked (%s): %s" % (where, method, told)), "reset"


def is_from_outside(error: Exception) -> bool:
    """Return whether an exception is neither ours nor the libraries': a signal's handler raises what it likes, at any moment.

    Celery's soft time limit is such a one. It is for the caller of the call, as it is.
    """
    return not isinstance(error, _THEIRS) and type(error).__module__.partition(".")[0] not in _MODULES


def lost_connection(error: Exception) -> bool:
    """Return whether this is what sending over a connection looks like that the server had closed."""
    return any(isinstance(inner, _GONE) for inner in _chain(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those inside it, whichever way requests and urllib3 wrapped them."""
    seen = 0
    inner: Any = error
    while isinstance(inner, BaseException) and seen < 10:
        yield inner
        seen += 1
        following = getattr(inner, "reason", None)
        if not isinstance(following, BaseException):
            following = next((arg for arg in reversed(inner.args) if isinstance(arg, BaseException)), None)
        if following is None:
            following = inner.__cause__ or (None if inner.__suppress_context__ else inner.__context__)
        inner = following


def _told(error: BaseException) -> str:
    """Return what an exception means, for people."""
    text = beginning_of(str(error) or type(error).__name__)
    if isinstance(error, http.client.RemoteDisconnected):
        return "it was closed without an answer"
    if isinstance(error, http.client.IncompleteRead):
        return "it ended in the middle"
    if isinstance(error, http.client.BadStatusLine):
        return "what came is not HTTP: %s" % text
    if isinstance(error, ssl.SSLCertVerificationError):
        return "%s (verify=)" % text
    return text
