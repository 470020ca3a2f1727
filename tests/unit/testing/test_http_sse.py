"""HTTP+SSE (basic/transports of 2024-11-05, "HTTP with SSE")."""

import http.client
import urllib.parse

import pytest
from embedded_client import LIMIT
from legacy_client import request
from sse_client import SsePeer

from mcp_sync.testing import Server, faults

UPDATED = "notifications/resources/updated"
LIST_CHANGED = "notifications/resources/list_changed"


@pytest.fixture
def server(nothing_is_left):
    with Server(transport="http+sse") as started:
        yield started


@pytest.fixture
def old(nothing_is_left):
    """Makes clients, with the handshake done, and closes them afterwards."""
    made = []

    def make(server, begin=True, **headers):
        made.append(SsePeer(server, **headers))
        if begin:
            made[-1].begin()
        return made[-1]

    yield make
    for peer in made:
        peer.close()


def test_the_first_event_names_the_endpoint(server, old):
    assert server.url.endswith("/sse")
    peer = old(server, begin=False)
    assert peer.response.getheader("Content-Type") == "text/event-stream"
    kind, data = peer.event()
    assert kind == "endpoint" and data.startswith("/messages?session_id=")


@pytest.mark.parametrize("how, expected", [
    ("absolute", "http://127.0.0.1:{}/messages?"),
    ("other origin", "http://localhost:{}/messages?"),
    (lambda relative: "../m" + relative, "../m/messages?"),
])
def test_the_endpoint_can_be_named_in_other_ways(old, how, expected):
    with Server(transport="http+sse", endpoint=how) as server:
        assert old(server, begin=False).event().data.startswith(expected.format(server.port))


def test_the_endpoint_event_may_be_missing(old):
    with Server(transport="http+sse", endpoint="missing", keep_alive=0.01) as server:
        assert old(server, begin=False).response.read1(5) == b": kee"


def test_answers_come_on_the_stream(server, old):
    server.add("a://x", "1", ttl_ms=5)
    peer = old(server, begin=False)
    assert peer.begin("2024-11-05")["protocolVersion"] == "2024-11-05"
    assert peer.post(request("ping", id=0)) == (202, b"Accepted")
    assert peer.next() == {"jsonrpc": "2.0", "id": 0, "result": {}}
    assert peer.call("resources/read", {"uri": "a://x"})["result"] == {"contents": [{"uri": "a://x", "text": "1"}]}
    assert peer.call("resources/read", {"uri": "a://y"})["error"]["code"] == -32002
    assert peer.call("nonsense")["error"]["code"] == -32601


def test_the_202_may_have_no_body(old):
    with Server(transport="http+sse", accepted=b"") as server:
        assert old(server).post(request("ping")) == (202, b"")


def test_a_subscribed_change_is_told_on_the_stream(server, old):
    server.add("a://x", "1")
    early = old(server, begin=False)
    peer = old(server)
    server.wait_for_streams(2)
    assert peer.call("resources/subscribe", {"uri": "a://x"})["result"] == {}
    server.update("a://x", "2")
    server.add("a://y", "1")
    assert peer.take(2) == [{"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": "a://x"}},
                            {"jsonrpc": "2.0", "method": LIST_CHANGED}]
    assert peer.call("resources/unsubscribe", {"uri": "a://x"})["result"] == {}
    server.update("a://x", "3")
    server.remove("a://y")
    assert peer.next() == {"jsonrpc": "2.0", "method": LIST_CHANGED}
    early.begin()  # who has not finished the handshake was told nothing


def test_each_stream_is_a_session(server, old):
    one, two = old(server), old(server)
    assert len({session.id for session in server.sessions}) == 2
    one.call("resources/subscribe", {"uri": "a://x"})
    server.notify_updated("a://x")
    assert one.next()["method"] == UPDATED
    assert two.call("ping")["result"] == {}
    one.close()
    server.wait_for_streams(1)
    assert one.post(request("ping")).status == 404
    assert len(server.sessions) == 1


