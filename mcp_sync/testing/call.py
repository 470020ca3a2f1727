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

from typing import Callable, Optional

from .answer import Answer
from .request import Request
from .wire import Wire


class Call:
    """One request on its way to an answer.

    :param request: what came.
    :param wire: the connection that it came on.
    :param proceed: makes the answer of the next fault, or the ordinary one.
    :param pause: blocks until the faults are cleared or the server stops.

    Threads: for the thread that serves the request only.
    """

    def __init__(self, request: Request, wire: Wire, proceed: Callable[[], Answer], pause: Callable[[], None]) -> None:
        self.request = request
        self.wire = wire
        self._proceed = proceed
        self._pause = pause

    def proceed(self) -> Answer:
        """Do what was asked for and return the answer, unsent. Errors are answers too; this raises nothing of them."""
        return self._proceed()

    def pause(self) -> None:
        """Send nothing until ``Server.clear_faults()``, the end of the server, or the client's disconnect.

        :raises Disconnected: let it pass; it ends the connection.
        """
        self._pause()


Fault = Callable[[Call], Optional[Answer]]
