"""Listen streams: what is acknowledged, what is sent, and how they end (basic/patterns/subscriptions)."""

import http.client
import json
import socket

import pytest
from embedded_client import LIMIT, SUBSCRIPTION, drain, request_bytes

from mcp_sync.testing import Server

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
LIST_CHANGED = "notifications/resources/list_changed"


def _methods(found):
    return [(one["method"], one["params"].get("uri")) for one in found]


@pytest.mark.parametrize("id", [7, "7", 0, "", 1.5])
def test_every_message_names_the_subscription_with_its_json_type(server, peer, id):
    server.add("a://x", "1")
    listener = peer.listen("a://x", id=id)
    server.update("a://x", "2")
    server.end_streams("result")
    acknowledged, updated, response = listener.take(3)
    assert acknowledged == {
        "jsonrpc": "2.0", "method": ACKNOWLEDGED,
        "params": {"_meta": {SUBSCRIPTION: id}, "notifications": {"resourceSubscriptions": ["a://x"]}}}
    assert updated == {"jsonrpc": "2.0", "method": UPDATED, "params": {"_meta": {SUBSCRIPTION: id}, "uri": "a://x"}}
    assert response["id"] == id
    assert response["result"]["resultType"] == "complete"
    assert response["result"]["_meta"][SUBSCRIPTION] == id
    for found in (acknowledged["params"], updated["params"], response["result"]):
        assert type(found["_meta"][SUBSCRIPTION]) is type(id)


def test_only_what_was_asked_for_is_sent(server, peers):
    server.add("a://x", "1")
    server.add("a://y", "1")
    one = peers(server).listen("a://x")
    lists = peers(server).listen(resourcesListChanged=True, resourceSubscriptions=[])
    tools = peers(server).listen(toolsListChanged=True)
    nothing = peers(server).listen()
    server.wait_for_streams(4)
    server.update("a://y", "2")
    server.add_tool("t", lambda arguments: "")
    server.add("a://z", "1")
    server.update("a://x", "2")
    server.remove("a://x")
    server.end_streams("result")
    assert _methods(one.take(4)[1:3]) == [(UPDATED, "a://x"), (UPDATED, "a://x")]
    assert _methods(lists.take(4)[1:3]) == [(LIST_CHANGED, None), (LIST_CHANGED, None)]
    assert _methods(tools.take(3)[1:2]) == [("notifications/tools/list_changed", None)]
    assert "result" in nothing.take(2)[1]
    assert all(b"data: " not in listener.rest()[-2:] for listener in (one, lists, tools, nothing))


def test_changes_can_be_kept_quiet(server, peer):
    listener = peer.listen("a://x", resourcesListChanged=True, resourceSubscriptions=["a://x"])
    server.wait_for_streams(1)
    server.add("a://x", "1", notify=False)
    server.update("a://x", "2", notify=False)
    server.remove("a://x", notify=False)
    server.end_streams("result")
    assert "result" in listener.take(2)[1]


def test_a_resource_that_appears_is_announced_to_those_who_wait_for_it(server, peer):
    listener = peer.listen("a://x")
    server.wait_for_streams(1)
    server.add("a://x", "1")
    assert _methods(listener.take(2))[1] == (UPDATED, "a://x")
    listener.close()


@pytest.mark.parametrize("options, acknowledged", [
    ({}, {"resourcesListChanged": True, "toolsListChanged": True, "promptsListChanged": True,
          "resourceSubscriptions": ["a://x"]}),
    ({"subscribe": False}, {"resourcesListChanged": True, "toolsListChanged": True, "promptsListChanged": True}),
    ({"list_changed": False}, {"resourceSubscriptions": ["a://x"]}),
    ({"subscribe": False, "list_changed": False}, {}),
])
def test_what_is_not_supported_is_not_acknowledged(peers, options, acknowledged):
    with Server(**options) as server:
        listener = peers(server).listen("a://x", resourcesListChanged=True, toolsListChanged=True,
                                        promptsListChanged=True, resourceSubscriptions=["a://x"])
        assert listener.next()["params"]["notifications"] == acknowledged
        server.add("a://x", "1")
        server.stop()
        for found in listener.rest().decode("utf-8").split("\n\n"):
            assert options.get("subscribe", True) or UPDATED not in found
            assert options.get("list_changed", True) or LIST_CHANGED not in found


