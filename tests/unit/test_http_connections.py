"""Connections: used again where they can be, given up where not; and each way to lose one is an error of ours."""

import gc
import http.client
import pickle
import socket
import threading
from typing import Any, Callable, List

import pytest
import requests
import requests.auth
import urllib3.exceptions
from certificates import certificate, server_context
from posting import ERA, IDS, URI, calling, listening, messages, reading, result, result_from, transport
from rawserver import (
    BOUND,
    CHUNKED_EVENTS_HEAD,
    EVENTS_HEAD,
    JSON_HEAD,
    Outcome,
    Peer,
    RawServer,
    Request,
    chunk,
    head,
    json_answer,
)

from mcp_sync import Client
from mcp_sync._deadline import Deadline
from mcp_sync.errors import MCPSyncError, ProtocolError, TransportError
from mcp_sync.testing import Server
from mcp_sync.transports.streamable_http import StreamableHTTP

TEXTS = {"contents": [{"uri": URI, "text": "x"}]}

# -- used again --------------------------------------------------------------------------------------------------------


def with_length(request: Request) -> bytes:
    return json_answer(request.answer(TEXTS))


def in_chunks(request: Request) -> bytes:
    start = head("Content-Type: application/json", "Transfer-Encoding: chunked")
    return start + chunk(request.answer(TEXTS)) + b"0\r\n\r\n"


def in_events(request: Request) -> bytes:
    return CHUNKED_EVENTS_HEAD + chunk(request.event(TEXTS)) + b"0\r\n\r\n"


def in_events_with_more_behind(request: Request) -> bytes:
    return CHUNKED_EVENTS_HEAD + chunk(request.event(TEXTS) + b": bye\n\n") + chunk(b": bye\n\n") + b"0\r\n\r\n"


def in_events_with_a_length(request: Request) -> bytes:
    body = request.event(TEXTS)
    return head("Content-Type: text/event-stream", "Content-Length: %d" % len(body)) + body


def as_an_error(request: Request) -> bytes:
    body = b'{"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"m"}}' % request.id
    return json_answer(body, status="400 Bad Request")


def behind_an_interim_answer(request: Request) -> bytes:
    return b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + with_length(request)


def kept_alive_by_http_1_0(request: Request) -> bytes:
    return json_answer(request.answer(TEXTS), "Connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0", 1)


