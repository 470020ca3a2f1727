"""stdio: lines to and from a child process, whatever it prints, however it ends, and however often.

The children are small programs written here. ``serve`` in them is a modern server that answers every line with the
resource.
"""

import itertools
import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any, Dict, Iterator, List, Set

import pytest
from rawserver import BOUND, Outcome

from mcp_sync import (
    Client,
    ClientClosed,
    Command,
    MessageTooLarge,
    NotSupported,
    ProtocolError,
    RequestTimeout,
    State,
    TransportError,
)
from mcp_sync._deadline import Deadline
from mcp_sync.jsonrpc import Response
from mcp_sync.testing import StdioServer, faults
from mcp_sync.transports.base import ChannelLost, Outgoing
from mcp_sync.transports.stdio import Stdio, _Lines, _TooLong

URI = "docs://service/config"
TEXT = "colour = blue"

HEAD = """
import json, os, signal, sys, threading
out, err = sys.stdout.buffer, sys.stderr.buffer

def say(data):
    out.write(data)
    out.flush()

def lines():
    for line in sys.stdin.buffer:
        yield json.loads(line)

def answer(message, **result):
    whole = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "supportedVersions": ["2026-07-28"],
             "capabilities": {"resources": {}}, "contents": [{"uri": "docs://service/config", "text": "colour = blue"}]}
    whole.update(result)
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": whole}).encode() + b"\\n"

def serve():
    for message in lines():
        if "id" in message:
            say(answer(message))
"""


def program(code: str) -> "List[str]":
    return [sys.executable, "-I", "-S", "-c", HEAD + textwrap.dedent(code)]


class Door(Stdio):
    """The transport alone, closed at the end of a block."""

    def __init__(self, code: str, **options: Any) -> None:
        super().__init__(Command(program(code)), **options)
        self._numbers = itertools.count(1)

    def send_request(self, timeout: float = BOUND, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": next(self._numbers), "method": "a/method", "params": params}
        return self.exchange(Outgoing(message, {}), Deadline(timeout))

    def ask(self, timeout: float = BOUND, **params: Any) -> Any:
        with self.send_request(timeout, **params) as exchange:
            messages = list(exchange)
        assert len(messages) == 1 and isinstance(messages[0], Response)
        return messages[0].result

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.process.pid

    def __enter__(self) -> "Door":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def read(client: Client, uri: str = URI, **options: Any) -> Any:
    options.setdefault("timeout", BOUND)
    return client.read_resource(uri, **options).text


def files() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def children() -> "Set[int]":
    """The processes that this one has started and not yet waited for; none where the system does not say."""
    found: Set[int] = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        try:
            with open("/proc/%d/stat" % int(name)) as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if parent == os.getpid():
            found.add(int(name))
    return found


@pytest.fixture(autouse=True)
def nothing_is_left() -> "Iterator[None]":
    open_before, children_before = files(), children()
    yield
    assert files() <= open_before, "files are left open"
    assert not children() - children_before, "children are left, running or not"


# -- what a child prints ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "printed",
    [
        r"Welcome to the server!\n",
        r"\n\r\n   \n",
        r"starting ...",
        r"[info] listening on stdio\n",
        r"{not JSON\n",
        r"\xff\xfe\x00\n",
        r"null\n17\n\"text\"\n[]\n",
        r'{\"jsonrpc\":\"2.0\",\"method\":\"notifications/of/the/future\"}\n',
        r'{\"jsonrpc\":\"2.0\",\"id\":999999,\"result\":{}}\n',
        r'{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}\n',
        r'{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"Parse error\"}}\n',
        r"\xef\xbb\xbf",
    ],
)
def test_what_a_child_prints_before_an_answer_does_not_cost_the_answer(printed: str) -> None:
    with Door('say(b"%s")\nserve()' % printed) as door:
        for _ in range(2):
            assert door.ask()["contents"][0]["text"] == TEXT


