"""What every caller may rely on, whatever the era and the transport: the six points of the contract.

1. Never stale as fresh. 2. Never backwards. 3. Old data is labelled. 4. Gaps are assumed to hide changes (see
``test_gaps.py``). 5. Access is checked again. 6. Every wait is bounded (see ``test_the_end.py``).
"""

import threading
from typing import Any

import pytest
from combinations import (
    BOUND,
    COMBINATIONS,
    CONFIG,
    NOTIFYING,
    README,
    Changes,
    Late,
    client_of,
    next_change,
    settled,
)

from mcp_sync import AuthorizationError, Client, MCPSyncError, ResourceNotFound, State, TransportError
from mcp_sync.testing import StdioServer, faults

notifying = pytest.mark.parametrize("combination", NOTIFYING, indirect=True)
over_http = pytest.mark.parametrize(
    "combination",
    ["modern, HTTP", "legacy, HTTP, sessions", "legacy, HTTP, no sessions", "legacy, HTTP+SSE"],
    indirect=True,
)


# -- 1. never stale as fresh -------------------------------------------------------------------------------------------


@notifying
def test_a_notice_during_the_first_read_of_a_watch_makes_it_read_again(server: Any, client: Client) -> None:
    changes = Changes()
    with server.hold("resources/read", CONFIG, at="answer") as gate:
        with client.watch(CONFIG, README) as watch, client.watch(README, on_change=changes) as other:
            settled(other, True)
            gate.wait_reached()
            server.update(CONFIG, "colour = red")
            server.update(README, "# Behind it")
            changes.wait_for_text("# Behind it")  # so the notice before it has been read as well
            assert not watch.is_current
            gate.release()
            watch.wait_until_current(timeout=BOUND)
            assert watch.snapshot()[CONFIG].text == "colour = red"
            assert client.read_resource(CONFIG).text == "colour = red"


@notifying
def test_a_call_that_starts_after_a_notice_does_not_join_a_read_that_began_before_it(
    server: Any, client: Client
) -> None:
    with client.watch(CONFIG) as watch:
        settled(watch, True)
        with server.hold("resources/read", CONFIG, at="answer") as gate:
            early = Late(lambda: client.read_resource(CONFIG, cache_mode="refresh").text)
            gate.wait_reached()
            server.update(CONFIG, "colour = red")
            gate.wait_reached(2)  # the watch's own read, which the notice caused
            later = Late(lambda: client.read_resource(CONFIG).text)
            gate.release(1)
            assert early.result() == "colour = blue"
            gate.release()
            assert later.result() == "colour = red"


@notifying
def test_a_burst_of_updates_ends_with_the_last_one(server: Any, client: Client) -> None:
    changes = Changes()
    with client.watch(CONFIG, on_change=changes) as watch:
        settled(watch, True)
        for number in range(200):
            server.update(CONFIG, "colour = %d" % number)
        changes.wait_for_text("colour = 199")
        watch.wait_until_current(timeout=BOUND)
        assert client.read_resource(CONFIG).text == "colour = 199"


@notifying
def test_while_it_changes_without_pause_every_call_gets_what_was_true_when_it_began_or_later(
    server: Any, client: Client
) -> None:
    with client.watch(CONFIG) as watch:
        settled(watch, True)
        seen = 0
        for number in range(1, 40):
            server.update(CONFIG, str(number))
            # Read by the client itself, so that the notice for it may or may not have been read: either is allowed, but
            # never less than what an earlier call got.
            text = client.read_resource(CONFIG).text
            now = 0 if text == "colour = blue" else int(text)
            assert seen <= now <= number
            seen = now
        watch.wait_until_current(timeout=BOUND)
        next_text = client.read_resource(CONFIG, cache_mode="refresh").text
        assert next_text == "39"


