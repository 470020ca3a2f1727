"""Tools whose result comes later (the extension io.modelcontextprotocol/tasks), scripted or by a function."""

import json
import threading
import time

import pytest
from embedded_client import LIMIT, META, SUBSCRIPTION, Listener, Peer, headers_for, message
from stdio_client import StdioPeer

from mcp_sync.testing import Refusal, Server, StdioServer, TaskOptions, faults

TASKS = "io.modelcontextprotocol/tasks"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
KNOWS = {"extensions": {TASKS: {}}}
LACKS = {"code": -32021, "message": "Missing required client capability",
         "data": {"requiredCapabilities": KNOWS}}
ELICIT = {"method": "elicitation/create", "params": {"message": "Sure?"}}
YES = {"action": "accept", "content": {}}


class TaskPeer(Peer):
    """A client that declares the extension, or does not."""

    knows = True

    def send(self, method, params=None, id=1, **headers):
        meta = dict(META, **{CAPABILITIES: KNOWS}) if self.knows else META
        body = message(method, params, id, meta)
        self.send_raw(json.dumps(body).encode("utf-8"), headers_for(body, **headers))

    def begin(self, name="build", **arguments):
        """Call a tool; the result, which may be a task."""
        return self.call("tools/call", {"name": name, "arguments": arguments}).result

    def get(self, task):
        """What the server says of a task."""
        return self.call("tasks/get", {"taskId": task.id}).result

    def after(self, task, *statuses):
        """What the server says of a task when it has none of these any more."""
        end = time.monotonic() + LIMIT
        found = self.get(task)
        while found["status"] in statuses:
            assert time.monotonic() < end, found
            found = self.get(task)
        return found


@pytest.fixture
def make(nothing_is_left):
    """Makes clients, and closes them afterwards."""
    made = []

    def run(server, knows=True):
        made.append(TaskPeer(server))
        made[-1].knows = knows
        return made[-1]

    yield run
    for peer in made:
        peer.close()


@pytest.fixture
def peer(server, make):
    return make(server)


def test_a_call_is_answered_with_a_task_that_a_test_scripts(server, peer):
    server.add_tool("build", None, task=TaskOptions(poll_interval_ms=20, ttl_ms=60000, message="begun"))
    begun = peer.begin()
    task = server.wait_for_task()
    assert begun["resultType"] == "task"
    assert (begun["taskId"], begun["status"], begun["statusMessage"]) == (task.id, "working", "begun")
    assert (begun["pollIntervalMs"], begun["ttlMs"]) == (20, 60000)
    assert begun["createdAt"].endswith("Z") and begun["lastUpdatedAt"].endswith("Z")
    found = peer.get(task)
    assert found["resultType"] == "complete"
    assert {key: found[key] for key in begun if key != "resultType"} == {
        key: begun[key] for key in begun if key != "resultType"}
    task.tell("half")
    assert (peer.get(task)["status"], peer.get(task)["statusMessage"]) == ("working", "half")
    task.tell(None)
    assert "statusMessage" not in peer.get(task)
    task.complete({"n": 1})
    found = peer.get(task)
    assert (found["status"], found["result"]["structuredContent"]) == ("completed", {"n": 1})
    assert server.tasks == (task,) and task.request.params["name"] == "build"
    assert server.count("tasks/get", uri=task.id) == 5


def test_a_task_fails_with_an_error(server, peer):
    server.add_tool("build", None, task=True)
    peer.begin()
    task = server.wait_for_task()
    task.fail(-32603, "no disk", data=[1])
    found = peer.get(task)
    assert (found["status"], found["error"]) == ("failed", {"code": -32603, "message": "no disk", "data": [1]})
    task.complete("too late")
    assert task.status == "failed" and "result" not in peer.get(task)


