"""The command line: what it prints, how it ends, and what it does on a terminal. As a function, and as a process."""

import base64
import io
import json
import logging
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

from mcp_sync import Client, __version__, errors
from mcp_sync.cli import main
from mcp_sync.cli.exits import EXIT_CODES, explain
from mcp_sync.cli.output import Output, clean, shorten, table, width
from mcp_sync.testing import Server, faults

CONFIG = "docs://service/config"
LOGO = "docs://logo"
BYTES = bytes(range(256))

#: Only a failure takes so long.
WAIT = 20.0

needs_signals = pytest.mark.skipif(os.name != "posix", reason="this system has no such signals")
needs_terminal = pytest.mark.skipif(os.name != "posix", reason="this system has no pseudo-terminals")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        server.add(CONFIG, "colour = blue", title="The configuration", mime_type="text/plain")
        server.add(LOGO, BYTES, mime_type="image/png")
        yield server


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("MCP_SYNC_BEARER", raising=False)
    yield
    for thread in threading.enumerate():
        if thread.name == "mcp_sync-command":
            thread.join(WAIT)
            assert not thread.is_alive()


def run(*argv: str) -> int:
    return main(list(argv))


class Started:
    """The command line in a process of its own; a context manager that ends it, whatever happened."""

    def __init__(self, *argv: str, terminal: Optional["Terminal"] = None, **variables: str) -> None:
        environment = dict(os.environ)
        for name in ("COLUMNS", "LINES", "NO_COLOR", "PYTHONUNBUFFERED"):
            environment.pop(name, None)
        environment.update(variables)
        ends = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        if terminal is not None:
            ends = dict.fromkeys(ends, terminal.slave)
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "mcp_sync"] + list(argv),
            env=environment,
            start_new_session=True,
            **ends,  # type: ignore[call-overload]
        )

    def __enter__(self) -> "Started":
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def line(self) -> str:
        """Return the next line of the output, waiting for it."""
        assert self.process.stdout is not None
        line = b""
        deadline = time.monotonic() + WAIT
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "no line came, only %r" % line
            char = os.read(self.process.stdout.fileno(), 1)
            assert char, "the output ended after %r: %s" % (line, self.ended())
            line += char
        return line.decode("utf-8").rstrip("\n")

    def interrupt(self, number: int = signal.SIGINT) -> None:
        self.process.send_signal(number)

    def ended(self) -> Any:
        """Wait for the end, and return the exit code, the rest of the output, and the errors."""
        out, err = self.process.communicate(timeout=WAIT)
        return self.process.returncode, out.decode("utf-8"), err.decode("utf-8")


# -- info --------------------------------------------------------------------------------------------------------------


def test_info_tells_who_the_server_is_and_whether_it_tells_of_changes(capsys: Any) -> None:
    with Server(name="the docs", version="7", instructions="Read the manual.\nThen ask.", list_changed=False) as server:
        assert run("info", server.url) == 0
        lines = capsys.readouterr().out.splitlines()
    assert re.split("  +", lines[0]) == ["Server", "the docs 7"]
    assert any("2026-07-28" in line for line in lines)
    assert any("resources (subscribe)" in line for line in lines)
    assert any("of resources, not of the catalog" in line for line in lines)
    assert lines[-3:] == ["Instructions", "  Read the manual.", "  Then ask."]


@pytest.mark.parametrize("resources", [True, False])
@pytest.mark.parametrize("catalog", [True, False])
def test_info_as_json_is_one_document(capsys: Any, resources: bool, catalog: bool) -> None:
    with Server(subscribe=resources, list_changed=catalog) as server:
        assert run("info", "--json", server.url) == 0
        found = json.loads(capsys.readouterr().out)
        assert run("info", server.url) == 0
    assert found["url"] == server.url
    assert found["protocol_version"] == "2026-07-28" and found["supported_versions"] == ["2026-07-28"]
    assert found["notifies"] == {"resources": resources, "catalog": catalog}
    assert set(found) >= {"name", "title", "version", "capabilities", "instructions"}


# -- list --------------------------------------------------------------------------------------------------------------


