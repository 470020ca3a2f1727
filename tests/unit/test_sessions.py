"""Legacy sessions: begun, kept, gone in every way in which servers say it, begun again quietly, and ended."""

import json
import logging
import os
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest
from rawserver import BOUND, CHUNKED_EVENTS_HEAD, Ended, Outcome, Peer, RawServer, Request, chunk, head, json_answer

from mcp_sync import (
    AuthorizationError,
    Client,
    ClientClosed,
    NotSupported,
    ProtocolError,
    RequestTimeout,
    ResourceNotFound,
    ServerError,
    State,
    TransportError,
)
from mcp_sync._deadline import Deadline
from mcp_sync.testing import Server, faults

URI = "docs://service/config"
TEXT = "colour = blue"


@pytest.fixture
def server() -> "Iterator[Server]":
    with Server(eras=("legacy",)) as server:
        server.add(URI, TEXT)
        yield server


def read(client: Client, uri: str = URI, **options: Any) -> Any:
    options.setdefault("timeout", BOUND)
    return client.read_resource(uri, **options).text


def call(client: Client, method: str, **params: Any) -> Any:
    """A request for which the client has no verb yet."""
    return client._connection.call(method, params, deadline=Deadline(BOUND))


class Session:
    """A legacy server with a session, made of a test's own answers.

    :param answers: from a method to what makes the whole HTTP answer, or None for the usual one. ``GET`` and
        ``DELETE`` are methods too.
    """

    def __init__(self, session_id: "Optional[str]" = "s-1", version: str = "2025-11-25", **answers: Any) -> None:
        self.session_ids = iter([session_id] + ["s-%d" % number for number in range(2, 100)])
        self.version = version
        self.answers = answers
        self._lock = threading.Lock()

    def __call__(self, peer: Peer) -> None:
        while True:
            request = peer.request()
            verb = request.line.split(" ")[0]
            method = request.message.get("method", "a reply") if request.body else verb
            made = self.answers.get(method.replace("/", "_"))
            data = made(peer, request) if made is not None else None
            peer.send(self.usual(request, method) if data is None else data)

    def usual(self, request: Request, method: str) -> bytes:
        if method in ("GET", "DELETE"):
            return head("Content-Length: 0", status="405 Method Not Allowed")
        if "id" not in request.message or "method" not in request.message:
            return head("Content-Length: 0", status="202 Accepted")
        if "_meta" in request.message.get("params", {}):
            return head("Content-Length: 0", status="400 Bad Request")
        more = []
        result: Dict[str, Any] = {"contents": [{"uri": URI, "text": TEXT}], "resources": [{"uri": URI, "name": "x"}]}
        if method == "initialize":
            capabilities = {"resources": {"subscribe": True, "listChanged": True}}
            result = {"protocolVersion": self.version, "capabilities": capabilities, "serverInfo": {"name": "old"}}
            with self._lock:
                session_id = next(self.session_ids)
            if session_id is not None:
                more.append("Mcp-Session-Id: " + session_id)
        return json_answer(response(request.id, result), *more)


def response(request_id: Any, result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}).encode("utf-8")


def refused(status: str, code: int, message: str, own_id: bool = True) -> "Callable[[Peer, Request], bytes]":
    def made(peer: Peer, request: Request) -> bytes:
        told = {"jsonrpc": "2.0", "id": request.id if own_id else None, "error": {"code": code, "message": message}}
        return json_answer(json.dumps(told).encode("utf-8"), status=status)

    return made


def plain(status: str, body: str = "") -> "Callable[[Peer, Request], bytes]":
    data = body.encode("utf-8")
    whole = head("Content-Type: text/plain", "Content-Length: %d" % len(data), status=status) + data
    return lambda peer, request: whole


def once(made: "Callable[[Peer, Request], Optional[bytes]]") -> "Callable[[Peer, Request], Optional[bytes]]":
    """The first time only."""
    times: List[None] = []

    def first(peer: Peer, request: Request) -> Optional[bytes]:
        times.append(None)
        return made(peer, request) if len(times) == 1 else None

    return first


def methods(server: RawServer) -> "List[str]":
    return [
        request.message.get("method", "a reply") if request.body else request.line.split(" ")[0]
        for request in server.requests
    ]


