"""The twin over standard input and output, in both eras (basic/transports/stdio; basic/transports of 2025-11-25)."""

import json
import os
import signal
import subprocess
import sys

import pytest
from embedded_client import LIMIT, SUBSCRIPTION, message
from legacy_client import request
from stdio_client import StdioPeer

from mcp_sync.testing import StdioServer, faults

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
LIST_CHANGED = "notifications/resources/list_changed"


@pytest.fixture
def start(nothing_is_left):
    """Starts processes, and ends them afterwards."""
    made = []

    def run(server, **options):
        made.append(StdioPeer(server.command if isinstance(server, StdioServer) else server, **options))
        return made[-1]

    yield run
    for peer in made:
        peer.close()


@pytest.fixture(params=["modern", "legacy"])
def server(request, nothing_is_left, start):
    """A server of one era, and in ``server.call`` the way to ask it in that era."""
    with StdioServer(eras=[request.param]) as started:
        started.era = request.param
        started.call = StdioPeer.new if request.param == "modern" else StdioPeer.old
        started.write_request = message if request.param == "modern" else _legacy_request
        yield started


def _legacy_request(method, params=None, id=1):
    return request(method, params, id)


def test_the_modern_era_needs_no_handshake(start):
    with StdioServer() as server:
        server.add("a://x", "caf\u00e9\u2028", ttl_ms=5)
        peer = start(server)
        assert peer.new("server/discover")["result"]["supportedVersions"] == ["2026-07-28"]
        assert peer.new("resources/read", {"uri": "a://x"}, id="7") == {
            "jsonrpc": "2.0", "id": "7", "result": {
                "resultType": "complete", "ttlMs": 5, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "mcp_sync-testing", "version": "1"}},
                "contents": [{"uri": "a://x", "text": "caf\u00e9\u2028"}]}}
        assert peer.old("initialize", {"protocolVersion": "2025-11-25"})["error"]["code"] == -32602
        request, = [one for one in server.requests if one.method == "resources/read"]
        assert (request.http_method, request.path, len(request.headers)) == ("", "", 0)


def test_the_legacy_era_begins_with_a_handshake(start):
    with StdioServer(eras=["legacy"]) as server:
        server.add("a://x", "1", ttl_ms=5)
        peer = start(server)
        assert peer.new("server/discover")["error"]["code"] == -32601
        assert peer.begin("2024-11-05")["protocolVersion"] == "2024-11-05"
        assert peer.old("resources/read", {"uri": "a://x"})["result"] == {"contents": [{"uri": "a://x", "text": "1"}]}
        assert peer.old("resources/read", {"uri": "a://y"})["error"]["code"] == -32002
        assert peer.old("ping", id=0) == {"jsonrpc": "2.0", "id": 0, "result": {}}


def test_both_eras_may_share_one_process(start):
    with StdioServer(eras=["modern", "legacy"]) as server:
        server.add("a://x", "1")
        peer = start(server)
        assert peer.new("server/discover")["result"]["resultType"] == "complete"
        peer.begin()
        assert "resultType" not in peer.old("resources/read", {"uri": "a://x"})["result"]
        assert peer.old("resources/subscribe", {"uri": "a://x"})["result"] == {}
        peer.listen("a://x", id=3)
        assert peer.next()["method"] == ACKNOWLEDGED
        server.wait_for_streams(2)
        server.update("a://x", "2")
        told = sorted((one["params"] for one in peer.take(2)), key=len)
        assert told == [{"uri": "a://x"}, {"_meta": {SUBSCRIPTION: 3}, "uri": "a://x"}]


def test_several_listens_are_interleaved_on_one_channel(start):
    with StdioServer() as server:
        server.add("a://x", "1")
        server.add("a://y", "1")
        peer = start(server)
        peer.listen("a://x", id=1)
        peer.listen("a://y", "a://x", id="1")
        acknowledged = {repr(one["params"]["_meta"][SUBSCRIPTION]): one["params"]["notifications"]
                        for one in peer.take(2)}
        assert acknowledged == {"1": {"resourceSubscriptions": ["a://x"]},
                                "'1'": {"resourceSubscriptions": ["a://y", "a://x"]}}
        server.wait_for_streams(2)
        server.update("a://y", "2")
        assert peer.next()["params"] == {"_meta": {SUBSCRIPTION: "1"}, "uri": "a://y"}
        server.update("a://x", "2")
        assert sorted(repr(one["params"]["_meta"][SUBSCRIPTION]) for one in peer.take(2)) == ["'1'", "1"]


