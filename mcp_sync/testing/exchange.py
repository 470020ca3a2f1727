"""One request from its arrival to its answer, over whatever transport it came.

The order in which a request meets things: it is recorded, held by gates at ``"arrival"``, given to its faults, checked
and looked up, held by gates at ``"answer"``, and sent.
"""

import abc
import threading
from typing import NamedTuple, Optional, Tuple

from .answer import Answer
from .call import Call, Fault, Way
from .control import Control
from .legacy import Legacy
from .modern import Modern
from .protocol import Item, Message
from .recorder import Recorder
from .request import Authenticate, Request
from .session import Session
from .sessions import Sessions
from .settings import Settings
from .streams import Stream, Streams
from .waiting import Disconnected, Waiting


class Core(NamedTuple):
    """What all requests to one server share, whatever way they come."""

    settings: Settings
    authenticate: Optional[Authenticate]
    modern: Modern
    legacy: Legacy
    streams: Streams
    sessions: Sessions
    control: Control
    recorder: Recorder


class Dealt(Exception):
    """A fault has dealt with the request itself."""


class Exchange(Way):
    """One request on its way.

    :param core: what it shares with all others.
    :param request: what came.
    :param wire: where the thread that serves it waits.
    :param session: the legacy session that it names, if there is one.

    Threads: for the thread that serves the request only.
    """

    def __init__(self, core: Core, request: Request, wire: Waiting, session: Optional[Session]) -> None:
        super().__init__(request, wire, session)
        self.core = core
        #: The stream that the ordinary answer opened, whatever a fault has made of it.
        self.stream: Optional[Stream] = None
        self._epoch = 0

    def run(self) -> None:
        """Go the whole way.

        :raises Disconnected: the client went away, or the end was asked for.
        :raises Dealt: a fault took it from here.
        """
        outer, _here.exchange = current(), self
        try:
            self.record()
            self.core.control.hold(self.request, "arrival", self.wire)
            faults, self._epoch = self.core.control.faults(self.request)
            answer = self._through(faults)
            if self.stream is not None and answer.stream is not self.stream:
                self.core.streams.leave(self.stream)  # a fault has put another answer in its place
            self.core.control.hold(self.request, "answer", self.wire)
            self.deliver(answer)
        except Disconnected:
            self.wire.gone()
            raise
        finally:
            _here.exchange = outer
            self.wire.tell_end(None)
            if self.stream is not None:
                self.core.streams.closed(self.stream)

    def record(self) -> None:
        """Note that it has arrived."""
        self.core.recorder.add(self.request)

    def _through(self, faults: Tuple[Fault, ...]) -> Answer:
        if not faults:
            answer = self.ordinary()
            self.stream = answer.stream
            return answer
        answered = faults[0](Call(self, lambda: self._through(faults[1:])))
        if answered is None:
            raise Dealt()
        return answered

    def pause(self) -> None:
        """Do nothing until the faults are cleared or the end is asked for.

        :raises Disconnected: the client went away.
        """
        self.core.control.pause(self.wire, self._epoch)

    def ask(self, method: str, params: Optional[Message], timeout: float) -> Message:
        """Send the client a request ahead of the answer, and wait for its response.

        :param timeout: seconds.
        :raises TimeoutError: there was none.
        :raises ValueError: this request belongs to no legacy session.
        """
        if self.session is None:
            raise ValueError("only a request of the legacy era can carry a request of the server's")
        question = self.session.question(method, params)
        self.say(question.message)
        return question.wait_at(self.wire, timeout)

    def tell(self, *items: Item) -> None:
        """Send something on the client's standalone stream.

        :raises ValueError: this request belongs to no legacy session.
        :raises TimeoutError: there is no such stream.
        """
        if self.session is None:
            raise ValueError("only a client of the legacy era has a standalone stream")
        for item in items:
            self.session.send(item, 0.0)

    @abc.abstractmethod
    def ordinary(self) -> Answer:
        """The answer as it is without faults. Errors are answers too."""

    @abc.abstractmethod
    def deliver(self, answer: Answer) -> None:
        """Send the answer."""


_here = threading.local()


def current() -> Optional[Exchange]:
    """The request that this thread serves, for instance from inside a tool."""
    found: Optional[Exchange] = getattr(_here, "exchange", None)
    return found