def await_count(server: RawServer, method: str, count: int) -> None:
    """Wait until the server was asked so often."""
    idle = threading.Event()
    for _ in range(int(BOUND / 0.01)):
        if methods(server).count(method) >= count:
            return
        idle.wait(0.01)
    raise AssertionError("%s came %d times" % (method, methods(server).count(method)))


# -- kept -------------------------------------------------------------------------------------------------------------

#: Visible ASCII, all of which a header can carry.
ODD_ID = "!\"#$%&'()*+,-./0;<=>?@A[\\]^_`a{|}~;q=0.5,=?base64?x?="


@pytest.mark.parametrize("session_id", ["0", ODD_ID, "x" * 4000])
def test_the_id_of_a_session_is_sent_back_as_it_came_with_everything_and_at_the_end(session_id: str) -> None:
    with RawServer(Session(session_id)) as server:
        with Client(server.url) as client:
            assert read(client) == TEXT
        sent = [request.header("Mcp-Session-Id") for request in server.requests]
        assert methods(server) == [
            "resources/read",
            "initialize",
            "notifications/initialized",
            "resources/read",
            "DELETE",
        ]
        # The refusal of the DELETE harms nobody.
        assert sent == [None, None] + [session_id] * 3


@pytest.mark.parametrize("session_id", ["with a space", "caf\u00e9", "tab\tin it", "del\x7f"])
def test_an_id_that_a_client_must_not_send_is_refused_with_a_message_that_shows_it(session_id: str) -> None:
    with RawServer(Session(session_id)) as server, Client(server.url) as client:
        with pytest.raises(ProtocolError, match="an id that cannot be sent back"):
            read(client)


@pytest.mark.parametrize("session_id", [None, ""])
def test_a_server_without_sessions_is_sent_no_id_and_no_goodbye(session_id: "Optional[str]") -> None:
    with RawServer(Session(session_id)) as server:
        with Client(server.url) as client:
            assert read(client) == TEXT
        assert "DELETE" not in methods(server)
        assert all(request.header("Mcp-Session-Id") is None for request in server.requests)


@pytest.mark.parametrize(
    "version, sent", [("2025-11-25", True), ("2025-06-18", True), ("2025-03-26", False), ("2024-11-05", False)]
)
def test_the_version_is_in_a_header_from_the_revision_on_that_has_it(version: str, sent: bool) -> None:
    with RawServer(Session("s-1", version)) as server:
        with Client(server.url) as client:
            assert read(client) == TEXT
            assert client.protocol_version == version
        versions = [request.header("MCP-Protocol-Version") for request in server.requests[1:]]
        assert versions == [None] + [version if sent else None] * 3


def test_an_initialize_answered_on_a_stream_of_events_is_as_good() -> None:
    with Server(eras=("legacy",), answer="sse") as server, Client(server.url) as client:
        server.add(URI, TEXT)
        assert read(client) == TEXT
        assert server.count("initialize") == 1


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "405 Method Not Allowed", "500 Oops"])
def test_an_error_in_answer_to_the_notification_that_the_client_is_ready_means_nothing(status: str) -> None:
    with RawServer(Session(notifications_initialized=plain(status))) as server, Client(server.url) as client:
        assert read(client) == TEXT
        assert methods(server)[-1] == "resources/read" and "GET" not in methods(server)


def test_a_server_that_pings_during_the_handshake_is_answered() -> None:
    def pings(peer: Peer, request: Request) -> bytes:
        ping = b'{"jsonrpc":"2.0","id":0,"method":"ping"}'
        peer.send(CHUNKED_EVENTS_HEAD + chunk(b"data: " + ping + b"\n\n"))
        assert answered.wait(BOUND)
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
        return chunk(b"data: " + response(request.id, result) + b"\n\n") + b"0\r\n\r\n"

    def reply(peer: Peer, request: Request) -> bytes:
        replies.append(request.message)
        answered.set()
        return head("Content-Length: 0", status="202 Accepted")

    answered, replies = threading.Event(), []  # type: Any, List[Any]
    answers = {"initialize": pings, "a reply": reply}
    with RawServer(Session(None, **answers)) as server, Client(server.url) as client:
        assert read(client) == TEXT
    assert replies == [{"jsonrpc": "2.0", "id": 0, "result": {}}]


