"""Which era a server is of: found out by asking, once, from whatever it answers; and again when it is another."""

import json
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import pytest
from rawserver import BOUND, EVENTS_HEAD, Outcome, Peer, RawServer, Request, head, json_answer

from mcp_sync import (
    AuthorizationError,
    Client,
    ClientClosed,
    MCPSyncError,
    ProtocolError,
    RequestTimeout,
    ResourceNotFound,
    ServerError,
    TransportError,
    UnsupportedVersion,
)
from mcp_sync.testing import Server, faults

URI = "docs://service/config"
TEXT = "colour = blue"


def read(client: Client, uri: str = URI, timeout: float = BOUND) -> Any:
    return client.read_resource(uri, timeout=timeout).text


def asked(server: Server) -> "List[Tuple[str, str]]":
    """What the server was asked, in order: HTTP method, and that of the message."""
    return [(request.http_method, request.method) for request in server.requests]


def methods(server: RawServer) -> "List[str]":
    """The same of a raw server, without what is no message."""
    return [request.message["method"] for request in server.requests if request.body]


# -- a legacy server, by what it answers to a modern request ----------------------------------------------------------


def error(code: int, message: str, data: Any = None, own_id: bool = True) -> "Callable[[Request], Dict[str, Any]]":
    def made(request: Request) -> "Dict[str, Any]":
        told = {"code": code, "message": message}  # type: Dict[str, Any]
        if data is not None:
            told["data"] = data
        return {"jsonrpc": "2.0", "id": request.id if own_id else None, "error": told}

    return made


class LegacyPeer:
    """A legacy server without sessions that answers modern requests as the test says.

    :param status: the HTTP status of that answer.
    :param body: the message in it, or bytes.
    """

    def __init__(self, status: str, body: Any, kind: str = "application/json") -> None:
        self.status = status
        self.body = body
        self.kind = kind

    def __call__(self, peer: Peer) -> None:
        while True:
            request = peer.request()
            if not request.body:
                peer.send(head("Content-Length: 0", status="405 Method Not Allowed"))
                continue
            message = request.message
            if "_meta" in message.get("params", {}):
                body = self.body(request) if callable(self.body) else self.body
                data = body if isinstance(body, bytes) else json.dumps(body).encode("utf-8")
                peer.send(
                    head("Content-Type: " + self.kind, "Content-Length: %d" % len(data), status=self.status) + data
                )
            elif "id" not in message:
                peer.send(head("Content-Length: 0", status="202 Accepted"))
            else:
                peer.send(json_answer(json.dumps(self.legacy(message)).encode("utf-8")))

    def legacy(self, message: "Dict[str, Any]") -> "Dict[str, Any]":
        result = {"contents": [{"uri": URI, "text": TEXT}]}  # type: Dict[str, Any]
        if message["method"] == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"resources": {}}, "serverInfo": {"name": "old"}}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}


GREETING = ["initialize", "notifications/initialized", "resources/read"]

#: What a legacy server answers to a modern read, and what is asked until the resource is there. A refusal that no
#: modern server would give costs one request; what one might have said is followed by the question what it is.
LEGACY_ANSWERS = {
    "200 with -32601": ("200 OK", error(-32601, "Method not found"), True),
    "200 with -32602": ("200 OK", error(-32602, "Invalid request parameters"), True),
    "200 with -32600": ("200 OK", error(-32600, "Invalid Request"), True),
    "200 with -32002 that means: not initialized": ("200 OK", error(-32002, "Server not initialized"), True),
    "400 with an empty body": ("400 Bad Request", b"", False),
    "400 with HTML": ("400 Bad Request", b"<html><h1>400</h1></html>", False),
    "400 with -32000 and a null id": ("400 Bad Request", error(-32000, "Server not initialized", own_id=False), False),
    "400 with -32000 and no session": (
        "400 Bad Request",
        error(-32000, "Bad Request: No valid session ID provided", own_id=False),
        False,
    ),
    "400 with -32600 and no session": ("400 Bad Request", error(-32600, "Bad Request: Missing session ID"), False),
    "400 with an id of the server's own": (
        "400 Bad Request",
        lambda request: {
            "jsonrpc": "2.0",
            "id": "server-error",
            "error": {"code": -32600, "message": "Bad Request: Missing session ID"},
        },
        False,
    ),
    "400 with -32600": ("400 Bad Request", error(-32600, "Invalid Request"), True),
    "400 with -32602": ("400 Bad Request", error(-32602, "Invalid request parameters"), True),
    "404 with text": ("404 Not Found", b"Not Found", False),
    "405": ("405 Method Not Allowed", b"", False),
    "406": ("406 Not Acceptable", b"", False),
    "500 with -32603": ("500 Internal Server Error", error(-32603, "Internal error"), True),
    "garbage": ("200 OK", b"\x00{]]", True),
    "a result without resultType": ("200 OK", None, True),
    "-32022 that lists legacy versions only": (
        "400 Bad Request",
        error(-32022, "Unsupported protocol version", {"supported": ["2025-11-25", "2025-06-18"]}),
        False,
    ),
}


