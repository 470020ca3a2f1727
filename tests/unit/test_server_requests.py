"""What a legacy server asks its client: answered, on whichever stream, and never by the thread that reads."""

import threading
from typing import Any, Callable, Dict, Iterator, List

import pytest
from rawserver import BOUND, CHUNKED_EVENTS_HEAD, Outcome, Peer, RawServer, Request, chunk, head
from test_sessions import Session, call, read

from mcp_sync import Client, State
from mcp_sync._deadline import Deadline
from mcp_sync.testing import Server, StdioServer

URI = "docs://service/config"
TEXT = "colour = blue"

KINDS = ("http", "http+sse", "stdio")


@pytest.fixture(params=KINDS)
def server(request: Any) -> "Iterator[Server]":
    made = {
        "http": lambda: Server(eras=("legacy",), answer="sse"),
        "http+sse": lambda: Server(transport="http+sse"),
        "stdio": lambda: StdioServer(eras=("legacy",)),
    }
    with made[request.param]() as server:
        server.add(URI, TEXT)
        yield server


def connected(server: Server, **options: Any) -> Client:
    target = server.command if isinstance(server, StdioServer) else server.url
    return Client(target, **options)


def asked_in_a_call(server: Server, client: Client, method: str, params: Any = None) -> "Dict[str, Any]":
    """What the client answers to a request on the stream of a call of its own."""
    answers: List[Dict[str, Any]] = []

    def tool(arguments: "Dict[str, Any]") -> str:
        answers.append(server.ask(method, params, on="post", timeout=BOUND))
        return "done"

    server.add_tool("ask", tool)
    assert call(client, "tools/call", name="ask", arguments={})["content"][0]["text"] == "done"
    return answers[0]


def test_a_ping_is_answered_on_either_stream_and_the_id_0_is_an_id(server: Server) -> None:
    with connected(server) as client, client.watch(URI) as watch:
        watch.wait_until_current(timeout=BOUND)
        for number in range(3):
            answer = server.ask("ping", timeout=BOUND)
            assert answer == {"jsonrpc": "2.0", "id": number, "result": {}}
        assert asked_in_a_call(server, client, "ping")["result"] == {}
        assert watch.status.state is State.LIVE


@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create", "roots/list", "of/the/future", ""])
def test_what_nobody_can_answer_is_a_method_not_found(server: Server, method: str) -> None:
    with connected(server) as client, client.watch(URI) as watch:
        watch.wait_until_current(timeout=BOUND)
        for answer in (server.ask(method, {}, timeout=BOUND), asked_in_a_call(server, client, method, {})):
            assert answer["error"]["code"] == -32601
        assert watch.status.state is State.LIVE


def test_capabilities_say_what_can_be_answered_and_it_is(server: Server) -> None:
    options = {
        "roots": ["file:///srv", {"uri": "file:///home", "name": "home"}],
        "on_sampling": lambda params: {"role": "assistant", "content": params["messages"], "model": "m"},
        "on_elicitation": lambda params: {"action": "accept", "content": {"asked": params["message"]}},
    }  # type: Dict[str, Any]
    with connected(server, **options) as client:
        roots = asked_in_a_call(server, client, "roots/list")["result"]
        assert roots == {"roots": [{"uri": "file:///srv"}, {"uri": "file:///home", "name": "home"}]}
        sampled = asked_in_a_call(server, client, "sampling/createMessage", {"messages": ["hello"]})["result"]
        assert sampled["content"] == ["hello"]
        elicited = asked_in_a_call(server, client, "elicitation/create", {"message": "name?"})["result"]
        assert elicited == {"action": "accept", "content": {"asked": "name?"}}
        assert set(server.sessions[-1].client["capabilities"]) == {"roots", "sampling", "elicitation"}


def test_a_client_that_can_answer_nothing_claims_nothing(server: Server) -> None:
    with connected(server) as client:
        assert read(client) == TEXT
        assert server.sessions[-1].client["capabilities"] == {}


def raising(params: Any) -> Any:
    raise RuntimeError("the user went home")


@pytest.mark.parametrize(
    "handler, told",
    [
        (raising, "the user went home"),
        (lambda params: "accept", "has to return the values of the form"),
        (lambda params: ["accept"], "has to return the values of the form"),
        (lambda params: {"action": object()}, "JSON"),
        (lambda params: {"action": float("nan")}, "JSON"),
        (lambda params: params["nothing of the kind"], "nothing of the kind"),
    ],
)
def test_a_handler_that_fails_or_returns_nonsense_is_an_internal_error_for_the_server(
    server: Server, handler: "Callable[[Any], Any]", told: str
) -> None:
    with connected(server, on_elicitation=handler) as client, client.watch(URI) as watch:
        watch.wait_until_current(timeout=BOUND)
        for answer in (
            server.ask("elicitation/create", {}, timeout=BOUND),
            asked_in_a_call(server, client, "elicitation/create", {}),
        ):
            assert answer["error"]["code"] == -32603 and told in answer["error"]["message"]
        assert read(client) == TEXT


