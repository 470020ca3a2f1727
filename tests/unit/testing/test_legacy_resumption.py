"""Event streams that are cut and resumed (basic/transports of 2025-11-25, "Resumability and Redelivery")."""

import http.client
import re

import pytest
from embedded_client import Listener, events
from legacy_client import request

from mcp_sync.testing import Server, faults

UPDATED = "notifications/resources/updated"


@pytest.fixture
def server(nothing_is_left):
    with Server(eras=["legacy"], resumable=True, answer="sse", retry_ms=10) as started:
        started.add("a://x", "1")
        yield started


def _last_id(stream):
    return re.findall(rb"^id: (.*)$", stream, re.MULTILINE)[-1].decode("ascii")


def _resume(peer, last):
    response = peer.send("GET", Accept="text/event-stream", Last_Event_ID=last)
    assert response.status == 200
    return Listener(response)


def _messages(stream):
    return events(b"".join(part + b"\n\n" for part in stream.split(b"\n\n")[:-1] if b"data: " in part))


def test_events_have_ids_and_the_first_one_has_nothing_else(server, legacy):
    body = legacy(server).read("a://x").body
    first, second, rest = body.split(b"\n\n")
    assert re.fullmatch(rb"id: \d+-0\nretry: 10\ndata:", first)
    assert re.match(rb"id: \d+-1\nevent: message\ndata: \{", second)
    assert rest == b""


def test_ids_are_unique_in_a_session(server, legacy):
    peer = legacy(server)
    found = [_last_id(peer.call("ping").body) for _ in range(3)]
    assert len(set(found)) == 3


def test_an_answer_that_was_cut_is_sent_again(server, legacy):
    peer = legacy(server)
    server.inject(faults.CutAt(40, of="body"), method="ping")
    with pytest.raises(http.client.IncompleteRead) as cut:
        peer.call("ping", id="again")
    stream = _resume(peer, _last_id(cut.value.partial.split(b"\n\n")[0]))
    assert _messages(stream.rest()) == [{"jsonrpc": "2.0", "id": "again", "result": {}}]


def test_an_answer_may_be_for_the_get_that_resumes_its_stream(server, legacy):
    peer = legacy(server)
    server.inject(faults.CutAndResume(retry_ms=500), method="resources/read")
    body = peer.read("a://x").body
    assert re.fullmatch(rb"id: \d+-0\nretry: 500\ndata:\n\n", body)
    found = _messages(_resume(peer, _last_id(body)).rest())
    assert [one["result"]["contents"][0]["text"] for one in found] == ["1"]


@pytest.mark.parametrize("at", ["arrival", "answer"])
def test_the_resuming_get_waits_for_the_answer(server, legacy, at):
    peer = legacy(server)
    server.inject(faults.CutAndResume(), method="resources/read")
    gate = server.hold("resources/read", at="answer")
    body = peer.read("a://x").body
    gate.wait_reached()
    stream = _resume(peer, _last_id(body))
    server.wait_for_requests("GET")
    server.update("a://x", "2")
    gate.release()
    assert _messages(stream.rest())[0]["result"]["contents"][0]["text"] == "1"


def test_an_answer_is_cut_for_resumption_whatever_the_server_does_else(legacy):
    with Server(eras=["legacy"]) as server:
        peer = legacy(server)
        server.inject(faults.CutAndResume(), method="ping")
        body = peer.call("ping").body
        assert _messages(_resume(peer, _last_id(body)).rest())[0]["result"] == {}
        assert peer.call("ping").messages == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


def test_a_request_of_the_servers_comes_on_the_resumed_stream(server, legacy):
    server.add_tool("ask", lambda arguments: server.ask("ping", on="post")["result"]["text"])
    peer = legacy(server)
    server.inject(faults.CutAndResume(), method="tools/call")
    body = peer.call("tools/call", {"name": "ask"}).body
    stream = _resume(peer, _last_id(body))
    assert stream.next()["method"] == "ping"
    peer.respond(0, {"text": "yes"})
    assert stream.next()["result"]["content"][0]["text"] == "yes"


def test_a_stop_ends_what_waits_to_be_resumed(server, legacy):
    peer = legacy(server)
    server.inject(faults.CutAndResume(), method="ping")
    gate = server.hold("ping", at="answer")
    peer.call("ping")
    gate.wait_reached()
    server.stop()
    server.start()
    assert server.connections == 0


