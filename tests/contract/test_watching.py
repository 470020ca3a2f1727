"""What a watch does besides keeping things current: changes(), snapshots, coverage in part, several watches."""

from typing import Any

import pytest
from combinations import (
    BOUND,
    CONFIG,
    LIMITS,
    MISSING,
    NOTIFYING,
    README,
    Changes,
    Late,
    client_of,
    next_change,
    settled,
)

from mcp_sync import Client
from mcp_sync.testing import faults

notifying = pytest.mark.parametrize("combination", NOTIFYING, indirect=True)


# -- changes() ---------------------------------------------------------------------------------------------------------


@notifying
def test_changes_that_nobody_has_fetched_are_merged_into_one(server: Any, client: Client) -> None:
    seen = Changes()
    with client.watch(CONFIG, README, on_change=seen) as watch:
        settled(watch, True)
        for text in ("colour = red", "colour = green", "colour = white"):
            server.update(CONFIG, text)
            seen.wait_for_text(text)
        server.update(README, "# Another")
        seen.wait_for_text("# Another")
        fetched = watch.changes(timeout=0)
        change = next(fetched)
        assert (change.uri, change.kind, change.merged) == (CONFIG, "updated", 2)
        assert (change.previous.text, change.current.text) == ("colour = blue", "colour = white")
        assert [other.uri for other in fetched] == [README]


def test_changes_ends_with_its_watch(client: Client, notifies: bool) -> None:
    with client.watch(CONFIG) as watch:
        settled(watch, notifies)
        waiting = Late(lambda: list(watch.changes()))
    assert waiting.result() == []


def test_a_change_to_the_same_content_is_none(server: Any, client: Client, notifies: bool) -> None:
    seen = Changes()
    with client.watch(CONFIG, README, on_change=seen) as watch:
        settled(watch, notifies)
        server.update(CONFIG, "colour = blue")
        server.update(README, "# Another")
        seen.wait_for_text("# Another")
        watch.wait_until_current(timeout=BOUND)
        assert [change.uri for change in watch.changes(timeout=0)] == [README]


def test_the_catalog_changes_apart_from_the_contents(server: Any, client: Client, notifies: bool) -> None:
    with client.watch(CONFIG, catalog=True) as watch:
        settled(watch, notifies)
        server.remove(LIMITS)
        change = next_change(watch, "catalog")
        assert (change.uri, change.added, change.removed) == (None, frozenset(), {LIMITS})
        assert client.list_resources().uris == (CONFIG, README)
        assert client.read_resource(CONFIG).text == "colour = blue"


@notifying
def test_a_watch_of_the_catalog_alone_reads_no_contents(server: Any, client: Client) -> None:
    client.discover()
    with client.watch(catalog=True) as watch:
        settled(watch, True)
        server.add(MISSING, "here")
        assert next_change(watch, "catalog").added == {MISSING}
        assert server.count("resources/read") == 0


# -- snapshots ---------------------------------------------------------------------------------------------------------


def test_a_snapshot_stays_as_it_was_and_says_what_has_moved(server: Any, client: Client, notifies: bool) -> None:
    with client.watch(CONFIG, README, MISSING, catalog=True) as watch:
        settled(watch, notifies)
        pinned = watch.snapshot()
        assert dict(pinned) == {CONFIG: pinned[CONFIG], README: pinned[README]}
        assert pinned.missing == {MISSING}
        assert pinned.catalog is not None and CONFIG in pinned.catalog.uris
        server.update(CONFIG, "colour = red")
        next_change(watch, uri=CONFIG)
        watch.wait_until_current(timeout=BOUND)
        assert pinned[CONFIG].text == "colour = blue"
        assert not pinned.is_current()
        assert (CONFIG, "updated") in [(change.uri, change.kind) for change in pinned.moved()]
        assert watch.snapshot()[CONFIG].text == "colour = red"


# -- coverage in part --------------------------------------------------------------------------------------------------


@notifying
def test_what_the_server_does_not_notify_about_is_polled_beside_what_it_does(server: Any) -> None:
    seen = Changes()
    # The one that lives by notices must not be seen by a poll, nor the other one by a notice.
    server.inject(faults.AcknowledgeOnly([CONFIG]), method="subscriptions/listen", times=None)
    server.inject(faults.JsonRpcError(-32602, "not this one"), method="resources/subscribe", uri=README, times=None)
    with client_of(server) as client, client.watch(CONFIG, README, on_change=seen) as watch:
        settled(watch, True)
        assert (watch.status.covered, watch.status.uncovered) == ({CONFIG}, {README})
        assert not watch.status.is_live
        server.update(README, "# Polled", notify=False)
        seen.wait_for_text("# Polled")
        server.update(CONFIG, "colour = red", notify=False)
        before = server.count("resources/read", README)
        server.wait_for_requests("resources/read", before + 3, BOUND, uri=README)
        assert client.read_resource(CONFIG).text == "colour = blue", "it is not polled"
        server.notify_updated(CONFIG)
        seen.wait_for_text("colour = red")