def test_a_task_asks_and_is_answered_bit_by_bit(server, peer):
    server.add_tool("build", None, task=True)
    peer.begin()
    task = server.wait_for_task()
    task.ask({"one": ELICIT})
    task.ask({"two": ELICIT})
    found = peer.get(task)
    assert (found["status"], found["inputRequests"]) == ("input_required", {"one": ELICIT, "two": ELICIT})
    params = {"taskId": task.id, "inputResponses": {"one": YES, "never": YES}}
    assert peer.call("tasks/update", params).result == {"resultType": "complete", "_meta": found["_meta"]}
    assert (peer.get(task)["status"], peer.get(task)["inputRequests"]) == ("input_required", {"two": ELICIT})
    assert task.input_responses == {"one": YES}
    with pytest.raises(TimeoutError):
        task.wait_for_input(timeout=0.0)
    peer.call("tasks/update", {"taskId": task.id, "inputResponses": {"one": {"action": "cancel"}, "two": YES}})
    assert task.wait_for_input("one", "two") == {"one": YES, "two": YES}
    found = peer.get(task)
    assert found["status"] == "working" and "inputRequests" not in found
    assert peer.call("tasks/update", {"taskId": task.id}).error["code"] == -32602


def test_a_task_is_cancelled_at_once_or_when_it_likes(server, peer):
    server.add_tool("build", None, task=True)
    server.add_tool("stubborn", None, task=TaskOptions(heeds_cancel=False))
    peer.begin()
    peer.begin("stubborn")
    heeding, stubborn = server.wait_for_task(2) and server.tasks
    for task in (heeding, stubborn):
        assert not task.cancelled.is_set()
        assert "result" in peer.call("tasks/cancel", {"taskId": task.id}).messages[0]
        assert task.cancelled.wait(LIMIT)
    assert (peer.get(heeding)["status"], peer.get(stubborn)["status"]) == ("cancelled", "working")
    stubborn.complete("all the same")
    assert peer.get(stubborn)["status"] == "completed"


def test_a_task_that_has_vanished_is_unknown_as_is_one_that_never_was(server, peer):
    server.add_tool("build", None, task=True)
    peer.begin()
    task = server.wait_for_task()
    task.vanish()
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        for id in (task.id, "never"):
            reply = peer.call(method, {"taskId": id, "inputResponses": {}})
            assert (reply.status, reply.error["code"]) == (400, -32602)
    assert peer.call("tasks/get", {}, Mcp_Name="x").error["code"] == -32020
    assert peer.call("tasks/result", {"taskId": task.id}).error["code"] == -32601


def test_a_task_may_say_what_no_task_should(server, peer):
    server.add_tool("build", None, task=True)
    peer.begin()
    task = server.wait_for_task()
    task.set(status="odd", pollIntervalMs="soon", ttlMs=None, createdAt=None)
    found = peer.get(task)
    assert (found["status"], found["pollIntervalMs"], found["ttlMs"]) == ("odd", "soon", None)
    assert "createdAt" not in found


def test_who_knows_no_tasks_is_answered_directly_or_refused(server, make):
    server.add_tool("build", lambda arguments, call: "built " + str(call.task), task=True)
    server.add_tool("needs", lambda arguments: "", task=TaskOptions(required=True))
    server.add_tool("script", None, task=True)
    peer = make(server, knows=False)
    assert peer.begin()["content"] == [{"type": "text", "text": "built None"}]
    for name in ("needs", "script"):
        reply = peer.call("tools/call", {"name": name})
        assert (reply.status, reply.error) == (400, LACKS)
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert peer.call(method, {"taskId": "x", "inputResponses": {}}).error == LACKS
    peer.send("subscriptions/listen", {"notifications": {"taskIds": []}})
    assert peer.receive().error == LACKS
    assert server.tasks == ()


def test_the_legacy_era_has_no_tasks(legacy):
    with Server(eras=["legacy"], capabilities=["tasks"]) as server:
        server.add_tool("build", lambda arguments: "built", task=True)
        server.add_tool("script", None, task=True)
        server.add_tool("decides", lambda arguments, call: call.create_task())
        peer = legacy(server, begin=False)
        assert "extensions" not in peer.begin()["capabilities"]
        assert peer.call("tools/call", {"name": "build"}).result["content"][0]["text"] == "built"
        for name in ("script", "decides"):
            assert peer.call("tools/call", {"name": name}).error["code"] == -32021
        assert peer.call("tasks/get", {"taskId": "x"}).error["code"] == -32601