def test_list_is_a_table_with_whole_cells_where_nobody_limits_its_width(server: Server, capsys: Any) -> None:
    long = "docs://" + "x" * 300
    server.add(long, "?")
    assert run("list", server.url) == 0
    rows = [re.split("  +", line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["URI", "NAME", "TYPE", "SIZE"]
    assert [CONFIG, "The configuration", "text/plain", "13"] in rows
    assert [LOGO, "logo", "image/png", "256"] in rows
    assert long in [row[0] for row in rows]


def test_list_as_json_is_one_document(server: Server, capsys: Any) -> None:
    assert run("list", server.url, "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert [resource["uri"] for resource in listed["resources"]] == [CONFIG, LOGO]
    assert listed["resources"][0]["title"] == "The configuration" and listed["resources"][0]["size"] == 13
    assert set(listed) == {"url", "version", "read_at", "resources"}


def test_list_shows_templates_when_asked_to(server: Server, capsys: Any) -> None:
    server.add_template("docs://{name}/page", "page", mime_type="text/html")
    assert run("list", "--templates", server.url) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["docs://{name}/page", "page", "text/html"]
    assert run("list", "--templates", "--json", server.url) == 0
    assert json.loads(capsys.readouterr().out)["resource_templates"][0]["uri_template"] == "docs://{name}/page"


def test_list_shows_tools_with_their_arguments_when_asked_to(server: Server, capsys: Any) -> None:
    schema = {"type": "object", "properties": {"query": {}, "limit": {}}, "required": ["query"]}
    server.add_tool("search", str, description="\nFinds things.\nSlowly.", input_schema=schema, output_schema={"type": "array"})
    server.add_tool("odd", str, title="The odd", raw={"name": "odd\x1b[2J", "inputSchema": {"properties": 7, "required": {}}})
    assert run("list", "--tools", server.url) == 0
    rows = [re.split("  +", line) for line in capsys.readouterr().out.splitlines()]
    assert rows == [["NAME", "ARGUMENTS", "DESCRIPTION"], ["search", "query [limit]", "Finds things."], ["odd\\x1b[2J"]]
    assert run("list", "--tools", "--json", server.url) == 0
    listed = json.loads(capsys.readouterr().out)
    assert set(listed) == {"url", "version", "read_at", "tools"}
    assert listed["tools"][0] == {
        "name": "search",
        "title": None,
        "description": "\nFinds things.\nSlowly.",
        "input_schema": schema,
        "output_schema": {"type": "array"},
        "annotations": {},
    }


def test_list_shows_prompts_with_their_arguments_when_asked_to(server: Server, capsys: Any) -> None:
    arguments = [{"name": "code", "required": True}, {"name": "style", "description": "d"}]
    server.add_prompt("review", str, raw={"name": "review", "title": "Review it", "arguments": arguments})
    assert run("list", "--prompts", server.url) == 0
    assert re.split("  +", capsys.readouterr().out.splitlines()[1]) == ["review", "code [style]", "Review it"]
    assert run("list", "--prompts", "--json", server.url) == 0
    (prompt,) = json.loads(capsys.readouterr().out)["prompts"]
    assert (prompt["name"], prompt["title"], prompt["description"]) == ("review", "Review it", None)
    assert prompt["arguments"][1] == {"name": "style", "title": None, "description": "d", "required": False}


def test_a_tool_that_cannot_be_used_is_left_out_of_the_list_and_told_of(server: Server, capsys: Any) -> None:
    marked = {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}
    server.add_tool("bad", str, input_schema=marked)
    assert run("list", "--tools", server.url) == 0
    out, err = capsys.readouterr()
    assert out == "" and "bad was left out: its property a has x-mcp-header" in err and "lists no tools" in err


@pytest.mark.parametrize("options, what", [([], "resources"), (["--templates"], "templates"), (["--tools"], "tools")])
def test_an_empty_list_prints_nothing_but_a_word_on_standard_error(options: "List[str]", what: str, capsys: Any) -> None:
    with Server(capabilities=["tools"]) as server:
        assert run("list", server.url, *options) == 0
    assert capsys.readouterr() == ("", "mcp-sync: the server lists no %s\n" % what)


def test_what_a_server_says_cannot_move_the_cursor_or_fake_a_line(server: Server, capsys: Any) -> None:
    server.add("docs://evil\n\x1b[2J\x9b", "?", title="red \x1b[31m\u202e\r")
    assert run("list", server.url) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 4 and "\x1b" not in out and "\x9b" not in out and "\u202e" not in out
    assert "docs://evil\\n\\x1b[2J\\x9b" in out
    server.inject(faults.JsonRpcError(-32000, "bad\n\x1b[2J"), method="resources/list")
    assert run("list", server.url) == 6
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1 and "\x1b" not in err


# -- read --------------------------------------------------------------------------------------------------------------


def test_read_prints_exactly_what_the_resources_hold(server: Server, capsysbinary: Any) -> None:
    server.add("docs://text", "Grüße\r\n\n")
    assert run("read", server.url, CONFIG, "docs://text", LOGO) == 0
    assert capsysbinary.readouterr().out == b"colour = blue" + "Grüße\r\n\n".encode("utf-8") + BYTES


def test_read_writes_to_a_file_when_asked_to(server: Server, tmp_path: Any, capsys: Any) -> None:
    path = tmp_path / "logo.png"
    assert run("read", server.url, LOGO, "--output", str(path)) == 0
    assert path.read_bytes() == BYTES
    assert run("read", server.url, LOGO, "--json", "-o", str(path)) == 0
    assert json.loads(path.read_text("ascii"))["uri"] == LOGO
    assert capsys.readouterr() == ("", "")


def test_read_as_json_tells_where_the_text_comes_from_and_how_old_it_is(server: Server, capsys: Any) -> None:
    with Client(server.url) as client:
        version = client.read_resource(CONFIG).version
    assert run("read", "--json", server.url, CONFIG) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["uri"], found["text"], found["mime_type"]) == (CONFIG, "colour = blue", "text/plain")
    assert found["version"] == version and found["stale"] is False and found["last_modified"] is None
    assert 0.0 <= found["age"] < WAIT and found["read_at"].endswith("+00:00")


def test_read_as_json_is_a_list_if_several_are_asked_for_before_and_after_options(server: Server, capsys: Any) -> None:
    assert run("read", server.url, CONFIG, "--json", LOGO) == 0
    config, logo = json.loads(capsys.readouterr().out)
    assert config["text"] == "colour = blue"
    assert base64.b64decode(logo["blob"]) == BYTES and "text" not in logo


def test_further_parts_of_a_resource_are_not_lost(server: Server, capsys: Any) -> None:
    parts = [{"uri": CONFIG, "text": "one "}, {"uri": CONFIG + "/2", "text": "two", "mimeType": "text/x"}]
    server.inject(faults.Result({"resultType": "complete", "contents": parts}), method="resources/read", times=2)
    assert run("read", server.url, CONFIG) == 0
    assert capsys.readouterr().out == "one two"
    assert run("read", "--json", server.url, CONFIG) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["text"] == "one "
    assert found["more_contents"] == [{"uri": CONFIG + "/2", "text": "two", "mime_type": "text/x"}]


def test_read_prints_nothing_unless_everything_could_be_read(server: Server, capsys: Any) -> None:
    assert run("read", server.url, CONFIG, "docs://nowhere") == 5
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("mcp-sync: docs://nowhere: ") and len(err.splitlines()) == 1


# -- credentials -------------------------------------------------------------------------------------------------------


def authorizations(server: Server) -> List[Optional[str]]:
    return [request.headers.get("Authorization") for request in server.requests]


def test_headers_and_tokens_are_sent(server: Server, monkeypatch: Any) -> None:
    assert run("info", server.url, "--header", "X-One: 1", "--header", "x-two:2 3 ", "--bearer", "abc") == 0
    headers = server.requests[-1].headers
    assert (headers["X-One"], headers["X-Two"], headers["Authorization"]) == ("1", "2 3", "Bearer abc")
    monkeypatch.setenv("MCP_SYNC_BEARER", "from-the-environment")
    assert run("info", server.url) == 0
    assert run("info", server.url, "--bearer", "abc") == 0
    assert run("info", server.url, "--header", "authorization: Basic xyz") == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO("from-stdin\nmore\n"))
    assert run("info", server.url, "--bearer", "-") == 0
    sent = ["Bearer from-the-environment", "Bearer abc", "Basic xyz", "Bearer from-stdin"]
    assert authorizations(server)[-4:] == sent


def test_a_password_in_the_address_is_not_shown(server: Server, capsys: Any) -> None:
    url = server.url.replace("://", "://me:sec%72et@")
    assert run("info", url) == 0
    assert authorizations(server) == ["Basic " + base64.b64encode(b"me:secret").decode("ascii")]
    assert run("info", "--json", url) == 0
    assert run("info", url.replace("/mcp", "/wrong")) == 6
    shown = "".join(capsys.readouterr())
    assert server.url in shown and "secret" not in shown and "sec%72et" not in shown


# -- exit codes --------------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--nonsense"],
        ["nonsense"],
        ["info"],
        ["read", "http://127.0.0.1/mcp"],
        ["watch", "http://127.0.0.1/mcp"],
        ["info", "127.0.0.1/mcp"],
        ["info", "ftp://127.0.0.1/mcp"],
        ["list", "http://127.0.0.1/mcp", "more"],
        ["list", "http://127.0.0.1/mcp", "--tools", "--prompts"],
        ["read", "http://127.0.0.1/mcp", "docs://a", "--nonsense"],
        ["read", "--js" if sys.version_info >= (3, 8) else "--no", "http://127.0.0.1/mcp", "docs://a"],
        ["info", "--timeout", "0", "http://127.0.0.1/mcp"],
        ["info", "--timeout", "nan", "http://127.0.0.1/mcp"],
        ["info", "--timeout", "soon", "http://127.0.0.1/mcp"],
        ["watch", "--count", "0", "http://127.0.0.1/mcp", "docs://a"],
        ["watch", "--count", "many", "http://127.0.0.1/mcp", "docs://a"],
        ["info", "--header", "no colon", "http://127.0.0.1/mcp"],
        ["info", "--header", "X: gr\u00fcn", "http://127.0.0.1/mcp"],
        ["info", "--bearer", " ", "http://127.0.0.1/mcp"],
        ["info", "--bearer", "a", "--header", "Authorization: b", "http://127.0.0.1/mcp"],
        ["info", "--bearer", "a", "http://me:secret@127.0.0.1/mcp"],
        ["info", "--ca-bundle", "/no/such/file", "http://127.0.0.1/mcp"],
    ],
)
def test_wrong_usage_is_2_and_one_line_that_names_the_help(argv: List[str], capsys: Any) -> None:
    assert run(*argv) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1
    assert err.startswith("mcp-sync: ") and err.rstrip().endswith("--help')")