def test_lines_may_end_in_any_way_and_come_in_any_pieces() -> None:
    code = """
        for number, message in enumerate(lines()):
            end = [b"\\r\\n", b"\\n\\n", b" \\n", b"\\r\\n\\r\\n"][number % 4]
            data = answer(message, number=number).replace(b"\\n", end)
            if number % 2:
                for byte in data:
                    os.write(1, bytes([byte]))
            else:
                os.write(1, data)
    """
    with Door(code) as door:
        assert [door.ask()["number"] for _ in range(8)] == list(range(8))


def test_a_server_that_prints_a_word_for_each_request_is_warned_of_once_and_voids_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "mcp_sync")
    with Door('for message in lines():\n    say(b"handling it\\n" + answer(message))') as door:
        rest = door.unsolicited({}, Deadline(BOUND))
        for _ in range(5):
            door.ask()
        assert len(caplog.records) == 1
        # Nothing on the share of what nobody asked for: it was talk, not a notice.
        rest.limit(Deadline(0.05))
        with pytest.raises(RequestTimeout):
            next(rest)
        rest.close()


def test_a_broken_line_that_looks_like_a_message_may_have_been_a_notice() -> None:
    broken = r'{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/upd\n'
    with Door('for message in lines():\n    say(b"%s" + answer(message))' % broken) as door:
        rest = door.unsolicited({}, Deadline(BOUND))
        door.ask()
        assert isinstance(next(rest), ProtocolError)
        rest.close()


def test_two_messages_that_share_a_line_with_a_banner_are_told_apart_where_that_is_possible() -> None:
    with Door('say(b"loading")\nserve()') as door:
        assert door.ask()["contents"][0]["text"] == TEXT


@pytest.mark.parametrize("keys", ["first", "last"])
def test_an_answer_that_is_too_long_is_refused_and_the_child_goes_on(keys: str) -> None:
    code = """
        for message in lines():
            size = message["params"].get("size", 0)
            result = b'"result":{"resultType":"complete","x":"' + b"x" * size + b'"}'
            parts = [b'"jsonrpc":"2.0"', b'"id":%d' % message["id"], result]
            if KEYS == "last":
                parts = [result, parts[0], parts[1]]
            say(b"{" + b",".join(parts) + b"}\\n")
    """
    with Door("KEYS = %r\n%s" % (keys, textwrap.dedent(code)), max_message_bytes=100000) as door:
        waiting = door.send_request(size=3)
        with pytest.raises(MessageTooLarge, match="max_message_bytes"):
            door.ask(size=5000000)
        assert len(door.ask(size=99900)["x"]) == 99900
        assert len(next(waiting).result["x"]) == 3
        waiting.close()
        assert door._started == 1


def test_a_line_without_an_end_takes_no_more_memory_than_the_limit() -> None:
    lines = _Lines(1000)
    assert list(lines.feed(b"x" * 900 + b"\n")) == [b"x" * 900]
    for _ in range(1000):
        assert list(lines.feed(b"y" * 1000)) == []
        assert len(lines._buffer) <= 2002
    got = list(lines.feed(b'"id":7}\n{"a":1}\r\n'))
    assert isinstance(got[0], _TooLong) and got[0].ids() == [7] and got[1:] == [b'{"a":1}']


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_lines_are_the_same_however_the_bytes_are_cut(size: int) -> None:
    data = b'\r\n{"a":1}\n\n {"b":2} \r\n{"c":3}\n' + b"z" * 50 + b'"id":1}\n{"d":4}\nhalf'
    lines = _Lines(40)
    got = [line for at in range(0, len(data), size) for line in lines.feed(data[at : at + size])]
    assert [line for line in got if isinstance(line, bytes)] == [b'{"a":1}', b'{"b":2}', b'{"c":3}', b'{"d":4}']
    assert [line.ids() for line in got if isinstance(line, _TooLong)] == [[1]]


def test_stderr_goes_to_the_log_and_a_flood_of_it_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mcp_sync")
    code = """
        err.write(b"a word\\n" + b"y" * 1000000 + b"\\n" + b"z" * 3000000)
        err.flush()
        serve()
    """
    with Door(code) as door:
        assert door.ask()["contents"][0]["text"] == TEXT
    messages = [record.getMessage() for record in caplog.records]
    assert any("a word" in message for message in messages)
    assert all(len(message) < 1000 for message in messages)


