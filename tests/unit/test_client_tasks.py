"""Tasks of a server, through a client: what goes over the wire, and what a program sees of it."""

import json
import signal
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest
from rawserver import BOUND, Outcome, Peer, RawServer, Request, json_answer
from serving import KINDS, LEGACY, MODERN, connected, form, params_of, serving

from mcp_sync import (
    CallToolResult,
    Cancellation,
    Cancelled,
    Client,
    ClientClosed,
    InputRequired,
    ServerError,
    TaskHandle,
    TaskNotFound,
)
from mcp_sync.testing import TaskOptions

TASK_ID = "t/1 ü"
ASKED = {"method": "elicitation/create", "params": {"message": "sure?", "requestedSchema": {"type": "object", "properties": {}}}}


class TaskServer:
    """A modern server that makes a task of every call. ``states`` is how it goes on, ``then`` what is said for ever after."""

    def __init__(self, *states: Dict[str, Any], then: "Optional[Dict[str, Any]]" = None) -> None:
        self.states = list(states)
        self.then = then or {"status": "working"}
        self.interval = 1
        self.requests: List[Request] = []
        self.polled = threading.Event()
        self.raw = RawServer(self.script)

    def script(self, peer: Peer) -> None:
        while True:
            request = peer.request()
            self.requests.append(request)
            peer.send(json_answer(self.answer(request)))

    def answer(self, request: Request) -> bytes:
        method = request.message["method"]
        state = {"taskId": TASK_ID, "status": "working", "pollIntervalMs": self.interval, "ttlMs": None}
        if method == "tools/list":
            return request.answer({"tools": [{"name": "train", "inputSchema": {"type": "object"}}]})
        if method == "tools/call":
            return request.answer(dict(state, resultType="task"))
        if method == "tasks/get":
            if self.states:
                state.update(self.states.pop(0))
            else:
                state.update(self.then)
                self.polled.set()
            if "code" in state:
                error = {"code": state["code"], "message": "no such task"}
                return json.dumps({"jsonrpc": "2.0", "id": request.id, "error": error}).encode("ascii")
            return request.answer(state)
        return request.answer({})

    def of(self, method: str) -> "List[Request]":
        return [request for request in self.requests if request.message["method"] == method]


DONE = {"status": "completed", "result": {"content": [{"type": "text", "text": "trained"}]}}


@pytest.fixture
def serve() -> "Iterator[Callable[..., TaskServer]]":
    begun: List[TaskServer] = []

    def serve(*states: "Dict[str, Any]", **options: Any) -> TaskServer:
        server = TaskServer(*states, **options)
        begun.append(server)
        server.raw.__enter__()
        return server

    yield serve
    for server in begun:
        server.raw.__exit__(None, None, None)


def test_a_call_that_becomes_a_task_is_waited_for_as_any_other(serve: Any) -> None:
    server = serve({"statusMessage": "half"}, DONE)
    told: List[Any] = []
    with Client(server.raw.url, timeout=BOUND) as client:
        result = client.call_tool("train", {"epochs": 9}, on_progress=lambda progress: told.append(progress.message))
    assert (result.text, result.tool) == ("trained", "train")
    assert told == ["half"]
    assert len(server.of("tools/call")) == 1


def test_every_request_says_that_the_client_knows_tasks_and_which_one_it_is_about(serve: Any) -> None:
    server = serve(DONE)
    with Client(server.raw.url, timeout=BOUND) as client:
        client.call_tool("train")
        client.task(TASK_ID).cancel()
        client.task(TASK_ID).update({"a": {}})
    for request in server.requests:
        declared = request.message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"]
        assert declared == {"io.modelcontextprotocol/tasks": {}}
    named = {"=?base64?dC8xIMO8?="}
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        assert {request.header("Mcp-Name") for request in server.of(method)} == named
        assert {request.message["params"]["taskId"] for request in server.of(method)} == {TASK_ID}


def test_a_task_is_started_here_and_fetched_by_another_client(serve: Any) -> None:
    server = serve({}, DONE)
    with Client(server.raw.url, timeout=BOUND) as client:
        handle = client.start_tool("train")
        assert isinstance(handle, TaskHandle)
        kept = json.dumps(handle.to_dict())
    with Client(server.raw.url, timeout=BOUND) as client:
        result = client.task(json.loads(kept)).wait()
    assert (result.text, result.tool) == ("trained", "train")


def test_starting_a_tool_whose_call_does_not_last_gives_its_result(serve: Any) -> None:
    server = serve()
    server.answer = lambda request: request.answer({"tools": [], "content": [{"type": "text", "text": "quick"}]})
    with Client(server.raw.url, timeout=BOUND) as client:
        result = client.start_tool("train")
        assert isinstance(result, CallToolResult)
        assert result.text == "quick"


def test_what_a_task_asks_for_is_answered_by_the_clients_functions(serve: Any) -> None:
    server = serve({"status": "input_required", "inputRequests": {"q": ASKED}}, DONE)
    with Client(server.raw.url, timeout=BOUND, on_elicitation=lambda params: {"action": "accept", "content": {}}) as client:
        assert client.call_tool("train").text == "trained"
    (update,) = server.of("tasks/update")
    assert update.message["params"]["inputResponses"] == {"q": {"action": "accept", "content": {}}}


def test_what_nobody_answers_is_answered_another_day(serve: Any) -> None:
    server = serve({"status": "input_required", "inputRequests": {"q": ASKED}}, DONE)
    with Client(server.raw.url, timeout=BOUND) as client:
        with pytest.raises(InputRequired) as caught:
            client.call_tool("train")
        assert caught.value.input_requests == {"q": ASKED}
        handle = client.task(caught.value.task)
        handle.update({"q": {"action": "decline"}})
        assert handle.wait().text == "trained"


