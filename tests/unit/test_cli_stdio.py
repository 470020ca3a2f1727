"""The command line with a server that it starts: what follows ``--``."""

import json
from typing import Any, Iterator, List

import pytest
from test_cli import WAIT, Started, run

from mcp_sync.testing import StdioServer

CONFIG = "docs://service/config"


@pytest.fixture(params=["modern", "legacy"])
def server(request: Any) -> Iterator[StdioServer]:
    with StdioServer(eras=(request.param,), name="the docs") as server:
        server.add(CONFIG, "colour = blue")
        yield server


@pytest.mark.parametrize(
    "argv, wanted",
    [
        (["read", CONFIG], "colour = blue"),
        (["list", "--timeout", "20"], CONFIG),
        (["info"], "the docs"),
        (["watch", "--all", "--initial", "--duration", "0.01"], ""),
    ],
)
def test_every_command_takes_a_server_to_start_and_leaves_nothing_of_it(
    server: StdioServer, argv: List[str], wanted: str, capsys: Any
) -> None:
    assert run(*argv, "--", *server.command) == 0
    told = capsys.readouterr()
    assert wanted in told.out and told.err == ""
    server.wait_for_connections(0, WAIT)
    assert server.happened.count("started") == 1


def test_watch_tells_of_changes_of_a_server_that_it_started_and_ctrl_c_ends_both(server: StdioServer) -> None:
    with Started("watch", CONFIG, "--initial", "--json", "--", *server.command) as watching:
        assert json.loads(watching.line())["kind"] == "current"
        server.update(CONFIG, "colour = red")
        assert json.loads(watching.line())["kind"] == "updated"
        server.update(CONFIG, "colour = green", notify=False)
        server.die()
        assert json.loads(watching.line())["kind"] == "updated", "it was started again, and read"
        watching.interrupt()
        assert watching.ended() == (130, "", "")
    server.wait_for_connections(0, WAIT)


def test_a_server_that_ends_at_its_start_is_3_and_its_last_words_are_told(server: StdioServer, capsys: Any) -> None:
    server.at_start(stderr=b"no licence\n", exit_code=7)
    assert run("read", CONFIG, "--", *server.command) == 3
    told = capsys.readouterr()
    assert told.out == "" and "no licence" in told.err and "7" in told.err


def test_a_command_that_does_not_exist_is_3(capsys: Any) -> None:
    assert run("list", "--", "/no/such/program", "--help") == 3
    assert "/no/such/program" in capsys.readouterr().err


def test_a_token_in_the_environment_is_the_childs_to_take(server: StdioServer, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("MCP_SYNC_BEARER", "token")
    assert run("read", CONFIG, "--", *server.command) == 0
    assert capsys.readouterr().out == "colour = blue"


@pytest.mark.parametrize(
    "argv",
    [
        ["list", "--"],
        ["demo", "--", "server"],
        ["watch", "--", "server"],
        ["read", "--header", "X: y", CONFIG, "--", "server"],
        ["read", "--bearer", "token", CONFIG, "--", "server"],
    ],
)
def test_what_makes_no_sense_with_a_server_to_start_is_2(argv: List[str], capsys: Any) -> None:
    assert run(*argv) == 2
    told = capsys.readouterr().err
    assert told.startswith("mcp-sync: ") and told.count("\n") == 1 and "--help" in told