@notifying
def test_a_server_that_lets_nothing_be_listened_to_is_polled(server: Any) -> None:
    seen = Changes()
    refusal = faults.JsonRpcError(-32601, "Method not found")
    server.inject(refusal, method="subscriptions/listen", times=None)
    server.inject(refusal, method="resources/subscribe", times=None)
    with client_of(server) as client, client.watch(CONFIG, on_change=seen) as watch:
        settled(watch, False)
        assert (watch.status.covered, watch.status.uncovered) == (set(), {CONFIG})
        server.update(CONFIG, "colour = red")
        seen.wait_for_text("colour = red")


def test_the_raw_stream_says_what_the_server_agreed_to(client: Client, notifies: bool) -> None:
    with client.listen(CONFIG, resources_list_changed=True, timeout=BOUND) as stream:
        assert stream.acknowledged.resource_subscriptions == ({CONFIG} if notifies else set())
        assert stream.acknowledged.resources_list_changed == notifies


@notifying
def test_the_raw_stream_gives_the_notices_in_their_order(server: Any, client: Client) -> None:
    with client.listen(CONFIG, README, timeout=BOUND) as stream:
        assert stream.acknowledged.resource_subscriptions == {CONFIG, README}
        server.update(CONFIG, "colour = red")
        server.update(README, "# Another")
        server.update(CONFIG, "colour = green")
        assert [next(stream).uri for _ in range(3)] == [CONFIG, README, CONFIG]  # type: ignore[attr-defined]


# -- several watches ---------------------------------------------------------------------------------------------------


def test_two_watches_of_one_resource_both_see_its_change(server: Any, client: Client, notifies: bool) -> None:
    with client.watch(CONFIG) as first, client.watch(CONFIG) as second:
        settled(first, notifies)
        settled(second, notifies)
        server.update(CONFIG, "colour = red")
        assert next_change(first).current.text == "colour = red"  # type: ignore[union-attr]
        assert next_change(second).current.text == "colour = red"  # type: ignore[union-attr]


@notifying
def test_a_watch_that_closes_leaves_the_others_and_the_last_one_ends_the_stream(server: Any, client: Client) -> None:
    first = client.watch(CONFIG)
    second = client.watch(CONFIG, README)
    settled(second, True)
    first.close()
    server.update(CONFIG, "colour = red")
    assert next_change(second).uri == CONFIG
    assert second.status.gaps == 0
    second.close()
    if not client_keeps_its_channel(server):
        server.wait_for_no_streams(timeout=BOUND)
    server.update(CONFIG, "colour = green")
    assert client.read_resource(CONFIG).text == "colour = green"


def client_keeps_its_channel(server: Any) -> bool:
    """Whether what carries notices also carries everything else, and so lasts as long as the client."""
    return "stdio" in repr(server).lower() or server.path == "/sse"


@notifying
def test_more_can_be_watched_while_a_read_of_the_first_stands_still(server: Any, client: Client) -> None:
    with client.watch(CONFIG) as first:
        settled(first, True)
        with server.hold("resources/read", CONFIG, at="answer") as gate:
            server.update(CONFIG, "colour = red")
            gate.wait_reached()
            with client.watch(README) as second:
                settled(second, True)
                server.update(README, "# Another")
                assert next_change(second).uri == README
                gate.release()
                assert next_change(first).current.text == "colour = red"  # type: ignore[union-attr]
                assert first.status.gaps == 0


@notifying
def test_many_resources_are_kept_current_over_one_stream(server: Any, client: Client) -> None:
    uris = ["docs://many/%d" % number for number in range(40)]
    for uri in uris:
        server.add(uri, "first", notify=False)
    seen = Changes()
    with client.watch(*uris, on_change=seen) as watch:
        settled(watch, True)
        assert watch.status.covered == set(uris)
        for uri in uris:
            server.update(uri, "second of " + uri)
        seen.wait_for_text("second of " + uris[-1])
        watch.wait_until_current(timeout=BOUND)
        assert {client.read_resource(uri).text for uri in uris} == {"second of " + uri for uri in uris}