def test_a_task_that_vanishes_says_so(serve: Any) -> None:
    with Client(serve(then={"code": -32602}).raw.url, timeout=BOUND) as client:
        with pytest.raises(TaskNotFound, match="no such task"):
            client.call_tool("train")


@pytest.mark.parametrize("interval", [1, 3600000])
def test_a_cancelled_call_cancels_its_task(serve: Any, interval: int) -> None:
    server = serve()
    server.interval = interval
    cancellation = Cancellation()
    with Client(server.raw.url, timeout=BOUND) as client:
        calling = Outcome(lambda: client.call_tool("train", cancellation=cancellation))
        assert interval > 1 or server.polled.wait(BOUND)
        cancellation.cancel("enough")
        assert isinstance(calling.error(), Cancelled)
    if server.of("tools/call"):  # it may have been cancelled before anything began
        assert interval > 1 or len(server.of("tasks/cancel")) == 1


@pytest.mark.parametrize("interval", [1, 3600000])
def test_a_client_that_is_closed_waits_for_no_task(serve: Any, interval: int) -> None:
    server = serve()
    server.interval = interval
    client = Client(server.raw.url, timeout=BOUND)
    handle = client.start_tool("train")
    assert isinstance(handle, TaskHandle)
    calling = Outcome(handle.wait)
    assert interval > 1 or server.polled.wait(BOUND)
    client.close()
    assert isinstance(calling.error(), ClientClosed)


# -- with the embedded server ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_gives_the_same_result_whether_a_task_becomes_of_it_or_not(kind: str) -> None:
    with serving(kind) as server, connected(server) as client:
        server.add_tool("train", lambda arguments: "trained", task=True)
        assert client.call_tool("train").text == "trained"
        begun = client.start_tool("train")
        assert isinstance(begun, TaskHandle) is (kind in MODERN)
        result = begun.wait() if isinstance(begun, TaskHandle) else begun
        assert result.text == "trained"
        assert len(params_of(server, "tools/call")) == 2


@pytest.mark.parametrize("kind", LEGACY)
def test_a_legacy_server_is_told_nothing_of_tasks(kind: str) -> None:
    with serving(kind) as server, connected(server) as client:
        server.add_tool("train", lambda arguments: "trained")
        client.call_tool("train")
        hello = params_of(server, "initialize")[-1]
    assert "extensions" not in hello["capabilities"]


@pytest.mark.parametrize("kind", MODERN)
def test_several_questions_of_a_task_are_answered_once_each(kind: str) -> None:
    asked: List[str] = []

    def elicit(params: "Dict[str, Any]") -> Any:
        asked.append(params["message"])
        return {"answer": params["message"]}

    with serving(kind) as server, connected(server, on_elicitation=elicit) as client:
        server.add_tool("train", None, task=True)
        calling = Outcome(lambda: client.call_tool("train"))
        task = server.wait_for_task()
        task.ask({"a": form("one?", answer={"type": "string"}), "b": form("two?", answer={"type": "string"})})
        task.wait_for_input("a", "b", timeout=BOUND)
        task.ask({"c": form("three?", answer={"type": "string"})})
        task.wait_for_input("c", timeout=BOUND)
        task.complete("trained")
        assert calling.value().text == "trained"
    assert asked == ["one?", "two?", "three?"]
    assert {key: answer["content"]["answer"] for key, answer in task.input_responses.items()} == dict(zip("abc", asked))


@pytest.mark.parametrize("kind", MODERN)
def test_a_server_sees_that_a_call_is_cancelled_whose_task_it_works_on(kind: str) -> None:
    cancellation = Cancellation()
    with serving(kind) as server, connected(server) as client:
        server.add_tool("train", None, task=True)
        calling = Outcome(lambda: client.call_tool("train", cancellation=cancellation))
        task = server.wait_for_task()
        task.wait_for_polls(timeout=BOUND)
        cancellation.cancel()
        assert isinstance(calling.error(), Cancelled)
        assert task.cancelled.is_set()


@pytest.mark.parametrize("kind", MODERN)
def test_a_tool_that_failed_in_a_task_is_a_result_and_a_task_that_failed_an_error(kind: str) -> None:
    def fail(arguments: Any) -> Any:
        raise RuntimeError("no disk")

    with serving(kind) as server, connected(server) as client:
        server.add_tool("train", fail, task=True)
        assert client.call_tool("train").is_error
        server.add_tool("test", None, task=True)
        begun = client.start_tool("test")
        assert isinstance(begun, TaskHandle)
        server.wait_for_task(2).fail(-32000, "no memory")
        with pytest.raises(ServerError, match="no memory"):
            begun.wait()


@pytest.mark.parametrize("interval", [10, 3600000])
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="there is no such signal here")
def test_ctrl_c_ends_the_wait_for_a_task(interval: int) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with serving("modern http") as server, connected(server) as client:
            server.add_tool("train", None, task=TaskOptions(poll_interval_ms=interval))
            begun = client.start_tool("train")
            assert isinstance(begun, TaskHandle)
            main = threading.main_thread().ident or 0
            waits = threading.Event()

            pause = client._tasks._pause
            client._tasks._pause = lambda alarm, seconds: (waits.set(), pause(alarm, seconds))
            interrupting = Outcome(lambda: waits.wait(BOUND) and signal.pthread_kill(main, signal.SIGINT))
            with pytest.raises(KeyboardInterrupt):
                begun.wait(BOUND)
            interrupting.value()
            server.tasks[0].complete("trained")
            assert begun.refresh().status == "completed"  # it went on without us
    finally:
        signal.signal(signal.SIGINT, before)
