"""Tasks of a server, through a client: what goes over the wire, and what a program sees of it."""

import json
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest
from rawserver import BOUND, Peer, RawServer, Request, json_answer

from mcp_sync import (
    CallToolResult,
    Cancellation,
    Cancelled,
    Client,
    ClientClosed,
    InputRequired,
    TaskHandle,
    TaskNotFound,
)
from mcp_sync.testing import Server

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


class Calling:
    """A call in a thread of its own."""

    def __init__(self, call: "Callable[[], Any]") -> None:
        self.raised: Optional[BaseException] = None
        self._call = call
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self.raised = error

    def ended_by(self) -> Optional[BaseException]:
        self._thread.join(BOUND)
        assert not self._thread.is_alive()
        return self.raised


@pytest.mark.parametrize("interval", [1, 3600000])
def test_a_cancelled_call_cancels_its_task(serve: Any, interval: int) -> None:
    server = serve()
    server.interval = interval
    cancellation = Cancellation()
    with Client(server.raw.url, timeout=BOUND) as client:
        calling = Calling(lambda: client.call_tool("train", cancellation=cancellation))
        assert interval > 1 or server.polled.wait(BOUND)
        cancellation.cancel("enough")
        assert isinstance(calling.ended_by(), Cancelled)
    if server.of("tools/call"):  # it may have been cancelled before anything began
        assert interval > 1 or len(server.of("tasks/cancel")) == 1


@pytest.mark.parametrize("interval", [1, 3600000])
def test_a_client_that_is_closed_waits_for_no_task(serve: Any, interval: int) -> None:
    server = serve()
    server.interval = interval
    client = Client(server.raw.url, timeout=BOUND)
    handle = client.start_tool("train")
    assert isinstance(handle, TaskHandle)
    calling = Calling(lambda: handle.wait())
    assert interval > 1 or server.polled.wait(BOUND)
    client.close()
    assert isinstance(calling.ended_by(), ClientClosed)


def test_a_legacy_server_is_told_nothing_of_tasks() -> None:
    with Server(eras=("legacy",)) as server:
        server.add("docs://x", "x")
        with Client(server.url, timeout=BOUND) as client:
            client.read_resource("docs://x")
        (hello,) = [request for request in server.requests if request.method == "initialize"]
    assert "extensions" not in hello.params["capabilities"]