@pytest.mark.parametrize("command", [["info"], ["list"], ["read", CONFIG], ["watch", CONFIG], ["watch", "--all"]])
def test_a_server_that_is_not_there_is_3(command: List[str], capsys: Any) -> None:
    url = "http://127.0.0.1:%d/mcp" % free_port()
    assert run(command[0], url, *command[1:]) == 3
    err = capsys.readouterr().err
    assert url in err and "does the server run" in err and len(err.splitlines()) == 1


def test_a_server_that_takes_too_long_is_3(server: Server, capsys: Any) -> None:
    with server.hold("resources/read"):
        assert run("read", server.url, CONFIG, "--timeout", "0.2") == 3
    err = capsys.readouterr().err
    assert "--timeout" in err and "timeout=" not in err and len(err.splitlines()) == 1


def test_refused_credentials_are_4_and_the_user_is_told_how_to_give_some(server: Server, capsys: Any) -> None:
    server.inject(faults.Unauthorized(), times=None)
    assert run("info", server.url) == 4
    assert "--bearer" in capsys.readouterr().err
    assert run("info", server.url, "--bearer", "wrong") == 4
    assert "credentials are wrong" in capsys.readouterr().err
    server.clear_faults()
    server.restrict(CONFIG, ["somebody else"])
    assert run("read", server.url, CONFIG) == 4