def test_the_extension_is_told_when_there_is_a_tool_for_it(peers, make):
    with Server() as server:
        peer = peers(server)
        assert "extensions" not in peer.call("server/discover").result["capabilities"]
        assert make(server).call("tasks/get", {"taskId": "x"}).error["code"] == -32601
        server.add_tool("build", None, task=True)
        assert peer.call("server/discover").result["capabilities"]["extensions"] == {TASKS: {}}
    with Server(capabilities=["tasks"]) as server:
        assert peers(server).call("server/discover").result["capabilities"]["extensions"] == {TASKS: {}}
    with pytest.raises(ValueError, match="needs a function"):
        Server().add_tool("t", None)


def test_nobody_has_the_task_of_somebody_else(make):
    with Server(authenticate=lambda headers: headers.get("X-Who")) as server:
        server.add_tool("build", None, task=True)
        peer = make(server)
        peer.call("tools/call", {"name": "build"}, X_Who="alice")
        task = server.wait_for_task()
        assert "result" in peer.call("tasks/get", {"taskId": task.id}, X_Who="alice").messages[0]
        assert peer.call("tasks/get", {"taskId": task.id}, X_Who="bob").error["code"] == -32602


# -- tasks with a function ---------------------------------------------------------------------------------------


def test_the_function_of_a_task_works_on_when_the_call_is_answered(server, peer):
    def build(arguments, call):
        call.progress(1, 2, "compiling")
        call.log("error", "nobody hears")
        call.task.wait_for_polls(1)
        answers = call.ask({"sure": ELICIT})
        return answers["sure"]["action"] + " " + arguments["what"] + " " + call.request.method

    server.add_tool("build", build, task=True)
    begun = peer.begin(what="all")
    assert begun["resultType"] == "task" and begun["status"] == "working" and "statusMessage" not in begun
    task = server.wait_for_task()
    found = peer.after(task, "working")
    assert (found["status"], found["statusMessage"]) == ("input_required", "compiling")
    peer.call("tasks/update", {"taskId": task.id, "inputResponses": {"sure": YES}})
    found = peer.after(task, "working")
    assert found["result"]["content"] == [{"type": "text", "text": "accept all tools/call"}]


@pytest.mark.parametrize("raised, status", [(Refusal(-5, "no", [1]), "failed"), (ValueError("no"), "completed")])
def test_a_refusal_fails_a_task_and_any_other_failure_is_a_result(server, peer, raised, status):
    def build(arguments, call):
        call.task.wait_for_polls(1)
        raise raised

    server.add_tool("build", build, task=True)
    peer.begin()
    task = server.wait_for_task()
    found = peer.after(task, "working")
    assert found["status"] == status
    if status == "failed":
        assert found["error"] == {"code": -5, "message": "no", "data": [1]}
    else:
        assert found["result"]["isError"] is True


def test_a_cancelled_task_ends_its_function(server, peer):
    ended = []

    def wait(arguments, call):
        ended.append(call.cancelled.wait(LIMIT))
        return "too late"

    def ask(arguments, call):
        try:
            call.ask({"a": ELICIT})
        finally:
            ended.append("asked")

    server.add_tool("wait", wait, task=True)
    server.add_tool("ask", ask, task=TaskOptions(heeds_cancel=False))
    for name in ("wait", "ask"):
        peer.begin(name)
        task = server.tasks[-1]
        peer.call("tasks/cancel", {"taskId": task.id})
        found = peer.after(task, "working", "input_required")
        assert found["status"] == "cancelled" and "result" not in found
    server.stop()
    assert ended == [True, "asked"]


