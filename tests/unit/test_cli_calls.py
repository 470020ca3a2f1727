"""The commands ``call`` and ``prompt``: what they print, how they end, and what they ask on a terminal."""

import io
import json
import logging
import os
import re
import sys
import threading
from typing import Any, Dict, Iterator, List

import pytest
from test_cli import WAIT, Started, Terminal, ended_on, needs_signals, needs_terminal, run

from mcp_sync import CallToolResult, Client, InputRequired, Progress
from mcp_sync.cli import bar
from mcp_sync.cli.asking import Asker
from mcp_sync.cli.leaving import told
from mcp_sync.cli.output import Output, width
from mcp_sync.cli.values import WrongArguments, arguments_of, taken
from mcp_sync.testing import Server, StdioServer, faults

pytestmark = pytest.mark.usefixtures("no_garbage_of_others")

SCHEMA: Dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "integer", "description": "The first\nof \x1b[2Jthem"},
        "b": {"type": "number"},
        "exact": {"type": "boolean", "default": False},
    },
    "required": ["a", "b"],
}

FORM: Dict[str, Any] = {
    "message": "Who are you?\n\x1b[2J",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 2},
            "age": {"type": "integer", "minimum": 18, "default": 30},
            "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
        },
        "required": ["name"],
    },
}
URL = "https://docs.example.com/login?" + "x" * 300


def asks(params: Any) -> Any:
    """A tool that asks, and tells the answer."""

    def tool(arguments: Dict[str, Any], call: Any) -> str:
        question = {"method": "elicitation/create", "params": params}
        return json.dumps(call.ask({"who": question}, state="signed 'state'", timeout=WAIT)["who"], sort_keys=True)

    return tool