@pytest.mark.parametrize("name", sorted(LEGACY_ANSWERS))
def test_a_legacy_server_is_recognised_by_its_answer_to_a_modern_request(name: str) -> None:
    status, body, ambiguous = LEGACY_ANSWERS[name]
    script = LegacyPeer(status, body)
    if body is None:
        script.body = lambda request: script.legacy(request.message)
    with RawServer(script) as server, Client(server.url) as client:
        assert read(client) == TEXT
        assert methods(server) == ["resources/read"] + (["server/discover"] if ambiguous else []) + GREETING
        assert client.protocol_version == "2025-06-18"
        # Remembered: one request for one read from now on.
        assert read(client) == TEXT
        assert methods(server)[-2:] == ["resources/read"] * 2
        # What the handshake agreed on is said with every request from then on, and not in the handshake.
        versions = [request.header("MCP-Protocol-Version") for request in server.requests[-4:]]
        assert versions == [None] + ["2025-06-18"] * 3


#: What says nothing about the era: the error, as it is, after one request.
NEITHER = {
    "401": ("401 Unauthorized", AuthorizationError, {"status": 401}),
    "403": ("403 Forbidden", AuthorizationError, {"status": 403}),
    "408": ("408 Request Timeout", TransportError, {"status": 408}),
    "429": ("429 Too Many Requests", TransportError, {"status": 429}),
    "500": ("500 Internal Server Error", TransportError, {"status": 500}),
    "502": ("502 Bad Gateway", TransportError, {"status": 502}),
    "503": ("503 Service Unavailable", TransportError, {"status": 503}),
    "a redirect to another origin": ("307 Temporary Redirect", TransportError, {"status": 307}),
}


@pytest.mark.parametrize("name", sorted(NEITHER))
def test_what_says_nothing_about_the_era_is_raised_and_nothing_is_concluded(name: str) -> None:
    status, kind, attributes = NEITHER[name]
    script = LegacyPeer(status, b"no")
    with RawServer(script) as server, Client(server.url) as client:
        with pytest.raises(kind) as raised:
            read(client)
        assert {key: getattr(raised.value, key) for key in attributes} == attributes
        assert methods(server) == ["resources/read"]
        # And the next one finds out.
        script.status = "400 Bad Request"
        assert read(client) == TEXT


def test_an_answer_that_breaks_off_says_nothing_about_the_era() -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(EVENTS_HEAD + b": hello\n\n")

    with RawServer(script) as server, Client(server.url) as client:
        with pytest.raises(TransportError, match="without an answer"):
            read(client)
        assert methods(server) == ["resources/read"]


def test_a_server_that_cannot_be_reached_is_asked_again_by_the_next_call() -> None:
    with Server(eras=("legacy",)) as server:
        server.add(URI, TEXT)
        server.kill()
        with Client(server.url) as client:
            with pytest.raises(TransportError) as raised:
                read(client)
            assert not raised.value.may_have_run
            server.restart()
            assert read(client) == TEXT


def test_an_address_with_nothing_at_it_says_so_and_how_addresses_look() -> None:
    with Server() as server, Client(server.url + "x") as client:
        with pytest.raises(TransportError, match="Is this the address of an MCP server") as raised:
            read(client)
        assert raised.value.status == 404
        # An exception that is its own cause has no end.
        assert raised.value.__cause__ is not raised.value


def test_the_address_of_a_server_that_is_garbage_throughout_is_a_protocol_error() -> None:
    def script(peer: Peer) -> None:
        while True:
            peer.request()
            peer.send(json_answer(b"\x00{]]"))

    with RawServer(script) as server, Client(server.url) as client:
        with pytest.raises(ProtocolError):
            read(client)
        assert methods(server) == ["resources/read", "server/discover", "initialize"]


