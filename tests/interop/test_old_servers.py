"""The client against servers of the legacy eras, and against servers that it starts itself: whatever the era and the
transport, what it serves as current is current.

The client is told an address or a command and no more, but for those whose legacy wire has to be asked for, because
they speak the modern one as well, and one that does not survive the question. Where the server tells of changes, the
poll interval is so long that only what it tells can be the reason why one is seen; the others are polled three times a
second.
"""
import logging
import threading
from contextlib import contextmanager

import pytest

from mcp_sync import ResourceNotFound, State, TransportError

from .following import LIMIT, Changes, Late, Program, eventually
from .old_server import ALL, KINDS, OFTEN, as_json, call_tool, kinds

pytestmark = pytest.mark.interop

TELLING = [kind for kind in ALL if KINDS[kind].keeping != "poll"]
# Those whose resources can stand still in the middle of a read, and tell of a change meanwhile.
HOLDING = [kind for kind in TELLING if KINDS[kind].program != "everything"]
# Python takes a second to start, so that not every test is run with every kind.
SOME_STDIO = ["mcp-1.30-subscribing-stdio", "typescript-stdio", "everything-stdio"]
SOME = kinds(transport="http") + kinds(transport="sse") + SOME_STDIO


@contextmanager
def watching(client, server, *uris, **options):
    """A watch that has settled, and the changes that a thread, waiting in ``changes()``, gets from it."""
    with client.watch(*uris, **options) as watch:
        settled(watch, server)
        changes = Changes(watch)
        yield watch, changes
    changes.end()


def settled(watch, server):
    watch.wait_for_state(State.LIVE if server.told else State.POLLING, timeout=LIMIT)
    watch.wait_until_current(timeout=LIMIT)


# -- finding out -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SOME)
def test_many_threads_at_once_find_out_together(of_kind, kind):
    server = of_kind(kind)
    with server.connected() as client:
        readers = [Late(client, uri) for uri in list(server.texts) * 2]
        assert {reader.result().text for reader in readers} == set(server.texts.values())
        assert client.protocol_version == server.kind.revision
        if server.counts_sessions:
            assert server.count_sessions() == 1


def test_a_server_that_does_not_survive_the_question_for_its_era_is_started_again(of_kind):
    """It neither answers an unknown method nor ends, and ends when the next line comes."""
    server = of_kind("mcp-1.2-stdio")
    with server.connected(era="auto") as client:
        assert client.read_resource(server.config).text == "retries = 3"
        assert client.protocol_version == "2024-11-05"
        assert len(server.pids()) == 1


# -- watching ----------------------------------------------------------------------------------------------------------


def test_the_status_names_what_keeps_each_resource_current(old_server):
    uris = {old_server.config, old_server.readme}
    with old_server.connected() as client, watching(client, old_server, *uris, catalog=True) as (watch, _):
        status = watch.status
        assert status.covered == (uris if old_server.told else set())
        assert status.uncovered == (set() if old_server.told else uris)
        assert status.catalog == ("listen" if old_server.told else "poll")
        assert status.is_live == old_server.told


def test_a_watch_sees_one_change_after_another(old_server):
    uri = old_server.config
    with old_server.connected() as client, watching(client, old_server, uri, old_server.readme) as (_, changes):
        old = client.read_resource(uri)
        old_server.change(client, uri, "retries = 4")
        change = changes.wait_for_text(uri, "retries = 4")
        assert (change.kind, change.previous.text) == ("updated", "retries = 3")
        new = client.read_resource(uri)
        assert (new.text, new.stale) == ("retries = 4", False)
        assert new.version != old.version
        assert client.read_resource(old_server.readme).text == "# The service"
        old_server.change(client, uri, "retries = 5")
        changes.wait_for_text(uri, "retries = 5")


def test_the_catalog_is_watched(old_server):
    with old_server.connected() as client:
        with watching(client, old_server, old_server.config, catalog=True) as (_, changes):
            old_server.add_document(client)
            change = changes.wait_for(lambda change: change.kind == "catalog")
            assert (change.added, change.removed) == ({old_server.added}, frozenset())
            assert old_server.added in client.list_resources().uris


@pytest.mark.parametrize("kind", HOLDING)
def test_a_watched_document_is_served_from_memory(of_kind, kind):
    server = of_kind(kind)
    with server.connected() as client, watching(client, server, server.config):
        before = server.count_reads(server.config)
        assert {client.read_resource(server.config).text for _ in range(100)} == {"retries = 3"}
        assert server.count_reads(server.config) == before