@pytest.mark.parametrize(
    "answer",
    [
        with_length,
        in_chunks,
        in_events,
        in_events_with_more_behind,
        in_events_with_a_length,
        as_an_error,
        behind_an_interim_answer,
        kept_alive_by_http_1_0,
    ],
    ids=lambda answer: answer.__name__,
)
@pytest.mark.parametrize("auth", [None, lambda request: request], ids=["none", "callable"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_two_calls_use_one_connection(answer: "Callable[[Request], bytes]", auth: Any, tls: bool) -> None:
    def script(peer: Peer) -> None:
        while True:
            peer.send(answer(peer.request()))

    with RawServer(script, tls=server_context() if tls else None) as server:
        door = transport(server.url, auth=auth, verify=certificate()[0])
        for _ in range(3):
            [got] = Outcome(lambda: messages(door)).value()
            assert got.error is not None or got.result["contents"] == TEXTS["contents"]
        assert (server.connections, len(server.requests)) == (1, 3)
        door.close()


@pytest.mark.parametrize("answer", ["json", "sse"])
def test_two_reads_of_a_client_use_one_connection(answer: str) -> None:
    with Server(answer=answer) as server:
        server.add(URI, "x")
        with Client(server.url) as client:
            for _ in range(5):
                assert client.read_resource(URI).text == "x"
            server.wait_for_connections(1)


def test_error_pages_do_not_cost_a_connection() -> None:
    def script(peer: Peer) -> None:
        while True:
            peer.request()
            peer.send(head("Content-Type: text/html", "Content-Length: 5", status="503 Away") + b"hello")

    with RawServer(script) as server:
        door = transport(server.url)
        for _ in range(3):
            with pytest.raises(TransportError):
                messages(door)
        assert server.connections == 1
        door.close()


def test_calls_at_the_same_time_use_several_connections_and_get_their_own_answers() -> None:
    together = threading.Barrier(4)

    def script(peer: Peer) -> None:
        while True:
            request = peer.request()
            together.wait(BOUND)
            uri = request.message["params"]["uri"]
            peer.send(json_answer(request.answer({"contents": [{"uri": uri, "text": ""}]})))

    with RawServer(script) as server:
        door = transport(server.url)
        for _ in range(3):
            calls = [
                Outcome(lambda uri=uri: result(door, reading(uri)))  # type: ignore[misc]
                for uri in ("docs://0", "docs://1", "docs://2", "docs://3")
            ]
            assert [call.value()["contents"][0]["uri"] for call in calls] == ["docs://%d" % n for n in range(4)]
        assert server.connections == 4
        door.close()


@pytest.mark.parametrize("auth", [None, lambda request: request], ids=["none", "callable"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_what_lies_idle_is_closed_with_its_transport_and_not_when_it_is_collected(auth: Any, tls: bool) -> None:
    def script(peer: Peer) -> None:
        peer.send(with_length(peer.request()))
        peer.wait_gone()

    with RawServer(script, tls=server_context() if tls else None) as server:
        door = transport(server.url, auth=auth, verify=certificate()[0])
        with door.exchange(reading(), Deadline(BOUND)) as exchange:  # which refers to the pool from here on
            assert len(list(exchange)) == 1
        assert server.connections == 1
        door.close()
        server.wait_gone()


# -- not used again ----------------------------------------------------------------------------------------------------


def closing(request: Request) -> bytes:
    return json_answer(request.answer(TEXTS), "Connection: close")


def to_the_end(request: Request) -> bytes:
    return JSON_HEAD + request.answer(TEXTS)


def events_that_stay(request: Request) -> bytes:
    return CHUNKED_EVENTS_HEAD + chunk(request.event(TEXTS))


def events_that_go_on(request: Request) -> bytes:
    return CHUNKED_EVENTS_HEAD + chunk(request.event(TEXTS)) + chunk(b": more\n\n") * 100000


def more_than_it_says(request: Request) -> bytes:
    return json_answer(request.answer(TEXTS)) + b"surplus"


def two_answers(request: Request) -> bytes:
    return json_answer(request.answer(TEXTS)) + json_answer(request.answer({"contents": [{"uri": "evil", "text": ""}]}))


def chunks_and_another_answer(request: Request) -> bytes:
    return in_chunks(request) + json_answer(request.answer({"contents": [{"uri": "evil", "text": ""}]}))


@pytest.mark.parametrize(
    "answer",
    [
        closing,
        to_the_end,
        events_that_stay,
        events_that_go_on,
        more_than_it_says,
        two_answers,
        chunks_and_another_answer,
    ],
    ids=lambda answer: answer.__name__,
)
def test_a_connection_that_is_not_surely_at_an_end_is_not_used_again(answer: "Callable[[Request], bytes]") -> None:
    def script(peer: Peer) -> None:
        request = peer.request()
        peer.send(answer(request))
        if answer is to_the_end:
            peer.shut()
        peer.wait_gone()

    with RawServer(script) as server:
        door = transport(server.url)
        for number in (1, 2, 3):
            assert Outcome(lambda: result(door)).value()["contents"] == TEXTS["contents"]
            server.wait_gone()
            assert server.connections == number
        door.close()


def test_a_late_second_answer_is_not_taken_for_that_to_the_next_request() -> None:
    second = threading.Event()

    def script(peer: Peer) -> None:
        request = peer.request()
        peer.send(json_answer(request.answer(TEXTS)))
        second.wait(BOUND)
        peer.send(json_answer(request.answer({"contents": [{"uri": "evil", "text": ""}]})))
        arrived.release()
        while True:
            peer.send(json_answer(peer.request().answer(TEXTS)))

    arrived = threading.Semaphore(0)
    with RawServer(script) as server:
        door = transport(server.url)
        result(door)
        second.set()
        assert arrived.acquire(timeout=BOUND)
        assert Outcome(lambda: result(door)).value()["contents"] == TEXTS["contents"]
        assert server.connections == 2
        door.close()


# -- stale -------------------------------------------------------------------------------------------------------------


def test_a_read_over_a_connection_that_the_server_closed_meanwhile_works() -> None:
    def script(peer: Peer) -> None:
        peer.send(json_answer(peer.request().answer(TEXTS)))
        if peer.number == 1:
            peer.shut()
            closed.set()
            peer.wait_gone()
        peer.send(json_answer(peer.request().answer(TEXTS)))

    closed = threading.Event()
    with RawServer(script) as server:
        door = transport(server.url)
        result(door)
        assert closed.wait(BOUND)
        for outgoing in (reading(), calling()):
            assert Outcome(lambda: result(door, outgoing)).value()["contents"] == TEXTS["contents"]
        assert (server.connections, len(server.requests)) == (2, 3)
        door.close()


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_read_is_sent_once_more_if_its_connection_ends_just_then(how: str) -> None:
    def script(peer: Peer) -> None:
        if peer.number == 1:
            peer.send(json_answer(peer.request().answer(TEXTS)))
            peer.request()
            # Just when the next request is on its way.
            peer.reset() if how == "reset" else None
            return
        peer.send(json_answer(peer.request().answer(TEXTS)))

    for outgoing, again in ((reading, True), (calling, False)):
        with RawServer(script) as server:
            door = transport(server.url)
            result(door)
            call = Outcome(lambda: result(door, outgoing()))
            if again:
                assert call.value()["contents"] == TEXTS["contents"]
                first, second = server.requests[-2:]
                assert first == second
            else:
                caught = call.error()
                assert type(caught) is TransportError and caught.may_have_run
                assert str(caught).endswith("; the request may have been executed")
                assert [request.message["method"] for request in server.requests] == ["resources/read", "tools/call"]
            door.close()


def test_a_read_is_not_sent_a_third_time() -> None:
    def script(peer: Peer) -> None:
        peer.request()

    with RawServer(script) as server:
        caught = Outcome(lambda: result_from(server.url)).error()
        assert type(caught) is TransportError and len(server.requests) == 2
    with RawServer(script) as server:
        caught = Outcome(lambda: result_from(server.url, calling())).error()
        assert type(caught) is TransportError and len(server.requests) == 1


def test_a_read_whose_answer_had_begun_is_not_sent_again() -> None:
    for start in (b"HTTP/1.1 200 OK\r\n", JSON_HEAD, EVENTS_HEAD + b"data: x"):

        def script(peer: Peer) -> None:
            peer.request()
            peer.send(start)
            peer.reset()

        with RawServer(script) as server:
            caught = Outcome(lambda: result_from(server.url)).error()
            assert isinstance(caught, TransportError) and len(server.requests) <= 2, start


# -- lost: every way, and one kind of exception ------------------------------------------------------------------------

FOREIGN = (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, http.client.HTTPException, socket.error)


def refused(outgoing: Any, url: str, **options: Any) -> MCPSyncError:
    """The error of a call, after looking at what must hold for all of them."""
    caught = Outcome(lambda: result_from(url, outgoing, **options)).error()
    assert isinstance(caught, MCPSyncError), caught
    assert type(caught).__module__ == "mcp_sync.errors"
    again = pickle.loads(pickle.dumps(caught))
    assert (type(again), str(again), vars(again)) == (type(caught), str(caught), vars(caught))
    assert len(str(caught)) < 500 and str(caught).isprintable()
    ran = getattr(caught, "may_have_run", True)
    told = "; the request may have been executed" if ran else "; the request was not executed"
    assert str(caught).endswith(told) is not outgoing.repeatable
    return caught


@pytest.fixture(params=["read", "call", "listen"])
def outgoing(request: Any) -> Any:
    """A request of each kind."""
    return {"read": reading, "call": calling, "listen": listening}[request.param]()


@pytest.fixture(params=["none", "callable"])
def auth(request: Any) -> Any:
    """Both ways through the libraries."""
    return None if request.param == "none" else requests.auth.HTTPDigestAuth("u", "p")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.mark.parametrize(
    "url, told",
    [
        ("http://127.0.0.1:{port}/", "Connection refused"),
        ("https://127.0.0.1:{port}/", "Connection refused"),
        ("http://[::1]:{port}/", ""),
        ("http://docs.invalid/", ""),
        ("https://docs.invalid:8443/mcp", ""),
        ("http://" + "a" * 64 + ".invalid/", ""),
        ("http://a..invalid/", ""),
        ("http://0.0.0.0.0.invalid/", ""),
    ],
    ids=["port", "tls port", "ipv6", "name", "tls name", "long label", "empty label", "odd name"],
)
def test_what_cannot_be_reached_is_told_and_nothing_was_executed(url: str, told: str, outgoing: Any, auth: Any) -> None:
    caught = refused(outgoing, url.format(port=free_port()), auth=auth)
    assert type(caught) is TransportError and not caught.may_have_run
    assert " cannot be reached: " in str(caught) and told in str(caught)
    assert caught.status is None


@pytest.mark.parametrize("error", [ConnectionResetError(104, "Connection reset by peer"), BrokenPipeError(32, "Broken pipe")])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_connection_that_is_reset_while_it_is_made_is_told_and_nothing_was_executed(
    error: OSError, scheme: str, outgoing: Any, auth: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a proxy does whose server is gone. When exactly the reset arrives is a matter of luck.
    class Reset(socket.socket):
        def connect(self, address: Any) -> None:
            raise error

    monkeypatch.setattr("mcp_sync.transports._sockets.socket.socket", Reset)
    caught = refused(outgoing, scheme + "://127.0.0.1:9/", auth=auth)
    assert type(caught) is TransportError and not caught.may_have_run
    assert " cannot be reached: %s" % error in str(caught)


def test_tls_against_a_plain_port_is_told_and_nothing_was_executed(outgoing: Any, auth: Any) -> None:
    def script(peer: Peer) -> None:
        peer._more()
        peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with RawServer(script) as server:
        caught = refused(outgoing, server.url.replace("http:", "https:"), auth=auth)
    assert type(caught) is TransportError and not caught.may_have_run
    assert " cannot be reached: " in str(caught)


def test_plain_against_a_tls_port_is_told(outgoing: Any, auth: Any) -> None:
    with RawServer(lambda peer: None, tls=server_context()) as server:
        caught = refused(outgoing, server.url.replace("https:", "http:"), auth=auth)
    assert type(caught) is TransportError


@pytest.mark.parametrize("when", ["accepted", "asked"])
@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_an_end_before_an_answer_is_told(when: str, how: str, tls: bool, outgoing: Any, auth: Any) -> None:
    def script(peer: Peer) -> None:
        if when == "asked":
            peer.request()
        if how == "reset":
            peer.reset()

    with RawServer(script, tls=server_context() if tls else None) as server:
        caught = refused(outgoing, server.url, auth=auth, verify=certificate()[0])
    assert type(caught) is TransportError
    # An end at once may come before anything was sent, or after.
    assert caught.may_have_run or when == "accepted"


STARTS: "List[bytes]" = [
    b"garbage\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"\x00\x01\x02\x03\xff\xfe\r\n\r\n",
    b"\r\n\r\n",
    b"HTTP/1.1\r\n\r\n",
    b"HTTP/1.1 abc OK\r\n\r\n",
    b"HTTP/1.1 99 Low\r\n\r\n",
    b"HTTP/1.1 1000 High\r\n\r\n",
    b"HTTP/1.1 -200 OK\r\n\r\n",
    b"HTTP/3.0 200 OK\r\n\r\n",
    b"HTTP/1.1 200 OK" + b"x" * 100000 + b"\r\n\r\n",
    b"x" * 100000,
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100000 + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nxxxxx",
    b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n: no name\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: \xff\xfe\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: gzip\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 401 No\r\nWWW-Authenticate: Digest \xff=\r\n\r\n",
    b"HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm\r\nContent-Length: 0\r\n\r\n",
    b'HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm="r", nonce="n", algorithm=ODD\r\nContent-Length: 0\r\n\r\n',
    b"HTTP/1.1 307 Moved\r\nLocation: \xff\xfe\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Ty",
    b"HTTP/1.1 200",
    b"HTTP/1.1 503 Away\r\nRetry-After: \xb2\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\nContent-Length: 10\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n\r\n",
]


@pytest.mark.parametrize("start", STARTS, ids=[repr(start[:40]) for start in STARTS])
def test_an_answer_that_is_no_http_is_told(start: bytes, outgoing: Any, auth: Any) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(start)
        peer.shut()
        peer.wait_gone()

    with RawServer(script) as server:
        caught = refused(outgoing, server.url, auth=auth)
    assert isinstance(caught, (TransportError, ProtocolError))


@pytest.mark.parametrize(
    "start, told",
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "what came is not HTTP: SSH-2.0-OpenSSH_9.2"),
        (b"", "it was closed without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Ty", "it ended in the middle"),
    ],
)
def test_what_was_wrong_is_told_in_words(start: bytes, told: str) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(start)

    with RawServer(script) as server:
        caught = refused(calling(), server.url)
    assert "broke while it was asked (tools/call): " + told in str(caught)


def test_headers_that_end_too_early_are_not_taken_for_all_of_them() -> None:
    # What is missing may be the length, and with it the knowledge that the body is cut; or that it is an event stream.
    whole = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 17\r\n"
    for end in range(len(b"HTTP/1.1 200"), len(whole) + 1):

        def script(peer: Peer) -> None:
            peer.request()
            peer.send(whole[:end])

        with RawServer(script) as server:
            caught = Outcome(lambda: result_from(server.url, calling())).error()
        assert type(caught) is TransportError and "it ended in the middle" in str(caught), (end, caught)


def test_an_answer_cut_at_every_byte_is_an_error_at_every_byte() -> None:
    outgoing = ERA.request(IDS.next(), "tools/call", {"name": "x"})

    def whole(request: Request) -> bytes:
        return json_answer(request.answer())

    sizes: "List[int]" = []

    def script(peer: Peer) -> None:
        answer = whole(peer.request())
        sizes.append(len(answer))
        peer.send(answer[: cut if cut >= 0 else len(answer)])

    cut = -1
    with RawServer(script) as server:
        assert Outcome(lambda: result_from(server.url, outgoing)).value()["contents"] == []
        for cut in range(sizes[0]):
            caught = Outcome(lambda: result_from(server.url, outgoing)).error()
            assert type(caught) is TransportError and caught.may_have_run, cut


def test_the_original_exception_is_the_cause() -> None:
    caught = refused(calling(), "http://127.0.0.1:%d/" % free_port())
    assert isinstance(caught.__cause__, Exception) and not isinstance(caught.__cause__, MCPSyncError)
    assert isinstance(caught, OSError)
    assert not isinstance(caught, FOREIGN[:3])


def test_a_message_that_cannot_be_sent_is_refused_before_anything_is() -> None:
    with RawServer(lambda peer: None) as server:
        for value in (float("nan"), object(), {1}):
            with pytest.raises(ProtocolError, match="cannot be sent as JSON"):
                result_from(server.url, calling(value=value))
        assert server.connections == 0


# -- nothing is left ---------------------------------------------------------------------------------------------------


def sockets() -> int:
    gc.collect()
    return sum(isinstance(thing, socket.socket) and thing.fileno() >= 0 for thing in gc.get_objects())


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_no_socket_is_left_open_whatever_went_wrong(tls: bool) -> None:
    def script(peer: Peer) -> None:
        request = peer.request()
        answers = [
            json_answer(request.answer()),
            json_answer(request.answer())[:-5],
            b"garbage\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nX",
            CHUNKED_EVENTS_HEAD + b"zz\r\n",
            head("Location: /mcp", "Content-Length: 0", status="307 Moved"),
            b"",
        ]
        peer.send(answers[peer.number % len(answers)])

    before = sockets()
    with RawServer(script, tls=server_context() if tls else None) as server:
        door = transport(server.url, verify=certificate()[0])
        for _ in range(30):
            try:
                result(door)
            except MCPSyncError:
                pass
        with pytest.raises(TransportError):
            result_from(server.url)
        door.close()
        assert not door._exchanges
    assert sockets() == before


def test_a_transport_that_is_forgotten_lets_go_of_its_connections() -> None:
    def script(peer: Peer) -> None:
        peer.send(json_answer(peer.request().answer()))
        peer.wait_gone()

    def use(url: str) -> None:
        door = StreamableHTTP(transport(url)._options)
        with door.exchange(reading(), Deadline(BOUND)) as exchange:
            list(exchange)
        door.close()

    with RawServer(script) as server:
        use(server.url)
        server.wait_gone()
