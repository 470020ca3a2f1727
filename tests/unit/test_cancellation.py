"""Calls that are given up: cancelled by another thread, out of time, interrupted; what the server is told, and what is left."""

import os
import signal
import sys
import threading
from typing import Any, Iterator, List

import pytest
from rawserver import BOUND, CHUNKED_EVENTS_HEAD, EVENTS_HEAD, Outcome, Peer, RawServer, chunk
from serving import KINDS, MODERN, connected, form, params_of, serving, usable

from mcp_sync import Cancellation, Cancelled, Client, ClientClosed, Progress, RequestTimeout
from mcp_sync._deadline import Deadline
from mcp_sync._pending import Pending
from mcp_sync.calling import pause
from mcp_sync.testing import Server, faults
from mcp_sync.transports._guard import Guard
from mcp_sync.transports.base import Exchange, Interrupted, Outgoing
from mcp_sync.transports.http_sse import HTTPSSE
from mcp_sync.transports.stdio import _Child
from mcp_sync.transports.streamable_http import HTTPOptions


@pytest.fixture(params=KINDS)
def kind(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def server(kind: str) -> "Iterator[Server]":
    with serving(kind) as server:
        yield server


class Slow:
    """A tool that works until it is told that nobody waits any more."""

    def __init__(self, server: Server) -> None:
        self.begun = threading.Semaphore(0)
        self.told = threading.Semaphore(0)
        server.add_tool("slow", self)

    def __call__(self, arguments: Any, call: Any) -> str:
        cancelled = call.cancelled
        call.progress(1)
        self.begun.release()
        if cancelled.wait(BOUND):
            self.told.release()
        return "too late"

    def wait_begun(self) -> None:
        assert self.begun.acquire(timeout=BOUND)

    def wait_told(self) -> None:
        assert self.told.acquire(timeout=BOUND), "the server was not told"


# -- by another thread ----------------------------------------------------------------------------------------------------


def test_a_call_is_cancelled_while_the_server_works_and_the_server_is_told(server: Server) -> None:
    slow, cancellation = Slow(server), Cancellation()
    with connected(server) as client:
        call = Outcome(lambda: client.call_tool("slow", cancellation=cancellation))
        slow.wait_begun()
        cancellation.cancel("the user has left")
        error = call.error()
        assert isinstance(error, Cancelled) and str(error) == "tools/call (slow) was cancelled: the user has left"
        slow.wait_told()
        assert usable(client, server)


@pytest.mark.parametrize("at", ["arrival", "answer"])
def test_a_call_is_cancelled_while_nothing_of_the_answer_has_come(server: Server, at: str) -> None:
    server.add_tool("slow", lambda arguments: "done")
    cancellation = Cancellation()
    with connected(server) as client:
        client.list_tools()
        with server.hold("tools/call", at=at) as gate:
            call = Outcome(lambda: client.call_tool("slow", cancellation=cancellation))
            gate.wait_reached()
            cancellation.cancel()
            assert str(call.error()) == "tools/call (slow) was cancelled"
        assert usable(client, server)


def test_a_call_is_not_even_sent_if_it_is_cancelled_before(server: Server) -> None:
    server.add_tool("slow", lambda arguments: "done")
    cancellation = Cancellation()
    cancellation.cancel()
    with connected(server) as client:
        for _ in range(2):
            with pytest.raises(Cancelled):
                client.call_tool("slow", cancellation=cancellation)
            with pytest.raises(Cancelled):
                client.get_prompt("slow", cancellation=cancellation)
        assert server.count("tools/call") == server.count("prompts/get") == 0
        assert not params_of(server, "notifications/cancelled")


@pytest.mark.parametrize("verb", ["call_tool", "get_prompt"])
@pytest.mark.parametrize("method", ["server/discover", "initialize", "tools/list", "logging/setLevel"])
def test_a_call_is_cancelled_while_something_else_is_asked_before_it(
    server: Server, kind: str, method: str, verb: str
) -> None:
    server.add_tool("slow", lambda arguments: "done")
    server.add_prompt("slow", lambda arguments: "done")
    cancellation = Cancellation()
    if (method == "server/discover" and kind == "http+sse") or (method in ("initialize", "logging/setLevel") and kind in MODERN):
        return
    if method == "initialize" and kind != "legacy http":
        return  # on one channel a server is greeted once, whoever wanted it
    if method == "tools/list" and (kind != "modern http" or verb != "call_tool"):
        return  # nothing has to be known of a tool there
    with connected(server) as client, server.hold(method) as gate:
        call = Outcome(lambda: getattr(client, verb)("slow", cancellation=cancellation, log_level="error"))
        gate.wait_reached()
        cancellation.cancel()
        error = call.error()
        assert isinstance(error, Cancelled) and "(slow) was cancelled" in str(error)
        gate.release()
        assert usable(client, server)
        assert (server.count("tools/call"), server.count("prompts/get")) == (1, 0)
        # Nothing was concluded from the silence of a server that nobody listened to any more.
        greeted = 0 if kind in MODERN else 2 if method == "initialize" or kind == "http+sse" else 1
        assert server.count("initialize") == greeted


def test_the_sending_of_a_call_is_interrupted_and_put_off_where_a_server_takes_its_time_to_accept_it() -> None:
    posted, idle = threading.Semaphore(0), threading.Event()

    def script(peer: Peer) -> None:
        if peer.request().line.startswith("GET"):
            peer.send(EVENTS_HEAD + b"event: endpoint\ndata: /messages\n\n")
            peer.idle()
        posted.release()
        peer.wait_gone()

    with RawServer(script) as server:
        transport = HTTPSSE(HTTPOptions(server.url))
        shares: List[Exchange] = []
        outgoing = Outgoing({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, {}, begun=shares.append)
        call = Outcome(lambda: transport.exchange(outgoing, Deadline(0.2)))
        assert posted.acquire(timeout=BOUND)
        shares[0].put_off(Deadline(BOUND))
        idle.wait(0.3)
        shares[0].interrupt()
        assert isinstance(call.error(), Interrupted)
        transport.close()


def test_after_the_answer_there_is_nothing_to_cancel(server: Server) -> None:
    server.add_tool("quick", lambda arguments: "done")
    cancellation = Cancellation()
    with connected(server) as client:
        assert client.call_tool("quick", cancellation=cancellation).text == "done"
        cancellation.cancel()
        assert usable(client, server)
        assert not params_of(server, "notifications/cancelled")


def test_one_cancellation_is_for_several_calls_and_others_go_on(server: Server) -> None:
    slow, cancellation = Slow(server), Cancellation()
    with connected(server) as client, server.hold("tools/call", uri="other") as gate:
        server.add_tool("other", lambda arguments: "done", notify=False)
        other = Outcome(lambda: client.call_tool("other", validate=False))
        gate.wait_reached()
        calls = [Outcome(lambda: client.call_tool("slow", cancellation=cancellation)) for _ in range(3)]
        for _ in calls:
            slow.wait_begun()
        cancellation.cancel()
        cancellation.cancel("again")
        for call in calls:
            assert isinstance(call.error(), Cancelled)
        gate.release()
        assert other.value().text == "done"


def test_a_prompt_is_cancelled_likewise(server: Server) -> None:
    server.add_prompt("slow", lambda arguments: "done")
    cancellation = Cancellation()
    with connected(server) as client, server.hold("prompts/get") as gate:
        call = Outcome(lambda: client.get_prompt("slow", cancellation=cancellation))
        gate.wait_reached()
        cancellation.cancel()
        assert isinstance(call.error(), Cancelled)
        assert server.count("prompts/get") == 1


def test_a_legacy_server_is_told_why_and_of_what() -> None:
    for kind in ("legacy http", "http+sse"):
        with serving(kind) as server, connected(server) as client:
            slow, cancellation = Slow(server), Cancellation()
            call = Outcome(lambda: client.call_tool("slow", cancellation=cancellation))
            slow.wait_begun()
            cancellation.cancel("the user has left")
            assert isinstance(call.error(), Cancelled)
            slow.wait_told()
            (told,) = params_of(server, "notifications/cancelled")
            (sent,) = [request.id for request in server.requests if request.method == "tools/call"]
            assert told == {"requestId": sent, "reason": "the user has left"}


def test_over_http_with_a_modern_server_the_end_of_the_exchange_says_it() -> None:
    with serving("modern http") as server, connected(server) as client:
        slow, cancellation = Slow(server), Cancellation()
        call = Outcome(lambda: client.call_tool("slow", cancellation=cancellation))
        slow.wait_begun()
        cancellation.cancel()
        assert isinstance(call.error(), Cancelled)
        slow.wait_told()
        assert not params_of(server, "notifications/cancelled")


def test_a_call_is_cancelled_from_its_own_callback_even_if_the_answer_is_there(server: Server) -> None:
    def quick(arguments: Any, call: Any) -> str:
        call.progress(1)
        return "done"

    server.add_tool("quick", quick)
    cancellation = Cancellation()
    with connected(server) as client:
        with pytest.raises(Cancelled):
            client.call_tool("quick", cancellation=cancellation, on_progress=lambda progress: cancellation.cancel())
        assert usable(client, server)


def test_the_answer_that_is_there_is_not_wanted_any_more() -> None:
    def script(peer: Peer) -> None:
        request = peer.request()
        progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}'
        both = b"data: " + (progress % request.id).encode() + b"\n\n" + request.event({"content": []})
        peer.send(CHUNKED_EVENTS_HEAD + chunk(both) + chunk(b""))
        peer.wait_gone()

    cancellation = Cancellation()
    with RawServer(script) as server, Client(server.url, era="modern", timeout=BOUND) as client:
        with pytest.raises(Cancelled):
            client.get_prompt("quick", cancellation=cancellation, on_progress=lambda progress: cancellation.cancel())


def test_a_call_is_cancelled_while_a_user_is_asked(server: Server, kind: str) -> None:
    server.add_tool("ask", lambda arguments, call: call.ask({"sure": form()}, timeout=BOUND)["sure"]["action"])
    asked, go, cancellation = threading.Event(), threading.Event(), Cancellation()

    def answer(params: Any) -> bool:
        asked.set()
        go.wait(BOUND)
        return True

    with connected(server, on_elicitation=answer) as client:
        call = Outcome(lambda: client.call_tool("ask", cancellation=cancellation))
        assert asked.wait(BOUND)
        cancellation.cancel()
        go.set()
        assert isinstance(call.error(), Cancelled)
        # Between two rounds there is nothing that the server could be told.
        assert server.count("tools/call") == 1
        assert usable(client, server)


def waiting_in(monkeypatch: Any, module: str) -> threading.Event:
    """Set as soon as a call does nothing but wait."""
    waits = threading.Event()

    def waiting(*args: Any) -> None:
        waits.set()
        pause(*args)

    monkeypatch.setattr(module + ".pause", waiting)
    return waits


class LongPauses:
    def __init__(self, *_: Any) -> None:
        pass

    def next(self) -> float:
        return 10 * BOUND


def test_a_call_is_cancelled_while_it_only_waits_to_be_made_again(monkeypatch: Any) -> None:
    monkeypatch.setattr("mcp_sync.calls.Backoff", LongPauses)
    for kind in MODERN:
        with serving(kind) as server:
            server.add_tool("later", lambda arguments: {"resultType": "input_required", "requestState": "s"})
            cancellation = Cancellation()
            with connected(server) as client:
                waits = waiting_in(monkeypatch, "mcp_sync.calls")
                call = Outcome(lambda: client.call_tool("later", cancellation=cancellation))
                assert waits.wait(BOUND)
                cancellation.cancel()
                assert isinstance(call.error(), Cancelled)


def test_a_call_is_cancelled_while_its_broken_answer_is_to_be_fetched_again(monkeypatch: Any) -> None:
    waits = waiting_in(monkeypatch, "mcp_sync.sessions.legacy")
    with Server(eras=("legacy",), answer="sse", resumable=True, retry_ms=600000) as server, connected(server) as client:
        server.add_tool("slow", lambda arguments: "done")
        client.list_tools()
        server.inject(faults.CutAndResume(600000), method="tools/call")
        cancellation = Cancellation()
        call = Outcome(lambda: client.call_tool("slow", cancellation=cancellation))
        assert waits.wait(BOUND)
        cancellation.cancel()
        assert isinstance(call.error(), Cancelled)


def test_nothing_hangs_if_a_signal_comes_while_a_lock_is_held() -> None:
    cancellation, guard = Cancellation(), Guard(Deadline(None))
    share = Pending("x", lambda message: None).open(1, "x", Deadline(None), lambda share, answered: None)

    def interrupt() -> None:
        with cancellation._lock, guard._lock, share._changed:
            cancellation.cancel()

    cancellation.attach(share)
    cancellation.attach(guard)  # type: ignore[arg-type]
    Outcome(interrupt).value()
    assert share.interrupted and guard.interrupted


def test_a_cancellation_says_what_it_is() -> None:
    cancellation = Cancellation()
    assert not cancellation.cancelled and not cancellation.wait(0)
    cancellation.cancel("first")
    cancellation.cancel("second")
    assert cancellation.cancelled and cancellation.wait(None) and cancellation.reason == "first"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_cancellation_in_a_forked_child_cancels_nothing_of_the_parents(server: Server) -> None:
    slow, cancellation = Slow(server), Cancellation()
    with connected(server) as client:
        call = Outcome(lambda: client.call_tool("slow", cancellation=cancellation))
        slow.wait_begun()
        child = os.fork()
        if not child:
            code = 1
            try:
                cancellation.cancel()
                code = 0 if cancellation.cancelled else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert not cancellation.cancelled and usable(client, server)
        cancellation.cancel()
        assert isinstance(call.error(), Cancelled)


# -- out of time ----------------------------------------------------------------------------------------------------------


def test_a_call_that_is_out_of_time_is_told_to_the_server_and_its_late_answer_harms_nobody(server: Server) -> None:
    slow = Slow(server)
    with connected(server) as client:
        client.list_tools()
        with pytest.raises(RequestTimeout, match=r"tools/call \(slow\) took longer than its limit of 0.3 s \(timeout=\)"):
            client.call_tool("slow", timeout=0.3)
        slow.wait_told()
        assert usable(client, server)


@pytest.mark.parametrize("kind", ["http+sse", "modern stdio", "legacy stdio"])
def test_an_answer_that_comes_too_late_is_nobodys(kind: str) -> None:
    with serving(kind) as server, connected(server) as client:
        server.add_tool("echo", lambda arguments: str(arguments["number"]))
        client.list_tools()
        with server.hold("tools/call", at="answer"):
            for number in range(3):
                with pytest.raises(RequestTimeout):
                    client.call_tool("echo", {"number": number}, timeout=0.05)
        assert client.call_tool("echo", {"number": 7}).text == "7"


def test_progress_begins_the_time_anew(server: Server) -> None:
    steps = threading.Semaphore(0)

    def work(arguments: Any, call: Any) -> str:
        for number in range(5):
            call.progress(number)
            steps.acquire(timeout=0.15)
        return "done"

    server.add_tool("work", work)
    with connected(server) as client:
        client.list_tools()
        # Longer than the limit in all, and never without a sign.
        assert client.call_tool("work", timeout=0.5, on_progress=lambda progress: None).text == "done"
        with pytest.raises(RequestTimeout):
            client.call_tool("work", timeout=0.5)


def test_progress_without_end_is_ended_by_the_absolute_limit(server: Server) -> None:
    def work(arguments: Any, call: Any) -> str:
        number = 0
        while not call.cancelled.wait(0.01):
            number += 1
            call.progress(number)
        return "done"

    server.add_tool("work", work)
    with connected(server) as client:
        client.list_tools()
        with pytest.raises(RequestTimeout, match=r"0.5 s \(max_timeout=\)"):
            client.call_tool("work", timeout=5.0, max_timeout=0.5, on_progress=lambda progress: None)
        assert usable(client, server)


@pytest.mark.parametrize("how", ["backwards", "the same", "another's", "text", "none"])
def test_what_is_no_progress_does_not_keep_a_call_alive(server: Server, how: str) -> None:
    def work(arguments: Any, call: Any) -> str:
        if how == "another's":
            call.meta["progressToken"] = 7
        call.progress(100)
        number = 100
        while not call.cancelled.wait(0.01):
            number -= 1
            call.progress({"backwards": number, "the same": 100, "another's": 200 - number, "text": "101"}.get(how))
        return "done"

    server.add_tool("work", work)
    told: List[Progress] = []
    with connected(server) as client:
        client.list_tools()
        with pytest.raises(RequestTimeout, match=r"0.4 s \(timeout=\)"):
            client.call_tool("work", timeout=0.4, on_progress=told.append)
        assert told == ([] if how == "another's" else [Progress(100.0)])


def test_pings_do_not_keep_a_call_alive() -> None:
    for kind in ("legacy http",):
        with serving(kind) as server, connected(server) as client:

            def work(arguments: Any, call: Any) -> str:
                while not call.cancelled.wait(0.01):
                    call.ask({"alive": {"method": "ping"}}, timeout=BOUND)
                return "done"

            server.add_tool("work", work)
            client.list_tools()
            with pytest.raises(RequestTimeout, match=r"0.4 s \(timeout=\)"):
                client.call_tool("work", timeout=0.4, max_timeout=BOUND)


@pytest.mark.parametrize("on", ["post", "get"])
def test_the_time_in_which_a_user_thinks_does_not_count(server: Server, kind: str, on: str) -> None:
    server.add_tool("ask", lambda arguments, call: call.ask({"sure": form()}, on=on, timeout=BOUND)["sure"]["action"])
    thinking = threading.Event()

    def answer(params: Any) -> bool:
        thinking.wait(0.6)
        return True

    with connected(server, on_elicitation=answer) as client:
        client.list_tools()
        assert client.call_tool("ask", timeout=0.3).text == "accept"
        with pytest.raises(RequestTimeout, match=r"0.3 s \(max_timeout=\)"):
            client.call_tool("ask", timeout=0.2, max_timeout=0.3)


def test_the_time_in_which_a_callback_works_does_not_count(server: Server) -> None:
    def work(arguments: Any, call: Any) -> str:
        call.progress(1)
        return "done"

    server.add_tool("work", work)
    busy = threading.Event()
    with connected(server) as client:
        client.list_tools()
        assert client.call_tool("work", timeout=0.3, on_progress=lambda progress: busy.wait(0.5)).text == "done"


# -- other ends -----------------------------------------------------------------------------------------------------------


def test_a_client_that_is_closed_ends_its_calls(server: Server) -> None:
    slow = Slow(server)
    client = connected(server)
    call = Outcome(lambda: client.call_tool("slow"))
    slow.wait_begun()
    client.close()
    assert isinstance(call.error(), ClientClosed)


def test_a_client_that_is_closed_ends_calls_that_only_wait_to_be_made_again(monkeypatch: Any) -> None:
    monkeypatch.setattr("mcp_sync.calls.Backoff", LongPauses)
    for kind in MODERN:
        with serving(kind) as server:
            server.add_tool("later", lambda arguments: {"resultType": "input_required", "requestState": "s"})
            client = connected(server)
            waits = waiting_in(monkeypatch, "mcp_sync.calls")
            call = Outcome(lambda: client.call_tool("later"))
            assert waits.wait(BOUND)
            client.close()
            assert isinstance(call.error(), ClientClosed)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_a_call_that_ctrl_c_ends_is_told_to_the_server_and_the_client_goes_on(server: Server) -> None:
    slow = Slow(server)

    def interrupt() -> None:
        slow.wait_begun()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with connected(server) as client:
        client.list_tools()
        interrupting = Outcome(interrupt)
        with pytest.raises(KeyboardInterrupt):
            client.call_tool("slow")
        interrupting.value()
        slow.wait_told()
        assert usable(client, server)


@pytest.mark.parametrize("kind", ["modern stdio", "legacy stdio"])
def test_ctrl_c_in_the_moment_in_which_a_call_was_sent_is_told_to_the_server(server: Server, monkeypatch: Any) -> None:
    slow, write = Slow(server), _Child.write

    def interrupted(child: _Child, message: bytes, deadline: Deadline) -> None:
        write(child, message, deadline)
        if b'"tools/call"' in message:
            raise KeyboardInterrupt

    with connected(server) as client:
        client.list_tools()
        monkeypatch.setattr(_Child, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.call_tool("slow")
        monkeypatch.undo()
        slow.wait_told()
        assert usable(client, server)


@pytest.mark.parametrize("kind", ["modern stdio", "legacy stdio"])
def test_ctrl_c_in_the_middle_of_a_message_costs_the_process_and_not_the_next_message(
    server: Server, monkeypatch: Any
) -> None:
    write = _Child._write_all

    def interrupted(child: _Child, line: memoryview, deadline: Deadline) -> None:
        if b'"tools/call"' in bytes(line):
            write(child, line[:100], deadline)
            raise KeyboardInterrupt
        write(child, line, deadline)

    with connected(server) as client:
        server.add_tool("slow", lambda arguments: "done")
        client.list_tools()
        monkeypatch.setattr(_Child, "_write_all", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.call_tool("slow", {"text": "x" * 100000})
        monkeypatch.undo()
        assert usable(client, server)
        assert server.count("tools/call") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_a_call_is_cancelled_by_a_handler_of_a_signal(server: Server) -> None:
    slow, cancellation = Slow(server), Cancellation()

    def interrupt() -> None:
        slow.wait_begun()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, lambda number, frame: cancellation.cancel("signal"))
    try:
        with connected(server) as client:
            client.list_tools()
            interrupting = Outcome(interrupt)
            with pytest.raises(Cancelled, match="signal"):
                client.call_tool("slow", cancellation=cancellation)
            interrupting.value()
            slow.wait_told()
    finally:
        signal.signal(signal.SIGUSR1, before)
