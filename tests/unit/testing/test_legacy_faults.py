"""What goes wrong on demand in the legacy era over Streamable HTTP."""

import http.client

import pytest
from embedded_client import Listener
from legacy_client import CLIENT, LATEST, request

from mcp_sync.testing import Server, faults

UPDATED = "notifications/resources/updated"


@pytest.fixture
def server(nothing_is_left):
    with Server(eras=["legacy"]) as started:
        yield started


# -- probes of the modern era ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how, status, body", [
    (None, 400, b'"error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}'),
    ("-32600", 400, b'"id":1,"error":{"code":-32600'),
    ("-32601", 200, b'"id":1,"error":{"code":-32601'),
    ("400 empty", 400, b""),
    ("400 html", 400, b"<h1>400 Bad Request</h1>"),
    ("401", 401, b""),
    ("404", 404, b"Not Found"),
    ("405", 405, b""),
    ("garbage", 200, b"{]]"),
    (faults.Status(418), 418, b""),
])
@pytest.mark.parametrize("method", ["server/discover", "resources/list"])
def test_a_modern_request_is_answered_as_asked(peers, how, status, body, method):
    with Server(eras=["legacy"], modern_probe=how) as server:
        peer = peers(server)
        peer.send(method)
        response = peer._connection.getresponse()
        received = response.read()
        assert response.status == status
        assert body in received and (body or not received)


def test_a_modern_request_may_be_carried_out_as_if_it_were_a_legacy_one(peers):
    with Server(eras=["legacy"], modern_probe="result") as server:
        server.add("a://x", "1")
        peer = peers(server)
        assert peer.read("a://x").result == {"contents": [{"uri": "a://x", "text": "1"}]}
        assert peer.call("server/discover").result["protocolVersion"] == LATEST


def test_a_modern_request_may_never_be_answered(peers):
    with Server(eras=["legacy"], modern_probe="silence") as server:
        peer = peers(server)
        peer.send("server/discover")
        server.wait_for_requests("server/discover")
        server.stop()
        with pytest.raises(http.client.RemoteDisconnected):
            peer.receive()


def test_a_probe_may_be_answered_by_anything(peers):
    with Server(eras=["legacy"], modern_probe=lambda call: None) as server:
        peer = peers(server)
        with pytest.raises(http.client.RemoteDisconnected):
            peer.call("server/discover")
        assert server.count("server/discover") == 1


def test_wrong_use_is_said_at_once():
    for options, said in [
        ({"eras": []}, "eras must be"), ({"eras": ["old"]}, "eras must be"), ({"modern_probe": "no"}, "modern_probe"),
        ({"transport": "pigeon"}, "transport must"), ({"transport": "http+sse", "eras": ["modern"]}, "eras must be"),
        ({"transport": "http+sse", "endpoint": "nowhere"}, "endpoint must be"),
    ]:
        with pytest.raises(ValueError, match=said):
            Server(**options)
    with pytest.raises(ValueError, match="on must be"):
        Server().ask("ping", on="pigeon")


# -- the handshake -----------------------------------------------------------------------------------------------


def test_a_session_id_may_be_odd(legacy):
    with Server(eras=["legacy"], make_session_id=lambda: "!\"#$%&'()*+,/:;<=>?@[]^`{|}~") as server:
        peer = legacy(server)
        assert peer.session == "!\"#$%&'()*+,/:;<=>?@[]^`{|}~"
        assert peer.call("ping").result == {}


def test_a_handshake_that_makes_no_sense_begins_no_session(server, legacy):
    peer = legacy(server, begin=False)
    assert peer.call("initialize", {}).error["code"] == -32602
    assert server.sessions == ()


def test_a_fault_may_meet_every_step(server, legacy):
    peer = legacy(server, begin=False)
    server.inject(faults.Status(500), method="initialize")
    server.inject(faults.Status(503), method="notifications/initialized")
    server.inject(faults.Status(501), method="GET")
    server.inject(faults.Status(405), method="DELETE")
    assert peer.call("initialize", dict(CLIENT, protocolVersion=LATEST)).status == 500
    with pytest.raises(AssertionError):
        peer.begin()
    assert peer.send("GET", Accept="text/event-stream").status == 501
    assert peer.send("DELETE").status == 405
    assert peer.call("ping").status == 200