# -- a modern server, by what it answers ------------------------------------------------------------------------------


def test_a_modern_server_costs_no_request_beyond_the_one_that_is_wanted() -> None:
    with Server() as server, Client(server.url) as client:
        server.add(URI, TEXT)
        assert read(client) == TEXT
        assert asked(server) == [("POST", "resources/read")]


def test_a_resource_that_a_modern_server_does_not_have_is_not_found_at_the_very_first_read() -> None:
    with Server() as server, Client(server.url) as client:
        with pytest.raises(ResourceNotFound):
            read(client)
        with pytest.raises(ResourceNotFound):
            read(client)
        assert asked(server) == [("POST", name) for name in ("resources/read", "server/discover", "resources/read")]
        assert client.protocol_version == "2026-07-28"


def test_an_error_of_a_modern_servers_own_at_the_very_first_read_is_the_callers() -> None:
    with Server() as server, Client(server.url) as client:
        server.add(URI, TEXT)
        server.inject(faults.JsonRpcError(-32603, "the disk is full"), method="resources/read")
        with pytest.raises(ServerError, match="the disk is full"):
            read(client)
        assert read(client) == TEXT
        assert ("POST", "initialize") not in asked(server)


@pytest.mark.parametrize("code", [-32020, -32021])
def test_an_error_that_only_modern_servers_know_is_no_reason_to_greet(code: int) -> None:
    script = LegacyPeer("400 Bad Request", error(code, "modern"))
    with RawServer(script) as server, Client(server.url) as client:
        with pytest.raises(ServerError) as raised:
            read(client)
        assert raised.value.code == code and methods(server) == ["resources/read"]


def test_a_modern_server_without_a_revision_in_common_is_named_with_those_it_has() -> None:
    script = LegacyPeer("400 Bad Request", error(-32022, "no", {"supported": ["2031-01-01"]}))
    with RawServer(script) as server, Client(server.url) as client:
        with pytest.raises(UnsupportedVersion, match="2031-01-01") as raised:
            read(client)
        assert raised.value.supported == ("2031-01-01",)
        assert methods(server) == ["resources/read"]


# -- when only one era is tried ---------------------------------------------------------------------------------------


def test_with_era_legacy_no_modern_request_is_made() -> None:
    with Server(eras=("modern", "legacy")) as server, Client(server.url, era="legacy") as client:
        server.add(URI, TEXT)
        assert read(client) == TEXT
        assert asked(server) == [("POST", name) for name in GREETING]


def test_with_era_modern_a_legacy_server_is_not_greeted() -> None:
    with Server(eras=("legacy",)) as server, Client(server.url, era="modern") as client:
        server.add(URI, TEXT)
        with pytest.raises(MCPSyncError):
            read(client)
        assert asked(server) == [("POST", "resources/read")]


def test_with_era_modern_versions_of_the_other_era_are_none_in_common() -> None:
    script = LegacyPeer("400 Bad Request", error(-32022, "no", {"supported": ["2025-11-25"]}))
    with RawServer(script) as server, Client(server.url, era="modern") as client:
        with pytest.raises(UnsupportedVersion):
            read(client)
        assert methods(server) == ["resources/read"]


def test_another_era_than_these_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="auto"):
        Client("http://127.0.0.1:1/mcp", era="future")


# -- once for each server, while others wait --------------------------------------------------------------------------


@pytest.mark.parametrize("eras", [("modern",), ("legacy",)])
def test_of_many_threads_that_begin_at_once_one_finds_out_by_its_request_and_one_asks(eras: "Tuple[str, ...]") -> None:
    with Server(eras=eras) as server, Client(server.url) as client:
        server.add(URI, TEXT)
        with server.hold("server/discover") as asking:
            with server.hold("resources/read") as requesting:
                threads = [Outcome(lambda: read(client)) for _ in range(8)]
                # Both are in flight, and six wait for them.
                requesting.wait_reached()
                asking.wait_reached()
                assert len(server.requests) == 2
                asking.release()
                # The slow first request holds nobody up: the others are on their way while it is still held.
                requesting.wait_reached(8 if eras == ("modern",) else 1)
                if eras == ("legacy",):
                    server.wait_for_requests("initialize", 1)
            assert [thread.value() for thread in threads] == [TEXT] * 8
        assert server.count("initialize") == (0 if eras == ("modern",) else 1)
        assert server.count("server/discover") == 1


