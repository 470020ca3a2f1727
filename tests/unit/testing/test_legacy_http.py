"""The legacy era over Streamable HTTP (basic/lifecycle, basic/transports, server/resources of 2025-11-25)."""

import json

import pytest
from embedded_client import META, Listener, headers_for, message
from legacy_client import CLIENT, LATEST, request

from mcp_sync.testing import Server

UPDATED = "notifications/resources/updated"
LIST_CHANGED = "notifications/resources/list_changed"


@pytest.fixture
def server(nothing_is_left):
    with Server(eras=["legacy"]) as started:
        yield started


def test_the_handshake_agrees_on_a_version_and_begins_a_session(legacy):
    with Server(eras=["legacy"], instructions="be kind") as server:
        peer = legacy(server, begin=False)
        assert peer.begin() == {
            "protocolVersion": LATEST,
            "capabilities": {"resources": {"subscribe": True, "listChanged": True}},
            "serverInfo": {"name": "mcp_sync-testing", "version": "1"},
            "instructions": "be kind",
        }
        session, = server.sessions
        assert session.id == peer.session and session.version == LATEST
        assert session.client["clientInfo"] == CLIENT["clientInfo"]


@pytest.mark.parametrize("offered, wanted, agreed", [
    (("2024-11-05", "2025-06-18"), "2024-11-05", "2024-11-05"),
    (("2024-11-05", "2025-06-18"), "2025-11-25", "2025-06-18"),
    (("2025-06-18", "2024-11-05"), "1.0", "2025-06-18"),
])
def test_a_version_that_is_not_supported_is_answered_with_the_latest_that_is(legacy, offered, wanted, agreed):
    with Server(eras=["legacy"], legacy_versions=offered) as server:
        assert legacy(server, begin=False).begin(wanted)["protocolVersion"] == agreed


def test_results_carry_nothing_of_the_modern_era(server, legacy):
    server.add("a://x", "1", mime_type="text/plain", ttl_ms=5000)
    server.add_template("b://{name}", "b", read=lambda uri: uri)
    server.add_tool("echo", lambda arguments: arguments)
    peer = legacy(server)
    assert peer.call("resources/list").result == {
        "resources": [{"uri": "a://x", "name": "x", "mimeType": "text/plain", "size": 1}]}
    assert peer.read("a://x").result == {"contents": [{"uri": "a://x", "mimeType": "text/plain", "text": "1"}]}
    assert peer.read("b://c").result == {"contents": [{"uri": "b://c", "text": "b://c"}]}
    assert peer.call("resources/templates/list").result == {
        "resourceTemplates": [{"uriTemplate": "b://{name}", "name": "b"}]}
    assert [tool["name"] for tool in peer.call("tools/list").result["tools"]] == ["echo"]
    assert peer.call("tools/call", {"name": "echo", "arguments": {"n": 1}}).result["structuredContent"] == {"n": 1}
    assert peer.call("ping").result == {}


@pytest.mark.parametrize("method, params, code", [
    ("resources/read", {"uri": "a://none"}, -32002),
    ("resources/read", {}, -32602),
    ("resources/subscribe", {}, -32602),
    ("tools/call", {"name": "none"}, -32602),
    ("server/discover", {}, -32601),
])
def test_errors_are_answers_with_status_200(server, legacy, method, params, code):
    server.add_tool("some", lambda arguments: "")
    reply = legacy(server).call(method, params, id=0)
    assert (reply.status, reply.error["code"], reply.messages[0]["id"]) == (200, code, 0)


def test_a_subscribed_change_is_told_on_the_get_stream(server, legacy):
    server.add("a://x", "1")
    server.add("a://y", "1")
    peer = legacy(server)
    stream = peer.listen()
    server.wait_for_streams(1)
    assert peer.call("resources/subscribe", {"uri": "a://x"}).result == {}
    server.update("a://y", "2")
    server.update("a://x", "2")
    server.add("a://z", "1")
    assert stream.take(2) == [{"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": "a://x"}},
                              {"jsonrpc": "2.0", "method": LIST_CHANGED}]
    assert peer.call("resources/unsubscribe", {"uri": "a://x"}).result == {}
    server.update("a://x", "3")
    server.remove("a://z")
    assert stream.next() == {"jsonrpc": "2.0", "method": LIST_CHANGED}


def test_subscriptions_belong_to_a_session(server, legacy):
    one, two = legacy(server), legacy(server)
    streams = one.listen(), two.listen()
    server.wait_for_streams(2)
    one.call("resources/subscribe", {"uri": "a://x"})
    server.add("a://x", "1")
    assert [message["method"] for message in streams[0].take(2)] == [UPDATED, LIST_CHANGED]
    assert streams[1].next()["method"] == LIST_CHANGED


def test_a_request_without_its_session_or_with_an_unknown_one_is_refused(server, legacy):
    peer = legacy(server)
    assert peer.call("ping", Mcp_Session_Id=None).status == 400
    reply = peer.call("ping", Mcp_Session_Id="unknown")
    assert (reply.status, reply.messages[0]["id"]) == (404, None)
    assert peer.send("GET", Accept="text/event-stream", Mcp_Session_Id="unknown").status == 404


def test_delete_ends_a_session_and_its_stream(server, legacy):
    peer = legacy(server)
    stream = peer.listen()
    server.wait_for_streams(1)
    assert peer.send("DELETE").status == 200
    assert stream.rest() == b""
    assert peer.call("ping").status == 404
    assert peer.send("DELETE").status == 404
    assert server.sessions == ()