@notifying
def test_a_notice_for_a_part_or_another_spelling_of_a_resource_makes_it_stale(server: Any, client: Client) -> None:
    changes = Changes()
    with client.watch(CONFIG, on_change=changes) as watch:
        settled(watch, True)
        for number, spelling in enumerate((CONFIG + "/part", CONFIG + "/", "DOCS://SERVICE/config")):
            server.update(CONFIG, "colour = %d" % number, notify=False)
            server.notify_updated(CONFIG, as_uri=spelling)
            changes.wait_for_text("colour = %d" % number)


# -- 2. never backwards ------------------------------------------------------------------------------------------------


def test_a_read_that_began_earlier_does_not_replace_one_that_began_later(server: Any, client: Client) -> None:
    client.discover()  # from here on, every read that the server sees is one
    looked_up, go_on = threading.Event(), threading.Event()

    def late(call: Any) -> Any:
        answer = call.proceed()
        looked_up.set()
        assert go_on.wait(BOUND)
        return answer

    # Nobody is told of the change, so that only the order of the reads can decide.
    server.inject(late, method="resources/read", uri=CONFIG, times=1)
    early = Late(lambda: client.read_resource(CONFIG, cache_mode="refresh").text)
    try:
        assert looked_up.wait(BOUND)
        server.update(CONFIG, "colour = red", notify=False)
        assert client.read_resource(CONFIG, cache_mode="refresh").text == "colour = red"
        assert early.waits
    finally:
        go_on.set()
    assert early.result() == "colour = blue"
    server.inject(faults.JsonRpcError(-32603, "broken"), method="resources/read", times=None)
    kept = client.read_resource(CONFIG, stale_ok=True)
    assert (kept.text, kept.stale) == ("colour = red", True)


@notifying
def test_what_a_watch_shows_does_not_go_back_when_a_late_answer_comes(server: Any, client: Client) -> None:
    changes = Changes()
    with client.watch(CONFIG, on_change=changes) as watch:
        settled(watch, True)
        gate = server.hold("resources/read", CONFIG, at="answer")
        late = Late(lambda: client.read_resource(CONFIG, cache_mode="refresh").text)
        gate.wait_reached()
        server.update(CONFIG, "colour = red")
        gate.wait_reached(2)
        server.update(CONFIG, "colour = green")
        gate.release()
        assert late.result() == "colour = blue"
        changes.wait_for_text("colour = green")
        watch.wait_until_current(timeout=BOUND)
        assert watch.snapshot()[CONFIG].text == client.read_resource(CONFIG).text == "colour = green"


# -- 3. old data is labelled -------------------------------------------------------------------------------------------


def test_while_the_server_is_away_a_caller_gets_an_error_or_a_labelled_copy(
    server: Any, client: Client, notifies: bool
) -> None:
    with client.watch(CONFIG) as watch:
        settled(watch, notifies)
        server.kill()
        if notifies:
            watch.wait_for_state(State.INTERRUPTED, timeout=BOUND)
        with pytest.raises(TransportError):
            client.read_resource(CONFIG, cache_mode="refresh")
        copy = client.read_resource(CONFIG, cache_mode="refresh", stale_ok=True)
        assert (copy.text, copy.stale) == ("colour = blue", True)
        assert copy.age >= 0.0
        if notifies:
            assert not watch.is_current
            assert watch.snapshot().stale


def test_a_copy_that_nobody_keeps_current_is_read_anew(server: Any, client: Client) -> None:
    client.discover()
    assert client.read_resource(CONFIG).text == "colour = blue"
    server.update(CONFIG, "colour = red")
    assert client.read_resource(CONFIG).text == "colour = red"
    assert server.count("resources/read", CONFIG) == 2


# -- 5. access is checked again ----------------------------------------------------------------------------------------


def test_a_resource_that_is_removed_leaves_no_copy_and_may_appear_again(
    server: Any, client: Client, notifies: bool
) -> None:
    with client.watch(CONFIG, README) as watch:
        settled(watch, notifies)
        server.remove(CONFIG)
        removed = next_change(watch, "removed")
        assert (removed.uri, removed.current) == (CONFIG, None)
        with pytest.raises(ResourceNotFound):
            client.read_resource(CONFIG, stale_ok=True)
        watch.wait_until_current(timeout=BOUND)
        assert watch.snapshot().missing == {CONFIG}
        server.add(CONFIG, "colour = red")
        appeared = next_change(watch, "appeared")
        assert (appeared.uri, appeared.current.text) == (CONFIG, "colour = red")  # type: ignore[union-attr]
        assert client.read_resource(CONFIG).text == "colour = red"