@pytest.mark.parametrize("how", ["json", "sse"])
def test_answers_can_be_changed_cut_and_delayed(legacy, how):
    with Server(eras=["legacy"], answer=how) as server:
        server.add("a://x", "1")
        peer = legacy(server)
        server.inject(faults.WrongId("1"), method="ping")
        assert peer.call("ping", id=1).messages[-1]["id"] == "1"
        server.inject(faults.JsonRpcError(-5, "away"), method="ping")
        assert peer.call("ping").error["code"] == -5
        server.inject(faults.Edit(lambda result: dict(result, extra=1)), method="ping")
        assert peer.call("ping").result == {"extra": 1}
        server.inject(faults.CutAt(10, of="body"), method="ping")
        with pytest.raises(http.client.IncompleteRead):
            peer.call("ping")
        server.inject(faults.Gzip(), faults.Drip(3), method="ping")
        assert peer.call("ping").headers["Content-Encoding"] == "gzip"
        server.inject(faults.Reset(executed=True), method="resources/subscribe")
        with pytest.raises(ConnectionResetError):
            peer.call("resources/subscribe", {"uri": "a://x"})
        assert server.sessions[0].uris == {"a://x"}


def test_an_answer_may_come_on_another_stream(server, legacy):
    peer = legacy(server)
    server.inject(faults.OnAnotherStream(), method="ping", times=2)
    assert peer.call("ping", id=1).result == {}  # there is no other
    stream = peer.listen()
    server.wait_for_streams(1)
    reply = peer.call("ping", id=2)
    assert (reply.status, reply.body) == (202, b"")
    assert stream.next() == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_a_held_read_answers_what_was_before(server, legacy, in_thread):
    server.add("a://x", "1")
    peer = legacy(server)
    with server.hold("resources/read", uri="a://x", at="answer") as gate:
        read = in_thread(lambda: peer.read("a://x"))
        gate.wait_reached()
        server.update("a://x", "2")
    assert read().text == "1"


# -- the GET stream ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["result", "error", "cancelled", "eof", "half_event", "cut", "reset"])
def test_the_get_stream_can_end_in_every_way(server, legacy, how):
    peer = legacy(server)
    stream = peer.listen()
    server.wait_for_streams(1)
    server.end_streams(how)
    server.wait_for_no_streams()
    if how in ("cut", "reset"):
        with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
            stream.rest()
    else:
        assert stream.rest().startswith(b"event: message" if how == "half_event" else b"")
    another = peer.listen()
    server.wait_for_streams(1)
    another.close()


def test_the_get_stream_may_be_mute(server, legacy):
    server.inject(faults.Mute(), method="GET")
    peer = legacy(server)
    stream = peer.listen()
    server.wait_for_streams(1)
    peer.call("resources/subscribe", {"uri": "a://x"})
    server.add("a://x", "1")
    server.end_streams("eof")
    assert stream.rest() == b""


def test_the_get_stream_may_be_of_any_shape(server, legacy):
    server.inject(faults.Bom(), faults.Drip(1), faults.LineEnds("\r\n"), faults.Framing("close"), method="GET")
    peer = legacy(server)
    stream = peer.listen()
    server.wait_for_streams(1)
    server.add("a://x", "1")
    server.send(b": a comment\n\n")
    server.end_streams("eof")
    assert stream.rest() == (
        b'\xef\xbb\xbfevent: message\r\n'
        b'data: {"jsonrpc":"2.0","method":"notifications/resources/list_changed"}\r\n\r\n: a comment\n\n')


def test_the_get_stream_is_kept_alive(legacy):
    with Server(eras=["legacy"], keep_alive=0.01) as server:
        stream = legacy(server).listen()
        stream.until(b": keep-alive\n\n: keep-alive\n\n")
        stream.close()