def test_a_client_is_asked_on_its_stream(server, old, in_thread):
    server.add_tool("ask", lambda arguments: server.ask("ping", on="post")["result"]["text"])
    peer = old(server)
    asked = in_thread(lambda: server.ask("roots/list"))
    assert peer.next() == {"jsonrpc": "2.0", "id": 0, "method": "roots/list"}
    assert peer.post({"jsonrpc": "2.0", "id": 0, "result": {"roots": []}}).status == 202
    assert asked()["result"] == {"roots": []}
    assert peer.call("tools/call", {"name": "ask"}, id="t") == {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    peer.post({"jsonrpc": "2.0", "id": 1, "result": {"text": "yes"}})
    assert peer.next()["result"]["content"][0]["text"] == "yes"


@pytest.mark.parametrize("at", ["arrival", "answer"])
def test_a_held_request_is_accepted_and_holds_no_other(server, old, at):
    server.add("a://x", "1")
    peer = old(server)
    with server.hold("resources/read", at=at) as gate:
        assert peer.post(request("resources/read", {"uri": "a://x"}, id=1)).status == 202
        gate.wait_reached()
        server.update("a://x", "2")
        assert peer.call("ping", id=2)["id"] == 2
    answer = peer.next()
    assert answer["result"]["contents"][0]["text"] == ("2" if at == "arrival" else "1")


def test_a_cancelled_request_gets_no_answer(server, old):
    peer = old(server)
    with server.hold("resources/list") as gate:
        peer.post(request("resources/list", id=5))
        gate.wait_reached()
        peer.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
        assert peer.call("ping", id=6)["id"] == 6
    assert peer.call("ping", id=7)["id"] == 7


def test_what_is_no_message_is_refused(server, old):
    peer = old(server)
    assert peer.post(b"{").status == 400
    assert peer.post({"jsonrpc": "2.0"}).status == 400
    assert peer.post(request("ping"), "/messages?session_id=unknown").status == 404
    assert peer.call("ping")["result"] == {}


def _status(server, verb, path, **headers):
    connection = http.client.HTTPConnection(server.host, server.port, timeout=LIMIT)
    try:
        connection.request(verb, path, b"{}" if verb == "POST" else None, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_other_requests_are_refused(server):
    assert _status(server, "POST", "/sse") == 405
    assert _status(server, "DELETE", "/sse") == 405
    assert _status(server, "GET", "/messages") == 405
    assert _status(server, "POST", "/messages") == 404
    assert _status(server, "GET", "/mcp") == 404
    assert _status(server, "GET", "/sse", Origin="http://evil.example") == 403


@pytest.mark.parametrize("how, status", [("404", 404), ("400 empty", 400), ("-32000", 400), ("401", 401)])
def test_a_post_to_the_stream_is_answered_as_asked(how, status):
    with Server(transport="http+sse", modern_probe=how) as server:
        assert _status(server, "POST", "/sse") == status


def test_principals_are_told_apart(old):
    with Server(transport="http+sse", authenticate=lambda headers: headers.get("X-Name")) as server:
        server.add("a://x", "1", principals={"alice"})
        assert _status(server, "GET", "/sse") == 401
        alice, bob = old(server, X_Name="alice"), old(server, X_Name="bob")
        assert "result" in alice.call("resources/read", {"uri": "a://x"})
        assert "bob may not see" in bob.call("resources/read", {"uri": "a://x"})["error"]["message"]
        bob.call("resources/subscribe", {"uri": "a://x"})
        server.update("a://x", "2")
        assert bob.call("ping", id="after")["id"] == "after"


def test_a_stop_answers_what_is_held_and_ends_the_stream(server, old):
    peer = old(server)
    gate = server.hold("ping")
    peer.post(request("ping", id=9))
    gate.wait_reached()
    server.stop()
    assert b'"id":9' in peer.rest()


def test_a_kill_resets_the_stream_and_forgets_the_session(server, old):
    peer = old(server)
    server.kill()
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        peer.rest()
    server.restart()
    assert peer.post(request("ping")).status == 404


@pytest.mark.parametrize("status", [404, 400])
def test_expired_sessions_end_their_streams(server, old, status):
    peer = old(server)
    server.expire_sessions(status)
    assert peer.rest() == b""
    assert peer.post(request("ping")).status == status


@pytest.mark.parametrize("how", ["eof", "half_event", "cut", "reset"])
def test_the_stream_can_end_in_every_way(server, old, how):
    peer = old(server)
    server.wait_for_streams(1)
    server.end_streams(how)
    server.wait_for_no_streams()
    if how == "eof":
        assert peer.rest() == b""
    elif how == "half_event":
        assert peer.rest().startswith(b"event: message\ndata: {")
    else:
        with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
            peer.rest()


# -- faults ------------------------------------------------------------------------------------------------------


def test_a_fault_without_a_message_answers_the_post(server, old):
    peer = old(server)
    for fault, status in (faults.Status(503), 503), (faults.Unauthorized(), 401), (faults.RawBody(b"<html>"), 200):
        server.inject(fault, method="ping")
        assert peer.post(request("ping")).status == status
    server.inject(faults.Redirect(307, "/elsewhere"), method="ping")
    assert peer.post(request("ping")).status == 307
    assert peer.call("ping", id="last")["id"] == "last"


def test_a_fault_with_a_message_answers_on_the_stream(server, old):
    peer = old(server)
    server.inject(faults.JsonRpcError(-5, "away"), method="ping")
    assert peer.call("ping")["error"]["code"] == -5
    server.inject(faults.WrongId("1"), method="ping")
    assert peer.call("ping", id=1)["id"] == "1"
    server.inject(faults.Result({"odd": True}), method="ping")
    assert peer.call("ping")["result"] == {"odd": True}


@pytest.mark.parametrize("fault, error", [
    (faults.Close(), http.client.RemoteDisconnected), (faults.Reset(), ConnectionResetError)])
def test_a_post_may_never_be_answered(server, old, fault, error):
    peer = old(server)
    server.inject(fault, method="ping")
    with pytest.raises(error):
        peer.post(request("ping", id=1))
    assert peer.call("ping", id=2)["id"] == 2


def test_a_post_may_be_accepted_and_its_answer_never_come(server, old):
    peer = old(server)
    server.inject(faults.Close(executed=True), method="ping")
    injection = server.inject(faults.Silence(), method="ping")
    assert peer.post(request("ping", id=1)).status == 202
    assert peer.post(request("ping", id=2)).status == 202
    injection.wait_used()
    assert peer.call("ping", id=3)["id"] == 3
    server.clear_faults()
    assert peer.next()["id"] == 2


def test_the_stream_may_be_cut_in_the_middle_of_an_answer(server, old):
    peer = old(server)
    server.inject(faults.CutAt(30), method="ping")
    assert peer.post(request("ping")).status == 202
    received = b""
    with pytest.raises(http.client.IncompleteRead):
        while True:
            received += peer.response.read1(65536) or peer.response.read()
    assert received == b'event: message\ndata: {"jsonrpc'[:30]


def test_the_stream_itself_may_be_refused(server, old):
    server.inject(faults.Status(503), method="GET")
    assert old(server, begin=False).response.status == 503
    assert old(server).call("ping")["result"] == {}
    assert urllib.parse.urlsplit(server.url).path == "/sse"
    assert len(server.sessions) == 1