def test_two_who_found_out_that_a_server_is_legacy_greet_it_once() -> None:
    with Server(eras=("legacy",)) as server, Client(server.url) as client:
        server.add(URI, TEXT)
        with server.hold("initialize") as greeting:
            threads = [Outcome(lambda: read(client)) for _ in range(8)]
            greeting.wait_reached()
            # Who comes while it is being greeted asks nothing.
            late = [Outcome(lambda: read(client)) for _ in range(4)]
        assert [thread.value() for thread in threads + late] == [TEXT] * 12
        assert server.count("initialize") == 1
        assert len(server.sessions) == 1


def test_if_the_one_who_finds_out_fails_the_next_one_tries() -> None:
    with Server(eras=("legacy",)) as server, Client(server.url) as client:
        server.add(URI, TEXT)
        server.inject(faults.Status(503), method="initialize", times=1)
        with server.hold("initialize") as greeting:
            threads = [Outcome(lambda: read(client)) for _ in range(4)]
            greeting.wait_reached()
        failed = 0
        for thread in threads:
            try:
                assert thread.value() == TEXT
            except TransportError as raised:
                assert raised.status == 503
                failed += 1
        assert failed == 1


def test_a_client_that_is_closed_while_it_finds_out_wakes_all_who_wait() -> None:
    with Server(eras=("legacy",)) as server:
        client = Client(server.url)
        with server.hold("initialize") as greeting:
            threads = [Outcome(lambda: read(client)) for _ in range(4)]
            greeting.wait_reached()
            client.close()
            assert all(isinstance(thread.error(), ClientClosed) for thread in threads)


def test_whoever_waits_for_the_finding_out_does_so_within_its_own_limit() -> None:
    with Server(eras=("legacy",)) as server, Client(server.url) as client:
        with server.hold("initialize") as greeting:
            first = Outcome(lambda: read(client))
            greeting.wait_reached()
            with pytest.raises(RequestTimeout) as raised:
                read(client, timeout=0.05)
            assert not raised.value.may_have_run
        assert isinstance(first.error(), ResourceNotFound)


# -- another server in its place --------------------------------------------------------------------------------------


@pytest.fixture
def replaced() -> "Iterator[Callable[..., Server]]":
    """Starts servers one after the other on the same port."""
    running: List[Server] = []

    def place(**options: Any) -> Server:
        port = 0
        if running:
            port = running[-1].port
            running[-1].kill()
        server = Server(port=port, **options)
        server.add(URI, "text %d" % len(running))
        running.append(server.start())
        return server

    yield place
    for server in running:
        server.stop()


PROBES = ["-32000", "-32600", "-32601", "400 empty", "400 html", "404", "405"]


@pytest.mark.parametrize("probe", PROBES)
def test_a_modern_server_that_is_replaced_by_a_legacy_one_is_found_out_again(
    replaced: "Callable[..., Server]", probe: str
) -> None:
    server = replaced()
    with Client(server.url) as client:
        assert read(client) == "text 0"
        server = replaced(eras=("legacy",), modern_probe=probe)
        assert read(client) == "text 1"
        assert server.count("initialize") == 1 and client.protocol_version == "2025-11-25"


def test_a_legacy_server_that_is_replaced_by_a_modern_one_is_found_out_again(
    replaced: "Callable[..., Server]",
) -> None:
    server = replaced(eras=("legacy",))
    with Client(server.url) as client:
        assert read(client) == "text 0"
        replaced()
        assert read(client) == "text 1"
        assert client.protocol_version == "2026-07-28"


def test_a_legacy_server_that_comes_back_with_both_eras_is_spoken_with_in_the_better_one(
    replaced: "Callable[..., Server]",
) -> None:
    server = replaced(eras=("legacy",))
    with Client(server.url) as client:
        assert read(client) == "text 0"
        replaced(eras=("legacy", "modern"))
        assert read(client) == "text 1"
        assert client.protocol_version == "2026-07-28"


@pytest.mark.parametrize("before, after", [(("modern",), ("legacy",)), (("legacy",), ("modern",))])
def test_a_watch_goes_on_with_the_server_of_the_other_era(
    replaced: "Callable[..., Server]", before: "Tuple[str, ...]", after: "Tuple[str, ...]"
) -> None:
    server = replaced(eras=before)
    with Client(server.url) as client, client.watch(URI) as watch:
        watch.wait_until_current(timeout=BOUND)
        server = replaced(eras=after)
        for change in watch.changes(timeout=BOUND):
            if read(client) == "text 1":
                break
        server.wait_for_streams(1, timeout=BOUND)
        server.update(URI, "again")
        for change in watch.changes(timeout=BOUND):
            if read(client) == "again":
                break
        assert client.protocol_version == ("2026-07-28" if after == ("modern",) else "2025-11-25")