def test_thousands_of_answers_from_many_threads_each_reach_their_own() -> None:
    code = """
        waiting = []
        for message in lines():
            waiting.append(message)
            if len(waiting) >= 4 or message["params"].get("last"):
                say(b"".join(answer(m, echo=m["params"]["n"]) for m in reversed(waiting)))
                waiting = []
    """
    # Four threads at a time, answered in the reverse order: each round needs them all.
    with Door(code) as door:
        gate = threading.Barrier(4, timeout=BOUND)

        def work(thread: int) -> bool:
            for number in range(500):
                gate.wait()
                assert door.ask(n=[thread, number])["echo"] == [thread, number]
            return True

        threads = [Outcome(lambda thread=thread: work(thread)) for thread in range(4)]  # type: ignore[misc]
        assert all(thread.value() for thread in threads)


# -- how a child ends -------------------------------------------------------------------------------------------------


def test_a_command_that_does_not_exist_says_so_and_nothing_has_run() -> None:
    with Client(["/no/such/program", "--x"]) as client:
        with pytest.raises(TransportError, match="/no/such/program --x cannot be started") as raised:
            read(client)
        assert not raised.value.may_have_run


@pytest.mark.parametrize("reads", ["", "sys.stdin.buffer.readline()"])
def test_the_error_of_a_child_that_dies_at_start_shows_its_code_and_its_last_words(reads: str) -> None:
    code = """
        err.write(b"Traceback:\\n" + b"x\\n" * 50 + b"ImportError: no module named secrets\\n")
        err.flush()
        %s
        sys.exit(3)
    """
    for _ in range(5):
        with Client(program(code % reads)) as client:
            with pytest.raises(TransportError, match="ImportError: no module named secrets") as raised:
                read(client)
            assert "exit code 3" in str(raised.value)


def test_the_error_of_a_child_that_is_killed_names_the_signal() -> None:
    with Door("for message in lines():\n    os.kill(os.getpid(), 9)") as door:
        with pytest.raises(TransportError, match="killed by signal 9") as raised:
            door.ask()
        assert raised.value.may_have_run


def test_a_child_that_dies_in_the_middle_of_an_answer_is_started_anew_and_half_a_line_is_no_message() -> None:
    code = """
        for message in lines():
            if message["params"].get("die"):
                say(answer(message)[:-5])
                os._exit(1)
            say(answer(message))
    """
    with Door(code) as door:
        first = door.connect(Deadline(BOUND))
        with pytest.raises(TransportError, match="exit code 1"):
            door.ask(die=True)
        assert door.ask()["contents"][0]["text"] == TEXT
        assert door.connect(Deadline(BOUND)) == first + 1
        with pytest.raises(ChannelLost):
            door.send(Outgoing({"jsonrpc": "2.0", "method": "x"}, {}, channel=first), Deadline(BOUND))


def test_what_was_meant_for_a_child_that_died_is_told_its_last_words() -> None:
    # Found out only when there is another one: it may have died between being started and being greeted.
    code = """
        for message in lines():
            err.write(b"no module named secrets")
            err.flush()
            sys.exit(3)
    """
    with Door(code) as door:
        first = door.connect(Deadline(BOUND))
        with pytest.raises(TransportError, match="exit code 3"):
            door.ask()
        for late in (door.send, door.exchange):
            with pytest.raises(ChannelLost, match="exit code 3; its last words: no module named secrets"):
                late(Outgoing({"jsonrpc": "2.0", "id": 7, "method": "x"}, {}, channel=first), Deadline(BOUND))


def test_everybody_who_waits_for_a_child_learns_of_its_end() -> None:
    with Door("count = 0\nfor message in lines():\n    count += 1\n    if count == 8: os._exit(4)") as door:
        threads = [Outcome(door.ask) for _ in range(8)]
        assert all("exit code 4" in str(thread.error()) for thread in threads)


def test_many_threads_that_need_a_child_start_one() -> None:
    with Door("serve()") as door:
        threads = [Outcome(door.ask) for _ in range(16)]
        assert all(thread.value() for thread in threads)
        assert door._started == 1


