"""What goes along with a call: progress that is told, messages that are logged, and functions of the user's that fail."""

import json
import threading
from typing import Any, Dict, Iterator, List

import pytest
from rawserver import BOUND, CHUNKED_EVENTS_HEAD, Outcome, Peer, RawServer, chunk
from serving import KINDS, LEGACY, connected, params_of, serving, usable

from mcp_sync import Client, LogMessage, Progress, RequestTimeout, ServerError, TransportError
from mcp_sync._deadline import Deadline
from mcp_sync.calling import LOG_LEVELS, CallOptions, Cancellation, pause
from mcp_sync.testing import Server, faults


@pytest.fixture(params=KINDS)
def kind(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def server(kind: str) -> "Iterator[Server]":
    with serving(kind) as server:
        yield server


def told_by(server: Server, client: Client, *steps: Any) -> "List[Progress]":
    """What a caller is told of the progress that a tool tells."""

    def work(arguments: Any, call: Any) -> str:
        for step in steps:
            call.progress(*step)
        return "done"

    server.add_tool("work", work)
    told: List[Progress] = []
    assert client.call_tool("work", on_progress=told.append).text == "done"
    return told


# -- progress -------------------------------------------------------------------------------------------------------------


def test_progress_is_told_in_order_in_the_thread_of_the_call_and_before_its_answer(server: Server) -> None:
    threads: List[threading.Thread] = []

    def work(arguments: Any, call: Any) -> str:
        for number in range(100):
            call.progress(number, 100, "step %d" % number)
        return "done"

    server.add_tool("work", work)
    told: List[Progress] = []
    with connected(server) as client:
        client.call_tool("work", on_progress=lambda progress: (told.append(progress), threads.append(threading.current_thread())))
        assert told == [Progress(float(number), 100.0, "step %d" % number) for number in range(100)]
        assert set(threads) == {threading.current_thread()}


def test_only_what_goes_on_is_told(server: Server) -> None:
    steps = [(5,), (5,), (3,), (5.5,), (-1,), ("6",), (True,), ([7],), (10**400,), (6, None, None), (6.5, "many", 3), (7, -1)]
    with connected(server) as client:
        assert told_by(server, client, *steps) == [
            Progress(5.0),
            Progress(5.5),
            Progress(6.0),
            Progress(6.5),
            Progress(7.0, -1.0),
        ]


def test_progress_may_begin_below_zero(server: Server) -> None:
    with connected(server) as client:
        assert told_by(server, client, (-3,), (-2,)) == [Progress(-3.0), Progress(-2.0)]


def test_progress_is_asked_for_only_where_somebody_is_told(server: Server) -> None:
    server.add_tool("work", lambda arguments, call: "progressToken" in call.meta)
    with connected(server) as client:
        assert client.call_tool("work").structured_content is False
        assert client.call_tool("work", on_progress=lambda progress: None).structured_content is True


def test_two_calls_at_the_same_time_are_each_told_of_their_own_progress(server: Server) -> None:
    both = threading.Barrier(2)

    def work(arguments: Any, call: Any) -> str:
        both.wait(BOUND)
        for number in range(20):
            call.progress(number, message=arguments["name"])
        return "done"

    server.add_tool("work", work)
    told: Dict[str, List[Any]] = {"a": [], "b": []}
    with connected(server) as client:
        client.list_tools()
        calls = [
            Outcome(lambda name=name: client.call_tool("work", {"name": name}, on_progress=told[name].append))  # type: ignore
            for name in told
        ]
        for call in calls:
            call.value()
    for name in told:
        assert told[name] == [Progress(float(number), None, name) for number in range(20)]


def test_a_token_that_comes_back_as_a_text_is_the_same_token(server: Server) -> None:
    def work(arguments: Any, call: Any) -> str:
        call.meta["progressToken"] = str(call.meta["progressToken"])
        call.progress(1)
        return "done"

    server.add_tool("work", work)
    told: List[Progress] = []
    with connected(server) as client:
        client.call_tool("work", on_progress=told.append)
        assert told == [Progress(1.0)]


@pytest.mark.parametrize("token", [0, -1, "other", ""])
def test_progress_of_something_else_is_told_to_nobody(server: Server, token: Any) -> None:
    def work(arguments: Any, call: Any) -> str:
        call.meta["progressToken"] = token
        call.progress(1)
        return "done"

    server.add_tool("work", work)
    told: List[Progress] = []
    with connected(server) as client:
        assert client.call_tool("work", on_progress=told.append).text == "done"
        assert not told


def test_every_round_has_progress_of_its_own() -> None:
    for kind in ("modern http", "modern stdio"):
        with serving(kind) as server:

            def work(arguments: Any, call: Any) -> str:
                call.progress(5)
                call.ask({}, "s")
                call.progress(6)
                return "done"

            server.add_tool("work", work)
            told: List[Progress] = []
            with connected(server) as client:
                client.call_tool("work", on_progress=told.append)
            assert told == [Progress(5.0), Progress(5.0), Progress(6.0)]


def test_progress_after_the_answer_is_told_to_nobody() -> None:
    for kind in ("modern stdio", "legacy stdio"):
        with serving(kind) as server, connected(server) as client:
            tokens: List[Any] = []

            def work(arguments: Any, call: Any) -> str:
                tokens.append(call.meta["progressToken"])
                return "done"

            server.add_tool("work", work)
            told: List[Progress] = []
            client.call_tool("work", on_progress=told.append)
            late = {"progressToken": tokens[0], "progress": 9}
            line = {"jsonrpc": "2.0", "method": "notifications/progress", "params": late}
            server.write(json.dumps(line).encode() + b"\n")  # type: ignore[attr-defined]
            assert usable(client, server) and not told


def test_numbers_that_json_does_not_have_are_no_progress() -> None:
    def script(peer: Peer) -> None:
        request = peer.request()
        peer.send(CHUNKED_EVENTS_HEAD)
        for number in ("NaN", "Infinity", "-Infinity", "1e999", "2"):
            message = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":%s}}'
            peer.send(chunk(b"data: " + (message % (request.id, number)).encode() + b"\n\n"))
        peer.send(chunk(request.event({"messages": []})) + chunk(b""))

    told: List[Progress] = []
    with RawServer(script) as server, Client(server.url, era="modern", timeout=BOUND) as client:
        client.get_prompt("x", on_progress=told.append)
    assert told == [Progress(2.0)]


def test_what_is_replayed_of_a_broken_answer_is_told_once() -> None:
    with Server(eras=("legacy",), answer="sse", resumable=True, retry_ms=0) as server, connected(server) as client:
        server.inject(faults.CutAndResume(0), method="tools/call")
        assert told_by(server, client, (1,), (2,), (3,)) == [Progress(1.0), Progress(2.0), Progress(3.0)]


def test_a_fraction_is_between_nothing_and_all() -> None:
    assert Progress(1.0).fraction is None and Progress(1.0, 0.0).fraction is None and Progress(1.0, -2.0).fraction is None
    assert [Progress(number, 4.0).fraction for number in (-1.0, 1.0, 5.0)] == [0.0, 0.25, 1.0]


# -- functions of the user's ----------------------------------------------------------------------------------------------


class Own(Exception):
    pass


OWN = [Own("mine"), StopIteration("mine"), TransportError("mine"), ServerError("mine", code=-32601),
       ServerError("mine", code=-32020), ServerError("unknown session", status=404), RequestTimeout("mine")]


@pytest.mark.parametrize("raised", OWN, ids=repr)
@pytest.mark.parametrize("which", ["on_progress", "on_log"])
def test_what_a_callback_raises_ends_the_call_is_told_to_the_server_and_is_nothing_that_the_server_said(
    server: Server, which: str, raised: Exception
) -> None:
    over = threading.Event()

    def work(arguments: Any, call: Any) -> str:
        cancelled = call.cancelled
        call.progress(1)
        call.log("error", "it")
        if cancelled.wait(BOUND):
            over.set()
        return "done"

    def fail(what: Any) -> None:
        raise raised

    server.add_tool("work", work)
    with connected(server) as client:
        client.list_tools()
        sessions, listed = server.sessions, server.count("tools/list")
        options: Dict[str, Any] = {which: fail}
        with pytest.raises(type(raised)) as caught:
            client.call_tool("work", **options)
        assert caught.value is raised
        assert over.wait(BOUND), "the server was not told"
        assert server.count("tools/call") == 1 and server.count("tools/list") == listed
        assert usable(client, server) and server.sessions == sessions


@pytest.mark.parametrize("kind", LEGACY)
def test_what_a_callback_raises_is_not_taken_for_a_broken_prompt(kind: str) -> None:
    def prompt(arguments: Any, call: Any) -> str:
        call.progress(1)
        return "text"

    def fail(progress: Any) -> None:
        raise TransportError("mine")

    with Server(eras=("legacy",), answer="sse", resumable=True) if kind == "legacy http" else serving(kind) as server:
        server.add_prompt("prompt", prompt)
        with connected(server) as client:
            with pytest.raises(TransportError, match="mine"):
                client.get_prompt("prompt", on_progress=fail)
            assert server.count("prompts/get") == 1


def test_a_callback_may_call_the_server(server: Server) -> None:
    server.add("docs://colour", "blue")
    read: List[str] = []
    with connected(server) as client:

        def look(progress: Progress) -> None:
            read.append(client.read_resource("docs://colour").text)

        server.add_tool("work", lambda arguments, call: call.progress(1) or call.progress(2) or "done")
        assert client.call_tool("work", on_progress=look).text == "done"
        assert read == ["blue", "blue"]


def test_a_callback_may_close_the_client(server: Server) -> None:
    server.add_tool("work", lambda arguments, call: call.progress(1) or str(call.cancelled.wait(BOUND)))
    client = connected(server)
    with pytest.raises(Exception, match="closed"):
        client.call_tool("work", on_progress=lambda progress: client.close())


# -- log messages ---------------------------------------------------------------------------------------------------------


def logs_of(server: Server, client: Client, **options: Any) -> "List[LogMessage]":
    def work(arguments: Any, call: Any) -> str:
        for level in LOG_LEVELS:
            call.log(level, {"at": level}, "db")
        call.log("of the future", None)
        return "done"

    server.add_tool("work", work)
    logged: List[LogMessage] = []
    client.call_tool("work", on_log=logged.append, **options)
    return logged


def test_what_a_server_logs_is_told_from_a_level_on(server: Server) -> None:
    server.add_tool("work", lambda arguments: "")
    with connected(server) as client:
        for level in LOG_LEVELS:
            logged = logs_of(server, client, log_level=level)
            asked = LOG_LEVELS[LOG_LEVELS.index(level) :]
            assert logged[:-1] == [LogMessage(name, {"at": name}, "db") for name in asked]
            assert logged[-1] == LogMessage("of the future")
        assert [message.level for message in logs_of(server, client)][:2] == ["info", "notice"]


def test_nothing_is_logged_to_those_who_do_not_ask(server: Server, kind: str) -> None:
    server.add_tool("work", lambda arguments, call: "io.modelcontextprotocol/logLevel" in call.meta)
    with connected(server) as client:
        assert client.call_tool("work").structured_content is False
        assert server.count("logging/setLevel") == 0
        if not kind.startswith("modern"):
            return
        assert client.call_tool("work", log_level="error").structured_content is True


@pytest.mark.parametrize("kind", LEGACY)
def test_a_legacy_server_is_told_the_level_once_for_each_session(kind: str) -> None:
    with serving(kind) as server:
        server.add_tool("work", lambda arguments: "")
        with connected(server) as client:
            for _ in range(2):
                assert len(logs_of(server, client, log_level="error")) == 5
            assert [params["level"] for params in params_of(server, "logging/setLevel")] == ["error"]
            assert len(logs_of(server, client, log_level="alert")) == 3
            assert server.count("logging/setLevel") == 2


def test_a_new_session_is_told_again() -> None:
    with serving("legacy http") as server, connected(server) as client:
        server.add_prompt("work", lambda arguments, call: call.log("error", 1) or "done")
        for _ in range(2):
            logged: List[LogMessage] = []
            client.get_prompt("work", on_log=logged.append, log_level="error")
            assert logged == [LogMessage("error", 1)]
            server.expire_sessions()
        assert server.count("logging/setLevel") == 2


@pytest.mark.parametrize("kind", LEGACY)
def test_a_legacy_server_that_refuses_a_level_is_called_all_the_same(kind: str) -> None:
    with serving(kind) as server:
        server.add_tool("work", lambda arguments: "done")
        server.inject(faults.JsonRpcError(-32602, "no"), method="logging/setLevel", times=None)
        with connected(server) as client:
            for _ in range(2):
                assert client.call_tool("work", log_level="error").text == "done"
            assert server.count("logging/setLevel") == 1


@pytest.mark.parametrize("kind", LEGACY)
def test_a_legacy_server_that_logs_nothing_is_not_told_a_level(kind: str) -> None:
    with serving(kind) as server, connected(server) as client:
        server.add("docs://x", "x")
        client.read_resource("docs://x")
        server.add_tool("work", lambda arguments: "done")
        assert client.call_tool("work", log_level="error").text == "done"
        assert server.count("logging/setLevel") == 0


def test_a_level_that_there_is_not_is_a_mistake_of_the_programs() -> None:
    with pytest.raises(ValueError, match="log_level is one of debug, info"):
        CallOptions(log_level="verbose")


@pytest.mark.parametrize(
    "params, message",
    [
        ({}, LogMessage("info")),
        ({"level": 3, "data": [1], "logger": 5}, LogMessage("info", [1])),
        ({"level": "loud", "data": None, "logger": ""}, LogMessage("loud", None, "")),
    ],
)
def test_a_log_message_may_look_like_anything(params: Any, message: LogMessage) -> None:
    assert LogMessage.from_wire(params) == message


# -- floods ---------------------------------------------------------------------------------------------------------------


def test_a_flood_that_nobody_fetches_is_held_in_part_and_the_answer_comes_all_the_same(server: Server) -> None:
    fetched = threading.Event()

    def work(arguments: Any, call: Any) -> str:
        for number in range(5000):
            call.progress(number)
        fetched.set()
        return "done"

    server.add_tool("work", work)
    told: List[Progress] = []
    with connected(server) as client:

        def slow(progress: Progress) -> None:
            if not told:
                fetched.wait(BOUND)
            told.append(progress)

        assert client.call_tool("work", on_progress=slow).text == "done"
        assert told == sorted(told, key=lambda progress: progress.progress) and len(told) >= 1000


# -- pauses ---------------------------------------------------------------------------------------------------------------


def test_a_pause_ends_with_its_time_with_a_cancellation_and_with_what_it_is_for() -> None:
    pause(0.0, None, lambda: False)
    pause(None, None, lambda: True)
    cancellation = Cancellation()
    cancellation.cancel()
    pause(None, cancellation, lambda: False)
    end = Deadline(0.01)
    pause(0.01, Cancellation(), lambda: False)
    assert end.expired