def test_a_function_may_ask_first_and_then_decide_for_a_task(server, peer):
    def build(arguments, call):
        call.ask({"first": ELICIT}, state="s")
        if arguments.get("small"):
            return "at once"
        return call.create_task(lambda inner: "later " + inner.arguments["what"], TaskOptions(poll_interval_ms=None))

    server.add_tool("build", build)
    assert peer.begin(what="x")["resultType"] == "input_required"
    again = {"name": "build", "inputResponses": {"first": YES}, "requestState": "s"}
    assert peer.call("tools/call", dict(again, arguments={"small": True})).result["resultType"] == "complete"
    begun = peer.call("tools/call", dict(again, arguments={"what": "x"})).result
    assert begun["resultType"] == "task" and "pollIntervalMs" not in begun
    found = peer.after(server.wait_for_task(), "working")
    assert found["result"]["content"][0]["text"] == "later x"


def test_tasks_outlive_a_restart_and_their_functions_do_not(server, peer, make):
    started = threading.Event()

    def work(arguments, call):
        started.set()
        assert call.cancelled.wait(LIMIT)

    server.add_tool("work", work, task=True)
    server.add_tool("script", None, task=True)
    peer.begin("work")
    peer.begin("script")
    assert started.wait(LIMIT)
    server.kill()
    working, scripted = server.tasks
    server.restart()
    again = make(server)
    assert again.get(working)["error"] == {"code": -32603, "message": "the server has stopped"}
    assert again.get(scripted)["status"] == "working"


# -- who is told, and how things are scripted --------------------------------------------------------------------


def test_those_who_listen_for_a_task_are_told_all_of_it(server, make):
    server.add_tool("build", None, task=True)
    caller, hearer = make(server), make(server)
    caller.begin()
    caller.begin()
    one, other = server.wait_for_task(2) and server.tasks
    hearer.send("subscriptions/listen", {"notifications": {"taskIds": [one.id, "never"]}}, id=9)
    listener = Listener(hearer._connection.getresponse())
    assert listener.next()["params"]["notifications"] == {"taskIds": [one.id]}
    server.wait_for_streams(1)
    other.complete("unheard")
    one.ask({"sure": ELICIT})
    caller.call("tasks/update", {"taskId": one.id, "inputResponses": {"unasked": YES}})
    one.complete("done")
    asked, done = listener.take(2)
    assert asked["method"] == "notifications/tasks" and asked["params"]["_meta"] == {SUBSCRIPTION: 9}
    assert (asked["params"]["taskId"], asked["params"]["inputRequests"]) == (one.id, {"sure": ELICIT})
    assert dict(done["params"], _meta=None) == dict(one.detail(), _meta=None)
    listener.close()


def test_a_list_of_tasks_that_is_none_is_refused(server, peer):
    server.add_tool("build", None, task=True)
    peer.send("subscriptions/listen", {"notifications": {"taskIds": "x"}})
    assert peer.receive().error["code"] == -32602


def test_polls_are_held_and_go_wrong_by_the_id_of_their_task(server, peer, make, in_thread):
    server.add_tool("build", None, task=True)
    peer.begin()
    task = server.wait_for_task()
    server.inject(faults.Status(503), method="tasks/get", uri=task.id)
    assert peer.call("tasks/get", {"taskId": task.id}).status == 503
    with server.hold("tasks/get", task.id) as gate:
        finish = in_thread(lambda: make(server).get(task))
        gate.wait_reached()
        task.complete("done")
    assert finish()["status"] == "completed"
    task.wait_for_polls(1)
    with pytest.raises(TimeoutError):
        task.wait_for_polls(9, timeout=0.0)
    with pytest.raises(TimeoutError):
        server.wait_for_task(2, timeout=0.0)


def test_tasks_are_the_same_over_stdio():
    with StdioServer() as server:
        server.add_tool("build", None, task=True)
        peer = StdioPeer(server.command)
        try:
            meta = dict(META, **{CAPABILITIES: KNOWS})
            peer.send(message("tools/call", {"name": "build"}, 1, meta))
            begun = peer.next()["result"]
            server.wait_for_task().complete("done")
            peer.send(message("tasks/get", {"taskId": begun["taskId"]}, 2, meta))
            assert peer.next()["result"]["status"] == "completed"
        finally:
            peer.close()