def test_a_child_that_closes_its_output_and_lives_on_is_ended_and_started_anew() -> None:
    code = """
        message = next(lines())
        say(answer(message))
        os.close(1)
        signal.pause()
    """
    with Door(code) as door:
        assert door.ask()
        old = door.pid
        assert door._child is not None and door._child.reader.join(BOUND)
        assert door.ask()
        assert door.pid != old
        with pytest.raises(ProcessLookupError):
            os.kill(old, 0)


@pytest.mark.parametrize("ignores", ["", "SIGTERM"])
def test_a_child_that_ignores_the_end_of_its_input_is_ended(ignores: str) -> None:
    code = """
        if %r:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say(answer(next(lines())))
        while True:
            signal.pause()
    """
    with Door(code % ignores) as door:
        assert door.ask()
        pid = door.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_child_that_ends_when_its_input_does_is_not_sent_a_signal() -> None:
    with StdioServer() as server:
        server.add(URI, TEXT)
        with Client(server.command) as client:
            assert read(client) == TEXT
        server.wait_for_happening("ended")
        assert server.happened == ("started", "end of input", "ended")


@pytest.mark.parametrize("how", ["close", "death"])
def test_what_a_child_started_ends_with_it(how: str) -> None:
    code = """
        import subprocess
        inner = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import signal; signal.pause()"])
        for message in lines():
            if message["params"].get("die"):
                os._exit(1)
            say(answer(message, inner=inner.pid))
    """
    with Door(code) as door:
        inner = door.ask()["inner"]
        os.kill(inner, 0)
        if how == "death":
            with pytest.raises(TransportError):
                door.ask(die=True)
    # It is nobody's child now but the system's, which takes it away in a moment.
    idle = threading.Event()
    for _ in range(2000):
        if not _runs(inner):
            return
        idle.wait(0.01)
    raise AssertionError("process %d is left" % inner)


def _runs(pid: int) -> bool:
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_child_that_was_taken_away_by_somebody_else_is_gone_all_the_same() -> None:
    with Door("serve()") as door:
        assert door.ask()
        os.kill(door.pid, signal.SIGKILL)
        try:
            os.waitpid(door.pid, 0)
        except ChildProcessError:
            pass  # this time it was not quicker than the one who reads
        assert door.ask()
        assert door._started == 2


def test_a_child_stands_in_a_session_of_its_own_so_that_ctrl_c_is_not_for_it() -> None:
    with Door("for message in lines():\n    say(answer(message, group=os.getpgrp(), session=os.getsid(0)))") as door:
        result = door.ask()
        assert result["group"] == result["session"] == door.pid != os.getpgrp()


# -- closing ----------------------------------------------------------------------------------------------------------


def test_closing_ends_every_call_and_later_ones_are_refused() -> None:
    with StdioServer() as server:
        server.add(URI, TEXT)
        client = Client(server.command)
        with server.hold("resources/read") as gate:
            threads = [Outcome(lambda: read(client)) for _ in range(4)]
            gate.wait_reached(4)
            client.close()
            assert all(isinstance(thread.error(), ClientClosed) for thread in threads)
        with pytest.raises(ClientClosed):
            read(client)


def test_closing_wakes_a_thread_that_writes_without_a_limit_to_a_child_that_does_not_read() -> None:
    door = Door("say(b'{}\\n')\nsignal.pause()")
    message = Outgoing({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"x": "x" * 4000000}}, {})
    call = Outcome(lambda: door.exchange(message, Deadline(None)))
    idle = threading.Event()
    for _ in range(2000):
        if door._child is not None and door._child._writing.locked():
            break
        idle.wait(0.01)
    door.close()
    assert isinstance(call.error(), TransportError)
    door.close()
    with pytest.raises(TransportError, match="closed"):
        door.ask()