def test_a_resource_that_does_not_exist_is_5(server: Server, capsys: Any) -> None:
    assert run("read", server.url, "docs://nowhere") == 5
    assert "'mcp-sync list'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "fault",
    [
        faults.JsonRpcError(-32603, "broken"),
        faults.Status(500),
        faults.Status(404),
        faults.RawBody(b"<html>hello</html>", content_type="text/html"),
        faults.RawBody(b"{"),
        faults.Result({"resultType": "complete", "contents": 3}),
        faults.Result({"resultType": "input_required", "inputRequests": {}}),
    ],
)
def test_an_error_of_the_server_or_nonsense_is_6(server: Server, capsys: Any, fault: Any) -> None:
    server.inject(fault, times=None)
    assert run("read", server.url, CONFIG) == 6
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("mcp-sync: ") and len(err.splitlines()) == 1


def test_a_file_that_cannot_be_written_is_1(server: Server, tmp_path: Any, capsys: Any) -> None:
    assert run("read", server.url, CONFIG, "-o", str(tmp_path / "no" / "such" / "folder")) == 1
    err = capsys.readouterr().err
    assert err.startswith("mcp-sync: ") and "folder" in err and len(err.splitlines()) == 1


def test_a_defect_is_1_and_one_line_and_with_v_a_traceback(server: Server, monkeypatch: Any, capsys: Any) -> None:
    def broken(self: Any, **_: Any) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(Client, "list_resources", broken)
    assert run("list", server.url) == 1
    assert capsys.readouterr().err == "mcp-sync: an error of its own, KeyError: 'oops'\n"
    assert run("list", "-v", server.url) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name in errors.__all__ if name != "beginning_of"])
