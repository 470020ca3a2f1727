"""What a fault receives, and what a fault is.

A fault is a callable: it gets the :class:`Call`, and returns the :class:`~mcp_sync.testing.answer.Answer` to send, or
``None`` when it has dealt with the connection itself. Three examples of one's own::

    def slow_database(call):                      # refuse instead of answering
        return Answer(status=503, body=b"the database is away", content_type="text/plain")

    def shout(call):                              # answer, then change the answer
        answer = call.proceed()
        text = answer.response["result"]["contents"][0]
        text["text"] = text["text"].upper()
        return answer

    def vanish(call):                             # take the request, do it, and never say so
        call.proceed()
        call.wire.ask_reset()

    server.inject(vanish, method="tools/call")
"""

import abc
from typing import Callable, Optional

from .answer import Answer
from .protocol import Item, Message
from .request import Request
from .session import Session
from .waiting import Waiting


class Way(abc.ABC):
    """What the way of a request over its transport can do for a fault, or for a function of the user's.

    :param request: what came.
    :param wire: where the thread that serves it waits.
    :param session: the legacy session that it belongs to, if there is one.
    """

    def __init__(self, request: Request, wire: Waiting, session: Optional[Session]) -> None:
        self.request = request
        self.wire = wire
        self.session = session

    @abc.abstractmethod
    def pause(self) -> None:
        """See :meth:`Call.pause`."""

    @abc.abstractmethod
    def say(self, *items: Item) -> None:
        """See :meth:`Call.say`."""

    @abc.abstractmethod
    def ask(self, method: str, params: Optional[Message], timeout: float) -> Message:
        """See :meth:`Call.ask`."""

    @abc.abstractmethod
    def tell(self, *items: Item) -> None:
        """See :meth:`Call.tell`."""

    @abc.abstractmethod
    def interrupt(self, retry_ms: Optional[int]) -> None:
        """See :meth:`Call.interrupt`."""


class Call:
    """One request on its way to an answer.

    ``request`` is what came, ``wire`` the connection that it came on (or its share of one that many requests use).

    :param way: how it goes.
    :param proceed: makes the answer of the next fault, or the ordinary one.

    Threads: for the thread that serves the request only.
    """

    def __init__(self, way: Way, proceed: Callable[[], Answer]) -> None:
        self.request = way.request
        self.wire = way.wire
        self._way = way
        self._proceed = proceed

    def proceed(self) -> Answer:
        """Do what was asked for and return the answer, unsent. Errors are answers too; this raises nothing of them."""
        return self._proceed()

    def pause(self) -> None:
        """Send nothing until ``Server.clear_faults()``, the end of the server, or the client's disconnect.

        :raises Disconnected: let it pass; it ends the connection.
        """
        self._way.pause()

    def say(self, *items: Item) -> None:
        """Send messages, or bytes as they are, ahead of the answer, which becomes an event stream by that."""
        self._way.say(*items)

    def ask(self, method: str, params: Optional[Message] = None, timeout: float = 5.0) -> Message:
        """Send the client a request ahead of the answer, and wait for its response (legacy era).

        :param timeout: seconds.
        :returns: the response, a JSON-RPC message with ``result`` or ``error``.
        :raises TimeoutError: there was none.
        """
        return self._way.ask(method, params, timeout)

    def tell(self, *items: Item) -> None:
        """Send messages, or bytes as they are, on the client's standalone stream (legacy era).

        :raises ValueError: the request belongs to no legacy session.
        :raises TimeoutError: there is no such stream.
        """
        self._way.tell(*items)

    def interrupt(self, retry_ms: Optional[int] = None) -> None:
        """End the connection before the answer, which is kept for a client that resumes the stream.

        An event with an id and without data is sent first. Where nothing can be resumed (in the modern era, or on a
        channel that requests share) this does nothing.

        :param retry_ms: its ``retry``, in milliseconds; ``None`` leaves it out.
        """
        self._way.interrupt(retry_ms)


Fault = Callable[[Call], Optional[Answer]]