def test_a_child_that_does_not_read_is_waited_for_no_longer_than_the_limit_and_then_replaced() -> None:
    code = """
        if os.path.exists(%r):
            serve()
        open(%r, "w").close()
        signal.pause()
    """
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        flag = os.path.join(folder, "flag")
        with Door(code % (flag, flag)) as door:
            with pytest.raises(RequestTimeout):
                door.ask(timeout=0.3, x="x" * 4000000)
            # Half a line is out: that child cannot be spoken with any more.
            idle = threading.Event()
            for _ in range(2000):
                if os.path.exists(flag):
                    break
                idle.wait(0.01)
            assert door.ask(x="x" * 4000000)["contents"][0]["text"] == TEXT
            assert door._started == 2


def test_a_request_that_was_not_sent_is_not_cancelled_and_initialize_never_is() -> None:
    code = """
        seen = []
        for message in lines():
            seen.append(message.get("method"))
            if message.get("method") == "a/method" and not message["params"].get("late"):
                say(answer(message, seen=seen))
    """
    with Door(code) as door:
        with door.send_request(0.05, late=True) as exchange:
            with pytest.raises(RequestTimeout):
                next(exchange)
        initialize = Outgoing({"jsonrpc": "2.0", "id": 77, "method": "initialize", "params": {}}, {})
        with door.exchange(initialize, Deadline(0.05)) as exchange:
            with pytest.raises(RequestTimeout):
                next(exchange)
        with door._child._writing:  # type: ignore[union-attr]
            with pytest.raises(RequestTimeout) as raised:
                door.ask(timeout=0.05)
            assert not raised.value.may_have_run
        assert door.ask()["seen"] == ["a/method", "notifications/cancelled", "initialize", "a/method"]


def test_an_answer_that_comes_after_its_caller_has_gone_harms_nobody() -> None:
    code = """
        late = None
        for message in lines():
            if message.get("method") == "notifications/cancelled":
                say(answer(late))
            elif message["params"].get("late"):
                late = message
            else:
                say(answer(message))
    """
    with Door(code) as door:
        with door.send_request(0.05, late=True) as exchange:
            with pytest.raises(RequestTimeout):
                next(exchange)
        for _ in range(3):
            assert door.ask()["contents"][0]["text"] == TEXT


# -- era --------------------------------------------------------------------------------------------------------------

LEGACY = """
def legacy(messages):
    for message in messages:
        if "id" not in message:
            continue
        if message["method"] == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"resources": {}}, "serverInfo": {}}
            say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\\n")
        elif message["method"] != "server/discover":
            say(answer(message))
"""

OLD_SERVERS = {
    "an error": "m = next(lines())\n"
    'say(b\'{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"no"}}\\n\' % m["id"])\n'
    "legacy(lines())",
    "garbage": 'next(lines())\nsay(b"eh?\\n")\nlegacy(lines())',
    "a result that is not one": "m = next(lines())\n"
    'say(b\'{"jsonrpc":"2.0","id":%d,"result":{}}\\n\' % m["id"])\nlegacy(lines())',
    "silence": "legacy(lines())",
    "its death": "messages = lines()\nm = next(messages)\n"
    "if m['method'] == 'server/discover': os._exit(1)\nimport itertools\nlegacy(itertools.chain([m], messages))",
    "its death at the next line": "messages = lines()\nm = next(messages)\n"
    "if m['method'] == 'server/discover':\n    next(messages)\n    os._exit(1)\n"
    "import itertools\nlegacy(itertools.chain([m], messages))",
}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_sync.negotiate._PROBE_PATIENCE", 0.3)


@pytest.mark.parametrize("name", sorted(OLD_SERVERS))
def test_a_legacy_server_is_recognised_by_what_it_does_when_it_is_asked_what_it_is(name: str, impatient: None) -> None:
    with Client(program(LEGACY + OLD_SERVERS[name])) as client:
        assert read(client) == TEXT
        assert client.protocol_version == "2025-06-18"
        assert read(client) == TEXT


def test_a_limit_shorter_than_the_patience_with_a_silent_server_leaves_time_for_the_greeting() -> None:
    with Client(program(LEGACY + OLD_SERVERS["silence"])) as client:
        assert read(client, timeout=3.0) == TEXT