def test_a_resource_that_was_never_there_is_watched_until_it_appears(
    server: Any, client: Client, notifies: bool
) -> None:
    uri = "docs://service/new"
    with client.watch(uri) as watch:
        settled(watch, notifies)
        assert watch.snapshot().missing == {uri}
        server.add(uri, "here")
        assert next_change(watch, "appeared").uri == uri


@over_http
def test_a_watched_resource_that_may_not_be_seen_any_more_is_gone_for_those_too_who_accept_old_data(
    server: Any, client: Client
) -> None:
    with client.watch(CONFIG) as watch:
        settled(watch, True)
        server.inject(faults.Status(403), method="resources/read", uri=CONFIG, times=None)
        with pytest.raises(AuthorizationError):
            client.read_resource(CONFIG, cache_mode="refresh", stale_ok=True)
        assert next_change(watch, "removed").uri == CONFIG
        # It is not only this once: there is nothing left that could be given.
        server.clear_faults()
        server.inject(faults.JsonRpcError(-32603, "broken"), method="resources/read", times=None)
        with pytest.raises(MCPSyncError):
            client.read_resource(CONFIG, stale_ok=True)


@over_http
def test_each_principal_reads_its_own_copy(combination: str) -> None:
    with COMBINATIONS[combination](authenticate=lambda headers: headers.get("Authorization")) as server:
        server.add(CONFIG, lambda principal: "for %s" % principal)
        with client_of(server, headers={"Authorization": "alice"}) as alice:
            bob = alice.as_principal("bob", headers={"Authorization": "bob"})
            with alice.watch(CONFIG) as of_alice, bob.watch(CONFIG) as of_bob:
                settled(of_alice, True)
                settled(of_bob, True)
                assert alice.read_resource(CONFIG).text == "for alice"
                assert bob.read_resource(CONFIG).text == "for bob"
            server.inject(faults.JsonRpcError(-32603, "broken"), method="resources/read", times=None)
            assert alice.read_resource(CONFIG, stale_ok=True).text == "for alice"
            assert bob.read_resource(CONFIG, stale_ok=True).text == "for bob"


# -- 6. every wait is bounded ------------------------------------------------------------------------------------------


def test_a_call_that_is_not_answered_ends_in_time_and_the_next_one_is_answered(server: Any, client: Client) -> None:
    client.read_resource(README)
    with server.hold("resources/read", CONFIG):
        with pytest.raises(MCPSyncError, match="0.2 s"):
            client.read_resource(CONFIG, timeout=0.2)
        # What stands still holds nobody else up.
        assert client.read_resource(README).text == "# Read me"
    assert client.read_resource(CONFIG).text == "colour = blue"


def test_waiting_for_what_does_not_come_ends_in_time(server: Any, client: Client, notifies: bool) -> None:
    with server.hold("resources/read", CONFIG):
        with client.watch(CONFIG) as watch:
            with pytest.raises(MCPSyncError, match="0.2 s"):
                watch.wait_until_current(timeout=0.2)
            assert list(watch.changes(timeout=0.01)) == []
            with pytest.raises(MCPSyncError):
                watch.snapshot()


def test_all_threads_of_a_client_are_daemons(server: Any, client: Client, notifies: bool) -> None:
    with client.watch(CONFIG, catalog=True, on_change=Changes()) as watch:
        settled(watch, notifies)
        ours = [thread for thread in threading.enumerate() if thread.name.startswith("mcp_sync-re")]
        assert ours and all(thread.daemon for thread in ours)
        if isinstance(server, StdioServer):
            assert [thread.daemon for thread in threading.enumerate() if "-stdio-" in thread.name] == [True]