def test_a_session_is_ended_when_the_client_is_closed(server: Server) -> None:
    with Client(server.url) as client:
        assert read(client) == TEXT
        assert len(server.sessions) == 1
    assert len(server.sessions) == 0


def test_a_server_that_is_asked_anew_what_it_is_has_to_be_there(server: Server) -> None:
    with Client(server.url) as client:
        assert client.discover().server_info.name == "mcp_sync-testing"
        assert server.count("ping") == 0
        assert client.discover(cache_mode="refresh").server_info.name == "mcp_sync-testing"
        assert (server.count("initialize"), server.count("ping")) == (1, 1)
        server.kill()
        for cache_mode in ("refresh", "bypass"):
            with pytest.raises(TransportError):
                client.discover(cache_mode=cache_mode)
        server.restart()
        assert client.discover(cache_mode="refresh").server_info.name == "mcp_sync-testing"


def test_principals_have_a_session_each(server: Server) -> None:
    with Client(server.url, headers={"X-User": "a"}) as client:
        other = client.as_principal("b", headers={"X-User": "b"})
        assert read(client) == read(other) == TEXT
        assert len(server.sessions) == 2
        ids = {request.headers.get("Mcp-Session-Id") for request in server.requests}
        users = {
            (request.headers.get("X-User"), request.headers.get("Mcp-Session-Id"))
            for request in server.requests
            if request.headers.get("Mcp-Session-Id")
        }
        assert len(ids) == 3 and len(users) == 2
    assert len(server.sessions) == 0


# -- gone -------------------------------------------------------------------------------------------------------------

GONE = {
    "404": plain("404 Not Found"),
    "404 with words": plain("404 Not Found", "no such thing"),
    "404 with -32001": refused("404 Not Found", -32001, "Session not found"),
    "404 with a null id": refused("404 Not Found", -32001, "Session not found", own_id=False),
    "410": plain("410 Gone"),
    "404 with an id of the server's own": lambda peer, request: json_answer(
        b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}',
        status="404 Not Found",
    ),
    "400 with words": plain("400 Bad Request", "Invalid session ID"),
    "400 with -32000": refused("400 Bad Request", -32000, "Bad Request: No valid session ID provided"),
    "400 server not initialized": refused("400 Bad Request", -32000, "Server not initialized", own_id=False),
    "400 session expired": refused("400 Bad Request", -32600, "The session has expired"),
    "400 session terminated": refused("400 Bad Request", -32600, "Session has been terminated"),
    "200 with -32001": refused("200 OK", -32001, "Session not found"),
    "200 server not initialized": refused("200 OK", -32002, "Server not initialized"),
    "200 before initialization": refused(
        "200 OK", -32602, "Received request before initialization was complete"
    ),
}