def test_a_silent_server_is_asked_once_and_not_again_after_its_death(impatient: None) -> None:
    with StdioServer(eras=("legacy",), modern_probe="silence") as server:
        server.add(URI, TEXT)
        with Client(server.command) as client:
            assert read(client) == TEXT
            server.die(1)
            server.wait_for_happening("ended")
            assert read(client) == TEXT
            assert server.count("server/discover") == 1
            assert server.count("initialize") == 2


def test_a_modern_server_that_takes_its_time_to_start_is_modern(impatient: None) -> None:
    code = """
        messages = lines()
        first = next(messages)
        second = next(messages)
        while second.get("method") != "initialize":
            second = next(messages)
        say(answer(first))
        say(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"no"}}\\n' % second["id"])
        for message in messages:
            if "id" in message:
                say(answer(message))
    """
    with Client(program(code)) as client:
        assert read(client) == TEXT
        assert client.protocol_version == "2026-07-28"


def test_of_many_threads_one_asks_what_a_server_is() -> None:
    with StdioServer(eras=("legacy",)) as server:
        server.add(URI, TEXT)
        with Client(server.command) as client:
            with server.hold("server/discover") as gate:
                threads = [Outcome(lambda: read(client)) for _ in range(8)]
                gate.wait_reached()
            assert [thread.value() for thread in threads] == [TEXT] * 8
            assert server.count("server/discover") == server.count("initialize") == 1
            assert server.happened == ("started",)


@pytest.mark.parametrize("eras", [("modern",), ("legacy",)])
def test_a_watch_counts_a_gap_for_a_death_and_sees_what_changed_meanwhile(eras: Any) -> None:
    with StdioServer(eras=eras) as server:
        server.add(URI, TEXT)
        with Client(server.command) as client, client.watch(URI) as watch:
            watch.wait_until_current(timeout=BOUND)
            gaps = watch.status.gaps
            server.die(9)
            server.update(URI, "colour = red")
            for _ in watch.changes(timeout=BOUND):
                if read(client) == "colour = red":
                    break
            watch.wait_for_state(State.LIVE, timeout=BOUND)
            assert watch.status.gaps == gaps + 1
            server.update(URI, "colour = green")
            for _ in watch.changes(timeout=BOUND):
                if read(client) == "colour = green":
                    break


@pytest.mark.parametrize("eras", [("modern",), ("legacy",)])
def test_a_read_whose_child_dies_is_made_again_and_a_call_is_not(eras: Any) -> None:
    with StdioServer(eras=eras) as server:
        server.add(URI, TEXT)
        server.add_tool("pay", lambda arguments: "paid")
        with Client(server.command) as client:
            assert read(client) == TEXT
            server.inject(faults.Close(), method="resources/read")
            assert read(client) == TEXT
            server.inject(faults.Close(), method="tools/call")
            with pytest.raises(TransportError) as raised:
                client._connection.call("tools/call", {"name": "pay", "arguments": {}}, deadline=Deadline(BOUND))
            assert raised.value.may_have_run
            assert server.count("tools/call") == 1
            assert read(client) == TEXT


def test_a_process_of_the_other_era_in_the_place_of_the_one_that_died_is_found_out() -> None:
    import tempfile

    code = """
        if os.path.exists(%r):
            def refusing():
                for message in lines():
                    if "id" not in message or "_meta" not in message["params"]:
                        yield message
                    else:
                        error = {"code": -32602, "message": "Invalid request parameters"}
                        say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode() + b"\\n")
            legacy(refusing())
        open(%r, "w").close()
        serve()
    """
    with tempfile.TemporaryDirectory() as folder:
        flag = os.path.join(folder, "flag")
        with Client(program(LEGACY + textwrap.dedent(code) % (flag, flag))) as client:
            assert read(client) == TEXT and client.protocol_version == "2026-07-28"
            client._transport._child.process.kill()  # type: ignore[attr-defined]
            assert read(client) == TEXT and client.protocol_version == "2025-06-18"