@pytest.mark.parametrize("kind", TELLING)
def test_a_second_watch_widens_the_coverage_without_a_gap(of_kind, kind):
    server = of_kind(kind)
    with server.connected() as client, watching(client, server, server.config) as (first, of_first):
        with watching(client, server, server.readme, server.config) as (second, of_second):
            eventually(lambda: second.status.covered == {server.readme, server.config})
            server.change(client, server.readme, "# Widened")
            of_second.wait_for_text(server.readme, "# Widened")
            server.change(client, server.config, "retries = 4")
            of_first.wait_for_text(server.config, "retries = 4")
            of_second.wait_for_text(server.config, "retries = 4")
            assert first.status.gaps == 0
        server.change(client, server.config, "retries = 5")
        of_first.wait_for_text(server.config, "retries = 5")


def test_a_resource_that_is_not_there_can_be_subscribed_to_and_is_known_to_be_missing(of_kind):
    server = of_kind("everything-http")
    with server.connected() as client, watching(client, server, server.config, server.missing) as (watch, _):
        assert watch.snapshot().missing == {server.missing}
        assert watch.status.covered == {server.config, server.missing}


def test_where_only_the_catalog_is_told_of_the_contents_are_polled(of_kind):
    """Over stdio the legacy wire of the TypeScript SDK says that it can be subscribed to, and knows no such method."""
    server = of_kind("typescript-stdio")
    with server.connected(era="legacy", poll_interval=OFTEN) as client:
        with watching(client, server, server.config, catalog=True) as (watch, changes):
            assert client.protocol_version == "2025-11-25"
            assert (watch.status.uncovered, watch.status.catalog) == ({server.config}, "listen")
            server.write_state(server.config, "retries = 4")
            changes.wait_for_text(server.config, "retries = 4")


# -- the server dies ---------------------------------------------------------------------------------------------------


def test_a_server_is_killed_and_returns_and_the_watch_shows_unasked_what_has_changed_and_what_is_gone(old_server):
    server = old_server
    uris = (server.config, server.readme, server.limits)
    with server.connected() as client, watching(client, server, *uris) as (watch, changes):
        # Before the kill: over stdio the client starts another the moment it ends.
        server.write_state(server.config, "retries = 9")
        server.write_state(server.readme, None)
        server.kill()
        if not server.stdio:
            server.restart()
        wanted = {("updated", server.config), ("removed", server.readme)}
        while wanted:
            change = changes.wait_for(lambda change: (change.kind, change.uri) in wanted)
            wanted.remove((change.kind, change.uri))
            if change.kind == "updated":
                assert (change.previous.text, change.current.text) == ("retries = 3", "retries = 9")
        assert client.read_resource(server.config).text == "retries = 9"
        with pytest.raises(ResourceNotFound):
            client.read_resource(server.readme, stale_ok=True)
        # And all is as before: the next change is seen too.
        settled(watch, server)
        server.change(client, server.limits, "1 request a minute")
        changes.wait_for_text(server.limits, "1 request a minute")
        if server.counts_sessions:
            assert server.count_sessions() == 2


@pytest.mark.parametrize("kind", kinds(transport="http") + kinds(transport="sse"))
def test_while_the_server_is_dead_old_data_is_an_error_or_labelled(of_kind, kind):
    server = of_kind(kind)
    with server.connected() as client, watching(client, server, server.config) as (watch, _):
        server.kill()
        if server.told:
            watch.wait_for_state(State.INTERRUPTED, timeout=LIMIT)
        else:
            eventually(lambda: not watch.is_current)
        with pytest.raises(TransportError):
            client.read_resource(server.config)
        old = client.read_resource(server.config, stale_ok=True)
        assert (old.text, old.stale) == ("retries = 3", True)
        assert not watch.is_current


def test_a_session_that_was_forgotten_between_two_reads_is_begun_again_without_a_word(old_server, caplog):
    server = old_server
    with server.connected() as client:
        assert client.read_resource(server.config).text == "retries = 3"
        server.kill()
        server.write_state(server.config, "retries = 4")
        if not server.stdio:
            server.restart()
        with caplog.at_level(logging.INFO, logger="mcp_sync"):
            assert client.read_resource(server.config).text == "retries = 4"
        assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
        if server.counts_sessions:
            assert server.count_sessions() == 2


@pytest.mark.parametrize("kind", SOME)
def test_a_forgotten_session_is_begun_again_once_for_all_who_read(of_kind, kind):
    server = of_kind(kind)
    with server.connected() as client:
        client.read_resource(server.config)
        server.kill()
        if not server.stdio:
            server.restart()
        readers = [Late(client, uri) for uri in list(server.texts) * 2]
        assert {reader.result().text for reader in readers} == set(server.texts.values())
        if server.counts_sessions:
            assert server.count_sessions() == 2


