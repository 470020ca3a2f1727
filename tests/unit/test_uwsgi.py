"""Inside uWSGI, as far as its module can be acted: what runs where no thread does, and before it forks. See also tests/guests."""

import os
import sys
import threading
import types
from typing import Any, Iterator, List

import pytest

from mcp_sync import Client, State, _fork, _uwsgi
from mcp_sync.testing import Server

CONFIG = "docs://service/config"


@pytest.fixture
def uwsgi(monkeypatch: Any) -> Any:
    """Its module, as a worker of a uWSGI with threads has it."""
    module: Any = types.ModuleType("uwsgi")
    module.has_threads = 1
    module.opt = {}
    module.worker_id = lambda: 1
    module.mule_id = lambda: 0
    module.i_am_the_spooler = lambda: False
    monkeypatch.setitem(sys.modules, "uwsgi", module)
    monkeypatch.setattr(_uwsgi, "_forked", False)
    monkeypatch.setattr(_uwsgi, "_imported_in", os.getpid())
    return module


@pytest.fixture
def server() -> "Iterator[Server]":
    with Server() as server:
        server.add(CONFIG, "colour = blue")
        yield server


def ours() -> "List[str]":
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("mcp_sync-re")]


def test_outside_of_it_nothing_is_different() -> None:
    assert not _uwsgi.is_here() and _uwsgi.runs_threads() and not _uwsgi.is_about_to_fork()


def test_only_what_loads_the_application_for_others_is_about_to_fork(uwsgi: Any) -> None:
    assert _uwsgi.is_here() and not _uwsgi.is_about_to_fork()
    uwsgi.worker_id = lambda: 0
    assert _uwsgi.is_about_to_fork()
    uwsgi.opt["py-call-uwsgi-fork-hooks"] = True
    assert not _uwsgi.is_about_to_fork()
    uwsgi.opt.clear()
    uwsgi.i_am_the_spooler = lambda: True
    assert not _uwsgi.is_about_to_fork()


def test_its_hook_is_called_besides_what_the_application_has_there(uwsgi: Any) -> None:
    called: "List[str]" = []
    uwsgi.post_fork_hook = lambda: called.append("theirs")
    uwsgi.worker_id = lambda: 0
    _uwsgi.after_fork(lambda: called.append("ours"))
    uwsgi.post_fork_hook()
    assert called == ["ours", "theirs"] and not _uwsgi.is_about_to_fork()


def test_without_threads_what_is_watched_is_read_by_those_who_ask(uwsgi: Any, server: Server) -> None:
    uwsgi.has_threads = 0
    told: "List[Any]" = []
    with Client(server.url, poll_interval=0.2) as client:
        with pytest.warns(RuntimeWarning, match="--enable-threads") as caught:
            watch = client.watch(CONFIG, "docs://missing", on_change=told.append)
            client.watch(CONFIG)
        assert len(caught) == 1 and caught[0].filename == __file__
        watch.wait_until_current(timeout=10)
        assert watch.status.state is State.POLLING and "--enable-threads" in (watch.status.last_error or "")
        assert client.read_resource(CONFIG).text == "colour = blue"

        server.update(CONFIG, "colour = red")
        change = next(watch.changes(timeout=10))
        assert change.current is not None and client.read_resource(CONFIG).text == "colour = red"
        assert [(change.kind, change.uri) for change in told] == [("updated", CONFIG)]
        server.add("docs://missing", "found")
        assert [(change.kind, change.uri) for change in (next(watch.changes(timeout=10)),)] == [("appeared", "docs://missing")]
        assert not ours() and server.count("subscriptions/listen") == 0
        watch.close()
        assert list(watch.changes(timeout=10)) == []
    assert not ours()


def test_without_threads_a_wait_for_what_cannot_be_had_ends(uwsgi: Any, server: Server) -> None:
    from mcp_sync import RequestTimeout

    uwsgi.has_threads = 0
    server.stop()
    with Client(server.url) as client, pytest.warns(RuntimeWarning):
        watch = client.watch(CONFIG)
        with pytest.raises(RequestTimeout, match="cannot be reached"):
            watch.wait_until_current(timeout=0.1)


def test_without_threads_a_listener_that_reads_is_not_called_within_itself(uwsgi: Any, server: Server) -> None:
    uwsgi.has_threads = 0
    depth: "List[int]" = []
    inside: "List[str]" = []

    def listener(change: Any) -> None:
        inside.append(change.current.text)
        depth.append(len(inside))
        if change.current.text == "colour = red":
            server.update(CONFIG, "colour = green")
            client.read_resource(CONFIG, cache_mode="refresh")
        depth.append(-len(inside))

    with Client(server.url) as client, pytest.warns(RuntimeWarning):
        watch = client.watch(CONFIG, on_change=listener)
        watch.wait_until_current(timeout=10)
        server.update(CONFIG, "colour = red")
        client.read_resource(CONFIG, cache_mode="refresh")
        assert inside == ["colour = red", "colour = green"] and depth == [1, -1, 2, -2]


def test_before_the_fork_nothing_starts_and_afterwards_everything_does(uwsgi: Any, server: Server) -> None:
    uwsgi.worker_id = lambda: 0
    with Client(server.url) as client:
        watch = client.watch(CONFIG)
        watch.wait_until_current(timeout=10)
        assert watch.status.state is State.POLLING and watch.status.last_error is None and not ours()
        uwsgi.worker_id = lambda: 1
        assert client.read_resource(CONFIG).text == "colour = blue"
        watch.wait_for_state(State.LIVE, timeout=10)
        server.wait_for_streams(1, timeout=10)


def test_a_fork_that_nobody_told_of_is_caught_up_with_once(uwsgi: Any, monkeypatch: Any) -> None:
    class Owner:
        told = 0

        def after_fork_in_child(self) -> None:
            self.told += 1

    owner = Owner()
    monkeypatch.setattr(_fork, "_registered", [owner])
    monkeypatch.setattr(_fork, "_told_in", -1)
    monkeypatch.setattr(_fork, "_telling", {})
    threads = [threading.Thread(target=_fork.catch_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    _fork.catch_up()
    assert owner.told == 1


def test_inside_it_a_hit_in_memory_looks_whether_this_is_another_process(uwsgi: Any, server: Server, monkeypatch: Any) -> None:
    with Client(server.url, default_ttl=3600) as client:
        client.read_resource(CONFIG)
        looked: "List[int]" = []
        monkeypatch.setattr(client._upkeep, "revive", lambda: looked.append(1))
        client.read_resource(CONFIG)
        assert looked and server.count("resources/read") == 1
