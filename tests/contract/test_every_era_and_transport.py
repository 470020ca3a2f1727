"""The first round over every combination of era and transport: what a program may rely on holds for all of them."""

from typing import Any

import pytest
from combinations import BOUND, CONFIG, LIMITS, README, next_change

from mcp_sync import AuthorizationError, Client, MCPSyncError, ResourceNotFound, StaleError, State
from mcp_sync.testing import StdioServer, faults

BROKEN = faults.JsonRpcError(-32603, "broken", http_status=200)


def test_the_era_is_found_out_and_everything_can_be_read(server: Any, client: Client, combination: str) -> None:
    assert client.discover().server_info.name
    assert client.list_resources().uris == (CONFIG, README, LIMITS)
    assert len(client.list_resource_templates()) == 0
    result = client.read_resource(CONFIG)
    assert (result.text, result.mime_type, result.stale) == ("colour = blue", "text/plain", False)
    assert client.protocol_version == ("2025-11-25" if combination.startswith("legacy") else "2026-07-28")


def test_a_watch_says_what_keeps_its_resources_current(client: Client, notifies: bool, combination: str) -> None:
    with client.watch(CONFIG, catalog=True) as watch:
        watch.wait_until_current(timeout=BOUND)
        watch.wait_for_state(State.LIVE if notifies else State.POLLING, timeout=BOUND)
        status = watch.status
        assert (status.covered, status.uncovered) == (({CONFIG}, set()) if notifies else (set(), {CONFIG}))
        assert status.catalog == ("listen" if notifies else "poll")
        told = "subscribe" if combination.startswith("legacy") else "listen"
        assert status.notified_by == (told if notifies else None)
        assert status.mode_of(CONFIG) == (told if notifies else "poll")


def test_a_change_is_read_without_being_asked_for_and_then_served_from_memory(
    server: Any, client: Client, notifies: bool
) -> None:
    with client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=BOUND)
        held = client.read_resource(CONFIG)
        if notifies:
            assert all(client.read_resource(CONFIG) is held for _ in range(10))
        server.update(CONFIG, "colour = red")
        change = next_change(watch)
        assert change.current is not None and change.current.text == "colour = red"  # type: ignore[attr-defined]
        assert client.read_resource(CONFIG).text == "colour = red"


def test_gaps_are_assumed_to_hide_changes(server: Any, client: Client, notifies: bool) -> None:
    with client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=BOUND)
        old = client.read_resource(CONFIG)
        server.kill()
        server.update(CONFIG, "colour = red", notify=False)
        server.restart()
        assert next_change(watch).current.text == "colour = red"  # type: ignore[union-attr]
        watch.wait_until_current(timeout=BOUND)
        assert client.read_resource(CONFIG).text == "colour = red"
        assert old.text == "colour = blue"
        if notifies:
            watch.wait_for_state(State.LIVE, timeout=BOUND)
            assert watch.status.gaps >= 1


def test_old_data_is_labelled(server: Any, client: Client) -> None:
    client.read_resource(CONFIG)
    server.inject(BROKEN, method="resources/read", times=None)
    with pytest.raises(MCPSyncError):
        client.read_resource(CONFIG)
    copy = client.read_resource(CONFIG, stale_ok=True)
    assert (copy.text, copy.stale) == ("colour = blue", True) and copy.age >= 0
    with pytest.raises(StaleError):
        client.read_resource(CONFIG, stale_ok=True, max_stale=0.0)


def test_access_is_checked_again_and_what_is_gone_leaves_no_copy(server: Any, client: Client) -> None:
    client.read_resource(CONFIG)
    server.remove(CONFIG)
    for _ in range(2):
        with pytest.raises(ResourceNotFound):
            client.read_resource(CONFIG, stale_ok=True)


def test_a_refusal_leaves_no_copy(server: Any, client: Client) -> None:
    if isinstance(server, StdioServer):
        return  # over stdio there are no credentials that could be refused
    client.read_resource(README)
    server.inject(faults.Status(403), times=1)
    with pytest.raises(AuthorizationError):
        client.read_resource(README, stale_ok=True)
    server.inject(BROKEN, method="resources/read", times=None)
    with pytest.raises(MCPSyncError):
        client.read_resource(README, stale_ok=True)