def test_a_cancelled_listen_gets_no_answer_and_no_more_notices(start):
    with StdioServer() as server:
        server.add("a://x", "1")
        peer = start(server)
        peer.listen("a://x", id=1)
        peer.listen("a://x", id=2)
        peer.take(2)
        server.wait_for_streams(2)
        peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        server.wait_for_streams(1)
        server.update("a://x", "2")
        assert peer.next()["params"]["_meta"][SUBSCRIPTION] == 2
        assert peer.end() == 0
        farewell = [json.loads(line) for line in peer.rest().splitlines()]
        assert [(one["id"], one["result"]["resultType"]) for one in farewell] == [(2, "complete")]


def test_a_cancelled_request_gets_no_answer(server, start):
    peer = start(server)
    with server.hold("resources/list") as gate:
        peer.send(server.write_request("resources/list", id=5))
        gate.wait_reached()
        peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
        server.wait_for_requests("notifications/cancelled")
        assert server.call(peer, "resources/templates/list", id=6)["id"] == 6
    assert peer.end() == 0
    assert peer.rest() == b""


def test_a_held_answer_holds_no_other(server, start):
    server.add("a://x", "1")
    peer = start(server)
    with server.hold("resources/read", at="answer") as gate:
        peer.send(server.write_request("resources/read", {"uri": "a://x"}, id=1))
        gate.wait_reached()
        server.update("a://x", "2")
        assert server.call(peer, "resources/list", id=2)["id"] == 2
    answer = peer.next()
    assert (answer["id"], answer["result"]["contents"][0]["text"]) == (1, "1")


