"""One way in and out that many requests share: standard input and output, or the event stream of HTTP+SSE.

Pages: basic/transports/stdio; basic/transports of 2025-11-25 ("stdio") and of 2024-11-05 ("HTTP with SSE").
"""

import abc
import json
import logging
import threading
from typing import Dict, Optional, Sequence, Tuple

from .answer import Answer
from .exchange import Core, Dealt, Exchange
from .probe import Probe
from .protocol import (
    CANCELLED,
    INTERNAL_ERROR,
    Forbidden,
    Item,
    Refusal,
    decode,
    error_of_nobody,
    error_response,
    is_modern,
    is_response,
)
from .request import Request
from .session import Session, SessionStream
from .streams import Stream
from .turns import Turn, Turns
from .waiting import Disconnected, Waiting

_log = logging.getLogger(__name__)

# How long the requests under way may take to end with their channel, in seconds.
_GRACE = 0.4


class Channel(abc.ABC):
    """What the requests on one channel share.

    :param core: what all requests to the server share.
    :param probe: what is answered to a modern request where there is no modern era.
    :param session: the legacy session that this channel is.
    :param wire: where the thread waits that sends.

    Threads: any thread may call any method.
    """

    def __init__(self, core: Core, probe: Probe, session: Session, wire: Waiting) -> None:
        self.core = core
        self.probe = probe
        self.session = session
        self.wire = wire
        self.told = SessionStream(session, core.settings.backlog, wire)
        self._turns = Turns()
        self._lock = threading.Lock()
        # Guarded by _lock; what a client may cancel, by the ids of its requests:
        self._by_id: Dict[str, Turn] = {}
        self._listens: Dict[str, Stream] = {}

    def submit(self, request: Request, turn: Turn) -> None:
        """Serve a message that has come, in a thread of its own."""
        self.core.recorder.add(request)  # here, where messages have an order
        key = json.dumps(request.id)
        if "id" in request.message and request.method:
            with self._lock:
                self._by_id[key] = turn

        def serve() -> None:
            try:
                ChannelExchange(self, request, turn).run()
            except Disconnected:
                pass
            except Dealt:
                self.dealt(turn)
            finally:
                with self._lock:
                    if self._by_id.get(key) is turn:
                        del self._by_id[key]

        self._turns.start(turn, serve)

    def cancel(self, id: object) -> None:
        """The client does not want an answer to that request any more: it gets none."""
        key = json.dumps(id)
        with self._lock:
            turn, stream = self._by_id.pop(key, None), self._listens.pop(key, None)
        if turn is not None:
            turn.ask_reset()
        if stream is not None:
            self.core.streams.leave(stream)
            stream.narrow({})
            stream.end("quiet")

    def listening(self, request: Request, turn: Turn, stream: Stream) -> None:
        """A listen stream has been opened by that request; from now on a cancellation is for the stream.

        :raises Disconnected: it has been cancelled already.
        """
        key = json.dumps(request.id)
        with self._lock:
            if self._by_id.pop(key, None) is not turn:
                raise Disconnected("cancelled")
            self._listens[key] = stream

    def begin(self) -> None:
        """The handshake is over: from now on the client is told what it asked for."""
        if self.session.open(self.told, True, 0.0):
            self.core.streams.add(self.told, None)
            self.core.streams.opened(self.told)

    def finish(self) -> None:
        """Let what is under way come to its end."""
        self._turns.finish(_GRACE)

    def end(self) -> None:
        """Nothing can be sent any more: forget everything."""
        self._turns.end(_GRACE)
        with self._lock:
            listens, self._listens = list(self._listens.values()), {}
        for stream in listens + [self.told]:
            self.core.streams.discard(stream)
        self.core.sessions.remove(self.session)

    def accept(self, turn: Turn) -> None:
        """A message is not kept back by a fault: it is being looked at."""

    @abc.abstractmethod
    def send(self, items: Sequence[Item]) -> None:
        """Send messages, or bytes as they are."""

    @abc.abstractmethod
    def deliver(self, answer: Answer, exchange: "ChannelExchange") -> None:
        """Send an answer, or the beginning of one that lasts."""

    @abc.abstractmethod
    def dealt(self, turn: Turn) -> None:
        """A fault has dealt with a request itself: what that does to the channel."""


class ChannelExchange(Exchange):
    """One message on a channel.

    :param channel: the channel.
    """

    def __init__(self, channel: Channel, request: Request, turn: Turn) -> None:
        super().__init__(channel.core, request, turn, channel.session)
        self.channel = channel
        self.turn = turn

    def record(self) -> None:
        """It was recorded when it came."""

    def ordinary(self) -> Answer:
        """The answer as it is without faults; errors are answers too."""
        request = self.request
        self.channel.accept(self.turn)
        try:
            return self._route()
        except Refusal as refusal:
            if request.message and isinstance(request.id, (str, int, float)):
                return Answer(items=(error_response(request.id, refusal.code, refusal.message, refusal.data),))
            return Answer(items=(error_of_nobody(refusal.code, refusal.message),))
        except Forbidden as forbidden:
            said = "{} may not see {}".format(request.principal, forbidden)
            return Answer(items=(error_response(request.id, INTERNAL_ERROR, said),))
        except Disconnected:
            raise
        except Exception as error:
            # A callable of the user's, as in face.py.
            _log.exception("%s could not be answered", request)
            return Answer(items=(error_response(request.id, INTERNAL_ERROR, repr(error)),))

    def _route(self) -> Answer:
        request, eras = self.request, self.core.settings.eras
        message = decode(request.body, responses="legacy" in eras)
        if is_response(message):
            self.channel.session.resolve(message)
            return Answer()
        if "id" not in message:
            if request.method == CANCELLED:
                self.channel.cancel(request.params.get("requestId"))
            return Answer()
        if "modern" in eras and ("legacy" not in eras or is_modern(message)):
            return self.core.modern.answer(self, None, self.channel.wire)
        if is_modern(message):
            return self.channel.probe.answer(self)
        return Answer(items=(self.core.legacy.respond(self, self.channel.session),))

    def say(self, *items: Item) -> None:
        """Send something ahead of the answer.

        :raises Disconnected: the request has been cancelled.
        """
        if self.turn.reset:
            raise Disconnected("cancelled")
        self.channel.send(items)

    def interrupt(self, retry_ms: Optional[int]) -> None:
        """Nothing: a shared channel cannot be resumed."""

    def deliver(self, answer: Answer) -> None:
        """Send the answer."""
        if self.turn.reset:
            raise Disconnected("cancelled")
        if answer.stream is not None:
            self.channel.listening(self.request, self.turn, answer.stream)
            self.stream = None  # it is the channel's from now on
        self.channel.deliver(answer, self)
        if self.request.method == "initialize" and "result" in (answer.response or {}):
            self.channel.begin()


def said(answer: Answer) -> Tuple[Item, ...]:
    """What an answer says where there is no HTTP to say it with: its messages, or its body as it is."""
    return answer.items if answer.body is None else (answer.body,)