@pytest.mark.parametrize("name", sorted(GONE))
def test_a_session_that_is_gone_is_begun_again_quietly_and_a_read_repeated_once(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mcp_sync")
    script = Session()
    with RawServer(script) as server, Client(server.url) as client:
        assert read(client) == TEXT
        done = len(server.requests)
        script.answers["resources_read"] = once(GONE[name])
        assert read(client) == TEXT
        news = methods(server)[done:]
        assert news.count("initialize") == 1 and news[-1] == "resources/read"
        assert server.requests[-1].header("Mcp-Session-Id") == "s-2"
    assert caplog.records == []


@pytest.mark.parametrize("name", sorted(GONE))
def test_a_call_is_not_repeated_when_its_session_is_gone_and_the_next_one_has_a_new_one(name: str) -> None:
    script = Session()
    with RawServer(script) as server, Client(server.url) as client:
        assert read(client) == TEXT
        script.answers["tools_call"] = once(GONE[name])
        with pytest.raises(TransportError, match="call again") as raised:
            call(client, "tools/call", name="pay")
        assert not raised.value.may_have_run
        assert methods(server).count("tools/call") == 1 and methods(server).count("initialize") == 1
        call(client, "tools/call", name="pay")
        assert methods(server).count("tools/call") == 2 and methods(server).count("initialize") == 2


ALIVE = {
    "a missing resource under 404": (refused("404 Not Found", -32002, "Resource not found"), ResourceNotFound),
    "a missing resource whose URI speaks of a session": (
        refused("400 Bad Request", -32002, "Unknown resource docs://session/invalid"),
        ResourceNotFound,
    ),
    "an error about another kind of session": (
        refused("200 OK", -32050, "your login session has expired"),
        ServerError,
    ),
    "an unknown method under 404": (
        refused("404 Not Found", -32601, "Method not found"),
        (ServerError, NotSupported),
    ),
    "a refusal that speaks of the session": (plain("403 Forbidden", "session not found"), AuthorizationError),
    "an error under 400": (refused("400 Bad Request", -32603, "no"), ServerError),
}


@pytest.mark.parametrize("name", sorted(ALIVE))
def test_an_error_about_the_resource_is_not_taken_for_the_end_of_the_session(name: str) -> None:
    answer, kind = ALIVE[name]
    script = Session()
    with RawServer(script) as server, Client(server.url.replace("/mcp", "/session-expired/mcp")) as client:
        assert read(client) == TEXT
        script.answers["resources_read"] = answer
        with pytest.raises(kind):
            read(client, "docs://session/invalid")
        assert methods(server).count("initialize") == 1


def test_what_a_new_session_does_not_help_is_raised_as_it_is() -> None:
    script = Session()
    with RawServer(script) as server, Client(server.url) as client:
        assert read(client) == TEXT
        script.answers["resources_read"] = GONE["404 with words"]
        with pytest.raises(TransportError, match="no such thing") as raised:
            read(client)
        assert raised.value.status == 404
        assert methods(server).count("initialize") == 2


@pytest.mark.parametrize("status", [404, 400])
def test_threads_that_meet_the_end_of_a_session_at_once_make_one_new_session(server: Server, status: int) -> None:
    with Client(server.url) as client:
        assert read(client) == TEXT
        with server.hold("resources/read") as gate:
            threads = [Outcome(lambda: read(client)) for _ in range(8)]
            gate.wait_reached(8)
            server.expire_sessions(status)
        assert [thread.value() for thread in threads] == [TEXT] * 8
        assert server.count("initialize") == 2
        assert len(server.sessions) == 1


def test_a_watch_counts_a_gap_for_a_session_that_is_gone_and_sees_what_changed_meanwhile(server: Server) -> None:
    with Client(server.url) as client, client.watch(URI) as watch:
        watch.wait_until_current(timeout=BOUND)
        gaps = watch.status.gaps
        # The server keeps the stream open, and tells nothing on it any more.
        server.expire_sessions(end_streams=False)
        server.update(URI, "colour = red")
        assert read(client, cache_mode="refresh") == "colour = red"
        watch.wait_for_state(State.LIVE, timeout=BOUND)
        server.wait_for_streams(1, timeout=BOUND)
        watch.wait_until_current(timeout=BOUND)
        assert watch.status.gaps == gaps + 1
        server.update(URI, "colour = green")
        for _ in watch.changes(timeout=BOUND):
            if read(client) == "colour = green":
                break
        assert server.count("initialize") == 2


def test_a_stream_address_that_does_not_exist_is_not_taken_for_the_end_of_the_session() -> None:
    with RawServer(Session(GET=plain("404 Not Found"))) as server:
        with Client(server.url, poll_interval=0.2) as client, client.watch(URI) as watch:
            watch.wait_for_state(State.POLLING, timeout=BOUND)
            watch.wait_until_current(timeout=BOUND)
            assert methods(server).count("initialize") == 1
            assert "ping" in methods(server)


# -- the streams of a session -----------------------------------------------------------------------------------------


def test_a_listener_beside_a_watch_has_a_session_of_its_own_and_takes_nothing_from_it(server: Server) -> None:
    server.add("docs://other", "1")
    with Client(server.url) as client, client.watch(URI) as watch:
        watch.wait_until_current(timeout=BOUND)
        with client.listen("docs://other", timeout=BOUND) as listening:
            assert len(server.sessions) == 2
            server.update("docs://other", "2")
            server.update(URI, "colour = red")
            assert next(listening).uri == "docs://other"  # type: ignore[attr-defined]
            for _ in watch.changes(timeout=BOUND):
                if read(client) == "colour = red":
                    break
        assert len(server.sessions) == 1
        server.update(URI, "colour = green")
        for _ in watch.changes(timeout=BOUND):
            if read(client) == "colour = green":
                break


def test_a_resource_that_may_not_be_subscribed_to_does_not_keep_the_others_from_it(server: Server) -> None:
    server.add("docs://secret", "1")
    server.inject(faults.Status(403), method="resources/subscribe", uri="docs://secret", times=None)
    with Client(server.url, poll_interval=0.2) as client, client.watch(URI, "docs://secret") as watch:
        watch.wait_until_current(timeout=BOUND)
        assert watch.status.covered == {URI}
        assert watch.status.uncovered == {"docs://secret"}


def test_a_server_that_says_it_can_and_cannot_subscribe_is_polled(server: Server) -> None:
    server.inject(faults.JsonRpcError(-32601, "Method not found"), method="resources/subscribe", times=None)
    with Client(server.url, poll_interval=0.2) as client, client.watch(URI, "docs://a", "docs://b") as watch:
        watch.wait_for_state(State.POLLING, timeout=BOUND)
        assert server.count("resources/subscribe") == 1


def test_lists_that_a_legacy_server_tells_about_are_acknowledged_to_a_listener(server: Server) -> None:
    with Client(server.url) as client:
        with client.listen(resources_list_changed=True, tools_list_changed=True, timeout=BOUND) as listening:
            abilities = client._connection.call("server/discover", deadline=Deadline(BOUND))["capabilities"]
            assert listening.acknowledged.resources_list_changed
            assert listening.acknowledged.tools_list_changed is abilities.get("tools", {}).get("listChanged", False)


def test_a_subscription_is_ended_with_the_last_stream_that_needs_it() -> None:
    with Server(transport="http+sse") as server, Client(server.url) as client:
        server.add(URI, TEXT)
        with client.listen(URI, timeout=BOUND):
            with client.listen(URI, timeout=BOUND):
                pass
            read(client)
            assert server.count("resources/unsubscribe") == 0
        server.wait_for_requests("resources/unsubscribe", 1)


@pytest.mark.parametrize("how", ["eof", "reset", "half_event"])
def test_a_stream_that_ends_is_a_gap_and_opened_again(server: Server, how: str) -> None:
    with Client(server.url) as client, client.watch(URI) as watch:
        watch.wait_until_current(timeout=BOUND)
        gaps = watch.status.gaps
        server.end_streams(how)
        server.update(URI, "colour = red")
        for _ in watch.changes(timeout=BOUND):
            if read(client) == "colour = red":
                break
        assert watch.status.gaps == gaps + 1
        assert server.count("initialize") == 1


def test_an_id_of_an_event_that_the_server_does_not_know_any_more_costs_nothing_but_one_request() -> None:
    seen: List[Optional[str]] = []

    def stream(peer: Peer, request: Request) -> "Optional[bytes]":
        seen.append(request.header("Last-Event-ID"))
        if len(seen) == 1:
            peer.send(CHUNKED_EVENTS_HEAD + chunk(b"id: e-7\nretry: 10\ndata:\n\n") + b"0\r\n\r\n")
            raise Ended()
        if seen[-1] is not None:
            return head("Content-Length: 0", status="400 Bad Request")
        peer.send(CHUNKED_EVENTS_HEAD)
        opened.set()
        peer.wait_gone()
        return None

    opened = threading.Event()
    with RawServer(Session(GET=stream)) as server, Client(server.url) as client, client.watch(URI) as watch:
        assert opened.wait(BOUND)
        watch.wait_for_state(State.LIVE, timeout=BOUND)
        assert seen == [None, "e-7", None]
        assert methods(server).count("initialize") == 1


@pytest.mark.parametrize("status", ["405 Method Not Allowed", "400 Bad Request", "404 Not Found", "501 No"])
def test_a_stream_that_is_refused_with_a_json_rpc_error_is_refused(status: str) -> None:
    def no_stream(peer: Peer, request: Request) -> bytes:
        body = b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"Method not allowed."},"id":null}'
        return json_answer(body, status=status)

    with RawServer(Session(GET=no_stream)) as server, Client(server.url, poll_interval=0.2) as client:
        states: List[State] = []
        with client.watch(URI, catalog=True, on_status=lambda status: states.append(status.state)) as watch:
            watch.wait_for_state(State.POLLING, timeout=BOUND)
            watch.wait_until_current(timeout=BOUND)
        assert State.LIVE not in states
        assert methods(server).count("initialize") == 1