# -- an update lands while a read is in flight -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", HOLDING)
def test_a_late_result_does_not_replace_the_newer_one_that_overtook_it(of_kind, kind):
    server = of_kind(kind)
    with server.connected() as client, watching(client, server, server.slow) as (watch, changes):
        server.hold_slow()
        late = Late(client, server.slow, cache_mode="refresh")
        server.wait_slow_reached()
        server.change(client, server.slow, "slow, second edition")
        changes.wait_for_text(server.slow, "slow, second edition")
        assert client.read_resource(server.slow).text == "slow, second edition"
        assert late.waits
        server.release_slow()
        assert late.result().text == "slow, first edition"
        assert client.read_resource(server.slow).text == "slow, second edition"
        assert watch.snapshot()[server.slow].text == "slow, second edition"


@pytest.mark.parametrize("kind", HOLDING)
def test_an_update_during_the_first_read_of_a_watch_is_not_lost(of_kind, kind):
    server = of_kind(kind)
    server.hold_slow()
    with server.connected() as client, client.watch(server.slow) as watch:
        server.wait_slow_reached()
        server.change(client, server.slow, "slow, second edition")
        server.release_slow()
        eventually(lambda: client.read_resource(server.slow, timeout=LIMIT).text == "slow, second edition")
        watch.wait_until_current(timeout=LIMIT)
        assert watch.snapshot()[server.slow].text == "slow, second edition"


@pytest.mark.parametrize("kind", kinds(program="fastmcp", keeping="poll"))
def test_a_change_during_a_poll_is_seen_by_the_next_one(of_kind, kind):
    server = of_kind(kind)
    with server.connected() as client, watching(client, server, server.slow) as (_, changes):
        server.hold_slow()
        server.wait_slow_reached()
        server.write_state(server.slow, "slow, second edition")
        server.release_slow()
        changes.wait_for_text(server.slow, "slow, second edition")
        assert client.read_resource(server.slow).text == "slow, second edition"


# -- abilities come and go ---------------------------------------------------------------------------------------------


def test_a_server_that_learned_to_tell_is_listened_to_after_its_restart(of_kind):
    server = of_kind("mcp-1.30-http")
    with server.connected() as client, watching(client, server, server.config) as (watch, changes):
        server.kill()
        server._command = server._command + ["--subscribe"]
        try:
            server.start()
            watch.wait_for_state(State.LIVE, timeout=LIMIT)
            assert watch.status.covered == {server.config}
        finally:
            server.kill()
            server._command = server._command[:-1]
        server.write_state(server.config, "retries = 9")
        server.start()
        changes.wait_for_text(server.config, "retries = 9")
        watch.wait_for_state(State.POLLING, timeout=LIMIT)
        assert watch.status.uncovered == {server.config}
        server.write_state(server.config, "retries = 10")
        changes.wait_for_text(server.config, "retries = 10")


# -- the server asks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", kinds(program="everything"))
def test_the_server_is_told_the_roots_and_given_what_it_asks_for(of_kind, kind):
    server = of_kind(kind)
    asked = []

    def sampled(params):
        asked.append((params["messages"][0]["content"]["text"], threading.current_thread().name))
        return {"role": "assistant", "model": "none", "content": {"type": "text", "text": "an answer"}}

    with server.connected(roots=["file:///srv/docs"], on_sampling=sampled) as client:
        client.discover()
        assert "file:///srv/docs" in call_tool(client, "get-roots-list")
        assert "an answer" in call_tool(client, "trigger-sampling-request", prompt="a question")
    assert len(asked) == 1 and asked[0][0].endswith("a question")


# -- fork --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mcp-1.30-subscribing-http", "mcp-1.2-sse"] + SOME_STDIO)
def test_a_forked_child_reads_the_current_text_and_what_its_parent_watches_goes_on(of_kind, kind):
    server = of_kind(kind)
    with Program("read_after_fork.py", as_json(server), server.config) as program:
        assert program.says() == {"parent": "retries = 3"}
        # Nobody announces it, so that only a read of the child's own can show it.
        server.write_state(server.config, "retries = 4")
        program.go_on()
        assert program.says() == {"child": ["retries = 4", "retries = 4"]}
        program.go_on()
        state = "LIVE" if server.told else "POLLING"
        assert program.says() == {"changed": "retries = 4", "state": state, "gaps": 0}
        assert program.says() == {"parent": "retries = 4"}
        assert program.ends() == 0
