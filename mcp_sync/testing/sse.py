"""HTTP+SSE of 2024-11-05: one event stream for all that the server says, and POST for all that the client says.

Page: basic/transports of 2024-11-05, "HTTP with SSE".
"""

import threading
import urllib.parse
from typing import Callable, Dict, Optional, Sequence, Tuple, Union

from .answer import Answer
from .channel import Channel, ChannelExchange, said
from .connection import HttpExchange
from .exchange import Core, Exchange
from .face import Face, plain
from .probe import Probe
from .protocol import INTERNAL_ERROR, Item, Refusal, decode, encode
from .request import Request
from .session import Session
from .sessions import Gone
from .turns import Turn
from .waiting import Disconnected, Waiting
from .wire import Wire

#: Where messages are posted to.
MESSAGES = "/messages"
#: How the ``endpoint`` event may name that place.
ENDPOINTS = ("relative", "absolute", "other origin", "missing")


class PostedTurn(Turn):
    """A message that came by POST, and what its own HTTP answer is to be.

    As soon as the message has to wait for something, or is looked at, the answer is 202; what a fault made of it before
    is the answer else.

    :param accepted: the body of a 202.
    :param post: where the thread waits that will send the answer to the POST.
    """

    def __init__(self, accepted: bytes, post: Waiting) -> None:
        super().__init__()
        self._accepted = accepted
        self._post = post
        # Guarded by _changed:
        self._verdict: Optional[Answer] = None
        self._dealt = False

    @property
    def verdict(self) -> Optional[Answer]:
        """The answer to the POST, once that is known."""
        with self._changed:
            return self._verdict

    @property
    def dealt(self) -> bool:
        """Whether a fault has taken the POST away."""
        with self._changed:
            return self._dealt

    def decide(self, verdict: Optional[Answer]) -> bool:
        """Answer the POST, unless it is answered; ``None`` ends its connection.

        :returns: whether it was not answered before.
        """
        with self._changed:
            if self._verdict is not None or self._dealt:
                return False
            self._verdict, self._dealt = verdict, verdict is None
        self._post.wake()
        return True

    def accept(self) -> None:
        """Answer the POST with 202, unless it is answered."""
        self.decide(Answer(status=202, body=self._accepted, content_type="text/plain" if self._accepted else ""))

    def wait(self, timeout: Optional[float] = None) -> None:
        """As of any turn; the POST is answered first."""
        self.accept()
        super().wait(timeout)


class SseChannel(Channel):
    """One event stream and the messages that were posted to its endpoint."""

    def accept(self, turn: Turn) -> None:
        """The message is being looked at."""
        if isinstance(turn, PostedTurn):
            turn.accept()

    def send(self, items: Sequence[Item]) -> None:
        """Send events, or bytes as they are."""
        for item in items:
            self.told.send(item)

    def deliver(self, answer: Answer, exchange: ChannelExchange) -> None:
        """Send an answer on the stream; one without a message is for the POST, if that is not answered yet."""
        turn = exchange.turn
        if not answer.items and isinstance(turn, PostedTurn):
            if turn.decide(answer):
                return
        self.accept(turn)
        cut = answer.cut_answer if answer.cut_body is None else answer.cut_body
        if cut is None:
            self.send(said(answer))
            return
        data = b"".join(item if isinstance(item, bytes) else b"event: message\ndata: " + encode(item) + b"\n\n"
                        for item in said(answer))
        self.send([data[:cut]])
        if cut < len(data) and answer.after_cut == "silence":
            exchange.pause()
        elif cut < len(data):
            self.told.end("reset" if answer.after_cut == "reset" else "cut")

    def dealt(self, turn: Turn) -> None:
        """A connection that a fault closes is that of the POST; if it is answered, there is no answer on the stream."""
        if isinstance(turn, PostedTurn):
            turn.decide(None)


