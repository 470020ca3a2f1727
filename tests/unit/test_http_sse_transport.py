"""HTTP+SSE of 2024-11-05: one stream for all answers, one address for all messages, and what servers make of both."""

import json
import queue
import threading
from typing import Any, Dict, Iterator, List, Optional

import pytest
from rawserver import BOUND, CHUNKED_EVENTS_HEAD, Ended, Outcome, Peer, RawServer, Request, chunk, head, json_answer

from mcp_sync import (
    AuthorizationError,
    Client,
    ClientClosed,
    MessageTooLarge,
    ProtocolError,
    RequestTimeout,
    State,
    TransportError,
)
from mcp_sync._deadline import Deadline
from mcp_sync.jsonrpc import Response
from mcp_sync.testing import Server
from mcp_sync.transports.base import ChannelLost, Outgoing
from mcp_sync.transports.http_sse import HTTPSSE
from mcp_sync.transports.streamable_http import HTTPOptions

URI = "docs://service/config"
TEXT = "colour = blue"
ACCEPTED = head("Content-Length: 0", status="202 Accepted")


@pytest.fixture
def server() -> "Iterator[Server]":
    with Server(transport="http+sse") as server:
        server.add(URI, TEXT)
        yield server


def read(client: Client, uri: str = URI, **options: Any) -> Any:
    options.setdefault("timeout", BOUND)
    return client.read_resource(uri, **options).text


class Stream:
    """A server of 2024 made of a test's own answers. What is said goes to the stream that was opened last.

    :param first: what the stream begins with.
    :param post: what makes the answer to a POST; it may say things on the stream with :meth:`say`.
    """

    def __init__(self, first: bytes = b"event: endpoint\ndata: /messages?id=1\n\n", post: Any = None) -> None:
        self.first = first
        self.post = post
        self.said: "queue.Queue[Optional[bytes]]" = queue.Queue()
        self.opened = 0

    def __call__(self, peer: Peer) -> None:
        while True:
            request = peer.request()
            if request.line.startswith("GET"):
                self.opened += 1
                if self.opened > 1:
                    self.said = queue.Queue()
                said_here = self.said
                peer.send(CHUNKED_EVENTS_HEAD + (chunk(self.first) if self.first else b""))
                while True:
                    said = said_here.get(timeout=BOUND)
                    if said is None:
                        raise Ended()
                    peer.send(chunk(said))
            peer.send(self.post(self, peer, request) if self.post is not None else self.usual(request))

    def usual(self, request: Request) -> bytes:
        self.say(answer(request))
        return ACCEPTED

    def say(self, message: "Optional[Dict[str, Any]]") -> None:
        """Say a message on the stream; None ends it."""
        if message is None:
            self.said.put(None)
        else:
            self.said.put(b"event: message\ndata: " + json.dumps(message).encode("utf-8") + b"\n\n")


def answer(request: Request, value: Any = 1) -> "Dict[str, Any]":
    return {"jsonrpc": "2.0", "id": request.id, "result": {"value": value}}


class Door(HTTPSSE):
    """The transport alone, closed at the end of a block."""

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(HTTPOptions(url, **options))

    def ask(self, number: int = 1, timeout: float = BOUND, channel: Optional[int] = None) -> Any:
        message = {"jsonrpc": "2.0", "id": number, "method": "a/method"}
        with self.exchange(Outgoing(message, {}, channel=channel), Deadline(timeout)) as exchange:
            return list(exchange)

    def __enter__(self) -> "Door":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def result(messages: "List[Any]") -> Any:
    assert len(messages) == 1 and isinstance(messages[0], Response)
    return messages[0].result["value"]