@pytest.mark.parametrize("modes, asked", [(("form",), "url"), (("url",), "form"), (("url",), None), (("form",), "of the future")])
def test_a_mode_that_was_not_declared_is_refused_and_nobody_is_asked(server: Server, modes: Any, asked: Any) -> None:
    told: List[Any] = []
    params = {"message": "?", "url": "https://x.example"}
    if asked is not None:
        params["mode"] = asked
    with connected(server, on_elicitation=told.append, elicitation_modes=modes) as client:
        answer = asked_in_a_call(server, client, "elicitation/create", params)
        assert answer["error"]["code"] == -32602 and "does not answer in the mode" in answer["error"]["message"]
        assert not told


def test_no_handler_runs_in_a_thread_that_reads(server: Server) -> None:
    ran: List[str] = []

    def elicited(params: Any) -> "Dict[str, Any]":
        ran.append(threading.current_thread().name)
        return {"action": "decline"}

    with connected(server, on_elicitation=elicited) as client, client.watch(URI) as watch:
        watch.wait_until_current(timeout=BOUND)
        server.ask("elicitation/create", {}, timeout=BOUND)
        asked_in_a_call(server, client, "elicitation/create", {})
    assert len(ran) == 2
    for name in ran:
        assert not name.startswith(("mcp_sync-reader", "mcp_sync-stdio", "mcp_sync-sse"))


def test_a_handler_that_waits_holds_up_neither_notices_nor_pings_nor_calls(server: Server) -> None:
    asked, go = threading.Event(), threading.Event()

    def elicited(params: Any) -> "Dict[str, Any]":
        asked.set()
        go.wait(BOUND)
        return {"action": "accept"}

    with connected(server, on_elicitation=elicited) as client, client.watch(URI) as watch:
        watch.wait_until_current(timeout=BOUND)
        question = Outcome(lambda: server.ask("elicitation/create", {}, timeout=BOUND))
        assert asked.wait(BOUND)
        assert server.ask("ping", timeout=BOUND)["result"] == {}
        server.update(URI, "colour = red")
        for _ in watch.changes(timeout=BOUND):
            if read(client) == "colour = red":
                break
        go.set()
        assert question.value()["result"] == {"action": "accept"}


def test_a_handler_that_calls_the_client_gets_its_answer(server: Server) -> None:
    server.add("docs://other", "of use")

    def elicited(params: Any) -> "Dict[str, Any]":
        return {"action": "accept", "content": {"text": read(clients[0], "docs://other")}}

    clients: List[Client] = []
    with connected(server, on_elicitation=elicited) as client, client.watch(URI) as watch:
        clients.append(client)
        watch.wait_until_current(timeout=BOUND)
        for answer in (
            server.ask("elicitation/create", {}, timeout=BOUND),
            asked_in_a_call(server, client, "elicitation/create", {}),
        ):
            assert answer["result"]["content"] == {"text": "of use"}


def test_a_handler_whose_own_call_makes_the_server_ask_again_does_not_wait_for_itself(server: Server) -> None:
    answers: List[Dict[str, Any]] = []

    def tool(arguments: "Dict[str, Any]") -> str:
        answers.append(server.ask("elicitation/create", {"again": True}, on="post", timeout=BOUND))
        return "asked"

    def elicited(params: "Dict[str, Any]") -> "Dict[str, Any]":
        if params.get("again"):
            return {"action": "cancel"}
        call(clients[0], "tools/call", name="ask", arguments={})
        return {"action": "accept"}

    clients: List[Client] = []
    server.add_tool("ask", tool)
    with connected(server, on_elicitation=elicited) as client, client.watch(URI) as watch:
        clients.append(client)
        watch.wait_until_current(timeout=BOUND)
        assert server.ask("elicitation/create", {}, timeout=BOUND)["result"] == {"action": "accept"}
        assert answers[0]["result"] == {"action": "cancel"}


def test_a_handler_may_close_the_client(server: Server) -> None:
    closed = threading.Event()

    def elicited(params: Any) -> "Dict[str, Any]":
        clients[0].close()
        closed.set()
        return {"action": "cancel"}

    clients: List[Client] = []
    with connected(server, on_elicitation=elicited) as client, client.watch(URI) as watch:
        clients.append(client)
        watch.wait_until_current(timeout=BOUND)
        question = Outcome(lambda: server.ask("elicitation/create", {}, timeout=0.5))
        assert closed.wait(BOUND)
        question.error()


