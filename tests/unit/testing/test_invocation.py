"""What a function of the embedded server can do before it returns, in both eras and over every transport."""

import http.client
import json
import threading
import time

import pytest
from embedded_client import LIMIT, META, headers_for, message
from talking import WAYS, Talk, serving

from mcp_sync.testing import Server
from mcp_sync.testing.ending import Cancelled
from mcp_sync.testing.turns import Turn
from mcp_sync.testing.waiting import Waiting

TOKEN = {"progressToken": "p1"}
LEVEL = "io.modelcontextprotocol/logLevel"
ELICIT = {"method": "elicitation/create", "params": {"message": "Name?", "requestedSchema": {"type": "object"}}}
ROOTS = {"method": "roots/list"}


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


@pytest.fixture
def server(nothing_is_left, way):
    with serving(way) as started:
        yield started


@pytest.fixture
def talk(nothing_is_left):
    """Makes clients, and closes them afterwards."""
    made = []

    def make(server, way, **options):
        made.append(Talk(server, way, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def texts(response):
    return [block["text"] for block in response["result"]["content"]]


# -- progress and log messages -----------------------------------------------------------------------------------


def test_progress_is_told_ahead_of_the_answer_to_who_asked_for_it(server, talk, way):
    def work(arguments, call):
        call.progress(1)
        call.progress(0.5, total=2, message="backwards")
        return "done"

    server.add_tool("work", work)
    client = talk(server, way)
    assert client.call("work", meta=TOKEN) == {
        "jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "p1", "progress": 1}}
    assert client.next()["params"] == {"progressToken": "p1", "progress": 0.5, "total": 2, "message": "backwards"}
    assert texts(client.next()) == ["done"]
    assert texts(client.call("work", id=2)) == ["done"]
    assert texts(client.call("work", id=3, meta={"progressToken": True})) == ["done"]
    assert client.call("work", id=4, meta={"progressToken": 7})["params"]["progressToken"] == 7


def test_progress_of_a_prompt_and_of_a_read_is_told_as_well(server, talk, way):
    def prompt(arguments, call):
        call.progress(1)
        return "hello"

    def read(principal, call):
        call.progress(2)
        return "text"

    server.add_prompt("p", prompt)
    server.add("a://x", read)
    server.add_template("b://{n}", "b", read=lambda uri, call: call.progress(3) or uri)
    client = talk(server, way)
    asked = [("prompts/get", {"name": "p"}), ("resources/read", {"uri": "a://x"}), ("resources/read", {"uri": "b://1"})]
    for number, (method, params) in enumerate(asked, 1):
        client.start(method, params, id=number, meta=TOKEN)
        assert client.next(number)["params"] == {"progressToken": "p1", "progress": number}
        assert "result" in client.next(number)


def test_an_answer_in_json_becomes_an_event_stream_when_there_is_something_to_say_before(peers):
    with Server() as server:
        server.add_tool("quiet", lambda arguments, call: call.progress(1) or "")
        peer = peers(server)
        assert peer.call("tools/call", {"name": "quiet"}).headers["Content-Type"] == "application/json"
        whole = message("tools/call", {"name": "quiet"}, meta=dict(META, **TOKEN))
        peer.send_raw(json.dumps(whole).encode("utf-8"), headers_for(whole))
        reply = peer.receive()
        assert reply.headers["Content-Type"] == "text/event-stream"
        assert [part.get("method") for part in reply.messages] == ["notifications/progress", None]


def test_log_messages_go_to_who_asked_for_that_level(server, talk, way):
    def work(arguments, call):
        call.log("info", "unheard")
        call.log("warning", {"n": 1}, logger="db")
        call.log("emergency", None)
        call.log("odd", "of no level")
        return "done"

    server.add_tool("work", work)
    client = talk(server, way)
    assert texts(client.call("work")) == ["done"]
    meta = {LEVEL: "warning"}
    if client.era == "legacy":
        client.start("logging/setLevel", {"level": "warning"}, id=2)
        assert client.next(2)["result"] == {}
        meta = None
    heard = [client.call("work", id=3, meta=meta)] + [client.next(3) for _ in range(3)]
    assert [message.get("params") for message in heard] == [
        {"level": "warning", "data": {"n": 1}, "logger": "db"}, {"level": "emergency", "data": None},
        {"level": "odd", "data": "of no level"}, None]
    assert heard[0]["method"] == "notifications/message" and texts(heard[3]) == ["done"]


def test_a_level_that_is_none_is_refused(server, talk, way):
    server.add_tool("work", lambda arguments: "")
    client = talk(server, way)
    if client.era == "legacy":
        client.start("logging/setLevel", {"level": "loud"})
        assert client.next()["error"]["code"] == -32602
    else:
        assert client.call("work", meta={LEVEL: "loud"})["error"]["code"] == -32602


# -- asking ------------------------------------------------------------------------------------------------------


def _greet(arguments, call):
    answers = call.ask({"name": ELICIT, "roots": ROOTS}, state="s1")
    return answers["name"]["content"]["name"] + " of " + answers["roots"]["roots"][0]["uri"]


NAME, PLACE = {"action": "accept", "content": {"name": "Ada"}}, {"roots": [{"uri": "file:///srv"}]}


@pytest.mark.parametrize("way", [way for way in WAYS if way.startswith("modern")])
def test_in_the_modern_era_a_function_runs_again_with_the_answers(server, talk, way):
    server.add_tool("greet", _greet)
    client = talk(server, way)
    first = client.call("greet")["result"]
    assert first["resultType"] == "input_required" and first["requestState"] == "s1"
    assert first["inputRequests"] == {"name": ELICIT, "roots": ROOTS}
    assert "content" not in first
    partly = client.call("greet", id=2, inputResponses={"name": NAME}, requestState="s1")["result"]
    assert partly["resultType"] == "input_required"
    answers = {"name": NAME, "roots": PLACE, "more": {}}
    assert texts(client.call("greet", id=3, inputResponses=answers, requestState="s1")) == ["Ada of file:///srv"]


@pytest.mark.parametrize("way", [way for way in WAYS if way.startswith("modern")])
def test_a_function_may_ask_for_nothing_but_to_be_called_again_and_say_no_state(server, talk, way):
    server.add_tool("again", lambda arguments, call: call.ask({}, state="later") or call.request_state)
    server.add_tool("stateless", lambda arguments, call: call.ask({"n": ELICIT}))
    server.add_prompt("p", lambda arguments, call: call.ask({"n": ELICIT})["n"]["action"])
    server.add("a://x", lambda principal, call: call.ask({"n": ELICIT})["n"]["action"])
    client = talk(server, way)
    first = client.call("again")["result"]
    assert first["requestState"] == "later" and "inputRequests" not in first
    assert texts(client.call("again", id=2, requestState="later")) == ["later"]
    assert "requestState" not in client.call("stateless", id=3)["result"]
    for number, (method, params) in enumerate([("prompts/get", {"name": "p"}), ("resources/read", {"uri": "a://x"})]):
        client.start(method, params, id=10 + number)
        first = client.next(10 + number)["result"]
        assert first["resultType"] == "input_required" and "ttlMs" not in first
        client.start(method, dict(params, inputResponses={"n": {"action": "decline"}}), id=20 + number)
        assert "decline" in str(client.next(20 + number)["result"])


def test_a_function_may_ask_twice_in_both_eras(server, talk, way):
    def twice(arguments, call):
        name = call.ask({"name": ELICIT}, remember=True)["name"]["action"]
        return name + call.ask({"sure": ELICIT}, remember=True)["sure"]["action"]

    server.add_tool("twice", twice)
    client = talk(server, way)
    asked = client.call("twice", id=0)
    if client.era == "modern":
        for number, (key, action) in enumerate([("name", "accept"), ("sure", "decline")], 1):
            assert list(asked["result"]["inputRequests"]) == [key]
            asked = client.call("twice", id=number, inputResponses={key: {"action": action}},
                                requestState=asked["result"]["requestState"])
    else:
        for action in ("accept", "decline"):
            client.respond(asked["id"], result={"action": action})
            asked = client.next(0)
    assert texts(asked) == ["acceptdecline"]


@pytest.mark.parametrize("way", [way for way in WAYS if way.startswith("legacy")])
def test_in_the_legacy_era_a_function_waits_for_the_answers(server, talk, way):
    server.add_tool("greet", _greet)
    client = talk(server, way)
    asked = [client.call("greet", id="c"), client.next("c")]
    assert [message["method"] for message in asked] == ["elicitation/create", "roots/list"]
    assert asked[0]["params"] == ELICIT["params"] and "params" not in asked[1]
    client.respond(asked[1]["id"], result=PLACE)
    client.respond(asked[0]["id"], result=NAME)
    assert texts(client.next("c")) == ["Ada of file:///srv"]


@pytest.mark.parametrize("way", [way for way in WAYS if way.startswith("legacy")])
def test_an_error_for_an_answer_fails_the_tool(server, talk, way):
    server.add_tool("greet", _greet)
    client = talk(server, way)
    asked = [client.call("greet", id="c"), client.next("c")]
    client.respond(asked[0]["id"], error={"code": -32601, "message": "no"})
    client.respond(asked[1]["id"], result=PLACE)
    failed = client.next("c")
    assert failed["result"]["isError"] is True and "AskedInVain: name: {" in texts(failed)[0]


def test_a_question_may_go_over_the_standalone_stream(legacy, in_thread):
    with Server(eras=["legacy"]) as server:
        server.add_tool("ask", lambda arguments, call: str(call.ask({"r": ROOTS}, on="get")["r"]))
        peer = legacy(server)
        stream = peer.listen()
        finish = in_thread(lambda: peer.call("tools/call", {"name": "ask"}))
        asked = stream.next()
        assert asked["method"] == "roots/list"
        peer.respond(asked["id"], {"roots": []})
        reply = finish()
        assert reply.headers["Content-Type"] == "application/json"
        assert reply.result["content"][0]["text"] == "{'roots': []}"


def test_a_client_that_does_not_answer_is_not_waited_for(legacy):
    with Server(eras=["legacy"]) as server:
        server.add_tool("ask", lambda arguments, call: call.ask({"r": ROOTS}, timeout=0.0))
        server.add_tool("get", lambda arguments, call: call.ask({"r": ROOTS}, on="get", timeout=0.0))
        server.add_tool("odd", lambda arguments, call: call.ask({"r": ROOTS}, on="mars"))
        peer = legacy(server)
        for name, error in (("ask", "TimeoutError"), ("get", "TimeoutError"), ("odd", "ValueError")):
            failed = peer.call("tools/call", {"name": name}).result
            assert failed["isError"] is True and failed["content"][0]["text"].startswith(error)


@pytest.mark.parametrize("has, lacks", [
    ({"elicitation": {}}, {"roots": {}}),
    ({"elicitation": {"url": {}}, "roots": {}}, {"elicitation": {"form": {}}}),
    ({}, {"elicitation": {"form": {}}, "roots": {}}),
    ({"elicitation": {"form": {}}, "roots": {}}, None),
])
def test_a_client_may_be_asked_only_what_it_said_that_it_can_answer(talk, has, lacks):
    with serving("modern http", check_capabilities=True) as server:
        server.add_tool("greet", _greet)
        answer = talk(server, "modern http", capabilities=has).call("greet")
        if lacks is None:
            assert answer["result"]["resultType"] == "input_required"
        else:
            assert answer["error"]["code"] == -32021
            assert answer["error"]["data"] == {"requiredCapabilities": lacks}


def test_a_legacy_client_may_be_asked_only_what_it_said_that_it_can_answer(legacy):
    with Server(eras=["legacy"], check_capabilities=True) as server:
        server.add_tool("greet", _greet)
        failed = legacy(server).call("tools/call", {"name": "greet"}).result  # it has roots
        assert failed["isError"] is True and "{'elicitation': {'form': {}}}" in failed["content"][0]["text"]


# -- the end -----------------------------------------------------------------------------------------------------


def test_a_function_sees_that_its_request_is_cancelled_and_gets_no_answer(server, talk, way):
    ended, calls = threading.Event(), []

    def work(arguments, call):
        calls.append(call)
        assert not call.cancelled.is_set()
        call.progress(1)
        assert call.cancelled.wait(LIMIT)
        ended.set()
        call.progress(2)  # goes nowhere
        return "late"

    server.add_tool("work", work)
    server.add_tool("other", lambda arguments: "other")
    client = talk(server, way)
    assert client.call("work", meta=TOKEN)["method"] == "notifications/progress"
    client.cancel()
    assert ended.wait(LIMIT) and calls[0].cancelled.wait(LIMIT)
    if way != "modern http":
        assert texts(client.call("other", id=2)) == ["other"]
    if way == "legacy http":
        with pytest.raises(http.client.IncompleteRead):
            client.next()


# Without modern HTTP: a request is cancelled there by the end of its connection.
@pytest.mark.parametrize("way", [way for way in WAYS if way != "modern http"])
def test_a_cancellation_of_something_else_is_nothing(server, talk, way):
    go = threading.Event()

    def work(arguments, call):
        call.progress(1)
        assert not call.cancelled.is_set() and go.wait(LIMIT)
        return "done" if not call.cancelled.is_set() else "cancelled"

    server.add_tool("work", work)
    client = talk(server, way)
    client.call("work", id="w", meta=TOKEN)
    for other in (1, None, ["w"]):
        client.cancel(other)
    server.wait_for_requests("notifications/cancelled", 3)
    go.set()
    assert texts(client.next("w")) == ["done"]


def test_a_function_that_tells_progress_for_ever_ends_with_its_client(server, talk, way):
    ended = threading.Event()

    def work(arguments, call):
        try:
            number = 0
            while True:
                number += 1
                call.progress(number)
        finally:
            ended.set()

    server.add_tool("work", work)
    client = talk(server, way)
    client.call("work", meta=TOKEN)
    client.close()
    assert ended.wait(LIMIT)


def test_a_function_may_look_now_and_then_instead_of_waiting(server, talk, way):
    ended = threading.Event()

    def work(arguments, call):
        call.progress(1)
        end = time.monotonic() + LIMIT
        while not call.cancelled.is_set():
            assert time.monotonic() < end
        ended.set()
        return "late"

    server.add_tool("work", work)
    client = talk(server, way)
    client.call("work", meta=TOKEN)
    client.cancel()
    assert ended.wait(LIMIT)


# Without modern HTTP: the end of a connection is noticed by its own thread only.
@pytest.mark.parametrize("way", [way for way in WAYS if way != "modern http"])
def test_others_hear_of_a_cancellation_while_the_function_does_something_else(server, talk, way):
    go, calls = threading.Event(), []

    def work(arguments, call):
        assert not call.cancelled.is_set()
        calls.append(call)
        call.progress(1)
        return str(go.wait(LIMIT * 2))

    server.add_tool("work", work)
    client = talk(server, way)
    client.call("work", meta=TOKEN)
    client.cancel()
    assert calls[0].cancelled.wait(LIMIT)
    go.set()


def test_others_hear_that_the_client_of_a_held_answer_is_gone(talk):
    calls = []

    def work(arguments, call):
        assert not call.cancelled.is_set()
        calls.append(call)
        call.progress(1)
        return ""

    with serving("modern http") as server:
        server.add_tool("work", work)
        client = talk(server, "modern http")
        with server.hold("tools/call", at="answer") as gate:
            client.call("work", meta=TOKEN)
            gate.wait_reached()
            client.cancel()
            assert calls[0].cancelled.wait(LIMIT)


def test_what_is_over_is_not_cancelled_afterwards(legacy):
    calls = []

    def work(arguments, call):
        assert not call.cancelled.is_set()
        calls.append(call)
        return ""

    with Server(eras=["legacy"]) as server:
        server.add_tool("work", work)
        peer = legacy(server)
        connection = peer.connect()
        for number in (1, 2):
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "work"}}
            connection.request("POST", server.path, json.dumps(body).encode("ascii"), peer.headers())
            assert b'"content"' in connection.getresponse().read()
            peer.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert not any(call.cancelled.is_set() for call in calls)


class Woken(Waiting):
    """Where a thread is woken by who asks for the end, before that one has said so otherwise."""

    closing = False

    def wake(self):
        raise NotImplementedError

    ask_close = ask_reset = wake

    def wait(self, timeout=None):
        assert not self.closing, "nobody will wake it again"
        self.closing = True


def test_who_is_woken_for_the_end_does_not_wait_again():
    assert Cancelled(Woken()).wait(LIMIT)


def test_an_end_that_was_asked_for_before_is_told_at_once():
    turn, end = Turn(), threading.Event()
    turn.ask_close()
    turn.tell_end(end)
    assert end.is_set()


def test_a_function_is_ended_by_the_end_of_the_server(server, talk, way):
    ended = threading.Event()

    def work(arguments, call):
        call.progress(1)
        assert call.cancelled.wait(LIMIT)
        ended.set()
        return "done"

    server.add_tool("work", work)
    client = talk(server, way)
    client.call("work", meta=TOKEN)
    server.stop()
    assert ended.wait(LIMIT)


def test_a_cancelled_request_of_the_legacy_era_may_still_be_held(legacy, in_thread):
    with Server(eras=["legacy"]) as server:
        server.add_tool("t", lambda arguments: "")
        peer = legacy(server)
        with server.hold("tools/call") as gate:
            finish = in_thread(lambda: peer.call("tools/call", {"name": "t"}, id=5))
            gate.wait_reached()
            peer.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
            with pytest.raises(ConnectionError):
                finish()