def offer(server: Server) -> None:
    def add(arguments: Dict[str, Any]) -> str:
        return repr(arguments["a"] + arguments["b"])

    def slow(arguments: Dict[str, Any], call: Any) -> str:
        gone = call.cancelled
        call.log("warning", {"told": "\x1b[2J"}, "trainer")
        call.progress(1, arguments.get("total"), "epoch 1")
        gone.wait(WAIT)
        return "never seen"

    def fail(arguments: Dict[str, Any]) -> str:
        raise ValueError("no such file\nsecond \x1b[2Jline")

    def log(arguments: Dict[str, Any], call: Any) -> str:
        call.progress(1, 4, "epoch 1")
        call.log("debug", "little")
        call.log("warning", {"told": "\x1b[2J"}, "trainer")
        return "logged"

    server.add_tool("add", add, input_schema=SCHEMA)
    server.add_tool("slow", slow)
    server.add_tool("fail", fail)
    server.add_tool("log", log)
    server.add_tool("ask", asks(FORM))
    server.add_tool("confirm", asks({"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}))
    server.add_tool("open", asks({"mode": "url", "message": "Log in.", "url": URL}))
    server.add_tool("structured", lambda arguments: {"content": [], "structuredContent": {"n": [1]}})
    image = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
    link = {"type": "resource_link", "uri": "docs://a", "name": "a"}
    server.add_tool("mixed", lambda arguments: [{"type": "text", "text": "here\x1b[2J\tthere"}, image, link])
    server.add_prompt("review", lambda arguments: "Review " + arguments["code"], arguments=[{"name": "code", "required": True}])
    text = {"type": "text", "text": "Hi\nyou"}
    server.add_prompt("chat", lambda arguments: {"messages": [{"role": role, "content": text} for role in ("user", "assistant")]})


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        offer(server)
        yield server


@pytest.fixture
def legacy() -> Iterator[Server]:
    with Server(eras=["legacy"], answer="sse") as server:
        offer(server)
        yield server


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "field, text, value",
    [
        ({"type": "integer"}, "12", 12),
        ({"type": "integer"}, "-3.0", -3),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "number"}, "7", 7),
        ({"type": "boolean"}, "True", True),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "object"}, '{"a": null}', {"a": None}),
        ({"type": "string"}, "12", "12"),
        ({"type": "string"}, "", ""),
        ({"type": ["string", "null"]}, "null", "null"),
        ({"type": ["integer", "null"]}, "null", None),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5", 5),
        ({"$ref": "#/$defs/count"}, "5", 5),
        ({"enum": [1, 2]}, "2", 2),
        ({}, "5", "5"),
        (True, "a=b", "a=b"),
    ],
)
def test_a_value_is_read_as_the_schema_says(field: Any, text: str, value: Any) -> None:
    schema = {"properties": {"x": field}, "$defs": {"count": {"type": "integer"}}}
    found = arguments_of(schema, ["x=" + text], {})["x"]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "field, text, told",
    [
        ({"type": "integer"}, "1.5", "a whole number, not 1.5"),
        ({"type": "integer"}, "9" * 10000, "a whole number"),
        ({"type": "integer"}, "true", "a whole number, not true"),
        ({"type": "integer"}, "", "a whole number, not empty"),
        ({"type": "number"}, "NaN", "a number, not NaN"),
        ({"type": "number"}, "1e999", "a number"),
        ({"type": "boolean"}, "maybe", "true or false"),
        ({"type": "array"}, "[" * 100000, "a list in JSON"),
        ({"type": "object"}, "[]", "an object in JSON"),
        ({"enum": ["a", "b"]}, "c", "has to be one of a, b"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_before_anything_is_sent(field: Any, text: str, told: str) -> None:
    if sys.version_info < (3, 11) and text == "9" * 10000:
        pytest.skip("older interpreters read such a number")
    with pytest.raises(WrongArguments) as raised:
        arguments_of({"properties": {"x": field}}, ["x=" + text], {})
    assert told in str(raised.value) and len(str(raised.value)) < 400


def test_a_schema_that_is_nonsense_or_refers_to_itself_takes_everything_as_text() -> None:
    circle: Dict[str, Any] = {"anyOf": [{"$ref": "#/properties/x"}] * 50}
    circle["anyOf"].append(circle)  # no JSON is like that, but nothing here should depend on it
    for schema in ({}, {"properties": 3, "required": 5}, {"properties": {"x": circle}}, {"properties": {"x": {"type": 3}}}):
        assert arguments_of(schema, ["x=1"], {}) == {"x": "1"}
        assert len(taken(schema)) <= 1
    many = {"properties": {"n%d" % number: {"description": "y" * 10000} for number in range(5000)}}
    assert len(taken(many, 80)) == 101 and all(width(line) <= 80 for line in taken(many, 80))


def test_all_that_is_wrong_is_said_at_once_with_what_the_tool_takes(server: Server, capsys: Any) -> None:
    assert run("call", server.url, "add", "a=x", "exat=true", "a=2", "c") == 2
    out, err = capsys.readouterr()
    assert out == "" and "\x1b" not in err
    lines = err.splitlines()
    assert lines[0] == (
        "mcp-sync: add: a has to be a whole number, not x; there is no argument exat (exact?); a is given twice; "
        "'c' is not of the form name=value; b is missing"
    )
    assert lines[1] == "It takes:"
    assert re.split("  +", lines[2].strip()) == ["a", "integer", "required", "The first of \\x1b[2Jthem"]
    assert re.split("  +", lines[4].strip()) == ["exact", "boolean", "default: false"]
    assert server.count("tools/call") == 0


def test_where_other_names_are_allowed_they_are_taken(server: Server) -> None:
    schema = {"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "number"}}
    assert arguments_of(schema, ["a=1", "b=2"], {}) == {"a": 1, "b": 2}
    assert arguments_of({"type": "object"}, ["b=2"], {}) == {"b": "2"}
    with pytest.raises(WrongArguments):
        arguments_of({"properties": {}}, ["b=2"], {})


def test_arguments_come_as_pairs_or_json_or_from_a_file_or_from_standard_input(
    server: Server, tmp_path: Any, monkeypatch: Any, capsys: Any
) -> None:
    (tmp_path / "a.json").write_text('\ufeff{"a": 1, "b": 2}', "utf-8")
    at_file = "@" + str(tmp_path / "a.json")
    assert run("call", server.url, "add", "a=1", "b=2.5") == 0
    assert run("call", server.url, "add", "--arguments", '{"a": 1, "b": 2}') == 0
    assert run("call", server.url, "add", "--arguments", at_file, "b=10") == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"a": 4, "b": 0}'))
    assert run("call", server.url, "add", "a=5", "--arguments", "@-") == 0
    assert capsys.readouterr() == ("3.5\n3\n11\n5\n", "")


@pytest.mark.parametrize("text", ["{", "[1]", "nonsense", '{"a": NaN}', "@/no/such/file", "[" * 100000])
@pytest.mark.parametrize("option", ["--arguments", "--input-responses"])
def test_json_that_is_none_is_2_and_one_line(server: Server, option: str, text: str, capsys: Any) -> None:
    assert run("call", server.url, "add", option, text) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and option in err and err.rstrip().endswith("'mcp-sync call --help')")
    assert len(server.requests) == 0


@pytest.mark.parametrize("command", [["call"], ["call", "URL"], ["prompt", "URL"]])
def test_what_is_missing_on_the_command_line_is_named(command: List[str], capsys: Any) -> None:
    assert run(*command) == 2
    err = capsys.readouterr().err
    assert "required: " in err and "VALUE" not in err


# -- results -----------------------------------------------------------------------------------------------------------


def test_the_text_is_printed_exactly_and_what_is_no_text_is_told_of(server: Server, capsys: Any) -> None:
    assert run("call", server.url, "mixed") == 0
    out, err = capsys.readouterr()
    assert out == "here\x1b[2J\tthere\ndocs://a\n"  # a pipe: as it is
    assert err == "mcp-sync: an image (image/png, about 6 bytes) is not shown; --json has it\n"
    assert run("call", server.url, "structured") == 0
    assert json.loads(capsys.readouterr().out) == {"n": [1]}


def test_json_is_the_result_as_the_server_sent_it(server: Server, capsys: Any) -> None:
    assert run("call", server.url, "mixed", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [block["type"] for block in found["content"]] == ["text", "image", "resource_link"]
    assert found["resultType"] == "complete"
    assert run("prompt", server.url, "--json", "review", "code=x") == 0
    assert json.loads(capsys.readouterr().out)["messages"][0]["content"]["text"] == "Review x"


def test_a_tool_that_failed_is_7_and_its_text_goes_to_standard_error(server: Server, capsys: Any) -> None:
    assert run("call", server.url, "fail") == 7
    assert capsys.readouterr() == (
        "",
        "mcp-sync: the tool fail failed: ValueError: no such file\nsecond \\x1b[2Jline\n",
    )
    assert run("call", server.url, "fail", "--json") == 7
    assert json.loads(capsys.readouterr().out)["isError"] is True


def test_a_tool_or_prompt_that_does_not_exist_is_5_with_what_may_have_been_meant(server: Server, capsys: Any) -> None:
    assert run("call", server.url, "ad", "a=1") == 5
    assert capsys.readouterr().err == (
        "mcp-sync: there is no tool ad; is it add? ('mcp-sync list --tools' shows what there is)\n"
    )
    assert run("prompt", server.url, "nothing") == 5
    assert "there is no prompt nothing ('mcp-sync list --prompts'" in capsys.readouterr().err
    assert server.count("tools/call") == server.count("prompts/get") == 0


def test_prompts_are_printed_with_who_says_what_if_there_is_more_than_one(server: Server, capsys: Any) -> None:
    assert run("prompt", server.url, "review", "code=a = 1") == 0
    assert capsys.readouterr() == ("Review a = 1\n", "")
    assert run("prompt", server.url, "chat") == 0
    assert capsys.readouterr() == ("[user]\nHi\nyou\n\n[assistant]\nHi\nyou\n", "")
    assert run("prompt", server.url, "review") == 2
    assert "code is missing" in capsys.readouterr().err


def test_a_server_that_knows_no_prompts_is_6_and_the_command_that_shows_what_it_can_do_is_named(capsys: Any) -> None:
    with Server() as server:
        server.inject(faults.JsonRpcError(-32601, "Method not found"), method="prompts/list", times=None)
        server.inject(faults.JsonRpcError(-32601, "Method not found"), method="prompts/get", times=None)
        assert run("prompt", server.url, "review", "code=x") == 6
    err = capsys.readouterr().err
    assert "does not know prompts/get; 'mcp-sync info' shows what it can do" in err and len(err.splitlines()) == 1


def test_a_server_over_stdio_is_started_for_the_call(capsys: Any) -> None:
    with StdioServer() as server:
        offer(server)
        assert run("call", "add", "a=1", "b=2", "--", *server.command) == 0
        assert run("prompt", "review", "code=x", "--json", "--", *server.command) == 0
    out = capsys.readouterr().out
    assert out.startswith("3\n") and "Review x" in out


def test_what_the_server_logs_goes_to_standard_error_and_progress_nowhere_in_a_pipe(server: Server, capsys: Any) -> None:
    assert run("call", server.url, "log") == 0
    told = 'mcp-sync: server, trainer: warning: {"told": "\\u001b[2J"}\n'
    assert capsys.readouterr() == ("logged\n", told)
    assert run("call", server.url, "log", "--log-level", "error") == 0
    assert capsys.readouterr() == ("logged\n", "")
    assert run("call", server.url, "log", "--log-level", "debug") == 0
    assert capsys.readouterr().err == "mcp-sync: server: debug: little\n" + told
    assert run("call", server.url, "log", "-v") == 0
    assert "mcp-sync: progress: 1 of 4 epoch 1\n" in capsys.readouterr().err


def test_limits_are_3_and_name_the_option(server: Server, capsys: Any) -> None:
    assert run("call", server.url, "slow", "--timeout", "0.2") == 3
    assert "--timeout" in capsys.readouterr().err
    assert run("call", server.url, "slow", "--max-timeout", "0.2") == 3
    assert "0.2 s" in capsys.readouterr().err


# -- questions, where nobody can be asked ------------------------------------------------------------------------------


def test_without_a_terminal_a_question_is_8_with_what_is_asked_and_how_to_go_on(server: Server, capsys: Any) -> None:
    assert run("call", server.url, "ask") == 8
    out, err = capsys.readouterr()
    assert out == "" and "\x1b" not in err
    lines = err.splitlines()
    assert lines[0].startswith("mcp-sync: the server asks for input before") and "nobody is at a terminal" in lines[0]
    assert lines[1:5] == [
        "  who: Who are you? / \\x1b[2J",
        "    name (at least 2 characters, required)",
        "    age (a whole number, at least 18, default: 30)",
        "    colour (one of red, green, default: red)",
    ]
    assert "--input-responses" in lines[5] and '"age": 30' in lines[5] and "--request-state" in lines[5]


def test_it_goes_on_with_what_json_has_printed(server: Server, capsys: Any) -> None:
    assert run("call", server.url, "ask", "--json") == 8
    asked = json.loads(capsys.readouterr().out)
    assert asked["resultType"] == "input_required" and list(asked["inputRequests"]) == ["who"]
    answers = json.dumps({"who": {"action": "accept", "content": {"name": "Ada"}}})
    resumed = ["--input-responses", answers, "--request-state", asked["requestState"]]
    assert run("call", server.url, "ask", *resumed) == 0
    assert json.loads(capsys.readouterr().out) == {"action": "accept", "content": {"name": "Ada"}}
    assert server.requests[-1].params["requestState"] == "signed 'state'"


def test_an_address_is_told_whole_where_nobody_can_be_asked(server: Server, capsys: Any) -> None:
    assert run("call", server.url, "open") == 8
    err = capsys.readouterr().err
    assert URL in err and '{"who": {"action": "accept"}}' in err


def test_a_legacy_server_that_asks_in_vain_is_told_so_and_the_user_too(legacy: Server, capsys: Any) -> None:
    assert run("call", legacy.url, "ask") == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"action": "cancel"}
    assert err == "mcp-sync: the server asked for input, and nobody was here to answer: run this on a terminal\n"


def test_what_no_program_at_a_terminal_answers_is_8_as_well(server: Server, capsys: Any) -> None:
    def sample(arguments: Dict[str, Any], call: Any) -> str:
        return str(call.ask({"model": {"method": "sampling/createMessage", "params": {}}}))

    server.add_tool("sample", sample)
    assert run("call", server.url, "sample") == 8
    assert "model: sampling/createMessage" in capsys.readouterr().err


def test_a_task_that_asks_is_picked_up_again_with_the_answer(server: Server, capsys: Any) -> None:
    server.add_tool("later", asks(FORM), task=True)
    assert run("call", server.url, "later", "--json") == 8
    out, err = capsys.readouterr()
    asked = json.loads(out)
    assert "before the task goes on" in err and "--task " + asked["taskId"] in err
    answers = json.dumps({"who": {"action": "accept", "content": {"name": "Ada"}}})
    assert run("call", server.url, "later", "--task", asked["taskId"], "--input-responses", answers) == 0
    assert json.loads(capsys.readouterr().out) == {"action": "accept", "content": {"name": "Ada"}}
    assert server.count("tools/call") == 1
    assert run("call", server.url, "later", "--task", "unknown") == 5
    assert "the server does not know the task unknown" in capsys.readouterr().err


def test_a_task_that_takes_too_long_can_be_waited_for_again(server: Server, capsys: Any) -> None:
    server.add_tool("later", None, task=True)
    assert run("call", server.url, "later", "--max-timeout", "0.2") == 3
    err = capsys.readouterr().err
    task = server.tasks[0]
    assert task.id in err and "--task with its id waits again" in err
    task.complete("at last")
    assert run("call", server.url, "later", "--task", task.id) == 0
    assert capsys.readouterr().out == "at last\n"


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------


@needs_signals
@pytest.mark.parametrize("kind", ["modern", "legacy", "stdio"])
def test_ctrl_c_cancels_the_call_and_the_server_is_told(kind: str) -> None:
    reached, told = threading.Event(), threading.Event()

    def slow(arguments: Dict[str, Any], call: Any) -> str:
        gone = call.cancelled
        reached.set()
        if gone.wait(WAIT):
            told.set()
        return "over"

    made = StdioServer(eras=["legacy"]) if kind == "stdio" else Server(eras=[kind])
    with made as server:
        server.add_tool("slow", slow)
        target = ["--"] + server.command if isinstance(server, StdioServer) else [server.url]
        command = ["call", "slow"] + target if kind == "stdio" else ["call"] + target + ["slow"]
        with Started(*command) as calling:
            assert reached.wait(WAIT)
            calling.interrupt()
            assert calling.ended() == (130, "", "")
            assert told.wait(WAIT)
        if kind != "modern":
            assert server.count("notifications/cancelled") == 1


@needs_signals
def test_ctrl_c_cancels_the_task_of_a_call_but_not_one_that_was_picked_up(server: Server) -> None:
    server.add_tool("later", None, task=True)
    with Started("call", server.url, "later") as calling:
        task = server.wait_for_task(1, WAIT)
        task.wait_for_polls(1, WAIT)
        with Started("call", server.url, "later", "--task", task.id, "--header", "X-Who: another") as another:
            while not any("X-Who" in request.headers for request in server.requests if request.method == "tasks/get"):
                task.wait_for_polls(server.count("tasks/get") + 1, WAIT)
            another.interrupt()
            assert another.ended() == (130, "", "")
        assert not task.cancelled.is_set()
        calling.interrupt()
        assert calling.ended() == (130, "", "")
        assert task.cancelled.wait(WAIT)


# -- on a terminal -----------------------------------------------------------------------------------------------------


def typed(terminal: Terminal, prompt: str, text: str) -> None:
    """Wait for a prompt, and answer it."""
    terminal.until(lambda written: written.endswith(prompt.encode("utf-8")))
    os.write(terminal.master, text.encode("utf-8"))


def plain(terminal: Terminal) -> str:
    return terminal.written.decode("utf-8").replace("\r\n", "\n")


@needs_terminal
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_form_is_asked_for_with_its_defaults_and_checked_as_it_is_typed(era: str, server: Server, legacy: Server) -> None:
    asking = server if era == "modern" else legacy
    with Terminal() as terminal:
        with Started("call", asking.url, "ask", terminal=terminal, TERM="xterm") as calling:
            typed(terminal, "Your name (at least 2 characters): ", "A\n")
            typed(terminal, "not 1.\r\n  Your name (at least 2 characters): ", "\n")
            typed(terminal, "Ctrl-D declines.\r\n  Your name (at least 2 characters): ", "Ada\n")
            typed(terminal, "age (a whole number, at least 18) [30]: ", "17\n")
            typed(terminal, "18: 17.\r\n  age (a whole number, at least 18) [30]: ", "\n")
            typed(terminal, "colour (one of them) [red]: ", "2\n")
            typed(terminal, "Send these answers? 'no' asks again [yes]: ", "no\n")
            typed(terminal, "Your name (at least 2 characters) [Ada]: ", "\n")
            typed(terminal, "[30]: ", "44\n")
            typed(terminal, "[green]: ", "\n")
            typed(terminal, "asks again [yes]: ", "\n")
            assert ended_on(terminal, calling) == 0
        shown = plain(terminal)
    assert "%s asks:\n  Who are you?\n  \\x1b[2J\n" % asking.url in shown
    assert '{"action": "accept", "content": {"age": 44, "colour": "green", "name": "Ada"}}\n' in shown


@needs_terminal
def test_ctrl_d_declines_and_ctrl_c_cancels(server: Server) -> None:
    with Terminal() as terminal, Started("call", server.url, "ask", terminal=terminal, TERM="xterm") as calling:
        typed(terminal, "characters): ", "\x04")
        assert ended_on(terminal, calling) == 0
        assert '"decline"' in plain(terminal) and "Declined." in plain(terminal)
    with Terminal() as terminal, Started("call", server.url, "ask", terminal=terminal, TERM="xterm") as calling:
        terminal.until(lambda written: written.endswith(b"characters): "))
        calling.interrupt()
        assert ended_on(terminal, calling) == 130
        assert "Traceback" not in plain(terminal)


@needs_terminal
def test_an_address_is_shown_whole_and_opened_by_nobody_but_the_user(server: Server) -> None:
    with Terminal(60) as terminal:
        opener = {"BROWSER": "false", "TERM": "xterm"}
        with Started("call", server.url, "open", terminal=terminal, **opener) as calling:
            typed(terminal, "'no' declines [no]: ", "perhaps\n")
            typed(terminal, "yes or no?\r\nHave you opened it, and done what it is for? 'no' declines [no]: ", "y\n")
            assert ended_on(terminal, calling) == 0
        shown = plain(terminal)
    assert URL + "\n" in shown and "Its host: docs.example.com\n" in shown and "Beware" not in shown
    assert '{"action": "accept"}' in shown
    with Terminal(60) as terminal, Started("call", server.url, "open", terminal=terminal, TERM="xterm") as calling:
        typed(terminal, "'no' declines [no]: ", "\n")
        assert ended_on(terminal, calling) == 0
        assert '{"action": "decline"}' in plain(terminal)


@needs_terminal
def test_a_question_without_fields_is_not_accepted_by_enter_alone(server: Server) -> None:
    for keys, action in (("\n", "decline"), ("yes\n", "accept")):
        with Terminal() as terminal, Started("call", server.url, "confirm", terminal=terminal, TERM="xterm") as calling:
            typed(terminal, "Accept? [no]: ", keys)
            assert ended_on(terminal, calling) == 0
            assert '"action": "%s"' % action in plain(terminal)


@needs_terminal
def test_what_was_typed_before_a_question_was_seen_does_not_answer_it(server: Server) -> None:
    with Terminal() as terminal, server.hold("tools/call") as gate:
        with Started("call", server.url, "confirm", terminal=terminal, TERM="xterm") as calling:
            gate.wait_reached(1, WAIT)
            os.write(terminal.master, b"yes\n")
            terminal.until(lambda written: b"yes" in written)
            gate.release()
            typed(terminal, "Accept? [no]: ", "\n")
            assert ended_on(terminal, calling) == 0
            assert '"decline"' in plain(terminal)


def test_the_log_waits_for_the_line_of_progress_to_be_taken_away(server: Server, monkeypatch: Any, capsys: Any) -> None:
    def call_tool(self: Any, *_: Any, on_progress: Any, **__: Any) -> CallToolResult:
        logging.getLogger("mcp_sync").warning("look here")
        on_progress(Progress(1, 2, "half"))
        return CallToolResult()

    monkeypatch.setattr(Client, "call_tool", call_tool)
    monkeypatch.setattr(bar, "can_redraw", lambda output: True)
    assert run("call", server.url, "log") == 0
    err = capsys.readouterr().err
    assert "half" in err and err.endswith("half\r\x1b[2Kmcp-sync: warning: look here\n")


@needs_terminal
@pytest.mark.parametrize("with_tqdm", [True, False])
def test_progress_is_one_line_that_is_redrawn_and_taken_away(server: Server, with_tqdm: bool, tmp_path: Any) -> None:
    if with_tqdm:
        pytest.importorskip("tqdm")
    else:
        (tmp_path / "tqdm.py").write_text("raise ImportError('not installed')\n")
    path = os.pathsep.join([str(tmp_path)] + [folder for folder in sys.path if folder])
    drawn = b"epoch 1"
    with Terminal(60) as terminal:
        with Started(
            "call", server.url, "slow", "--arguments", '{"total": 4}', terminal=terminal, TERM="xterm", PYTHONPATH=path
        ) as calling:
            terminal.until(lambda written: drawn in written)
            calling.interrupt()
            assert ended_on(terminal, calling) == 130
    lines = terminal.written.split(b"\r\x1b[2K")
    bars = [line.decode("utf-8") for line in lines if drawn in line]
    assert all(width(line) < 60 and line.startswith(" 25% ") for line in bars)
    assert ("[###" in bars[0]) != with_tqdm
    assert lines[-1] == b""  # the line is taken away, and nothing follows
    assert b"Traceback" not in terminal.written


@needs_terminal
def test_a_terminal_is_not_moved_by_what_a_tool_answers(server: Server) -> None:
    with Terminal() as terminal, Started("call", server.url, "mixed", terminal=terminal, TERM="xterm") as calling:
        assert ended_on(terminal, calling) == 0
        assert plain(terminal).startswith("here\\x1b[2J\tthere\n".expandtabs()) or "here\\x1b[2J" in plain(terminal)
        assert b"\x1b[2J" not in terminal.written


# -- pieces ------------------------------------------------------------------------------------------------------------


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("tqdm", [True, False])
@pytest.mark.parametrize("columns", [1, 2, 5, 12, 30, 80])
def test_the_line_of_progress_fits_whatever_the_server_says(columns: int, tqdm: bool, monkeypatch: Any) -> None:
    if tqdm:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setattr(bar, "tqdm", None)
    output = Output(Screen())
    for progress in (
        Progress(3, 10, "working {on} %s it"),
        Progress(1e308, 1e-308, "文" * 200),
        Progress(-5.5, 2, "\x1b[2J\n"),
        Progress(1e308),
        Progress(0.25, None, "x" * 1000000),
        Progress(5, 0, ""),
    ):
        line = bar._line(progress, 12345.6, columns, output)
        assert width(line) <= columns and line.isprintable()
    line = bar._line(Progress(1, 4, "first, and then " * 10), 0.0, 80, output)
    assert columns < 80 or (line.startswith(" 25% ") and "  first, and then first" in line and line.endswith(output.mark))


@pytest.mark.parametrize(
    "field, text, told, value",
    [
        ({"type": "string", "format": "email"}, "nobody", "not an e-mail address", None),
        ({"type": "string", "format": "date"}, "2026-02-30", "not a date", None),
        ({"type": "string", "format": "date"}, "2026-02-28", "", "2026-02-28"),
        ({"type": "string", "format": "date-time"}, "2026-02-28T12:00:00.5+02:00", "", "2026-02-28T12:00:00.5+02:00"),
        ({"type": "string", "format": "date-time"}, "noon", "not a moment", None),
        ({"type": "string", "format": "uri"}, "no uri", "not a URI", None),
        ({"type": "string"}, '""', "", ""),
        ({"type": "integer"}, "1.5", "has to be a whole number", None),
        ({"type": "integer"}, "true", "no whole number", None),
        ({"type": "number", "maximum": 3}, "4", "at most 3", None),
        ({"type": "number"}, "NaN", "no number", None),
        ({"type": "boolean"}, "perhaps", "yes or no?", None),
        ({"type": "boolean"}, "N", "", False),
        ({"type": "string", "enum": ["2", "1"]}, "1", "", "1"),
        ({"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}]}, "red", "", "#f00"),
        ({"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}]}, "blue", "none of them", None),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1}, "a,b", "at most 1", None),
        ({"type": "array", "items": {"anyOf": [{"const": 1, "title": "One"}]}}, "one", "", [1]),
    ],
)
def test_each_kind_of_field_is_checked(field: Any, text: str, told: str, value: Any) -> None:
    screen = Screen()
    lines = iter([text])

    def read(output: Output, prompt: str) -> Any:
        output.write(prompt)
        return next(lines, None)

    params = {"message": "?", "requestedSchema": {"properties": {"x": field}, "required": ["x"]}}
    answer = Asker(Output(screen), read).answer(params)
    if told:
        assert answer == {"action": "decline"} and told in screen.getvalue()
    else:
        assert answer == {"action": "accept", "content": {"x": value}}


def deep() -> Any:
    value: Any = []
    for _ in range(5000):
        value = [value]
    return value


def test_a_form_that_makes_no_sense_can_be_declined_and_told_of(server: Server) -> None:
    fields: Dict[str, Any] = {
        "a": {"type": "integer", "minimum": 10**400, "title": 3, "description": ["x"]},
        "b": {"type": "string", "default": deep()},
        "c": {"enum": [deep(), "x"] * 100, "enumNames": "x"},
        "d": {"oneOf": [3, {"const": deep(), "title": deep()}], "default": 5},
        "e": 7,
        "f": {"type": ["string"], "format": {"x": 1}, "maxLength": "many"},
    }
    for schema in ({"properties": fields, "required": "all"}, {"properties": [1]}, [], None):
        params = {"message": ["no text"], "requestedSchema": schema}
        screen = Screen()
        lines = iter([""] * 4)

        def read(output: Output, prompt: str) -> Any:
            output.write(prompt)
            return next(lines, None)

        assert Asker(Output(screen), read).answer(params) == {"action": "decline"}
        assert len(screen.getvalue()) < 20000
        asked = InputRequired("?", input_requests={"k": {"method": "elicitation/create", "params": params}, "l": 3})
        assert all(len(line) < 1000 for line in told(asked))


@pytest.mark.parametrize(
    "url, beware",
    [
        ("https://bank.example@evil.example/", "not the host"),
        ("https://xn--bnk-6la.example/", "other alphabets"),
        ("https://b\u0430nk.example/", "other alphabets"),
        ("http://docs.example.com/", "not https"),
        ("javascript:alert(1)", "not https"),
        ("http://[", "no address"),
        ("http://127.0.0.1:8000/", ""),
    ],
)
def test_an_address_that_may_deceive_is_warned_of(url: str, beware: str) -> None:
    screen = Screen()

    def read(output: Output, prompt: str) -> None:
        return None

    asker = Asker(Output(screen), read)
    asker.where = "https://docs.example.com/mcp"
    assert asker.answer({"mode": "url", "message": "Log in.", "url": url}) == {"action": "decline"}
    assert (beware in screen.getvalue()) if beware else ("Beware" not in screen.getvalue())