# -- the address ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "told, line",
    [
        ("/messages?id=1", "/messages?id=1"),
        ("messages/", "/a/messages/"),
        ("../m?id=%20x", "/m?id=%20x"),
        ("?id=1", "/a/sse?id=1"),
        ("http://127.0.0.1:{port}/x", "/x"),
        ("//127.0.0.1:{port}/x", "/x"),
        ("  /messages  ", "/messages"),
    ],
)
def test_the_address_for_messages_is_relative_or_absolute_on_the_same_origin(told: str, line: str) -> None:
    script = Stream()
    with RawServer(script) as server, Door("http://127.0.0.1:%d/a/sse" % server.port) as door:
        script.first = b"event: endpoint\ndata: " + told.format(port=server.port).encode() + b"\n\n"
        assert result(door.ask()) == 1
        assert server.requests[-1].line == "POST %s HTTP/1.1" % line
        script.say(None)


@pytest.mark.parametrize(
    "told",
    [
        "http://127.0.0.1:1/messages",
        "http://localhost:{port}/messages",
        "https://127.0.0.1:{port}/messages",
        "//example.com/messages",
        "http://127.0.0.1:{port}@example.com/messages",
        "javascript:alert(1)",
        "http://[/messages",
        "http://127.0.0.1:99999999/messages",
        "/mess ages",
        "/caf\u00e9",
        "/a\x00b",
    ],
)
def test_an_address_elsewhere_or_that_is_none_is_refused_and_nothing_is_sent(told: str) -> None:
    script = Stream()
    with RawServer(script) as server, Door(server.url, auth=("user", "secret")) as door:
        script.first = b"event: endpoint\ndata: " + told.format(port=server.port).encode("utf-8") + b"\n\n"
        script.say(None)
        with pytest.raises(ProtocolError, match="address for its messages"):
            door.ask()
        assert len(server.requests) == 1


def test_the_first_address_counts(server: Server) -> None:
    script = Stream(b"event: endpoint\ndata: /first\n\nevent: endpoint\ndata: http://example.com/second\n\n")
    with RawServer(script) as raw, Door(raw.url) as door:
        assert result(door.ask()) == 1
        assert result(door.ask(2)) == 1
        assert [request.line.split(" ")[1] for request in raw.requests[1:]] == ["/first", "/first"]
        script.say(None)


def test_an_address_that_comes_late_is_waited_for_by_everybody_and_the_stream_is_opened_once() -> None:
    script = Stream(b": welcome\n\n")
    with RawServer(script) as server, Door(server.url) as door:
        threads = [Outcome(lambda number=number: door.ask(number)) for number in range(1, 9)]  # type: ignore[misc]
        script.said.put(b"event: endpoint\ndata: /messages\n\n")
        assert [result(thread.value()) for thread in threads] == [1] * 8
        assert script.opened == 1
        script.say(None)


def test_an_address_that_never_comes_ends_the_wait_within_the_limit_of_the_call() -> None:
    script = Stream(b"")
    with RawServer(script) as server, Door(server.url) as door:
        with pytest.raises(RequestTimeout) as raised:
            door.ask(timeout=0.1)
        assert not raised.value.may_have_run
        script.say(None)


def test_a_stream_that_ends_before_it_names_an_address_is_an_error() -> None:
    script = Stream(b": nothing\n\n")
    with RawServer(script) as server, Door(server.url) as door:
        script.say(None)
        with pytest.raises(TransportError):
            door.ask()


@pytest.mark.parametrize(
    "refusal, kind",
    [
        (head("Content-Length: 0", status="401 Unauthorized"), AuthorizationError),
        (head("Content-Length: 0", status="404 Not Found"), TransportError),
        (head("Content-Length: 0", status="405 Method Not Allowed"), TransportError),
        (json_answer(b"{}"), TransportError),
        (head("Content-Type: text/html", "Content-Length: 4") + b"<p>x", TransportError),
        (
            json_answer(b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"x"}}', status="400 No"),
            TransportError,
        ),
        (head("Location: http://example.com/", "Content-Length: 0", status="307 Elsewhere"), TransportError),
        (head("Location: http://[/", "Content-Length: 0", status="307 Elsewhere"), TransportError),
        (head("Location: /mcp", "Content-Length: 0", status="307 Here"), TransportError),
    ],
)
def test_an_answer_that_is_no_stream_is_an_error_at_once(refusal: bytes, kind: Any) -> None:
    def script(peer: Peer) -> None:
        while True:
            peer.request()
            peer.send(refusal)

    with RawServer(script) as server, Door(server.url) as door:
        for _ in range(2):
            with pytest.raises(kind):
                door.ask()