# -- what belongs to nobody -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "odd",
    [
        b"not JSON",
        b"[]",
        b'[{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"docs://x"}}]',
        b'{"jsonrpc":"2.0","method":"notifications/of/the/future","params":{"a":1}}',
        b'{"jsonrpc":"2.0","id":5,"result":{}}',
        b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{}}',
        b'{"jsonrpc":"2.0","method":"notifications/resources/updated"}',
        b"\xff\xfe",
        b"17",
    ],
)
def test_an_odd_message_on_the_stream_is_passed_over_and_the_stream_lives(odd: bytes) -> None:
    def stream(peer: Peer, request: Request) -> "Optional[bytes]":
        update = b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"%s"}}' % URI.encode()
        peer.send(CHUNKED_EVENTS_HEAD)
        assert go.wait(BOUND)
        peer.send(chunk(b"data: " + odd + b"\n\n") + chunk(b"data: " + update + b"\n\n"))
        peer.wait_gone()
        return None

    go = threading.Event()
    with RawServer(Session(GET=stream)) as server, Client(server.url) as client:
        with client.watch(URI) as watch:
            watch.wait_until_current(timeout=BOUND)
            before = methods(server).count("resources/read")
            go.set()
            # The notice voids the copy, and it is read again.
            await_count(server, "resources/read", before + 1)
            assert watch.status.state is State.LIVE
            assert methods(server).count("GET") == 1