def test_streams_are_limited(legacy):
    with Server(eras=["legacy"], max_streams=1) as server:
        stream = legacy(server).listen()
        server.wait_for_streams(1)
        assert legacy(server).send("GET", Accept="text/event-stream").status == 503
        stream.close()


def test_a_session_of_somebody_else_is_not_found(legacy):
    with Server(eras=["legacy"], authenticate=lambda headers: headers.get("X-Name")) as server:
        server.add("a://x", "1", principals={"alice"})
        alice, bob = legacy(server, X_Name="alice"), legacy(server, X_Name="bob")
        assert alice.read("a://x").text == "1"
        assert bob.read("a://x").status == 403
        assert bob.call("ping", Mcp_Session_Id=alice.session).status == 404
        assert bob.call("ping", X_Name=None).status == 401


# -- requests of the server's ------------------------------------------------------------------------------------


def test_a_request_may_go_ahead_of_the_next_answer(server, legacy, in_thread):
    peer = legacy(server)
    asked = in_thread(lambda: server.ask("elicitation/create", {"message": "?"}, on="post"))
    stream = Listener(_start_when_injected(server, peer))
    assert stream.next() == {"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": {"message": "?"}}
    peer.respond(0, {"action": "decline"})
    assert stream.next()["id"] == "p"
    assert asked()["result"] == {"action": "decline"}


def _start_when_injected(server, peer):
    # Answers that come before the request was to go ahead of one are answers like any other.
    while True:
        response = peer.start(request("ping", id="p"))
        if response.getheader("Content-Type") == "text/event-stream":
            return response
        response.read()


def test_a_fault_may_ask_and_keeps_the_answer(server, legacy, in_thread):
    peer = legacy(server)
    asking = faults.Ask("sampling/createMessage", {"n": 1})
    server.inject(asking, method="ping")
    stream = Listener(peer.start(request("ping", id="p")))
    assert stream.next()["params"] == {"n": 1}
    peer.post({"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "no"}})
    assert asking.wait()["error"]["code"] == -32601
    assert stream.next()["result"] == {}


def test_who_is_not_answered_gives_up(server, legacy):
    peer = legacy(server)
    with pytest.raises(TimeoutError, match="no stream"):
        server.ask("ping", timeout=0.01)
    stream = peer.listen()
    with pytest.raises(TimeoutError, match="has not answered"):
        server.ask("ping", timeout=0.01)
    with pytest.raises(TimeoutError, match="has not answered"):
        server.ask("ping", on="post", timeout=0.01)
    with pytest.raises(TimeoutError, match="no session"):
        server.ask("ping", timeout=0.01, session_id="unknown")
    server.inject(faults.Ask("ping", timeout=0.01), method="ping")
    assert peer.call("ping").result == {}
    stream.close()


def test_an_answer_that_nobody_asked_for_is_accepted_and_recorded(server, legacy):
    peer = legacy(server)
    assert peer.respond(99, {}).status == 202
    assert server.requests[-1].message == {"jsonrpc": "2.0", "id": 99, "result": {}}


def test_an_id_of_another_type_is_another_id(server, legacy, in_thread):
    peer = legacy(server)
    stream = peer.listen()
    server.wait_for_streams(1)
    asked = in_thread(lambda: server.ask("ping"))
    assert stream.next()["id"] == 0
    for wrong in ("0", 0.0, 1):
        assert peer.respond(wrong, {"wrong": True}).status == 202
    peer.respond(0, {})
    assert asked()["result"] == {}


def test_one_client_among_many_can_be_asked(server, legacy, in_thread):
    one, two = legacy(server), legacy(server)
    streams = one.listen(), two.listen()
    server.wait_for_streams(2)
    asked = in_thread(lambda: server.ask("ping", session_id=one.session))
    assert streams[0].next()["method"] == "ping"
    one.respond(0, {"one": True})
    assert asked()["result"] == {"one": True}


def test_only_the_legacy_era_can_be_asked(peers):
    with Server() as server:
        server.inject(faults.Ask("ping"), method="resources/list")
        assert peers(server).call("resources/list").result["resources"] == []
