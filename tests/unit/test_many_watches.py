"""Thousands of watches that come and go one by one cost each other little, and forget nobody."""

import os
from typing import Any, Iterator, List

import pytest

from mcp_sync import Client
from mcp_sync.testing import Server

BOUND = 30.0

A, B = "docs://a", "docs://b"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        server.add(A, "a1")
        server.add(B, "b1")
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


def test_what_two_watches_want_is_kept_until_both_are_closed(server: Server, client: Client) -> None:
    one, other = client.watch(A, catalog=True), client.watch(A, B, catalog=True)
    other.wait_until_current(timeout=BOUND)
    one.close()
    one.close()
    assert client._upkeep._wanted.resource_subscriptions == {A, B}
    assert client._upkeep._wanted.lists == {"resources"}
    server.update(A, "a2")
    assert next(iter(other.changes(timeout=BOUND))).uri == A
    other.close()
    assert not client._upkeep._wanted
    assert not client._upkeep._watching and not client._upkeep._more


def test_a_watch_that_names_a_resource_twice_wants_it_once(server: Server, client: Client) -> None:
    with client.watch(A, A) as watch:
        watch.wait_until_current(timeout=BOUND)
    assert not client._upkeep._wanted


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork()")
@pytest.mark.parametrize("first", [True, False], ids=["before it is counted", "when it is counted by half"])
def test_a_child_that_is_forked_while_a_watch_comes_knows_what_is_watched(
    server: Server, client: Client, monkeypatch: Any, first: bool
) -> None:
    client.watch(A).wait_until_current(timeout=BOUND)
    upkeep = client._upkeep
    counted = upkeep._rewanted_locked
    statuses: List[int] = []

    def fork_at_once(watch: Any, more: int) -> None:
        monkeypatch.undo()
        if not first:
            upkeep._more.update([watch.queries[0]])
        child = os.fork()
        if not child:
            os._exit(0 if in_child() else 1)
        statuses.append(os.waitpid(child, 0)[1])
        if not first:
            upkeep._more.clear()
        counted(watch, more)

    def in_child() -> bool:
        try:
            both = set(upkeep._watching) == {query for watch in client.watches for query in watch.queries}
            one, other = client.watches
            other.close()
            left = upkeep._wanted.resource_subscriptions == {A} and not upkeep._more
            one.close()
            return both and left and not upkeep._wanted and not upkeep._watching
        except BaseException:
            return False

    monkeypatch.setattr(upkeep, "_rewanted_locked", fork_at_once)
    client.watch(A, B)
    assert statuses == [0]


def test_one_more_watch_makes_no_query_anew_for_those_that_are_there(client: Client, monkeypatch: Any) -> None:
    from mcp_sync import upkeep

    uris = ["docs://%d" % number for number in range(50)]
    for uri in uris:
        client.watch(uri)
    made: List[str] = []
    real = upkeep.read_query

    def counted(uri: str) -> Any:
        made.append(uri)
        return real(uri)

    monkeypatch.setattr(upkeep, "read_query", counted)
    client.watch("docs://50")
    assert set(made) == {"docs://50"}