def test_a_legacy_client_is_told_what_it_subscribed_to(start):
    with StdioServer(eras=["legacy"]) as server:
        server.add("a://x", "1")
        peer = start(server)
        peer.begin()
        server.wait_for_streams(1)
        assert peer.old("resources/subscribe", {"uri": "a://x"})["result"] == {}
        server.update("a://x", "2")
        assert peer.next() == {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": "a://x"}}
        assert peer.old("resources/unsubscribe", {"uri": "a://x"})["result"] == {}
        server.update("a://x", "3")
        server.remove("a://x")
        assert peer.next() == {"jsonrpc": "2.0", "method": LIST_CHANGED}


def test_a_client_is_asked_between_its_answers(start, in_thread):
    with StdioServer(eras=["legacy"]) as server:
        server.add_tool("ask", lambda arguments: server.ask("ping", on="post")["result"]["text"])
        peer = start(server)
        peer.begin()
        asked = in_thread(lambda: server.ask("roots/list"))
        assert peer.next() == {"jsonrpc": "2.0", "id": 0, "method": "roots/list"}
        peer.send({"jsonrpc": "2.0", "id": 0, "result": {"roots": []}})
        assert asked()["result"] == {"roots": []}
        assert peer.old("tools/call", {"name": "ask"}, id="t") == {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        peer.send({"jsonrpc": "2.0", "id": 1, "result": {"text": "yes"}})
        assert peer.next()["result"]["content"][0]["text"] == "yes"


@pytest.mark.parametrize("line, code", [(b"{\n", -32700), (b"[]\n", -32600), (b'{"jsonrpc": "2.0"}\n', -32600)])
def test_a_line_that_makes_no_sense_is_answered_to_nobody(server, start, line, code):
    peer = start(server)
    peer.send(line)
    answer = peer.next()
    assert (answer["id"], answer["error"]["code"]) == (None, code)
    assert "result" in server.call(peer, "resources/list")


def test_lines_may_come_in_pieces_or_many_at_once(server, start):
    peer = start(server)
    for byte in json.dumps(server.write_request("resources/list", id="slow")).encode("utf-8"):
        peer.send(bytes([byte]))
    peer.send(b"\r\n\n")
    assert peer.next()["id"] == "slow"
    peer.send(*[server.write_request("resources/list", id=number) for number in range(20)])
    assert sorted(one["id"] for one in peer.take(20)) == list(range(20))


# -- life --------------------------------------------------------------------------------------------------------


def test_the_end_of_the_input_is_the_end_of_the_process(server, start):
    peer = start(server)
    peer.send(server.write_request("resources/list"))
    assert peer.end() == 0
    assert json.loads(peer.rest())["id"] == 1
    server.wait_for_happening("ended")
    assert server.happened == ("started", "end of input", "ended")
    assert server.pids == ()


def test_a_stop_answers_what_is_held_and_ends_the_process(server, start):
    peer = start(server)
    gate = server.hold("resources/list")
    peer.send(server.write_request("resources/list"))
    gate.wait_reached()
    server.stop()
    assert peer.process.wait(LIMIT) == 0
    assert json.loads(peer.rest())["id"] == 1


def test_a_stop_ends_every_listen_with_its_result(start):
    with StdioServer() as server:
        peer = start(server)
        peer.listen(id=4)
        peer.next()
        server.wait_for_streams(1)
        server.stop()
        assert peer.next()["result"]["_meta"][SUBSCRIPTION] == 4
        assert peer.process.wait(LIMIT) == 0


def test_a_kill_has_no_last_words_and_a_new_process_knows_everything(server, start):
    server.add("a://x", "1")
    peer = start(server)
    assert "result" in server.call(peer, "resources/list")
    server.kill()
    assert peer.process.wait(LIMIT) == -signal.SIGKILL
    assert peer.rest() == b""
    server.update("a://x", "2")
    refused = start(server)
    assert refused.process.wait(LIMIT) == 1
    assert b"does not run" in refused.process.stderr.read()
    server.restart()
    answer = server.call(start(server), "resources/read", {"uri": "a://x"})
    assert answer["result"]["contents"][0]["text"] == "2"


def test_only_the_process_can_die(server, start):
    peer = start(server)
    assert "result" in server.call(peer, "resources/list")
    assert server.pids == (peer.process.pid,)
    server.die(3, after=b'{"half')
    assert peer.process.wait(LIMIT) == 3
    assert peer.rest() == b'{"half'
    peer = start(server)
    assert "result" in server.call(peer, "resources/list")
    server.die()
    assert peer.process.wait(LIMIT) == -signal.SIGKILL


def test_the_client_may_kill_it(server, start):
    peer = start(server)
    assert "result" in server.call(peer, "resources/list")
    peer.process.kill()
    server.wait_for_happening("ended")
    assert server.connections == 0 and server.sessions == ()


def test_a_terminated_process_is_gone(server, start):
    peer = start(server)
    assert "result" in server.call(peer, "resources/list")
    peer.process.terminate()
    assert peer.process.wait(LIMIT) == -signal.SIGTERM
    server.wait_for_happening("ended")


def test_a_process_may_ignore_the_end_of_its_input_and_sigterm(start):
    with StdioServer(ignore_end_of_input=True, ignore_sigterm=True) as server:
        peer = start(server)
        assert "result" in peer.new("resources/list")
        peer.process.stdin.close()
        server.wait_for_happening("end of input")
        peer.process.terminate()
        server.wait_for_happening("SIGTERM")
        assert peer.process.poll() is None
        assert server.happened == ("started", "end of input", "SIGTERM")
        peer.process.kill()
        server.wait_for_happening("ended")


def test_a_process_may_begin_with_a_banner_or_half_a_line(server, start):
    server.at_start(stdout=b"Welcome!\n{\"half", times=1)
    peer = start(server)
    peer.send(server.write_request("resources/list"))
    assert peer.line() == b"Welcome!\n"
    assert peer.line().startswith(b'{"half{"jsonrpc"')
    assert "result" in server.call(start(server), "resources/list")


def test_a_process_may_exit_at_once_with_words_on_standard_error(server, start):
    server.at_start(stderr=b"no licence\n", exit_code=3, times=1)
    peer = start(server)
    assert peer.process.wait(LIMIT) == 3
    assert (peer.rest(), peer.process.stderr.read()) == (b"", b"no licence\n")
    assert "result" in server.call(start(server), "resources/list")


def test_anything_can_be_written_between_two_lines(server, start):
    peer = start(server)
    assert "result" in server.call(peer, "resources/list")
    server.write(b"a banner, late\n\xff\n")
    assert peer.line() + peer.line() == b"a banner, late\n\xff\n"
    assert "result" in server.call(peer, "resources/list")


def test_standard_error_can_be_flooded(server, start, in_thread):
    peer = start(server)
    assert "result" in server.call(peer, "resources/list")
    flood = in_thread(lambda: _read_exactly(peer, 1 << 20))
    server.write_error(b"x" * 1023 + b"\n", times=1024)
    assert flood() == 1 << 20
    assert "result" in server.call(peer, "resources/list")


def _read_exactly(peer, size):
    found = 0
    while found < size:
        found += len(os.read(peer.process.stderr.fileno(), 65536))
    return found


def test_a_client_that_does_not_read_can_still_be_killed(server, start):
    peer = start(server)
    assert "result" in server.call(peer, "resources/list")
    server.write(b"x" * (1 << 22))
    server.kill()
    assert peer.process.wait(LIMIT) == -signal.SIGKILL


# -- faults ------------------------------------------------------------------------------------------------------


def test_a_process_may_die_in_the_middle_of_an_answer(server, start):
    server.inject(faults.CutAt(10), method="resources/list")
    peer = start(server)
    peer.send(server.write_request("resources/list"))
    assert peer.process.wait(LIMIT) == 1
    assert peer.rest() == b'{"jsonrpc"'
    server.inject(faults.CutAt(10, then="reset"), method="resources/list")
    peer = start(server)
    peer.send(server.write_request("resources/list"))
    assert peer.process.wait(LIMIT) == -signal.SIGKILL
    assert peer.rest() == b'{"jsonrpc"'


@pytest.mark.parametrize("fault, status", [(faults.Close(), 1), (faults.Reset(), -signal.SIGKILL)])
def test_a_connection_that_ends_is_a_process_that_ends(server, start, fault, status):
    server.inject(fault, method="resources/list")
    peer = start(server)
    peer.send(server.write_request("resources/list"))
    assert peer.process.wait(LIMIT) == status
    assert peer.rest() == b""


def test_silence_lasts_until_the_faults_are_cleared(server, start):
    injection = server.inject(faults.Silence(), method="resources/list")
    peer = start(server)
    peer.send(server.write_request("resources/list", id=1))
    injection.wait_used()
    assert server.call(peer, "resources/list", id=2)["id"] == 2
    server.clear_faults()
    assert peer.next()["id"] == 1


def test_faults_that_need_no_http_are_the_same(server, start):
    peer = start(server)
    server.inject(faults.JsonRpcError(-5, "away", [1]), method="resources/list")
    assert server.call(peer, "resources/list")["error"] == {"code": -5, "message": "away", "data": [1]}
    server.inject(faults.Result({"odd": True}), method="resources/list")
    assert server.call(peer, "resources/list")["result"] == {"odd": True}
    server.inject(faults.WrongId("1"), method="resources/list")
    assert server.call(peer, "resources/list", id=1)["id"] == "1"
    server.inject(faults.RawBody(b"<html>\n"), method="resources/list")
    peer.send(server.write_request("resources/list"))
    assert peer.line() == b"<html>\n"
    server.inject(faults.Prelude(({"jsonrpc": "2.0", "method": "notifications/message"},)), method="resources/list")
    assert server.call(peer, "resources/list")["method"] == "notifications/message"
    assert "result" in peer.next()
    server.inject(faults.LineEnds("\r\n"), faults.Drip(1), method="resources/list")
    peer.send(server.write_request("resources/list"))
    assert peer.line().endswith(b"}\r\n")


def test_an_answer_that_is_a_mere_status_is_no_answer(server, start):
    peer = start(server)
    server.inject(faults.Status(503), method="resources/list")
    peer.send(server.write_request("resources/list", id=1))
    assert server.call(peer, "resources/list", id=2)["id"] == 2


def test_a_listen_may_be_acknowledged_wrongly(start):
    with StdioServer() as server:
        server.inject(faults.NoAcknowledgement(), method="subscriptions/listen")
        server.inject(faults.AcknowledgeOnly(["a://x"]), method="subscriptions/listen")
        peer = start(server)
        peer.listen("a://x", "a://y", id=1)
        server.wait_for_streams(1)
        peer.listen("a://x", "a://y", id=2)
        assert peer.next()["params"]["notifications"]["resourceSubscriptions"] == ["a://x"]
        server.notify_updated("a://y")
        assert peer.next()["params"]["_meta"][SUBSCRIPTION] == 1


@pytest.mark.parametrize("how, last, status", [
    ("result", "result", None), ("error", "error", None), ("cancelled", "notifications/cancelled", None),
    ("eof", "", 0), ("half_event", '{"jsonrpc":"2.0","method"', 1), ("cut", "", 1), ("reset", "", -signal.SIGKILL),
])
def test_a_listen_can_end_in_every_way(start, how, last, status):
    with StdioServer() as server:
        peer = start(server)
        peer.listen(id=9)
        peer.next()
        server.wait_for_streams(1)
        server.end_streams(how)
        server.wait_for_no_streams()
        if status is None:
            assert last in peer.line().decode("utf-8")
            assert "result" in peer.new("resources/list")
        else:
            assert peer.process.wait(LIMIT) == status
            assert peer.rest().decode("utf-8").startswith(last)


@pytest.mark.parametrize("how, code", [("-32601", -32601), ("-32600", -32600), ("result", None)])
def test_a_modern_probe_is_answered_as_asked(start, how, code):
    with StdioServer(eras=["legacy"], modern_probe=how) as server:
        answer = start(server).new("server/discover")
        assert answer.get("error", {}).get("code") == code
        assert "resultType" not in answer.get("result", {})


def test_a_modern_probe_may_never_be_answered(start):
    with StdioServer(eras=["legacy"], modern_probe="silence") as server:
        peer = start(server)
        peer.send(message("server/discover", id=1))
        server.wait_for_requests("server/discover")
        assert peer.old("ping", id=2)["id"] == 2
    assert peer.rest() == b""


# -- the program -------------------------------------------------------------------------------------------------


def test_the_program_serves_what_its_arguments_say(start):
    command = [sys.executable, "-m", "mcp_sync.testing.stdio", "--era", "legacy", "--resource", "a://x=one=two"]
    peer = start(command)
    assert peer.new("server/discover")["error"]["code"] == -32601
    peer.begin()
    peer.old("resources/subscribe", {"uri": "a://x"})
    assert peer.old("resources/read", {"uri": "a://x"})["result"]["contents"][0]["text"] == "one=two"
    peer.send(request("tools/call", {"name": "update", "arguments": {"uri": "a://x", "text": "three"}}))
    assert {one.get("method") for one in peer.take(2)} == {UPDATED, None}
    assert peer.old("resources/read", {"uri": "a://x"})["result"]["contents"][0]["text"] == "three"
    peer.send(request("tools/call", {"name": "remove", "arguments": {"uri": "a://x"}}))
    peer.take(3)
    peer.send(request("tools/call", {"name": "update", "arguments": {"uri": "a://x", "text": "four"}}))
    peer.take(3)
    assert peer.old("resources/read", {"uri": "a://x"})["result"]["contents"][0]["text"] == "four"
    assert peer.end() == 0


def test_the_program_can_be_the_process_of_a_server_elsewhere(start):
    with StdioServer() as server:
        options = server.command[server.command.index("--control"):]
        peer = start([sys.executable, "-m", "mcp_sync.testing.stdio"] + options)
        assert "result" in peer.new("resources/list")
        assert server.count("resources/list") == 1


def test_the_program_explains_itself():
    for arguments, status in (["--help"], 0), (["--resource", "nothing"], 2):
        done = subprocess.run([sys.executable, "-m", "mcp_sync.testing.stdio"] + arguments, timeout=LIMIT * 4,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == status and b"URI=TEXT" in done.stdout


def test_a_stranger_on_the_control_port_is_turned_away(start):
    import socket

    with StdioServer() as server:
        for hello in (b"GET / HTTP/1.1\r\n\r\n", b"H\x00\x00\x00\x03x 1", b"H\xff\xff\xff\xff"):
            with socket.create_connection((server.host, server.port), LIMIT) as sock:
                sock.sendall(hello)
                try:
                    assert sock.recv(1) == b""
                except ConnectionResetError:
                    pass
        assert server.happened == ()