# -- several streams --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eras", [("modern",), ("legacy",)])
def test_listeners_beside_a_watch_take_nothing_from_it(eras: Any) -> None:
    with StdioServer(eras=eras) as server:
        server.add(URI, TEXT)
        server.add("docs://other", "1")
        with Client(server.command) as client, client.watch(URI) as watch:
            watch.wait_until_current(timeout=BOUND)
            with client.listen("docs://other", timeout=BOUND) as listening:
                server.update("docs://other", "2")
                assert next(listening).uri == "docs://other"  # type: ignore[attr-defined]
                server.update(URI, "colour = red")
                for _ in watch.changes(timeout=BOUND):
                    if read(client) == "colour = red":
                        break
            server.update(URI, "colour = green")
            for _ in watch.changes(timeout=BOUND):
                if read(client) == "colour = green":
                    break
            assert watch.status.gaps == 0


def test_a_stream_that_is_closed_is_cancelled_by_its_id() -> None:
    with StdioServer() as server:
        server.add(URI, TEXT)
        with Client(server.command) as client:
            with client.listen(URI, timeout=BOUND):
                pass
            server.wait_for_requests("notifications/cancelled", 1)
            listen = next(r for r in server.requests if r.method == "subscriptions/listen")
            cancelled = next(r for r in server.requests if r.method == "notifications/cancelled")
            assert cancelled.params["requestId"] == listen.id
            assert read(client) == TEXT


# -- the command ------------------------------------------------------------------------------------------------------


def test_a_command_has_an_environment_and_a_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("TAKEN_AWAY", "1")
    monkeypatch.setenv("INHERITED", "2")
    code = 'for m in lines():\n    say(answer(m, env=dict(os.environ), cwd=os.getcwd()))'
    command = Command(program(code), env={"ADDED": "3", "TAKEN_AWAY": None}, cwd=tmp_path)
    transport = Stdio(command)
    try:
        with transport.exchange(Outgoing({"jsonrpc": "2.0", "id": 1, "method": "m"}, {}), Deadline(BOUND)) as exchange:
            result = next(exchange).result  # type: ignore[union-attr]
        environment: Dict[str, str] = result["env"]
        assert environment["ADDED"] == "3" and environment["INHERITED"] == "2" and "TAKEN_AWAY" not in environment
        assert os.path.realpath(result["cwd"]) == os.path.realpath(str(tmp_path))
    finally:
        transport.close()


@pytest.mark.parametrize("argv, kind", [("python server.py", ValueError), ([], ValueError), (b"x", ValueError)])
def test_what_is_no_command_is_refused_at_once(argv: Any, kind: Any) -> None:
    with pytest.raises(kind, match="a list of texts"):
        Command(argv)


def test_variables_that_are_no_texts_are_refused_at_once() -> None:
    with pytest.raises(TypeError, match="PORT"):
        Command(["x"], env={"PORT": 80})  # type: ignore[dict-item]


@pytest.mark.parametrize("argv", [["a\0b"], [os.path.join(os.path.sep, "no", "dir")]])
def test_a_command_that_cannot_be_started_is_a_transport_error_every_time(argv: Any) -> None:
    transport = Stdio(Command(argv))
    for _ in range(2):
        with pytest.raises(TransportError, match="cannot be started"):
            transport.connect(Deadline(BOUND))
    transport.close()


def test_a_child_runs_for_one_user_only() -> None:
    with Client(["x"]) as client:
        with pytest.raises(NotSupported):
            client.as_principal("other", headers={"X": "y"})


def test_the_module_can_be_imported_where_there_are_no_posix_signals() -> None:
    code = """
        import os, select, signal
        for name in ("SIGKILL", "SIGHUP"):
            delattr(signal, name)
        for module, names in ((os, ("killpg", "setsid", "waitid")), (select, ("poll", "epoll"))):
            for name in names:
                if hasattr(module, name):
                    delattr(module, name)
        import mcp_sync.transports.stdio
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)], stderr=subprocess.PIPE, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_nothing_that_a_server_prints_is_json_for_python_only() -> None:
    # A deep message must not end the thread that reads.
    deep = json.dumps("[" * 3000).replace('"', "")
    with Door('say(b"%s\\n")\nserve()' % deep) as door:
        assert door.ask()["contents"][0]["text"] == TEXT