@pytest.mark.parametrize("mangled", ["text", "float", "null", "zero"])
def test_an_answer_with_a_mangled_id_is_taken_since_the_post_says_whose_it_is(mangled: str) -> None:
    def made(peer: Peer, request: Request) -> bytes:
        came = {"text": str(request.id), "float": float(request.id), "null": None, "zero": 0}[mangled]
        return json_answer(response(came, {"contents": [{"uri": URI, "text": TEXT}]}))

    script = Session()
    with RawServer(script) as server, Client(server.url) as client:
        assert read(client) == TEXT
        script.answers["resources_read"] = made
        assert read(client) == TEXT


def test_an_answer_that_comes_on_another_stream_ends_the_call_at_once(server: Server) -> None:
    with Client(server.url) as client, client.watch(URI, catalog=True) as watch:
        watch.wait_until_current(timeout=BOUND)
        server.add("docs://other", "1")
        server.inject(faults.OnAnotherStream(), method="resources/read", uri="docs://other")
        with pytest.raises(ProtocolError, match="no answer"):
            read(client, "docs://other")
        assert read(client, "docs://other") == "1"
        assert watch.status.state is State.LIVE


# -- answers that break off -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("retry_ms", [None, 0, 20])
def test_an_answer_that_breaks_off_is_fetched_from_where_it_did(retry_ms: "Optional[int]") -> None:
    with Server(eras=("legacy",), answer="sse", resumable=True) as server, Client(server.url) as client:
        server.add(URI, TEXT)
        assert read(client) == TEXT
        server.inject(faults.CutAndResume(retry_ms), method="resources/read")
        assert read(client) == TEXT
        assert [request.http_method for request in server.requests[-2:]] == ["POST", "GET"]
        assert server.requests[-1].headers.get("Last-Event-ID")
        assert server.count("initialize") == 1


def test_a_call_whose_answer_breaks_off_is_fetched_and_not_made_again() -> None:
    with Server(eras=("legacy",), answer="sse", resumable=True) as server, Client(server.url) as client:
        paid: List[None] = []
        server.add_tool("pay", lambda arguments: paid.append(None) or "paid")
        server.inject(faults.CutAndResume(0), method="tools/call")
        assert call(client, "tools/call", name="pay", arguments={})["content"][0]["text"] == "paid"
        assert len(paid) == 1


