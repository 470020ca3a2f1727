"""Limits that hold against a server that is always just not late, and interruptions that wake whoever waits, plain and
TLS.

Each server here goes on for ever, so that only the limit, or the interruption, can end the call.
"""

import itertools
import socket
import threading
from typing import Any, Callable, Iterator

import pytest
import requests.auth
from certificates import certificate, server_context
from posting import URI, calling, listening, messages, reading, result, result_from, transport
from rawserver import (
    BOUND,
    CHUNKED_EVENTS_HEAD,
    EVENTS_HEAD,
    JSON_HEAD,
    Outcome,
    Peer,
    RawServer,
    chunk,
    head,
    json_answer,
)

from mcp_sync import Client
from mcp_sync._deadline import Deadline
from mcp_sync.errors import ClientClosed, MessageTooLarge, RequestTimeout, TransportError
from mcp_sync.jsonrpc import Notification
from mcp_sync.transports.base import Interrupted

FOREVER = itertools.repeat(ord("x"))
SHORT = 0.3


@pytest.fixture(params=["plain", "tls"])
def tls(request: Any) -> bool:
    """Whether to speak TLS; each test is run both ways."""
    return bool(request.param == "tls")


def server_of(script: "Callable[[Peer], None]", tls: bool) -> RawServer:
    return RawServer(script, tls=server_context() if tls else None)


def door_to(server: RawServer, **options: Any) -> Any:
    return transport(server.url, verify=certificate()[0], **options)


def timed_out(server: RawServer, outgoing: Any = None, timeout: float = SHORT, **options: Any) -> RequestTimeout:
    door = door_to(server, **options)
    caught = Outcome(lambda: messages(door, outgoing, timeout)).error()
    door.close()
    assert type(caught) is RequestTimeout, caught
    return caught


def endless(start: bytes, drip: "Callable[[], Any]" = lambda: FOREVER) -> "Callable[[Peer], None]":
    """A script that begins an answer and then sends a byte now and then, for ever."""

    def script(peer: Peer) -> None:
        peer.request()
        peer.send(start)
        peer.drip(drip())

    return script


# -- one byte at a time ------------------------------------------------------------------------------------------------