def test_a_handler_that_never_returns_does_not_keep_the_client_from_closing(server: Server) -> None:
    asked, go = threading.Event(), threading.Event()

    def elicited(params: Any) -> "Dict[str, Any]":
        asked.set()
        go.wait(BOUND)
        return {}

    client = connected(server, on_elicitation=elicited)
    try:
        with client.watch(URI) as watch:
            watch.wait_until_current(timeout=BOUND)
            question = Outcome(lambda: server.ask("elicitation/create", {}, timeout=0.2))
            assert asked.wait(BOUND)
            question.error()
            client.close()
            assert not go.is_set()
    finally:
        go.set()
        client.close()


def test_a_server_that_asks_unprompted_is_heard_although_nobody_watches() -> None:
    with Server(eras=("legacy",)) as server:
        server.add(URI, TEXT)
        server.add_tool("ask", lambda arguments: str(server.ask("roots/list", timeout=BOUND)["result"]["roots"]))
        with Client(server.url, roots=["file:///srv"]) as client:
            done = call(client, "tools/call", name="ask", arguments={})
            assert "file:///srv" in done["content"][0]["text"]
            # And beside a watch, which has a stream of its own; the end of one session is noticed on that of the other.
            with client.watch(URI) as watch:
                watch.wait_until_current(timeout=BOUND)
                assert len(server.sessions) == 2
                server.expire_sessions(end_streams=False)
                server.update(URI, "colour = red")
                assert read(client, cache_mode="refresh") == "colour = red"
                server.update(URI, "colour = green")
                for _ in watch.changes(timeout=BOUND):
                    if read(client, cache_mode="refresh") == "colour = green":
                        break
                assert watch.status.gaps >= 1
        # That of the watch is said goodbye to by its own thread.
        deadline = Deadline(BOUND)
        while server.sessions and not deadline.expired:
            threading.Event().wait(0.01)
        assert len(server.sessions) == 0


@pytest.mark.parametrize("options", [{"get_stream": False}, {"sessions": False}])
def test_a_server_without_a_stream_for_its_questions_is_as_good_without(options: "Dict[str, Any]") -> None:
    with Server(eras=("legacy",), **options) as server:
        server.add(URI, TEXT)
        with Client(server.url, roots=["file:///srv"]) as client:
            assert read(client) == TEXT


def test_questions_of_a_subscription_are_not_answered_by_the_thread_that_reads() -> None:
    ran: List[str] = []
    replies: List[Any] = []
    replied = threading.Event()

    def elicited(params: Any) -> "Dict[str, Any]":
        ran.append(threading.current_thread().name)
        return {"action": "decline"}

    def subscribe(peer: Peer, request: Request) -> bytes:
        question = b'{"jsonrpc":"2.0","id":"q-\xc3\xa9","method":"elicitation/create","params":{}}'
        peer.send(CHUNKED_EVENTS_HEAD + chunk(b"data: " + question + b"\n\n"))
        assert replied.wait(BOUND)
        return chunk(b'data: {"jsonrpc":"2.0","id":%d,"result":{}}\n\n' % request.id) + b"0\r\n\r\n"

    def reply(peer: Peer, request: Request) -> bytes:
        replies.append(request.message)
        replied.set()
        return head("Content-Length: 0", status="202 Accepted")

    def stream(peer: Peer, request: Request) -> bytes:
        peer.send(CHUNKED_EVENTS_HEAD)
        peer.wait_gone()
        return b""

    script = Session(GET=stream, resources_subscribe=subscribe)
    script.answers["a reply"] = reply
    with RawServer(script) as server, Client(server.url, on_elicitation=elicited) as client:
        with client.watch(URI) as watch:
            watch.wait_until_current(timeout=BOUND)
            assert watch.status.covered == {URI}
    # Texts are ids as well.
    assert replies == [{"jsonrpc": "2.0", "id": "q-\u00e9", "result": {"action": "decline"}}]
    assert ran == ["mcp_sync-answers"]


def test_a_server_that_asks_without_end_and_takes_no_answers_costs_a_bounded_number_of_threads() -> None:
    from mcp_sync._worker import Worker

    started: List[str] = []
    gate = threading.Event()

    def stream(peer: Peer, request: Request) -> bytes:
        questions = b"".join(
            b'data: {"jsonrpc":"2.0","id":%d,"method":"ping"}\n\n' % number for number in range(5000)
        )
        peer.send(CHUNKED_EVENTS_HEAD + chunk(questions))
        peer.wait_gone()
        return b""

    def reply(peer: Peer, request: Request) -> bytes:
        gate.wait(BOUND)
        return head("Content-Length: 0", status="202 Accepted")

    start = Worker.start

    def counted(worker: Worker) -> None:
        started.append(worker.name)
        start(worker)

    script = Session(GET=stream)
    script.answers["a reply"] = reply
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "start", counted)
        with RawServer(script) as server, Client(server.url) as client:
            with client.watch(URI) as watch:
                watch.wait_until_current(timeout=BOUND)
                assert watch.status.state is State.LIVE
            gate.set()
    assert started.count("mcp_sync-answers") <= 16