class HttpSse(Face):
    """The endpoints of a server that speaks HTTP+SSE.

    :param probe: what is answered to a POST to the path of the stream, which is how newer clients begin.
    :param endpoint: how the place to post to is named: one of :data:`ENDPOINTS`, or what turns the relative name into
        the one that is sent.
    :param accepted: the body of a 202.
    """

    def __init__(self, core: Core, host: str, path: str, probe: Probe, endpoint: Union[str, Callable[[str], str]],
                 accepted: bytes) -> None:
        super().__init__(core, host, path)
        if isinstance(endpoint, str) and endpoint not in ENDPOINTS:
            raise ValueError("endpoint must be one of {}, or a callable, not {!r}".format(
                ", ".join(ENDPOINTS), endpoint))
        self._probe = probe
        self._endpoint = endpoint
        self._accepted = accepted
        self._lock = threading.Lock()
        # Guarded by _lock; by the ids of their sessions:
        self._channels: Dict[Optional[str], SseChannel] = {}

    def exchange(self, request: Request, wire: Wire) -> HttpExchange:
        """What serves a request."""
        target = urllib.parse.urlsplit(request.path)
        if request.http_method == "GET" and target.path == self._path:
            return Opening(self._core, self, request, wire)
        if request.http_method == "POST" and target.path == MESSAGES:
            channel = self._channel(request)
            if channel is not None and self.refused(request) is None:
                return Posted(self._core, self, request, wire, channel, PostedTurn(self._accepted, wire))
        return HttpExchange(self._core, self, request, wire)

    def session(self, request: Request) -> Optional[Session]:
        """The session that a request names."""
        channel = self._channel(request)
        return None if channel is None else channel.session

    def _channel(self, request: Request) -> Optional[SseChannel]:
        try:
            id = self._core.sessions.get(_session_id(request)).id
        except Gone:
            return None  # although its stream may still be about to end
        with self._lock:
            return self._channels.get(id)

    def open(self, request: Request, wire: Wire) -> SseChannel:
        """A new channel, known from now on."""
        session = self._core.sessions.new(request.principal)
        channel = SseChannel(self._core, self._probe, session, wire)
        with self._lock:
            self._channels[session.id] = channel
        return channel

    def forget(self, channel: SseChannel) -> None:
        """That channel has ended."""
        with self._lock:
            self._channels.pop(channel.session.id, None)
        channel.end()

    def route(self, exchange: Exchange) -> Answer:
        """The ordinary answer to everything but a message that is well posted."""
        request = exchange.request
        path = urllib.parse.urlsplit(request.path).path
        if path not in (self._path, MESSAGES):
            return plain(404, "the endpoint is " + self._path)
        refused = self.refused(request)
        if refused is not None:
            return refused
        if path == MESSAGES:
            if request.http_method != "POST":
                return plain(405, "messages are posted here", ("Allow", "POST"))
            try:
                self._core.sessions.get(_session_id(request))
            except Gone as gone:
                return plain(gone.status, "Could not find session")
            return plain(404, "The stream of this session has ended")
        if request.http_method == "POST":
            return self._probe.answer(exchange)
        if not isinstance(exchange, Opening):
            return plain(405, "the stream is opened with GET", ("Allow", "GET"))
        channel = exchange.channel
        channel.session.open(channel.told, False, 0.0)
        if not self._core.streams.add(channel.told, self._settings.max_streams):
            raise Refusal(INTERNAL_ERROR, "too many open streams", http_status=503)
        return Answer(items=self._first(request, channel), events=True, stream=channel.told,
                      framing=self._settings.stream_framing)

    def _first(self, request: Request, channel: SseChannel) -> Tuple[Item, ...]:
        relative = "{}?session_id={}".format(MESSAGES, urllib.parse.quote(channel.session.id or "", safe=""))
        if self._endpoint == "missing":
            return ()
        if callable(self._endpoint):
            named = self._endpoint(relative)
        elif self._endpoint == "relative":
            named = relative
        else:
            here = urllib.parse.urlsplit("//" + request.headers.get("Host", self._host))
            name = here.hostname or self._host
            if self._endpoint == "other origin":  # another name of the same place: a client that goes there is seen
                name = "127.0.0.1" if name == "localhost" else "localhost"
            named = "http://{}:{}{}".format("[" + name + "]" if ":" in name else name, here.port or 80, relative)
        return ("event: endpoint\ndata: {}\n\n".format(named).encode("utf-8"),)


def _session_id(request: Request) -> Optional[str]:
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(request.path).query)
    return query.get("session_id", [None])[0]


class Opening(HttpExchange):
    """The GET whose answer is the stream, from its beginning to its end.

    :param face: the endpoints.
    """

    def __init__(self, core: Core, face: HttpSse, request: Request, wire: Wire) -> None:
        super().__init__(core, face, request, wire)
        self._face = face
        self.channel = face.open(request, wire)
        self.session = self.channel.session

    def run(self) -> None:
        """Go the whole way, and end what was posted for this stream."""
        try:
            super().run()
        finally:
            self._face.forget(self.channel)

    def finish(self) -> None:
        """The server stops: what is under way is answered first."""
        self.channel.finish()


class Posted(HttpExchange):
    """The POST of a message: answered at once, while the message goes its own way.

    :param channel: the channel that the message belongs to.
    :param turn: the message's share of it.
    """

    def __init__(self, core: Core, face: HttpSse, request: Request, wire: Wire, channel: SseChannel,
                 turn: PostedTurn) -> None:
        super().__init__(core, face, request, wire)
        self._channel = channel
        self._turn = turn

    def run(self) -> None:
        """Hand the message over, and answer the POST.

        :raises Disconnected: the client went away, or a fault wants the connection to end.
        """
        try:
            decode(self.request.body, responses=True)
        except Refusal as refusal:
            self.record()
            self.deliver(plain(400, refusal.message))
            return
        turn = self._turn
        self._channel.submit(self.request, turn)
        self.wire.wait_until(lambda: turn.verdict is not None or turn.dealt)
        if turn.verdict is None:
            if turn.reset:
                self.wire.ask_reset()
            raise Disconnected("there is no answer to the POST")
        self.deliver(turn.verdict)