def test_every_error_of_the_library_has_an_exit_code_that_the_help_explains(name: str) -> None:
    code, told = explain(getattr(errors, name)("what happened"), credentials=False)
    assert code != 0 and "what happened" in told
    assert re.search(r"^  %d +\S" % code, EXIT_CODES, re.MULTILINE)


@pytest.mark.parametrize("command", ["", "info", "list", "read", "watch", "call", "prompt", "demo"])
def test_the_help_teaches_with_examples_and_exit_codes(command: str, capsys: Any) -> None:
    assert run(*command.split(), "--help") == 0
    out, err = capsys.readouterr()
    assert err == "" and out.startswith("usage: mcp-sync") and "example" in out and EXIT_CODES in out
    assert "mcp-sync %s" % command in out
    assert all(len(line) <= 120 for line in out.splitlines())


def test_the_version_is_that_of_the_package(capsys: Any) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == "mcp-sync %s\n" % __version__


def test_with_v_the_log_goes_to_standard_error_and_afterwards_nowhere(server: Server, capsys: Any) -> None:
    logger = logging.getLogger("mcp_sync")
    before = (logger.level, list(logger.handlers))
    server.inject(faults.Prelude(({"jsonrpc": "2.0", "method": "notifications/x"},)), method="resources/list")
    assert run("list", "-vv", server.url) == 0
    assert "mcp-sync: debug: skipped notifications/x" in capsys.readouterr().err
    assert (logger.level, list(logger.handlers)) == before


# -- text for terminals ------------------------------------------------------------------------------------------------


def test_text_is_shortened_in_the_middle_to_the_columns_that_it_may_take() -> None:
    assert shorten("docs://a", 8) == "docs://a"
    assert shorten("docs://service/config", 11) == "docs:…onfig"
    assert [width(shorten("文書" * 10, columns)) for columns in range(8)] == [0, 1, 1, 3, 3, 5, 5, 7]
    assert all(width(shorten("a文b書" * 9, columns)) <= columns for columns in range(40))
    assert shorten("abc", 0) == ""


def test_a_table_stands_in_columns_whatever_script_its_cells_are_in() -> None:
    lines = table([["A", "N"], ["文書", "1"], ["e\u0301", "20"]], right=[1])
    assert lines == ["A      N", "文書   1", "e\u0301     20"]
    assert table([["A", "B"], ["x" * 50, "y"]], columns=20)[1] == "x" * 8 + "…" + "x" * 8 + "  y"


def test_characters_that_the_output_has_not_are_written_as_escape_sequences() -> None:
    raw = io.BytesIO()
    output = Output(io.TextIOWrapper(raw, encoding="ascii"))
    output.line("文 …")
    assert raw.getvalue() == b"\\u6587 \\u2026\n" and output.mark == "~"
    assert clean("a\ud800b") == "a\\ud800b"


# -- watch, to a pipe --------------------------------------------------------------------------------------------------


def test_watch_prints_a_line_for_each_change_at_once_and_ends_after_the_count(server: Server) -> None:
    with Started("watch", server.url, CONFIG, "--initial", "--count", "2") as watching:
        first = watching.line().split("\t")
        assert first[1:3] == ["current", CONFIG]
        server.update(CONFIG, "colour = red")
        second = watching.line().split("\t")
        assert (
            second[1:3] == ["updated", CONFIG] and second[3] != first[3] and re.match(r"20\d\d-.*\+00:00$", second[0])
        )
        server.remove(CONFIG)
        assert watching.line().split("\t")[1:] == ["removed", CONFIG, "-"]
        assert watching.ended() == (0, "", "")


def test_watch_as_json_prints_json_lines(server: Server) -> None:
    with Started("watch", "--json", server.url, CONFIG, "--catalog", "--initial") as watching:
        initial = [json.loads(watching.line()) for _ in range(2)]
        assert {(line["kind"], line["uri"]) for line in initial} == {("current", None), ("current", CONFIG)}
        versions = {line["uri"]: line["version"] for line in initial}
        server.update(CONFIG, "colour = red")
        change = json.loads(watching.line())
        assert (change["kind"], change["uri"], change["merged"]) == ("updated", CONFIG, 0)
        assert change["previous_version"] == versions[CONFIG] != change["version"]
        server.add("docs://new", "?")
        change = json.loads(watching.line())
        assert (change["kind"], change["added"], change["removed"]) == ("catalog", ["docs://new"], [])