def cut(*events: bytes) -> "Callable[[Peer, Request], Optional[bytes]]":
    """An answer of these events that ends there."""

    def made(peer: Peer, request: Request) -> "Optional[bytes]":
        peer.send(CHUNKED_EVENTS_HEAD + chunk(b"".join(events)) + b"0\r\n\r\n")
        raise Ended()

    return made


PRIMING = b"id: e-1\nretry: 0\ndata:\n\n"


@pytest.mark.parametrize("refusal", ["405 Method Not Allowed", "400 Bad Request", "409 Conflict"])
def test_a_server_that_does_not_go_on_with_an_answer_leaves_it_broken(refusal: str) -> None:
    script = Session(GET=plain(refusal), tools_call=cut(PRIMING))
    with RawServer(script) as server, Client(server.url) as client:
        with pytest.raises(TransportError, match="without an answer to tools/call") as raised:
            call(client, "tools/call", name="pay")
        assert raised.value.may_have_run
        assert methods(server).count("GET") == 1


def test_a_call_whose_session_ends_while_its_answer_is_fetched_may_have_run() -> None:
    script = Session(GET=plain("404 Not Found"), tools_call=cut(PRIMING))
    with RawServer(script) as server, Client(server.url) as client:
        with pytest.raises(TransportError) as raised:
            call(client, "tools/call", name="pay")
        assert raised.value.may_have_run
        assert methods(server).count("tools/call") == 1


def test_a_server_that_ends_every_resumed_stream_is_not_asked_in_a_circle_without_a_pause() -> None:
    numbers = iter(range(10000))

    def primes(peer: Peer, request: Request) -> "Optional[bytes]":
        return cut(b"id: g-%d\nretry: 0\ndata:\n\n" % next(numbers))(peer, request)

    with RawServer(Session(GET=primes, resources_read=cut(PRIMING))) as server:
        with Client(server.url, era="legacy") as client:
            with pytest.raises(RequestTimeout):
                read(client, timeout=1.0)
            assert 2 <= methods(server).count("GET") <= 12


def test_a_connection_that_is_refused_while_an_answer_is_fetched_is_tried_again() -> None:
    tries: List[None] = []

    def stream(peer: Peer, request: Request) -> bytes:
        tries.append(None)
        if len(tries) == 1:
            return plain("503 Service Unavailable")(peer, request)
        assert request.header("Last-Event-ID") == "e-1"
        waiting = next(r for r in reversed(server.requests) if r.body and r.message.get("method") == "resources/read")
        return CHUNKED_EVENTS_HEAD + chunk(
            b"id: e-2\ndata: " + response(waiting.id, {"contents": [{"uri": URI, "text": TEXT}]}) + b"\n\n"
        )

    with RawServer(Session(GET=stream, resources_read=cut(PRIMING))) as server:
        with Client(server.url, era="legacy") as client:
            assert read(client) == TEXT
            assert len(tries) == 2


def test_a_client_that_is_closed_during_the_pause_before_a_resumption_does_not_wait_for_its_end() -> None:
    paused = threading.Event()

    def long_pause(peer: Peer, request: Request) -> "Optional[bytes]":
        paused.set()
        return cut(b"id: e-1\nretry: 3600000\ndata:\n\n")(peer, request)

    with RawServer(Session(resources_read=long_pause)) as server:
        client = Client(server.url, era="legacy", timeout=None)
        waiting = Outcome(lambda: client.read_resource(URI))
        assert paused.wait(BOUND)
        client.close()
        assert isinstance(waiting.error(), ClientClosed)


# -- fork -------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_says_nothing_on_its_parents_session(server: Server) -> None:
    with Client(server.url) as client:
        listening = client.listen(URI, timeout=BOUND)
        before = len(server.requests)
        pid = os.fork()
        if pid == 0:  # pragma: no cover - the child
            try:
                listening.close()
                client.close()
            finally:
                os._exit(0)
        watchdog = threading.Timer(BOUND, lambda: os.kill(pid, 9))
        watchdog.start()
        _, status = os.waitpid(pid, 0)
        watchdog.cancel()
        assert status == 0
        assert len(server.requests) == before and len(server.sessions) == 1
        server.update(URI, "colour = red")
        assert next(listening).uri == URI  # type: ignore[attr-defined]
        listening.close()