def test_a_session_has_one_stream_and_the_next_when_that_has_ended(server, legacy):
    peer = legacy(server)
    stream = peer.listen()
    server.wait_for_streams(1)
    assert peer.send("GET", Accept="text/event-stream").status == 409
    stream.close()
    another = peer.listen()
    server.wait_for_streams(1)
    another.close()


def test_without_sessions_no_id_is_assigned_and_none_is_needed(legacy):
    with Server(eras=["legacy"], sessions=False) as server:
        peer = legacy(server)
        assert peer.session is None
        stream = peer.listen()
        server.wait_for_streams(1)
        peer.call("resources/subscribe", {"uri": "a://x"})
        server.add("a://x", "1")
        assert stream.next()["params"] == {"uri": "a://x"}
        assert peer.send("DELETE").status == 405


def test_a_server_without_a_get_stream_says_so(legacy):
    with Server(eras=["legacy"], get_stream=False) as server:
        response = legacy(server).send("GET", Accept="text/event-stream")
        assert (response.status, response.getheader("Allow")) == (405, "POST, DELETE")


@pytest.mark.parametrize("version, status", [(None, 200), ("2025-03-26", 200), ("1999-01-01", 400), ("2026", 400)])
def test_the_version_header_is_checked(server, legacy, version, status):
    assert legacy(server).call("ping", MCP_Protocol_Version=version).status == status


def test_a_request_without_a_version_is_one_of_2025_03_26(legacy):
    with Server(eras=["legacy"], sessions=False, legacy_versions=["2025-06-18"]) as server:
        peer = legacy(server, begin=False)
        assert peer.call("ping").status == 400
        assert peer.call("ping", MCP_Protocol_Version="2025-06-18").status == 200


@pytest.mark.parametrize("status", [404, 400])
def test_every_session_can_expire_at_once(server, legacy, status):
    peer = legacy(server)
    stream = peer.listen()
    server.wait_for_streams(1)
    server.expire_sessions(status)
    assert stream.rest() == b""
    assert peer.call("ping").status == status
    peer.begin()
    assert peer.call("ping").status == 200


def test_a_restart_forgets_every_session(server, legacy):
    peer = legacy(server)
    server.kill()
    server.restart()
    assert peer.call("ping").status == 404


def test_a_client_is_asked_on_the_get_stream_with_ids_from_0(server, legacy, in_thread):
    peer = legacy(server)
    stream = peer.listen()
    server.wait_for_streams(1)
    for id in (0, 1):
        asked = in_thread(lambda: server.ask("roots/list", {"n": 1}))
        assert stream.next() == {"jsonrpc": "2.0", "id": id, "method": "roots/list", "params": {"n": 1}}
        assert peer.respond(id, {"roots": []}).status == 202
        assert asked() == {"jsonrpc": "2.0", "id": id, "result": {"roots": []}}


def test_a_tool_may_ask_on_the_stream_of_its_call(server, legacy):
    server.add_tool("ask", lambda arguments: server.ask("ping", on="post")["result"]["text"])
    peer = legacy(server)
    response = peer.start(request("tools/call", {"name": "ask"}, id="call"))
    stream = Listener(response)
    assert stream.next() == {"jsonrpc": "2.0", "id": 0, "method": "ping"}
    assert peer.respond(0, {"text": "yes"}).status == 202
    answer = stream.next()
    assert (answer["id"], answer["result"]["content"]) == ("call", [{"type": "text", "text": "yes"}])


def test_both_eras_may_share_one_path(peers, legacy):
    with Server(eras=["modern", "legacy"]) as server:
        server.add("a://x", "1")
        old, new = legacy(server), peers(server)
        assert "resultType" not in old.read("a://x").result
        assert new.read("a://x").result["resultType"] == "complete"
        streams = old.listen(), new.listen("a://x")
        old.call("resources/subscribe", {"uri": "a://x"})
        server.wait_for_streams(2)
        server.update("a://x", "2")
        assert streams[0].next()["params"] == {"uri": "a://x"}
        assert streams[1].take(2)[1]["params"]["uri"] == "a://x"
        reply = new.call("server/discover", MCP_Protocol_Version="2025-11-25")
        assert reply.error["code"] == -32020
        streams[1].close()


def test_a_server_of_both_eras_names_all_its_versions_to_who_speaks_another(peers):
    with Server(eras=["modern", "legacy"], legacy_versions=["2024-11-05", "2025-11-25"]) as server:
        body = message("server/discover", meta=dict(META, **{"io.modelcontextprotocol/protocolVersion": "1900-01-01"}))
        peer = peers(server)
        peer.send_raw(json.dumps(body).encode("utf-8"), headers_for(body, MCP_Protocol_Version="1900-01-01"))
        reply = peer.receive()
        assert (reply.status, reply.error["code"]) == (400, -32022)
        assert reply.error["data"]["supported"] == ["2026-07-28", "2025-11-25", "2024-11-05"]
        assert peer.call("server/discover").result["supportedVersions"] == ["2026-07-28"]


def test_a_server_of_the_modern_era_alone_knows_no_sessions(peers, legacy):
    with Server() as server:
        peer = legacy(server, begin=False)
        reply = peer.call("initialize", dict(CLIENT, protocolVersion=LATEST))
        assert reply.status == 400 and "2026-07-28" in reply.error["message"]
        assert reply.headers["Mcp-Session-Id"] is None
        assert peer.send("GET", Accept="text/event-stream").status == 405
        assert peers(server).call("server/discover", Mcp_Session_Id="ignored").status == 200