def test_watch_all_follows_what_comes_into_the_catalog(server: Server) -> None:
    with Started("watch", "--json", server.url, "--all", "--initial") as watching:
        assert {json.loads(watching.line())["uri"] for _ in range(3)} == {None, CONFIG, LOGO}
        server.add("docs://new", "1")
        assert json.loads(watching.line())["added"] == ["docs://new"]
        # Asked for on a stream: it is watched. Read once: a change is a change from something.
        server.wait_for_requests("subscriptions/listen", 1, WAIT, uri="docs://new")
        server.wait_for_requests("resources/read", 1, WAIT, uri="docs://new")
        server.wait_for_streams(1, WAIT)
        for number in range(2, 1000):
            server.update("docs://new", str(number))
            if select.select([watching.process.stdout], [], [], 0.05)[0]:
                break
        assert json.loads(watching.line())["uri"] == "docs://new"


def test_watch_polls_when_told_not_to_listen(server: Server) -> None:
    with Started("watch", server.url, CONFIG, "--initial", "--no-listen", "--poll-interval", "0.1") as watching:
        watching.line()
        server.update(CONFIG, "colour = red")
        assert watching.line().split("\t")[1:3] == ["updated", CONFIG]
    assert server.count("subscriptions/listen") == 0


def test_watch_outlives_the_server_and_tells_of_what_changed_meanwhile(server: Server) -> None:
    with Started("watch", server.url, CONFIG, "--initial", "--count", "1", "--duration", "60") as watching:
        watching.line()
        server.kill()
        server.update(CONFIG, "colour = red")
        server.restart()
        assert watching.line().split("\t")[1:3] == ["updated", CONFIG]
        assert watching.ended()[0] == 0


def test_watch_ends_after_its_duration_and_says_if_too_little_happened(server: Server, capsys: Any) -> None:
    assert run("watch", server.url, CONFIG, "--duration", "0.1") == 0
    assert capsys.readouterr() == ("", "")
    assert run("watch", server.url, CONFIG, "--duration", "0.1", "--count", "1") == 3
    assert capsys.readouterr() == ("", "mcp-sync: 0 of 1 changes came within 0.1 s\n")


# -- how it ends -------------------------------------------------------------------------------------------------------


@needs_signals
def test_ctrl_c_ends_a_watch_quietly_with_130(server: Server) -> None:
    with Started("watch", server.url, CONFIG, "--initial") as watching:
        watching.line()
        watching.interrupt()
        assert watching.ended() == (130, "", "")
    server.wait_for_no_streams(WAIT)


@needs_signals
def test_sigterm_ends_a_watch_quietly_with_143(server: Server) -> None:
    with Started("watch", server.url, CONFIG, "--initial") as watching:
        watching.line()
        watching.interrupt(signal.SIGTERM)
        assert watching.ended() == (143, "", "")
    server.wait_for_no_streams(WAIT)


@needs_signals
@pytest.mark.parametrize("command", [["info"], ["list"], ["read", CONFIG], ["watch", CONFIG]])
def test_ctrl_c_ends_a_command_that_hangs(server: Server, command: List[str]) -> None:
    with server.hold() as gate, Started(command[0], server.url, *command[1:]) as started:
        gate.wait_reached(1, WAIT)
        started.interrupt()
        assert started.ended() == (130, "", "")


@needs_signals
def test_ctrl_c_ends_a_command_whose_output_nobody_takes(server: Server) -> None:
    server.add("docs://large", "x" * 1000000)
    with Started("read", server.url, "docs://large") as reading:
        # Once the first bytes are there, the pipe is full long before the last are written.
        assert select.select([reading.process.stdout], [], [], WAIT)[0]
        reading.interrupt()
        assert reading.process.wait(WAIT) == 130


@needs_signals
def test_a_pipe_that_nobody_reads_any_more_ends_a_watch_without_another_change(server: Server) -> None:
    with Started("watch", server.url, CONFIG, "--initial") as watching:
        watching.line()
        assert watching.process.stdout is not None and watching.process.stderr is not None
        watching.process.stdout.close()
        assert watching.process.wait(WAIT) == 141
        assert watching.process.stderr.read() == b""