def test_a_principal_hears_nothing_of_what_it_may_not_see(peers):
    def authenticate(headers):
        return headers.get("X-Name")

    with Server(authenticate=authenticate) as server:
        server.add("a://alice", "1", principals={"alice"})
        server.add("a://both", "1")
        alice = peers(server, X_Name="alice").listen("a://alice", "a://both")
        bob = peers(server, X_Name="bob").listen("a://alice", "a://both")
        server.wait_for_streams(2)
        server.update("a://alice", "2")
        server.restrict("a://both", {"alice"})
        server.update("a://both", "2")
        server.end_streams("result")
        assert _methods(alice.take(4)[1:3]) == [(UPDATED, "a://alice"), (UPDATED, "a://both")]
        acknowledged, response = bob.take(2)
        assert acknowledged["params"]["notifications"]["resourceSubscriptions"] == ["a://both"]
        assert "result" in response


def test_a_notice_may_spell_the_uri_differently(server, peer):
    listener = peer.listen("dir://x")
    server.wait_for_streams(1)
    server.notify_updated("dir://x", as_uri="dir://x/file")
    assert _methods(listener.take(2))[1] == (UPDATED, "dir://x/file")
    listener.close()


def test_anything_can_be_put_on_a_stream(server, peer):
    listener = peer.listen()
    server.wait_for_streams(1)
    server.send({"jsonrpc": "2.0", "method": "notifications/unknown"})
    server.send(b"id: 1\nretry: 3000\ndata:\n\n: a comment\n\n")
    server.send(b"data: \xff\n\n")
    assert listener.until(b"\xff\n\n").endswith(
        b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/unknown"}\n\n'
        b"id: 1\nretry: 3000\ndata:\n\n: a comment\n\ndata: \xff\n\n")
    listener.close()


@pytest.mark.parametrize("chunked", [True, False])
def test_a_stream_comes_at_once_chunked_or_not(peers, chunked):
    with Server(chunked=chunked) as server:
        listener = peers(server).listen("a://x")
        assert listener.next()["method"] == ACKNOWLEDGED
        assert listener.response.headers["Content-Type"] == "text/event-stream"
        assert listener.response.headers["X-Accel-Buffering"] == "no"
        assert (listener.response.headers["Transfer-Encoding"] == "chunked") is chunked
        server.notify_updated("a://x")
        assert listener.next()["method"] == UPDATED
        listener.close()


def test_comments_keep_a_quiet_stream_alive(peers):
    with Server(keep_alive=0.01) as server:
        listener = peers(server).listen()
        listener.until(b": keep-alive\n\n: keep-alive\n\n")
        listener.close()


def test_streams_beyond_the_limit_are_refused(peers):
    with Server(max_streams=1) as server:
        peer = peers(server)
        first = peer.listen()
        server.wait_for_streams(1)
        reply = peers(server).call("subscriptions/listen", {"notifications": {}})
        assert (reply.status, reply.error["code"]) == (503, -32603)
        peer.close()
        first.close()
        server.wait_for_no_streams()
        second = peers(server).listen()
        assert second.next()["method"] == ACKNOWLEDGED
        second.close()


def test_a_client_that_leaves_ends_its_stream(server, peers):
    peer, other = peers(server), peers(server)
    listener = peer.listen("a://x")
    kept = other.listen("a://x")
    server.wait_for_streams(2)
    listener.close()
    peer.close()
    server.wait_for_streams(1)
    server.wait_for_connections(1)
    kept.close()
    other.close()
    server.wait_for_no_streams()