def test_the_get_stream_goes_on_where_it_was_cut(server, legacy):
    peer = legacy(server)
    stream = peer.listen()
    server.wait_for_streams(1)
    peer.call("resources/subscribe", {"uri": "a://x"})
    server.update("a://x", "2")
    assert stream.take(1)[0]["method"] == UPDATED
    last = _last_id(stream.received)
    stream.close()
    server.wait_for_no_streams()
    server.update("a://x", "3")
    server.add("a://y", "1")
    stream = _resume(peer, last)
    assert [one["method"] for one in stream.take(2)] == [UPDATED, "notifications/resources/list_changed"]
    server.update("a://x", "4")
    assert stream.take(1)[0]["method"] == UPDATED
    server.end_streams("eof")
    everything = _messages(stream.rest())
    assert len(everything) == 3
    again = _resume(peer, last)
    assert again.take(3) == everything


def test_a_new_get_stream_gets_nothing_of_the_old_one(server, legacy):
    peer = legacy(server)
    stream = peer.listen()
    server.wait_for_streams(1)
    stream.until(b"data:\n\n")
    last = _last_id(stream.received)
    peer.call("resources/subscribe", {"uri": "a://x"})
    stream.close()
    server.wait_for_no_streams()
    server.update("a://x", "2")
    fresh = peer.listen()
    server.wait_for_streams(1)
    server.update("a://x", "3")
    assert len(fresh.take(1)) == 1
    server.end_streams("eof")
    assert len(_messages(fresh.rest())) == 1
    assert _messages(_resume(peer, last).rest()) == []


def test_a_stream_that_is_open_cannot_be_resumed_beside_itself(server, legacy):
    peer = legacy(server)
    stream = peer.listen()
    server.wait_for_streams(1)
    stream.until(b"data:\n\n")
    assert peer.send("GET", Accept="text/event-stream", Last_Event_ID=_last_id(stream.received)).status == 409
    stream.close()


def test_an_id_that_makes_no_sense_is_refused_and_an_unknown_one_begins_anew(server, legacy):
    peer = legacy(server)
    assert peer.send("GET", Accept="text/event-stream", Last_Event_ID="nonsense").status == 400
    stream = _resume(peer, "99-1")
    server.wait_for_streams(1)
    stream.until(b"data:\n\n")
    stream.close()


def test_nothing_can_be_resumed_in_another_session(server, legacy):
    peer, other = legacy(server), legacy(server)
    server.inject(faults.CutAndResume(), method="ping")
    last = _last_id(peer.call("ping", id="mine").body)
    stream = _resume(other, last.replace(last.split("-")[0], "77"))
    server.wait_for_streams(1)
    stream.close()
    peer.send("DELETE")
    assert peer.send("GET", Accept="text/event-stream", Last_Event_ID=last).status == 404


def test_a_server_without_a_get_stream_may_resume_answers(legacy):
    with Server(eras=["legacy"], answer="sse", resumable=True, get_stream=False) as server:
        peer = legacy(server)
        server.inject(faults.CutAndResume(), method="ping")
        body = peer.call("ping").body
        assert _messages(_resume(peer, _last_id(body)).rest())[0]["result"] == {}
        assert peer.send("GET", Accept="text/event-stream", Last_Event_ID="99-0").status == 405


def test_a_resumable_answer_may_ask_first(server, legacy):
    server.add_tool("ask", lambda arguments: server.ask("ping", on="post")["result"]["text"])
    peer = legacy(server)
    stream = Listener(peer.start(request("tools/call", {"name": "ask"}, id="call")))
    assert stream.next()["method"] == "ping"
    peer.respond(0, {"text": "yes"})
    assert stream.next()["id"] == "call"
    assert re.findall(rb"^id: \d+-(\d+)$", stream.rest(), re.MULTILINE) == [b"0", b"1", b"2"]


def test_nothing_is_remembered_of_a_stream_when_its_session_has_ended(server, legacy):
    peer = legacy(server)
    for end in (lambda: peer.send("DELETE"), server.expire_sessions, server.kill):
        stream = peer.listen()
        server.wait_for_streams(1)
        stream.close()
        server.wait_for_no_streams()
        assert len(server._streams.all()) == 1
        end()
        assert server._streams.all() == []
        server.start()
        peer.begin()


def test_the_resuming_get_ends_when_there_will_be_no_answer(server, legacy):
    peer = legacy(server)
    server.inject(faults.CutAndResume(), faults.Close(), method="ping")
    body = peer.call("ping").body
    assert _resume(peer, _last_id(body)).rest() == b""


def test_nothing_is_resumed_in_the_modern_era(peers):
    with Server(eras=["modern", "legacy"], sessions=False, resumable=True, answer="sse") as server:
        server.inject(faults.CutAndResume(), method="resources/list")
        reply = peers(server).call("resources/list")
        assert reply.result["resources"] == [] and b"id: " not in reply.body