@needs_signals
@pytest.mark.parametrize("command", [["list"], ["info"], ["list", "--json"], ["read", CONFIG]])
def test_a_pipe_that_nobody_reads_ends_every_command_quietly(server: Server, command: List[str]) -> None:
    with server.hold() as gate, Started(command[0], server.url, *command[1:]) as started:
        gate.wait_reached(1, WAIT)
        assert started.process.stdout is not None and started.process.stderr is not None
        started.process.stdout.close()
        gate.release()
        assert started.process.wait(WAIT) == 141
        assert started.process.stderr.read() == b""


def test_it_runs_as_a_module_and_gives_its_exit_code_to_the_system(server: Server) -> None:
    with Started("read", server.url, CONFIG) as reading:
        assert reading.ended() == (0, "colour = blue", "")
    with Started("read", server.url, "docs://nowhere") as reading:
        assert reading.ended()[:2] == (5, "")


# -- on a terminal -----------------------------------------------------------------------------------------------------

ENTER, LEAVE = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"


class Terminal:
    """A pseudo-terminal, and what was written to it."""

    def __init__(self, columns: int = 100, lines: int = 30) -> None:
        import pty

        self.master, self.slave = pty.openpty()
        self.resize(columns, lines)
        self.written = b""

    def resize(self, columns: int, lines: int) -> None:
        import fcntl
        import struct
        import termios

        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, reached: Callable[[bytes], bool]) -> bytes:
        """Take what is written until it is enough; return all of it."""
        deadline = time.monotonic() + WAIT
        while not reached(self.written):
            ready, _, _ = select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "it did not come: %s" % self.written[-3000:].decode("utf-8", "replace")
            self.written += os.read(self.master, 65536)
        return self.written

    def frame(self, holds: str) -> List[str]:
        """Wait for a drawing of the screen that holds this text, and return its lines, without colours."""

        def last() -> List[bytes]:
            # The first is what came before any drawing, the last may be half written.
            return [part for part in self.written.split(b"\x1b[H")[1:] if b"Ctrl-C ends." in part]

        def plain(part: bytes) -> str:
            return re.sub(r"\x1b\[[?0-9]*[A-Za-z]", "", part.decode("utf-8", "replace"))

        self.until(lambda _: bool(last()) and holds in plain(last()[-1]))
        return plain(last()[-1]).rstrip().split("\r\n")

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: Any) -> None:
        os.close(self.master)
        os.close(self.slave)


def version_of(server: Server, uri: str) -> str:
    with Client(server.url) as client:
        return client.read_resource(uri).version


def ended_on(terminal: Terminal, started: Started) -> int:
    """Wait for the end of a process while its terminal takes what it writes."""
    while started.process.poll() is None:
        if select.select([terminal.master], [], [], 0.05)[0]:
            terminal.written += os.read(terminal.master, 65536)
    while select.select([terminal.master], [], [], 0)[0]:
        terminal.written += os.read(terminal.master, 65536)
    return int(started.process.returncode)


@needs_terminal
def test_on_a_terminal_watch_redraws_one_table(server: Server) -> None:
    with Terminal() as terminal:
        with Started("watch", server.url, CONFIG, "docs://nowhere", terminal=terminal, TERM="xterm") as watching:
            blue = version_of(server, CONFIG)
            lines = terminal.frame(blue)
            assert terminal.written.startswith(ENTER)
            assert lines[0].startswith("live: %s" % server.url)
            assert re.split("  +", lines[2]) == ["URI", "STATE", "AGE", "VERSION", "KEPT BY"]
            assert re.match(r"%s +current +\d+ s  %s  listening$" % (CONFIG, blue), lines[3])
            terminal.frame("missing")
            server.update(CONFIG, "colour = red")
            red = version_of(server, CONFIG)
            lines = terminal.frame(red)
            assert "%s updated" % CONFIG in lines[-1] and lines[-1].startswith("1 change, ")
            assert re.split("  +", lines[4])[:2] == ["docs://nowhere", "missing"]
            server.kill()
            lines = terminal.frame("interrupted, trying again")
            assert any(re.match(r"%s +stale +\d+ s  %s  nothing$" % (CONFIG, red), line) for line in lines)
            server.restart()
            terminal.frame("reconnected once")
            watching.interrupt()
            assert ended_on(terminal, watching) == 130
        # The terminal is as it was, and the last table is left on it.
        assert terminal.written.count(ENTER) == terminal.written.count(LEAVE) == 1
        left = terminal.written.partition(LEAVE)[2].decode("utf-8")
        assert red in left and "Ctrl-C ends." not in left and "Traceback" not in left