def test_redirects_on_the_same_origin_are_followed_and_the_address_is_relative_to_their_end() -> None:
    script = Stream(b"event: endpoint\ndata: messages\n\n")

    def redirecting(peer: Peer) -> None:
        request = peer.request()
        target = {"/sse": "/b/sse/", "/b/sse/messages": "/b/m/"}.get(request.line.split(" ")[1])
        if target is not None:
            peer.send(head("Location: " + target, "Content-Length: 0", status="307 Temporary Redirect"))
        elif request.line.startswith("GET"):
            peer.send(CHUNKED_EVENTS_HEAD + chunk(script.first))
            peer.send(chunk(script.said.get(timeout=BOUND) or b""))
            peer.wait_gone()
        else:
            peer.send(script.usual(request))

    with RawServer(redirecting) as server, Door("http://127.0.0.1:%d/sse" % server.port) as door:
        assert result(door.ask()) == 1
        assert [request.line.split(" ")[1] for request in server.requests] == [
            "/sse",
            "/b/sse/",
            "/b/sse/messages",
            "/b/m/",
        ]


# -- messages ---------------------------------------------------------------------------------------------------------


def test_answers_in_the_reverse_order_reach_those_who_asked() -> None:
    waiting: List[Request] = []
    lock = threading.Lock()

    def post(script: Stream, peer: Peer, request: Request) -> bytes:
        with lock:
            waiting.append(request)
            if len(waiting) == 8:
                for one in reversed(waiting):
                    script.say(answer(one, one.id * 10))
        return ACCEPTED

    script = Stream(post=post)
    with RawServer(script) as server, Door(server.url) as door:
        threads = {number: Outcome(lambda number=number: door.ask(number)) for number in range(8)}  # type: ignore[misc]
        assert {number: result(thread.value()) for number, thread in threads.items()} == {n: n * 10 for n in range(8)}
        script.say(None)


def test_an_answer_may_come_before_the_post_is_accepted() -> None:
    def post(script: Stream, peer: Peer, request: Request) -> bytes:
        script.say(answer(request))
        assert seen.wait(BOUND)
        return ACCEPTED

    seen = threading.Event()
    script = Stream(post=post)
    with RawServer(script) as server, Door(server.url) as door:
        call = Outcome(door.ask)
        idle = threading.Event()
        for _ in range(2000):
            channel = door._channel
            if channel is not None and any(share.answered for share in list(channel.pending._shares.values())):
                break
            idle.wait(0.01)
        seen.set()
        assert result(call.value()) == 1
        script.say(None)


@pytest.mark.parametrize("how", ["reset", "500"])
def test_an_answer_that_has_come_counts_more_than_what_becomes_of_the_post(how: str) -> None:
    def post(script: Stream, peer: Peer, request: Request) -> bytes:
        script.say(answer(request))
        idle = threading.Event()
        for _ in range(2000):
            channel = door._channel
            if channel is not None and any(share.answered for share in list(channel.pending._shares.values())):
                break
            idle.wait(0.01)
        if how == "reset":
            peer.reset()
            raise Ended()
        return head("Content-Length: 0", status="500 Oops")

    script = Stream(post=post)
    with RawServer(script) as server, Door(server.url) as door:
        assert result(door.ask()) == 1
        script.say(None)


