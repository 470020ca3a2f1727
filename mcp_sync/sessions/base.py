"""What a session is, in all eras: calls, and streams of notices."""

from __future__ import annotations

import abc
import logging
import re
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Union

from .._deadline import Deadline
from ..eras.base import Ended, Era
from ..errors import ProtocolError, RequestTimeout, TransportError, beginning_of
from ..jsonrpc import FOREIGN, SAME, Request, Response, classify_id
from ..notices import Notice, SubscriptionFilter
from ..transports.base import Exchange, Interrupted, Outgoing, Transport

if TYPE_CHECKING:
    from ..calling import Attempt

__all__ = [
    "Handlers",
    "InvalidParams",
    "Said",
    "Session",
    "SessionGone",
    "Stream",
    "answer_to",
    "attended",
    "speaks_of_no_session",
]

_log = logging.getLogger("mcp_sync")

#: Answers the server's own requests (legacy): from method to a function of the parameters that returns the result.
Handlers = Mapping[str, Callable[[Dict[str, Any]], Dict[str, Any]]]

#: What a message on a stream says; None for nothing of interest.
Said = Union[Notice, Ended, ProtocolError, None]

# In which words servers say that they do not know a session. Compiled when it is needed, which is rare.
_GONE_WORDS = (
    r"session\b.{0,60}\b(not found|not exist|expired|terminated|invalid|unknown|closed|gone|no longer|not valid)"
    r"|\b(no|invalid|unknown|missing|expired|find|such)( (a|the|any|valid|active|such|mcp))*[ -]session"
    r"|\b(server|session|client|connection) (is |was |has )?not (been )?(yet )?initiali[sz]ed"
    r"|before initiali[sz]ation|initiali[sz]ation (was|is) not"
)


def speaks_of_no_session(text: str) -> bool:
    """Return whether these are the words in which servers say that they do not know a session, or had no handshake."""
    return re.search(_GONE_WORDS, text, re.IGNORECASE | re.DOTALL) is not None


class InvalidParams(Exception):
    """Raised by a handler for what a server should not have asked for: it is refused, and that is not a failure."""


class SessionGone(TransportError):
    """The server does not know the session any more. Never reaches a user: a new one is begun."""


class Stream(abc.ABC):
    """An open stream of notices. Iterates over what is said on it, for ever or until it breaks; the first thing is an
    :class:`~mcp_sync.notices.Acknowledged`, unless something came before it. One thread iterates and closes.

    :param exchange: what it comes through: for limits, interruptions, and how it ended.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange

    @abc.abstractmethod
    def next(self) -> Said:
        """Return what the next message says.

        :raises StopIteration: if the stream is over.
        :raises TransportError: if it broke.
        """

    def widen(self, wanted: SubscriptionFilter, deadline: Deadline) -> Optional[SubscriptionFilter]:
        """Ask for more on this stream; return what is granted, or None if that takes a stream of its own. Any thread."""
        return None

    def close(self) -> None:
        """End it. Only the thread that iterates."""
        self.exchange.close()


class Session(abc.ABC):
    """What all eras can do. Any thread."""

    era: Era
    transport: Transport
    #: Whether it was begun by a handshake.
    is_legacy = False

    @abc.abstractmethod
    def call(
        self, method: str, params: Dict[str, Any], deadline: Deadline, attempt: "Optional[Attempt]" = None
    ) -> Dict[str, Any]:
        """Send one request and return its result.

        :param attempt: what goes along with it; its deadline is ``deadline``.
        :raises SessionGone: if a new session has to be begun first.
        :raises MCPSyncError: whatever else went wrong.
        """

    @abc.abstractmethod
    def listen(self, wanted: SubscriptionFilter, deadline: Deadline) -> Stream:
        """Open a stream of notices.

        :raises SessionGone: if a new session has to be begun first.
        :raises MCPSyncError: whatever else went wrong.
        """

    def close(self, deadline: Deadline) -> None:
        """Say goodbye, if the era knows such a thing."""


def attended(outgoing: Outgoing, attempt: "Optional[Attempt]") -> Outgoing:
    """Return a request with what goes along with it, but for what is in its parameters already."""
    if attempt is None:
        return outgoing
    options = attempt.options
    return outgoing.but(
        headers=dict(outgoing.headers, **options.headers) if options.headers else outgoing.headers,
        begun=attempt.begun,
        result_types=("complete", "task") if options.accept_task else outgoing.result_types,
    )


def answer_to(
    exchange: Exchange,
    request: Outgoing,
    era: Era,
    where: str,
    asked: Callable[[Request], bool],
    attempt: "Optional[Attempt]" = None,
) -> Dict[str, Any]:
    """Read an exchange to its response, and return the result.

    :param asked: called for each request of the server's that comes before; returns whether a user was busy with it.
    :param attempt: told of each notification that does.
    """
    method = str(request.message.get("method"))
    unreadable: Optional[ProtocolError] = None
    try:
        for message in exchange:
            if isinstance(message, Response):
                _check_id(request.message["id"], message, method, where, exchange)
                return era.result(request, message, exchange)
            if isinstance(message, ProtocolError):
                _log.warning("skipped a message before the answer to %s: %s", method, message)
                unreadable = message
            elif isinstance(message, Request):
                if asked(message) and attempt is not None:
                    attempt.renew(exchange)
            elif attempt is not None:
                attempt.notified(message, exchange)
            else:
                _log.debug("skipped %s before the answer to %s", beginning_of(message.method), method)
            if attempt is not None and exchange.interrupted:
                # By what has just been called, perhaps; the answer may be there already, and is not wanted any more.
                raise Interrupted("the exchange with %s (%s) was interrupted" % (where, method))
    except RequestTimeout:
        raise
    except TransportError as ended:
        # What was skipped may have been the answer, and tells more than that there was none.
        if unreadable is None or exchange.interrupted:
            raise
        raise unreadable from ended
    raise ProtocolError("%s answered %s with a message that is no answer" % (where, method))


def _check_id(sent: int, message: Response, method: str, where: str, exchange: Exchange) -> None:
    came = message.id
    fits = classify_id(sent, came)
    # A refusal may come from where the request was not even read, with any words for an id ("server-error").
    refused = message.error is not None and (exchange.status or 0) >= 400 and not isinstance(came, (int, float))
    if fits == FOREIGN and not refused:
        # Whatever it came over is out of step: it must not serve another request.
        exchange.interrupt()
        raise ProtocolError(
            "%s answered %s with the answer to another request (id %s instead of %d)"
            % (where, method, beginning_of(came), sent)
        )
    if fits != SAME:
        level = logging.DEBUG if refused or came is None else logging.INFO
        _log.log(level, "%s answered %s with id %s for %d", where, method, beginning_of(came), sent)
