"""Notices that come again and again: each is heard, and none costs memory."""

import json
import tracemalloc
from typing import Any, Dict, Iterator, List

import pytest
from posting import URI, listening

from mcp_sync import Client
from mcp_sync.jsonrpc import Notification, Response
from mcp_sync.reads import read_query
from mcp_sync.testing import Server
from mcp_sync.transports._answer import Answer
from mcp_sync.upkeep import _Meanings

UPDATED = "notifications/resources/updated"
CONFIG = "docs://service/config"
README = "docs://service/readme"


class Pieces:
    """The body of an answer that is a stream of these messages."""

    status = 200
    headers = {"Content-Type": "text/event-stream"}

    def __init__(self, messages: "Iterator[Dict[str, Any]]") -> None:
        self.messages = messages

    def chunks(self) -> "Iterator[bytes]":
        for message in self.messages:
            yield b"data: " + json.dumps(message).encode("utf-8") + b"\n\n"

    def farewell(self) -> None:
        pass


def said(method: str, **params: Any) -> "Dict[str, Any]":
    return {"jsonrpc": "2.0", "method": method, "params": params}


def answer_to(outgoing: Any, messages: "Iterator[Dict[str, Any]]") -> "Iterator[Any]":
    return Answer(Pieces(messages), "the server", outgoing, 1 << 20).messages()  # type: ignore[arg-type]


# -- as messages -------------------------------------------------------------------------------------------------------


def test_each_of_many_notices_that_are_alike_is_a_message() -> None:
    outgoing = listening()
    sent = [said(UPDATED, uri=uri) for uri in (URI, URI, "docs://b", URI, "docs://b")]
    end = {"jsonrpc": "2.0", "id": outgoing.message["id"], "result": {}}
    got = list(answer_to(outgoing, iter(sent + [end])))
    assert [message.params["uri"] for message in got[:-1]] == [URI, URI, "docs://b", URI, "docs://b"]
    assert isinstance(got[-1], Response)


def test_what_a_program_gets_hold_of_is_its_own_each_time() -> None:
    outgoing = listening()
    sent = [said("notifications/message", level="info", data={"a": [1]})] * 2
    end = {"jsonrpc": "2.0", "id": outgoing.message["id"], "result": {}}
    first, second, _ = answer_to(outgoing, iter(sent + [end]))
    assert isinstance(first, Notification) and first == second
    assert first.params is not second.params and first.params["data"] is not second.params["data"]


@pytest.mark.parametrize("length, count", [(500, 10000), (50000, 300)])
def test_notices_about_any_number_of_resources_take_no_memory(length: int, count: int) -> None:
    outgoing = listening()
    sent = (said(UPDATED, uri="docs://%d/%s" % (number, "x" * length)) for number in range(count))
    got = answer_to(outgoing, sent)
    next(got)
    tracemalloc.start()
    try:
        for _ in range(count - 1):
            next(got)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 << 20, peak


# -- what they mean ----------------------------------------------------------------------------------------------------


class TwoCopies:
    """Of each resource there is a private copy, and one for all."""

    @staticmethod
    def keys(query: Any) -> "List[Any]":
        return [("me", query.uri), (None, query.uri)]


def test_a_notice_means_all_copies_of_what_it_names_and_of_what_is_watched_of_that() -> None:
    meanings = _Meanings(["docs://h/a", "DOCS://H/a/", "docs://h"], TwoCopies)  # type: ignore[arg-type]
    for _ in range(2):
        keys, watched = meanings.meant_by("docs://h/a")
        assert watched == tuple(map(read_query, ["docs://h/a", "DOCS://H/a/", "docs://h"]))
        assert keys == tuple((who, query.uri) for query in watched for who in ("me", None))
        # Something may hold a copy of what nobody watches.
        assert meanings.meant_by("docs://other") == ((("me", "docs://other"), (None, "docs://other")), ())


def test_what_is_remembered_of_meanings_does_not_grow_with_the_number_of_names() -> None:
    meanings = _Meanings(["docs://h"], TwoCopies)  # type: ignore[arg-type]
    for number in range(2500):
        assert len(meanings.meant_by("docs://h/%d" % number)[1]) == 1
        assert len(meanings.meant_by("docs://h/%s%d" % ("x" * 3000, number))[1]) == 1
        assert len(meanings._meant) <= _Meanings._REMEMBERED
    assert not any(len(uri) > 2000 for uri in meanings._meant)


@pytest.fixture
def server() -> "Iterator[Server]":
    with Server() as server:
        server.add(CONFIG, "old", ttl_ms=3600000)
        server.add(README, "old", ttl_ms=3600000)
        yield server


def told_until(watch: Any, uri: str, text: str) -> None:
    for change in watch.changes(timeout=10):
        if change.uri == uri and getattr(change.current, "text", None) == text:
            return
    raise AssertionError("it was not told: %s" % watch.status)


def test_a_notice_that_concerned_nobody_concerns_who_watches_later(server: Server) -> None:
    with Client(server.url, throttle=0.01) as client, client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        server.notify_updated(CONFIG, as_uri=README)
        server.update(CONFIG, "new")
        told_until(watch, CONFIG, "new")  # so the one before it was heard as well
        with client.watch(README) as later:
            later.wait_until_current(timeout=10)
            server.update(README, "new", notify=False)
            server.notify_updated(CONFIG, as_uri=README)
            told_until(later, README, "new")


def test_a_copy_that_nobody_watches_is_out_of_date_at_each_notice_about_it(server: Server) -> None:
    with Client(server.url, throttle=0.01) as client, client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        assert client.read_resource(README).text == "old"
        for number in range(3):
            text = "version %d" % number
            server.update(README, text, notify=False)
            server.notify_updated(CONFIG, as_uri=README)
            server.update(CONFIG, text)
            told_until(watch, CONFIG, text)
            assert client.read_resource(README).text == text


def test_the_old_copy_is_given_to_nobody_while_it_is_being_found_out_whom_a_notice_concerns(
    server: Server, monkeypatch: "pytest.MonkeyPatch"
) -> None:
    with Client(server.url, throttle=0.01) as client, client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        given: List[Any] = []

        def looked(watched: Any, reads: Any) -> _Meanings:
            given.append(client._reads.fresh(read_query(CONFIG)))
            return _Meanings(watched, reads)

        monkeypatch.setattr("mcp_sync.upkeep._Meanings", looked)
        server.update(CONFIG, "new")
        told_until(watch, CONFIG, "new")
        assert given == [None]