def test_an_answer_in_the_body_of_the_post_is_taken_from_there() -> None:
    def post(script: Stream, peer: Peer, request: Request) -> bytes:
        return json_answer(json.dumps(answer(request, "here")).encode("utf-8"))

    script = Stream(post=post)
    with RawServer(script) as server, Door(server.url, max_message_bytes=1000) as door:
        assert result(door.ask()) == "here"
        script.post = lambda script, peer, request: json_answer(json.dumps(answer(request, "x" * 5000)).encode())
        with pytest.raises(MessageTooLarge):
            door.ask(2)
        # Another's answer is another's, and a word of thanks is no answer.
        script.post = lambda script, peer, request: (script.say(answer(request)), json_answer(b'"Accepted"'))[1]
        assert result(door.ask(3)) == 1
        script.say(None)


@pytest.mark.parametrize(
    "refusal, kind",
    [
        (head("Content-Length: 0", status="500 Oops"), TransportError),
        (head("Content-Length: 0", status="401 Unauthorized"), AuthorizationError),
        (head("Location: http://example.com/", "Content-Length: 0", status="307 Elsewhere"), TransportError),
        (head("Content-Type: text/plain", "Content-Length: 7", status="400 No") + b"go away", TransportError),
    ],
)
def test_a_message_that_is_refused_is_an_error_at_once_and_the_stream_lives(refusal: bytes, kind: Any) -> None:
    script = Stream(post=lambda script, peer, request: refusal)
    with RawServer(script) as server, Door(server.url) as door:
        with pytest.raises(kind) as raised:
            door.ask()
        assert not isinstance(raised.value, ChannelLost)
        script.post = None
        assert result(door.ask(2)) == 1
        assert script.opened == 1
        script.say(None)


@pytest.mark.parametrize(
    "refusal",
    [
        head("Content-Type: text/plain", "Content-Length: 22", status="404 Not Found") + b"Could not find session",
        head("Content-Length: 0", status="404 Not Found"),
        head("Content-Length: 0", status="410 Gone"),
        head("Content-Type: text/plain", "Content-Length: 34", status="400 No") + b"No transport found for sessionId=1",
        json_answer(b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"Invalid session"}}', status="400 No"),
    ],
)
def test_a_stream_that_the_server_does_not_know_any_more_is_opened_anew(refusal: bytes) -> None:
    script = Stream(post=lambda script, peer, request: refusal)
    with RawServer(script) as server, Door(server.url) as door:
        first = door.connect(Deadline(BOUND))
        with pytest.raises(ChannelLost) as raised:
            door.ask(channel=first)
        assert not raised.value.may_have_run
        script.post = None
        script.say(None)
        with pytest.raises(ChannelLost):
            door.ask(channel=first)
        assert result(door.ask(2, channel=door.connect(Deadline(BOUND)))) == 1
        assert script.opened == 2
        script.say(None)


def test_what_is_not_for_anybody_is_passed_over() -> None:
    script = Stream()
    with RawServer(script) as server, Door(server.url) as door:
        door.connect(Deadline(BOUND))
        for odd in (b"event: message\ndata: nonsense", b"data:", b"event: other\ndata: {}", b"data: []"):
            script.said.put(odd + b"\n\n")
        script.say({"jsonrpc": "2.0", "id": 77, "result": {}})
        script.say({"jsonrpc": "2.0", "id": "1", "result": {}})
        assert result(door.ask()) == 1
        script.say(None)


def test_credentials_go_with_every_request_and_to_this_server_only(server: Server) -> None:
    with Client(server.url, auth=("user", "secret"), headers={"X-Extra": "1"}) as client:
        assert read(client) == TEXT
        assert {request.headers.get("X-Extra") for request in server.requests} == {"1"}
        assert all((request.headers.get("Authorization") or "").startswith("Basic ") for request in server.requests)


# -- the end of the stream --------------------------------------------------------------------------------------------