def test_an_error_of_a_modern_server_that_a_legacy_one_could_have_sent_is_the_callers() -> None:
    with Server() as server, Client(server.url) as client:
        server.add(URI, TEXT)
        assert read(client) == TEXT
        server.inject(faults.JsonRpcError(-32600, "not like this"), method="resources/read")
        with pytest.raises(ServerError, match="not like this"):
            read(client)
        assert [name for _, name in asked(server)] == ["resources/read", "resources/read", "server/discover"]
        assert read(client) == TEXT


# -- the transport of 2024 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("probe", ["405", "404", "400 empty", "400 html"])
def test_a_server_of_2024_is_found_behind_a_refusal(probe: str) -> None:
    with Server(transport="http+sse", modern_probe=probe) as server, Client(server.url) as client:
        server.add(URI, TEXT)
        assert read(client) == TEXT
        assert asked(server)[:3] == [("POST", "resources/read"), ("POST", "initialize"), ("GET", "")]


def test_an_endpoint_on_another_origin_is_what_the_user_is_told() -> None:
    with Server(transport="http+sse", endpoint="other origin") as server, Client(server.url) as client:
        with pytest.raises(ProtocolError, match="another origin"):
            read(client)


def test_a_refusal_that_is_a_json_rpc_error_is_no_reason_to_look_for_the_transport_of_2024() -> None:
    def script(peer: Peer) -> None:
        while True:
            request = peer.request()
            body = json.dumps(error(-32602, "Invalid params")(request)).encode("utf-8")
            peer.send(json_answer(body, status="400 Bad Request"))

    with RawServer(script) as server, Client(server.url) as client:
        with pytest.raises(ServerError, match="Invalid params"):
            client.list_resources(timeout=BOUND)
        assert methods(server) == [request.message["method"] for request in server.requests]


def test_an_initialize_that_is_answered_with_an_unknown_version_says_which() -> None:
    script = LegacyPeer("400 Bad Request", b"")
    usual = script.legacy

    def legacy(message: "Dict[str, Any]") -> "Dict[str, Any]":
        answer = usual(message)
        if message["method"] == "initialize":
            answer["result"]["protocolVersion"] = "2019-01-01"
        return answer

    script.legacy = legacy  # type: ignore[assignment]
    with RawServer(script) as server, Client(server.url) as client:
        with pytest.raises(UnsupportedVersion, match="2019-01-01") as raised:
            read(client)
        assert raised.value.supported == ("2019-01-01",)


@pytest.mark.parametrize("version", [None, 3, [], {"a": 1}])
def test_an_initialize_that_is_answered_without_a_version_is_refused(version: Any) -> None:
    script = LegacyPeer("400 Bad Request", b"")
    usual = script.legacy

    def legacy(message: "Dict[str, Any]") -> "Dict[str, Any]":
        answer = usual(message)
        answer["result"]["protocolVersion"] = version
        return answer

    script.legacy = legacy  # type: ignore[assignment]
    with RawServer(script) as server, Client(server.url) as client:
        with pytest.raises(UnsupportedVersion):
            read(client)


def test_a_request_that_is_not_to_be_made_twice_is_not_what_finds_out() -> None:
    from mcp_sync._deadline import Deadline

    with Server(eras=("legacy",)) as server, Client(server.url) as client:
        server.add_tool("pay", lambda arguments: "paid")
        done = client._connection.call("tools/call", {"name": "pay", "arguments": {}}, deadline=Deadline(BOUND))
        assert done["content"][0]["text"] == "paid"
        assert [name for _, name in asked(server)] == [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "tools/call",
        ]


def test_a_first_request_with_no_limit_of_its_own_still_ends_when_the_client_is_closed() -> None:
    gate: Optional[threading.Event] = threading.Event()
    assert gate is not None

    def script(peer: Peer) -> None:
        peer.request()
        gate.set()
        peer.wait_gone()

    with RawServer(script) as server:
        client = Client(server.url, timeout=None)
        call = Outcome(lambda: client.read_resource(URI))
        assert gate.wait(BOUND)
        client.close()
        assert isinstance(call.error(), ClientClosed)
