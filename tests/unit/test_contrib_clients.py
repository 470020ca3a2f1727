"""The clients of one process, by alias."""

import os
import subprocess
import sys
import threading
from typing import Any, Iterator, List, Tuple

import pytest
from rawserver import BOUND

from mcp_sync import Change, Client
from mcp_sync.contrib.clients import Clients
from mcp_sync.contrib.settings import SettingsError
from mcp_sync.testing import Server

CONFIG = "docs://service/config"


@pytest.fixture
def server() -> "Iterator[Server]":
    with Server() as server:
        server.add(CONFIG, "colour = blue")
        yield server


def test_a_client_is_made_when_it_is_first_looked_up_and_only_once(server: Server) -> None:
    asked: "List[int]" = []

    def read() -> Any:
        asked.append(1)
        return {"default": server.url, "other": server.url}

    clients = Clients(read)
    assert asked == []
    try:
        assert clients["default"] is clients["default"] is not clients["other"]
        assert asked == [1] and server.count() == 0
        assert clients["default"].read_resource(CONFIG).text == "colour = blue"
        assert clients.watch("default") is None
    finally:
        clients.close()


def test_it_is_a_mapping_whose_names_start_nothing(server: Server) -> None:
    clients = Clients(lambda: {"default": {"target": server.url, "watch": [CONFIG]}, "wrong": 7})
    assert list(clients) == ["default", "wrong"] and len(clients) == 2
    assert "default" in clients and "wrong" in clients and "none" not in clients
    assert repr(clients) == "<Clients of MCP_SERVERS: default, wrong>"
    assert server.count() == 0
    clients.close()


def test_what_the_settings_name_is_watched_from_the_first_lookup_on(server: Server) -> None:
    clients = Clients(lambda: {"default": {"target": server.url, "watch": [CONFIG], "catalog": True}})
    changes: "List[Tuple[str, Client, Change]]" = []
    told = threading.Event()

    @clients.on_change
    def broken(*_: Any) -> None:
        raise LookupError

    @clients.on_change
    def note(alias: str, client: Client, change: Change) -> None:
        changes.append((alias, client, change))
        told.set()

    try:
        watch = clients.watch("default")
        assert watch is not None and watch.uris == (CONFIG,) and watch.catalog
        watch.wait_until_current(timeout=BOUND)
        server.update(CONFIG, "colour = red")
        assert told.wait(BOUND)
        [(alias, client, change)] = changes
        assert (alias, client, change.kind, change.uri) == ("default", clients["default"], "updated", CONFIG)
        assert client.watches == (watch,)
    finally:
        clients.close()
    assert watch.closed and client.closed and client.watches == ()


def test_a_name_that_is_not_there_is_an_error_that_names_those_that_are() -> None:
    clients = Clients(lambda: {"default": "https://docs.example.com/mcp"})
    with pytest.raises(SettingsError, match="there is no server 'docs' in MCP_SERVERS; there are: 'default'"):
        clients["docs"]
    with pytest.raises(SettingsError, match="there are: none"):
        Clients(lambda: None)["default"]


def test_a_server_whose_settings_are_wrong_does_not_keep_the_others_from_working(server: Server) -> None:
    clients = Clients(lambda: {"default": server.url, "docs": {"target": server.url, "watch": CONFIG}})
    try:
        assert clients["default"].read_resource(CONFIG).text == "colour = blue"
        with pytest.raises(SettingsError, match=r"MCP_SERVERS\['docs'\]\['watch'\] is a text. Write a list of URIs"):
            clients["docs"]
        assert [mistake.alias for mistake in clients.mistakes()] == ["docs"]
    finally:
        clients.close()


def test_settings_that_are_no_dictionary_are_an_error_for_every_name() -> None:
    clients = Clients(lambda: ["https://docs.example.com/mcp"])
    with pytest.raises(SettingsError, match="MCP_SERVERS is a list"):
        clients["default"]
    assert list(clients) == []


def test_closed_clients_are_made_anew_and_the_settings_are_read_again(server: Server) -> None:
    settings: "List[Any]" = [{"default": server.url}]
    clients = Clients(lambda: settings[0])
    first = clients["default"]
    clients.close()
    clients.close()
    assert first.closed
    settings[0] = {"other": server.url}
    assert list(clients) == ["other"]
    assert clients["other"].read_resource(CONFIG).text == "colour = blue"
    clients.close()


def test_threads_that_look_one_up_at_the_same_time_get_the_same(server: Server, monkeypatch: Any) -> None:
    clients = Clients(lambda: {"default": {"target": server.url, "watch": [CONFIG], "auth": __name__ + ".slow"}})
    both = threading.Barrier(2, timeout=BOUND)
    monkeypatch.setattr(sys.modules[__name__], "slow", _Meeting(both), raising=False)
    found: "List[Client]" = []
    threads = [threading.Thread(target=lambda: found.append(clients["default"])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    try:
        assert len(found) == 2 and found[0] is found[1] and not found[0].closed
        assert len(found[0].watches) == 1
    finally:
        clients.close()


class _Meeting:
    """A class is instantiated: here two threads are making a client at once, or the test fails."""

    def __new__(cls, both: threading.Barrier) -> Any:
        def instantiate(self: Any) -> None:
            both.wait()

        return type("Slow", (), {"__init__": instantiate, "__call__": lambda self, request: request})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_goes_on_with_streams_of_its_own_even_if_a_thread_was_making_a_client_at_the_fork(server: Server) -> None:
    program = """
import os, sys, threading
from mcp_sync.contrib.clients import Clients
clients = Clients(lambda: {"default": {"target": sys.argv[1], "watch": [%r]}, "later": {"target": sys.argv[1], "watch": [%r]}})
watch = clients.watch("default")
watch.wait_until_current(timeout=20)
clients._lock.acquire()  # as a thread does that the child does not have
pid = os.fork()
if pid == 0:
    status = 9
    try:
        assert clients["default"].read_resource(%r, timeout=20).text == "colour = blue"
        clients.watch("default").wait_until_current(timeout=20)
        clients.watch("later").wait_until_current(timeout=20)
        clients.close()
        status = 0
    except BaseException:
        import traceback
        traceback.print_exc()
    finally:
        os._exit(status)
watchdog = threading.Timer(40, lambda: os.kill(pid, 9))
watchdog.daemon = True
watchdog.start()
print(os.waitpid(pid, 0)[1], watch.is_current, watch.status.state.value, watch.status.gaps)
clients._lock.release()
""" % (CONFIG, CONFIG, CONFIG)
    assert run(program, server.url) == "0 True live 0\n"


def test_what_is_open_at_the_end_of_a_process_is_closed(server: Server) -> None:
    program = """
import sys
from mcp_sync.contrib.clients import Clients
clients = Clients(lambda: {"default": {"target": sys.argv[1], "watch": [%r]}})
clients.watch("default").wait_until_current(timeout=20)
client = clients["default"]
""" % CONFIG
    # What was registered first is called last.
    check = "import atexit\natexit.register(lambda: print('closed:', client.closed))\n"
    assert run(check + program, server.url) == "closed: True\n"
    server.wait_for_no_streams(timeout=BOUND)


def run(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