def test_a_call_that_waits_when_the_stream_ends_fails_at_once_and_may_have_run() -> None:
    def post(script: Stream, peer: Peer, request: Request) -> bytes:
        script.say(None)
        return ACCEPTED

    script = Stream(post=post)
    with RawServer(script) as server, Door(server.url) as door:
        with pytest.raises(TransportError) as raised:
            door.ask()
        assert raised.value.may_have_run
        script.post = None
        assert result(door.ask(2)) == 1
        script.say(None)


def test_a_read_that_waits_when_the_stream_ends_is_made_again_in_a_new_session(server: Server) -> None:
    with Client(server.url) as client:
        assert read(client) == TEXT
        with server.hold("resources/read") as gate:
            waiting = Outcome(lambda: read(client))
            gate.wait_reached()
            server.end_streams("reset")
            gate.release()
            assert waiting.value() == TEXT
        assert len({request.path for request in server.requests if request.method == "resources/read"}) >= 2


def test_a_watch_counts_a_gap_for_a_stream_that_ended_and_sees_what_changed_meanwhile(server: Server) -> None:
    with Client(server.url) as client, client.watch(URI) as watch:
        watch.wait_until_current(timeout=BOUND)
        gaps = watch.status.gaps
        server.end_streams("reset")
        server.update(URI, "colour = red")
        for _ in watch.changes(timeout=BOUND):
            if read(client) == "colour = red":
                break
        watch.wait_for_state(State.LIVE, timeout=BOUND)
        assert watch.status.gaps == gaps + 1


def test_a_stream_that_falls_silent_after_signs_of_life_is_taken_for_dead(server: Server) -> None:
    script = Stream()
    with RawServer(script) as raw, Door(raw.url) as door:
        number = door.connect(Deadline(BOUND))
        rest = door.unsolicited({}, Deadline(BOUND), number)
        rest.limit(Deadline(None), 1000.0, 0.2)
        script.said.put(b": alive\n\n")
        with pytest.raises(RequestTimeout, match="sent nothing"):
            next(rest)
        assert rest.ending == "silence"
        rest.close()
        script.say(None)
        assert door.connect(Deadline(BOUND)) == number + 1
        script.say(None)


@pytest.mark.parametrize("where", ["the address", "the post", "the answer"])
def test_closing_ends_whatever_is_waited_for(where: str) -> None:
    reached = threading.Event()

    def post(script: Stream, peer: Peer, request: Request) -> bytes:
        reached.set()
        if where == "the post":
            peer.wait_gone()
        return ACCEPTED

    script = Stream(b": x\n\n" if where == "the address" else Stream().first, post)
    with RawServer(script) as server:
        door = Door(server.url)
        call = Outcome(lambda: door.ask(timeout=1000.0))
        if where == "the address":
            idle = threading.Event()
            for _ in range(2000):
                if script.opened:
                    break
                idle.wait(0.01)
        else:
            assert reached.wait(BOUND)
        door.close()
        assert isinstance(call.error(), TransportError)
        with pytest.raises(TransportError, match="closed"):
            door.ask(2)
        script.say(None)


def test_a_client_that_is_closed_ends_its_stream(server: Server) -> None:
    client = Client(server.url)
    with server.hold("resources/read") as gate:
        waiting = Outcome(lambda: read(client))
        gate.wait_reached()
        client.close()
        assert isinstance(waiting.error(), ClientClosed)
    server.wait_for_no_streams(timeout=BOUND)


def test_connections_that_cannot_be_made_as_the_options_say_fail_every_time_and_hang_nobody() -> None:
    with Door("https://127.0.0.1:1/sse", verify="/no/such/bundle") as door:
        for _ in range(2):
            with pytest.raises(TransportError):
                door.ask(timeout=BOUND)


def test_principals_have_a_stream_each(server: Server) -> None:
    with Client(server.url) as client:
        other = client.as_principal("b", headers={"X-User": "b"})
        assert read(client) == read(other) == TEXT
        assert len(server.sessions) == 2