@needs_terminal
def test_the_table_fits_the_terminal_and_follows_its_size(server: Server) -> None:
    for number in range(40):
        server.add("docs://a/long/way/to/the/resource/with/the/number/%d" % number, "?")
    with Terminal(60, 20) as terminal:
        with Started("watch", server.url, "--all", terminal=terminal, TERM="xterm", NO_COLOR="1") as watching:
            lines = terminal.frame("and 29 more, all current")
            assert len(lines) <= 20 and all(len(line) <= 60 for line in lines)
            server.update("docs://a/long/way/to/the/resource/with/the/number/39", "!")
            lines = terminal.frame("1 change")
            assert any(line.startswith("docs://a") and "number/39  " in line for line in lines)
            terminal.resize(30, 8)
            lines = terminal.frame("and 39 more")
            assert len(lines) <= 8 and all(len(line) <= 30 for line in lines)
            watching.interrupt()
            assert ended_on(terminal, watching) == 130
        assert not re.search(rb"\x1b\[[0-9;]*m", terminal.written)


@needs_terminal
def test_colours_say_nothing_that_words_do_not_say(server: Server) -> None:
    with Terminal() as terminal, Started("watch", server.url, CONFIG, terminal=terminal, TERM="xterm") as watching:
        terminal.frame("current")
        assert b"\x1b[32mcurrent\x1b[0m" in terminal.written
        watching.interrupt(signal.SIGTERM)
        assert ended_on(terminal, watching) == 143
        assert terminal.written.count(LEAVE) == 1


@needs_terminal
def test_ctrl_z_gives_the_terminal_back_and_the_table_returns(server: Server) -> None:
    with Terminal() as terminal, Started("watch", server.url, CONFIG, terminal=terminal, TERM="xterm") as watching:
        terminal.frame("current")
        # The process leads a session of its own, so that the system does not really stop it.
        watching.interrupt(signal.SIGTSTP)
        terminal.until(lambda written: written.partition(LEAVE)[2].startswith(ENTER))
        watching.interrupt()
        assert ended_on(terminal, watching) == 130
        assert terminal.written.count(LEAVE) == 2


@needs_terminal
def test_a_table_keeps_the_log_off_the_terminal_until_it_ends(server: Server) -> None:
    with Terminal() as terminal, Started(
        "watch", "-v", server.url, CONFIG, terminal=terminal, TERM="xterm"
    ) as watching:
        terminal.frame("current")
        server.end_streams("eof")
        terminal.frame("reconnected once")
        watching.interrupt()
        assert ended_on(terminal, watching) == 130
        table_, _, after = terminal.written.partition(LEAVE)
        assert b"mcp-sync: info: " not in table_ and b"mcp-sync: info: " in after


@needs_terminal
@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"TERM": ""}])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(server: Server, variables: Dict[str, str]) -> None:
    with Terminal() as terminal:
        with Started("watch", server.url, CONFIG, "--initial", terminal=terminal, **variables) as watching:
            terminal.until(lambda written: b"\r\n" in written)
            watching.interrupt()
            assert ended_on(terminal, watching) == 130
        assert b"\x1b" not in terminal.written and b"\tcurrent\t" in terminal.written


@needs_terminal
def test_on_a_terminal_read_ends_the_last_line_and_refuses_bytes(server: Server) -> None:
    with Terminal() as terminal, Started("read", server.url, CONFIG, terminal=terminal) as reading:
        assert ended_on(terminal, reading) == 0
        assert terminal.written == b"colour = blue\r\n"
    with Terminal() as terminal, Started("read", server.url, LOGO, terminal=terminal) as reading:
        assert ended_on(terminal, reading) == 2
        assert terminal.written.startswith(b"mcp-sync: that is binary") and b"--output" in terminal.written


@needs_terminal
def test_on_a_terminal_list_fits_the_width(server: Server) -> None:
    server.add("docs://" + "x" * 300, "?", title="文" * 100)
    with Terminal(columns=50) as terminal, Started("list", server.url, terminal=terminal) as listing:
        assert ended_on(terminal, listing) == 0
        lines = terminal.written.decode("utf-8").splitlines()
    assert len(lines) == 4 and all(width(line) <= 50 for line in lines)