def test_a_client_that_resets_ends_its_stream(server):
    with socket.create_connection((server.host, server.port), LIMIT) as sock:
        sock.sendall(request_bytes("subscriptions/listen", {"notifications": {}}))
        server.wait_for_streams(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    server.wait_for_no_streams()


@pytest.mark.parametrize("how, last", [
    ("result", '"result":'), ("eof", ACKNOWLEDGED), ("error", '"error":{"code":-32603'),
    ("cancelled", "notifications/cancelled"), ("half_event", "data: "),
])
def test_a_response_can_end_in_many_ways(server, peer, how, last):
    listener = peer.listen(id=5)
    server.wait_for_streams(1)
    server.end_streams(how)
    assert server.streams == 0
    received = listener.rest().decode("utf-8")
    assert last in received.split("event: message\n")[-1]
    assert received.endswith("\n\n") is (how != "half_event")
    if how == "cancelled":
        assert json.loads(received.split("data: ")[-1])["params"]["requestId"] == 5


def test_a_stream_can_be_cut_without_the_end_of_its_response(server, peer):
    listener = peer.listen()
    server.wait_for_streams(1)
    server.end_streams("cut")
    with pytest.raises(http.client.IncompleteRead):
        listener.rest()


def test_a_stream_can_be_reset(server, peer):
    listener = peer.listen()
    assert listener.next()["method"] == ACKNOWLEDGED
    server.end_streams("reset")
    with pytest.raises(ConnectionResetError):
        listener.rest()


def test_what_waits_is_sent_before_the_end(server, peer):
    listener = peer.listen("a://x")
    server.wait_for_streams(1)
    server.notify_updated("a://x", 2000)
    server.end_streams("eof")
    assert listener.rest().count(UPDATED.encode("ascii")) == 2000


def test_stopping_the_server_ends_each_stream_with_its_result(server, peers):
    listeners = [peers(server).listen(id=number) for number in range(3)]
    server.wait_for_streams(3)
    server.stop()
    for number, listener in enumerate(listeners):
        assert listener.take(2)[1]["id"] == number
        assert listener.response.read() == b""


def test_killing_the_server_resets_each_stream(server, peer):
    listener = peer.listen()
    server.wait_for_streams(1)
    server.kill()
    assert server.streams == 0
    with pytest.raises(ConnectionResetError):
        listener.rest()


def test_a_client_may_listen_again_after_a_restart(server, peers):
    for end in (server.kill, server.stop):
        listener = peers(server).listen("a://x")
        server.wait_for_streams(1)
        end()
        server.restart()
        server.wait_for_no_streams()
        listener.close()
    again = peers(server).listen("a://x")
    assert again.next()["method"] == ACKNOWLEDGED
    server.notify_updated("a://x")
    assert again.next()["method"] == UPDATED
    again.close()


def test_a_burst_arrives_whole_whether_sent_in_one_call_or_many(server, peer):
    listener = peer.listen("a://x", "a://y")
    server.wait_for_streams(1)
    server.notify_updated("a://x", 100000)
    for _ in range(10000):
        server.notify_updated("a://y")
    server.end_streams("result", timeout=0)  # it cannot end before somebody reads
    received = listener.rest()
    assert received.count(b'"uri":"a://x"') == 100000
    assert received.count(b'"uri":"a://y"') == 10000


def test_a_slow_client_is_let_go_gracefully_when_too_much_waits_for_it(peers):
    with Server(backlog=10) as server:
        with server.hold("subscriptions/listen", at="answer") as gate:
            peer = peers(server)
            peer.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["a://x"]}})
            gate.wait_reached()
            for _ in range(11):
                server.notify_updated("a://x")
        found = peer.receive().messages
    assert _methods(found[1:-1]) == [(UPDATED, "a://x")] * 10
    assert found[-1]["result"]["resultType"] == "complete"


def test_a_client_that_does_not_read_holds_up_nobody(server, peers):
    with socket.create_connection((server.host, server.port), LIMIT) as stuck:
        stuck.sendall(request_bytes("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["a://x"]}}))
        server.wait_for_streams(1)
        listener = peers(server).listen("a://x")
        server.wait_for_streams(2)
        server.notify_updated("a://x", 100000)
        listener.take(2)
        server.end_streams("reset")
        assert server.streams == 0
        with pytest.raises(ConnectionResetError):
            drain(stuck)


def test_a_stream_ends_the_connection_it_came_on(server):
    with socket.create_connection((server.host, server.port), LIMIT) as sock:
        sock.sendall(request_bytes("subscriptions/listen", {"notifications": {}}))
        server.wait_for_streams(1)
        server.end_streams("eof")
        received = drain(sock)
    assert b"Connection: close\r\n" in received
    assert received.endswith(b"0\r\n\r\n")


def test_a_stream_without_chunks_is_bare(peers):
    with Server(chunked=False) as server:
        with socket.create_connection((server.host, server.port), LIMIT) as sock:
            sock.sendall(request_bytes("subscriptions/listen", {"notifications": {}}))
            server.wait_for_streams(1)
            server.end_streams("eof")
            head, _, body = drain(sock).partition(b"\r\n\r\n")
    assert b"chunked" not in head and b"Content-Length" not in head
    assert body.startswith(b"event: message\ndata: {") and body.endswith(b"}\n\n")