DRIPS = {
    "before the status line": endless(b"HTTP/1.1 200 O"),
    "interim answers": endless(b"", lambda: itertools.cycle(b"HTTP/1.1 100 Continue\r\n\r\n")),
    "other interim answers": endless(b"", lambda: itertools.cycle(b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n")),
    "in a header": endless(b"HTTP/1.1 200 OK\r\nContent-Type: "),
    "headers": endless(b"HTTP/1.1 200 OK\r\n", lambda: itertools.cycle(b"X: y\r\n")),
    "a body of json": endless(JSON_HEAD),
    "a body with a length": endless(head("Content-Type: application/json", "Content-Length: 1000000")),
    "the size of a chunk": endless(
        head("Content-Type: application/json", "Transfer-Encoding: chunked") + b"5;extension="
    ),
    "chunks": endless(CHUNKED_EVENTS_HEAD, lambda: itertools.cycle(b"1\r\nx\r\n")),
    "trailers": endless(
        head("Content-Type: application/json", "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n",
        lambda: itertools.cycle(b"X: y\r\n"),
    ),
    "an event": endless(EVENTS_HEAD + b"data: "),
    "comments": endless(EVENTS_HEAD, lambda: itertools.cycle(b": keep-alive\n\n")),
    "notifications": endless(EVENTS_HEAD, lambda: itertools.cycle(b'data: {"method":"x"}\n\n')),
}


@pytest.mark.parametrize("drip", sorted(DRIPS))
def test_a_deadline_holds_against_a_byte_at_a_time(drip: str, tls: bool) -> None:
    with server_of(DRIPS[drip], tls) as server:
        caught = timed_out(server)
    assert "docs" not in str(caught) and "longer than its limit of 0.3 s (timeout=)" in str(caught)
    assert caught.may_have_run


@pytest.mark.parametrize("status", ["400 Bad Request", "401 Unauthorized", "503 Away"])
def test_a_status_counts_even_if_its_page_never_ends(status: str) -> None:
    with RawServer(endless(head("Content-Type: text/html", "Connection: close", status=status))) as server:
        caught = Outcome(lambda: result_from(server.url, timeout=SHORT)).error()
    assert isinstance(caught, TransportError) and caught.status == int(status[:3])


def test_a_deadline_holds_against_silence(tls: bool) -> None:
    half_a_chunk = CHUNKED_EVENTS_HEAD + b"5\r\nda"
    for start in (b"", b"HTTP/1.1 200 OK\r\n", JSON_HEAD, JSON_HEAD + b'{"a"', EVENTS_HEAD, half_a_chunk):
        with server_of(endless(start, lambda: ()), tls) as server:

            def script(peer: Peer) -> None:
                peer.request()
                peer.send(start)
                peer.wait_gone()

            server._script = script
            assert "longer than its limit of 0.3 s" in str(timed_out(server))


@pytest.mark.parametrize(
    "auth", [requests.auth.HTTPDigestAuth("u", "p"), lambda request: request], ids=["digest", "callable"]
)
def test_a_deadline_holds_for_requests_with_a_callable(auth: Any, tls: bool) -> None:
    asking = 'WWW-Authenticate: Digest realm="r", qop="auth", nonce="n"'
    challenge = head(asking, "Content-Length: 100000", status="401 No")
    for start in (b"HTTP/1.1 200 O", JSON_HEAD, challenge):
        with server_of(endless(start), tls) as server:
            door = door_to(server, auth=auth)
            caught = Outcome(lambda: messages(door, timeout=SHORT)).error()
            door.close()
        # Without Digest, the challenge is an answer like any other.
        assert isinstance(caught, RequestTimeout) or getattr(caught, "status", None) == 401, caught


def test_a_deadline_that_has_passed_sends_nothing() -> None:
    with RawServer(lambda peer: None) as server:
        caught = timed_out(server, calling(), timeout=0.0)
        assert server.connections == 0
    assert not caught.may_have_run and str(caught).endswith("; the request was not executed")


def test_a_call_that_timed_out_says_that_it_may_have_run() -> None:
    with RawServer(endless(b"")) as server:
        caught = timed_out(server, calling())
    assert caught.may_have_run and str(caught).endswith("; the request may have been executed")


def test_a_server_that_does_not_read_is_late_as_well(tls: bool) -> None:
    with server_of(Peer.idle, tls) as server:
        # More than the buffers between the two take; and enough time to get so far.
        caught = timed_out(server, calling(text="x" * 16000000), timeout=2.0)
    assert "longer than its limit of 2 s" in str(caught) and caught.may_have_run


def test_a_server_that_reads_a_little_at_a_time_is_late_as_well(tls: bool) -> None:
    def script(peer: Peer) -> None:
        peer._sock.settimeout(BOUND)
        while peer._sock.recv(512):
            peer._server.pace()

    with server_of(script, tls) as server:
        # At that rate the request alone would take half an hour; no piece of it does.
        caught = timed_out(server, calling(text="x" * 16000000), timeout=2.0)
    assert "longer than its limit of 2 s" in str(caught) and caught.may_have_run


# -- connecting --------------------------------------------------------------------------------------------------------


@pytest.fixture
def full() -> "Iterator[int]":
    """A port that takes no connection and refuses none: its queue is full."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    waiting = []
    try:
        while True:
            sock = socket.socket()
            waiting.append(sock)
            sock.settimeout(0.2)
            try:
                sock.connect(listener.getsockname())
            except OSError:
                break
        yield listener.getsockname()[1]
    finally:
        for sock in waiting:
            sock.close()
        listener.close()


def test_a_connection_that_is_not_taken_is_given_up_after_the_connect_timeout(full: int) -> None:
    door = transport("http://127.0.0.1:%d/" % full, connect_timeout=0.2)
    caught = Outcome(lambda: messages(door, calling(), timeout=3600.0)).error()
    door.close()
    assert type(caught) is RequestTimeout and not caught.may_have_run
    assert "did not take a connection within 0.2 s (connect_timeout=)" in str(caught)


def test_the_deadline_holds_while_connecting_too(full: int) -> None:
    door = transport("http://127.0.0.1:%d/" % full, connect_timeout=3600.0)
    caught = Outcome(lambda: messages(door, calling(), timeout=SHORT)).error()
    door.close()
    assert type(caught) is RequestTimeout and not caught.may_have_run
    assert "longer than its limit of 0.3 s (timeout=)" in str(caught)


def test_the_deadline_holds_for_a_name_with_many_addresses(full: int, monkeypatch: Any) -> None:
    dead = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", full))
    door = transport("http://docs.invalid/", connect_timeout=0.1)
    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", lambda *_: [dead] * 100000)
        caught = Outcome(lambda: messages(door, timeout=0.5)).error()
    door.close()
    assert type(caught) is RequestTimeout and not caught.may_have_run


def test_of_a_name_with_many_addresses_one_that_answers_is_enough(full: int, monkeypatch: Any) -> None:
    def script(peer: Peer) -> None:
        peer.send(json_answer(peer.request().answer()))

    with RawServer(script) as server:
        dead = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", full))
        alive = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port))
        with monkeypatch.context() as patch:
            patch.setattr(socket, "getaddrinfo", lambda *_: [dead, dead, alive])
            assert result_from("http://docs.invalid/", connect_timeout=0.1)["contents"] == []


@pytest.mark.parametrize("drip", [(), FOREVER], ids=["silence", "a byte at a time"])
def test_a_handshake_that_does_not_end_is_given_up(drip: Any) -> None:
    def script(peer: Peer) -> None:
        peer.drip(b"\x16\x03\x03\x3f\xff")  # the beginning of a long message of the handshake
        peer.drip(drip)
        peer.wait_gone()

    for options, timeout, told in (
        ({"connect_timeout": 0.2}, 3600.0, "did not take a connection within 0.2 s (connect_timeout=)"),
        ({"connect_timeout": 3600.0}, SHORT, "longer than its limit of 0.3 s (timeout=)"),
    ):
        with RawServer(script) as server:
            door = transport(server.url.replace("http:", "https:"), **options)
            caught = Outcome(lambda: messages(door, calling(), timeout)).error()
            door.close()
        assert type(caught) is RequestTimeout and told in str(caught) and not caught.may_have_run


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 Connected\r\nX: ", b"HTTP/1.1 200 Connected\r\n\r\n"])
def test_a_tunnel_that_is_never_finished_is_given_up(start: bytes) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(start)
        if start.endswith(b"\r\n\r\n"):
            peer._more()  # the client's first message of the handshake
            peer.send(b"\x16\x03\x03\x3f\xff")  # the beginning of a long answer
        peer.drip(FOREVER)

    with RawServer(script) as proxy:
        door = transport(
            "https://docs.invalid/mcp", proxies={"https": "http://127.0.0.1:%d" % proxy.port}, connect_timeout=0.2
        )
        caught = Outcome(lambda: messages(door, calling(), 3600.0)).error()
        door.close()
    assert type(caught) is RequestTimeout and "(connect_timeout=)" in str(caught) and not caught.may_have_run


# -- limits of a stream ------------------------------------------------------------------------------------------------


def streaming(after: bytes = b"", drip: Any = ()) -> "Callable[[Peer], None]":
    """A script that sends one notification, and then what it is told to."""

    def script(peer: Peer) -> None:
        peer.request()
        peer.send(CHUNKED_EVENTS_HEAD + chunk(b'data: {"method":"first"}\n\n') + after)
        peer.drip(drip)
        peer.wait_gone()

    return script


def test_a_stream_is_given_up_after_silence_and_says_so(tls: bool) -> None:
    with server_of(streaming(), tls) as server:
        door = door_to(server)
        exchange = door.exchange(listening(), Deadline(BOUND))
        assert next(exchange) == Notification("first", {})
        exchange.limit(Deadline(None), silence=0.2)
        caught = Outcome(lambda: next(exchange)).error()
        exchange.close()
        server.wait_gone()
        door.close()
    assert type(caught) is RequestTimeout and "sent nothing for 0.2 s" in str(caught)
    assert exchange.ending == "silence"


def test_a_server_that_sends_signs_of_life_is_missed_sooner() -> None:
    for after, silence, expected in (
        (b"", 0.2, "0.2 s"),
        (chunk(b":\r\n"), 3600.0, "0.1 s"),
        (chunk(b": ping\n\n"), 3600.0, "0.1 s"),
    ):
        with RawServer(streaming(after)) as server:
            door = door_to(server)
            exchange = door.exchange(listening(), Deadline(BOUND))
            next(exchange)
            exchange.limit(Deadline(None), silence=silence, lively=0.1)
            caught = Outcome(lambda: next(exchange)).error()
            exchange.close()
            door.close()
        assert type(caught) is RequestTimeout and "sent nothing for " + expected in str(caught), after


def test_signs_of_life_keep_a_stream_alive() -> None:
    enough = threading.Event()

    def drip() -> "Iterator[int]":
        comment = chunk(b":\n")
        yield from comment * 60  # altogether longer than the silence that is borne
        enough.set()
        yield from chunk(b'data: {"method":"second"}\n\n')

    with RawServer(streaming(drip=drip())) as server:
        door = door_to(server)
        exchange = door.exchange(listening(), Deadline(BOUND))
        next(exchange)
        exchange.limit(Deadline(None), silence=2.0, lively=2.0)
        assert Outcome(lambda: next(exchange)).value() == Notification("second", {})
        assert enough.is_set() and exchange.heard_at is not None
        exchange.close()
        door.close()


def test_a_deadline_ends_a_stream_however_lively_it_is() -> None:
    with RawServer(streaming(drip=itertools.cycle(chunk(b":\n")))) as server:
        door = door_to(server)
        exchange = door.exchange(listening(), Deadline(BOUND))
        next(exchange)
        exchange.limit(Deadline(SHORT, "the stream"), silence=10.0, lively=10.0)
        caught = Outcome(lambda: next(exchange)).error()
        exchange.close()
        door.close()
    assert type(caught) is RequestTimeout and "the stream took longer than its limit of 0.3 s" in str(caught)


# -- interruptions -----------------------------------------------------------------------------------------------------


def test_closing_wakes_whoever_waits_for_headers(tls: bool) -> None:
    for start in (b"", b"HTTP/1.1 200 OK\r\nContent-"):
        arrived = threading.Event()

        def script(peer: Peer) -> None:
            peer.request()
            peer.send(start)
            arrived.set()
            peer.wait_gone()

        with server_of(script, tls) as server:
            door = door_to(server)
            call = Outcome(lambda: messages(door, calling(), timeout=3600.0))
            assert arrived.wait(BOUND)
            door.close()
            caught = call.error()
            server.wait_gone()
        assert type(caught) is Interrupted and "(tools/call) was interrupted" in str(caught)
        assert caught.may_have_run


@pytest.mark.parametrize(
    "start",
    [
        JSON_HEAD + b'{"half',
        head("Content-Type: application/json", "Content-Length: 100") + b"{",
        head("Content-Type: application/json", "Transfer-Encoding: chunked") + b"ff\r\n{",
        head("Content-Type: text/html", "Content-Length: 100") + b"<",
    ],
    ids=["json", "with a length", "in chunks", "html"],
)
def test_closing_wakes_whoever_reads_a_body(start: bytes, tls: bool) -> None:
    arrived = threading.Event()

    def script(peer: Peer) -> None:
        peer.request()
        peer.send(start)
        arrived.set()
        peer.wait_gone()

    with server_of(script, tls) as server:
        door = door_to(server)
        call = Outcome(lambda: messages(door, timeout=3600.0))
        assert arrived.wait(BOUND)
        door.close()
        assert isinstance(call.error(), Exception)
        server.wait_gone()


def test_any_thread_wakes_the_one_that_reads_a_silent_stream(tls: bool) -> None:
    with server_of(streaming(), tls) as server:
        door = door_to(server)
        exchange = door.exchange(listening(), Deadline(BOUND))
        exchange.limit(Deadline(None))
        next(exchange)
        call = Outcome(lambda: next(exchange))
        for _ in range(3):
            exchange.interrupt()
        caught = call.error()
        assert type(caught) is Interrupted and "was interrupted" in str(caught) and exchange.interrupted
        # Interrupting is not closing: the thread that reads does that, and only then the server sees the end... or
        # before.
        exchange.close()
        exchange.close()
        server.wait_gone()
        exchange.interrupt()
        door.close()


def test_who_is_interrupted_while_not_reading_is_told_when_reading_on(tls: bool) -> None:
    with server_of(streaming(), tls) as server:
        door = door_to(server)
        exchange = door.exchange(listening(), Deadline(BOUND))
        next(exchange)
        exchange.limit(Deadline(None))
        exchange.interrupt()
        with pytest.raises(TransportError, match="was interrupted"):
            Outcome(lambda: next(exchange)).value()
        exchange.close()
        door.close()


def test_closing_wakes_whoever_connects(full: int) -> None:
    door = transport("http://127.0.0.1:%d/" % full, connect_timeout=3600.0)
    call = Outcome(lambda: messages(door, timeout=3600.0))
    interrupted_when(door, lambda guard: guard._socket is not None)
    caught = call.error()
    assert type(caught) is Interrupted and "was interrupted" in str(caught) and not caught.may_have_run


def test_closing_wakes_whoever_is_in_a_handshake() -> None:
    arrived = threading.Event()

    def script(peer: Peer) -> None:
        peer._more()  # the client's first message
        arrived.set()
        peer.wait_gone()

    with RawServer(script) as server:
        door = transport(server.url.replace("http:", "https:"), connect_timeout=3600.0)
        call = Outcome(lambda: messages(door, calling(), timeout=3600.0))
        assert arrived.wait(BOUND)
        door.close()
        caught = call.error()
        server.wait_gone()
    assert type(caught) is Interrupted and "was interrupted" in str(caught) and not caught.may_have_run


@pytest.mark.parametrize("used", [False, True], ids=["new", "used before"])
def test_closing_wakes_whoever_sends(tls: bool, used: bool) -> None:
    def script(peer: Peer) -> None:
        if used:
            peer.send(json_answer(peer.request().answer()))
        peer.idle()

    with server_of(script, tls) as server:
        door = door_to(server)
        if used:
            result(door)
        call = Outcome(lambda: messages(door, calling(text="x" * 30000000), timeout=3600.0))
        interrupted_when(door, lambda guard: guard.sent)
        caught = call.error()
        assert server.connections == 1
    assert type(caught) is Interrupted and "was interrupted" in str(caught) and caught.may_have_run


def test_closing_while_a_name_is_looked_up_lets_nothing_begin(tls: bool, monkeypatch: Any) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.wait_gone()

    with server_of(script, tls) as server:
        door = door_to(server)
        looked_up = socket.getaddrinfo

        def closing(*args: Any) -> Any:
            door.close()
            return looked_up(*args)

        with monkeypatch.context() as patch:
            patch.setattr(socket, "getaddrinfo", closing)
            caught = Outcome(lambda: messages(door, calling(), timeout=3600.0)).error()
        assert type(caught) is Interrupted and "was interrupted" in str(caught)
        assert server.requests == []


def interrupted_when(door: Any, ready: "Callable[[Any], bool]") -> None:
    """Close a transport as soon as its one exchange has come to some point."""
    pause = threading.Event()
    for _ in range(4000):
        guards = [exchange._guard for exchange in list(door._exchanges.values())]
        if guards and ready(guards[0]):
            door.close()
            return
        pause.wait(0.005)
    raise AssertionError("the exchange did not come so far")


def test_a_transport_that_was_closed_begins_nothing() -> None:
    with RawServer(lambda peer: None) as server:
        door = transport(server.url)
        door.close()
        door.close()
        with pytest.raises(TransportError, match="is closed") as caught:
            messages(door)
        assert not caught.value.may_have_run and server.connections == 0


def test_a_transport_closed_at_any_moment_leaves_no_call_hanging(tls: bool) -> None:
    # Each time a little later: before it is opened, while it connects, while it asks, while it waits.
    def script(peer: Peer) -> None:
        peer.request()
        peer.wait_gone()

    moment = threading.Event()
    with server_of(script, tls) as server:
        for number in range(100):
            door = door_to(server)
            together = threading.Barrier(2)

            def call() -> Any:
                together.wait(BOUND)
                return messages(door, timeout=3600.0)

            outcome = Outcome(call)
            together.wait(BOUND)
            moment.wait(number * 3e-5)
            door.close()
            assert type(outcome.error()) in (Interrupted, TransportError)


def test_an_interruption_that_comes_late_does_not_hit_the_next_exchange() -> None:
    def script(peer: Peer) -> None:
        while True:
            peer.send(json_answer(peer.request().answer()))

    with RawServer(script) as server:
        door = transport(server.url)
        first = door.exchange(reading(), Deadline(BOUND))
        assert len(list(first)) == 1
        first.close()
        second = door.exchange(reading(), Deadline(BOUND))
        first.interrupt()
        assert len(list(second)) == 1
        second.close()
        assert server.connections == 1
        door.close()


def test_closing_a_client_ends_a_read_in_another_thread(tls: bool) -> None:
    arrived = threading.Event()

    def script(peer: Peer) -> None:
        peer.request()
        arrived.set()
        peer.wait_gone()

    with server_of(script, tls) as server:
        client = Client(server.url, verify=certificate()[0], timeout=None)
        call = Outcome(lambda: client.read_resource(URI))
        assert arrived.wait(BOUND)
        client.close()
        assert type(call.error()) is ClientClosed
        server.wait_gone()


# -- afterwards --------------------------------------------------------------------------------------------------------


def test_a_connection_that_was_given_up_is_not_used_again(tls: bool) -> None:
    def script(peer: Peer) -> None:
        request = peer.request()
        if peer.number == 1:
            peer.wait_gone()
        peer.send(json_answer(request.answer({"contents": [{"uri": URI, "text": "x"}]})))

    with server_of(script, tls) as server:
        door = door_to(server)
        with pytest.raises(RequestTimeout):
            Outcome(lambda: messages(door, timeout=SHORT)).value()
        server.wait_gone()
        assert Outcome(lambda: result(door)).value()["contents"][0]["text"] == "x"
        assert server.connections == 2
        door.close()


def test_a_short_limit_of_one_exchange_does_not_shorten_the_next() -> None:
    gate = threading.Event()

    def script(peer: Peer) -> None:
        peer.send(json_answer(peer.request().answer()))
        request = peer.request()
        gate.wait(1.0)  # longer than the first exchange had altogether
        peer.send(json_answer(request.answer()))

    with RawServer(script) as server:
        door = door_to(server)
        result(door, timeout=0.9)
        result(door, timeout=3600.0)
        assert server.connections == 1
        door.close()


def test_an_endless_answer_is_too_large_before_it_is_late() -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(EVENTS_HEAD)
        while True:
            peer.send(b"x" * 10000)

    with RawServer(script) as server:
        with pytest.raises(MessageTooLarge):
            Outcome(lambda: result_from(server.url, max_message_bytes=1000000, timeout=3600.0)).value()
