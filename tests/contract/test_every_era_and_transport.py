"""One suite of behaviour over every combination of era and transport: what a program may rely on holds for all of them."""

import threading
from typing import Any, Callable, Dict, Iterator, List

import pytest

from mcp_sync import AuthorizationError, Change, Client, MCPSyncError, ResourceNotFound, StaleError, State
from mcp_sync.testing import Server, StdioServer

CONFIG = "docs://service/config"
README = "docs://service/readme"
BOUND = 15.0

COMBINATIONS: Dict[str, Callable[[], Any]] = {
    "modern, HTTP": lambda: Server(),
    "modern, HTTP, answers as streams": lambda: Server(answer="sse"),
    "modern, stdio": lambda: StdioServer(eras=("modern",)),
    "legacy, HTTP, sessions": lambda: Server(eras=("legacy",), sessions=True),
    "legacy, HTTP, sessions, answers as streams": lambda: Server(eras=("legacy",), sessions=True, answer="sse"),
    "legacy, HTTP, no sessions": lambda: Server(eras=("legacy",), sessions=False),
    "legacy, HTTP+SSE": lambda: Server(eras=("legacy",), transport="http+sse"),
    "legacy, stdio": lambda: StdioServer(eras=("legacy",)),
    "both eras, HTTP": lambda: Server(eras=("modern", "legacy")),
    "modern, HTTP, cannot notify": lambda: Server(subscribe=False, list_changed=False),
    "legacy, HTTP, cannot notify": lambda: Server(eras=("legacy",), subscribe=False, list_changed=False),
}


@pytest.fixture(params=sorted(COMBINATIONS))
def combination(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def server(combination: str) -> Iterator[Any]:
    with COMBINATIONS[combination]() as server:
        server.add(CONFIG, "colour = blue", mime_type="text/plain")
        server.add(README, "# Read me")
        yield server


@pytest.fixture
def notifies(combination: str) -> bool:
    return "cannot" not in combination


def client_of(server: Any, **options: Any) -> Client:
    target = server.command if isinstance(server, StdioServer) else server.url
    defaults: Dict[str, Any] = {"throttle": 0.01, "poll_interval": 0.1, "poll_after": 60.0, "timeout": BOUND}
    return Client(target, **{**defaults, **options})


@pytest.fixture
def client(server: Any) -> Iterator[Client]:
    with client_of(server) as client:
        yield client


def next_change(watch: Any, kind: str = "updated") -> Change:
    for change in watch.changes(timeout=BOUND):
        if change.kind == kind:
            return change  # type: ignore[no-any-return]
    raise AssertionError("no change came: %s" % watch.status)


def test_the_era_is_found_out_and_everything_can_be_read(server: Any, client: Client, combination: str) -> None:
    assert client.discover().server_info.name
    assert client.list_resources().uris == (CONFIG, README)
    assert len(client.list_resource_templates()) == 0
    result = client.read_resource(CONFIG)
    assert (result.text, result.mime_type, result.stale) == ("colour = blue", "text/plain", False)
    assert client.protocol_version == ("2025-11-25" if combination.startswith("legacy") else "2026-07-28")


def test_a_watch_says_what_keeps_its_resources_current(client: Client, notifies: bool) -> None:
    with client.watch(CONFIG, catalog=True) as watch:
        watch.wait_until_current(timeout=BOUND)
        watch.wait_for_state(State.LIVE if notifies else State.POLLING, timeout=BOUND)
        status = watch.status
        assert (status.covered, status.uncovered) == (({CONFIG}, set()) if notifies else (set(), {CONFIG}))
        assert status.catalog == ("listen" if notifies else "poll")


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


def test_never_stale_as_fresh_a_late_answer_is_not_kept(server: Any, client: Client, notifies: bool) -> None:
    if not notifies:
        return  # without notices there is nothing that could make an answer late
    with client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=BOUND)
        late: List[str] = []
        with server.hold("resources/read", CONFIG, at="answer") as gate:
            asker = threading.Thread(
                target=lambda: late.append(client.read_resource(CONFIG, cache_mode="refresh").text)
            )
            asker.start()
            gate.wait_reached()
            server.update(CONFIG, "colour = red")
            gate.wait_reached(2)  # the notice has been read: it made the refresher ask
        asker.join(BOUND)
        assert late == ["colour = blue"]
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
    server.inject(server_error, method="resources/read", times=None)
    with pytest.raises(MCPSyncError):
        client.read_resource(CONFIG)
    copy = client.read_resource(CONFIG, stale_ok=True)
    assert (copy.text, copy.stale) == ("colour = blue", True) and copy.age >= 0
    with pytest.raises(StaleError):
        client.read_resource(CONFIG, stale_ok=True, max_stale=0.0)


def server_error(call: Any) -> Any:
    from mcp_sync.testing import faults

    return faults.JsonRpcError(-32603, "broken", http_status=200)(call)


def test_access_is_checked_again_and_what_is_gone_leaves_no_copy(server: Any, client: Client) -> None:
    client.read_resource(CONFIG)
    server.remove(CONFIG)
    for _ in range(2):
        with pytest.raises(ResourceNotFound):
            client.read_resource(CONFIG, stale_ok=True)


def test_a_refusal_leaves_no_copy(server: Any, client: Client) -> None:
    from mcp_sync.testing import faults

    if isinstance(server, StdioServer):
        return  # over stdio there are no credentials that could be refused
    client.read_resource(README)
    server.inject(faults.Status(403), times=1)
    with pytest.raises(AuthorizationError):
        client.read_resource(README, stale_ok=True)
    server.inject(server_error, method="resources/read", times=None)
    with pytest.raises(MCPSyncError):
        client.read_resource(README, stale_ok=True)


def test_a_second_watch_shares_what_the_first_has(server: Any, client: Client, notifies: bool) -> None:
    with client.watch(CONFIG) as first, client.watch(CONFIG, README) as second:
        first.wait_until_current(timeout=BOUND)
        second.wait_until_current(timeout=BOUND)
        server.update(README, "# Read me again")
        assert next_change(second).uri == README
        server.update(CONFIG, "colour = red")
        assert next_change(first).uri == CONFIG
        if notifies:
            assert first.status.covered == {CONFIG} and second.status.covered == {CONFIG, README}
            assert first.status.gaps == 0, "more was asked for without a gap"


def test_a_snapshot_keeps_one_version_and_the_catalog_changes_apart(server: Any, client: Client) -> None:
    with client.watch(CONFIG, catalog=True) as watch:
        watch.wait_until_current(timeout=BOUND)
        pinned = watch.snapshot()
        server.update(CONFIG, "colour = red")
        next_change(watch)
        assert pinned[CONFIG].text == "colour = blue"
        assert "updated" in {change.kind for change in pinned.moved()}
        server.add("docs://service/new", "new")
        # The update may have changed the catalog too: it tells the size.
        assert any("docs://service/new" in change.added for change in watch.changes(timeout=BOUND))


def test_close_ends_everything_in_whatever_state(server: Any) -> None:
    client = client_of(server)
    client.watch(CONFIG, catalog=True).wait_until_current(timeout=BOUND)
    closer = threading.Thread(target=client.close)
    closer.start()
    closer.join(BOUND)
    assert not closer.is_alive()
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith(("mcp_sync-re", "mcp_sync-st"))]
    assert left == []
    server.wait_for_no_streams(timeout=BOUND)


def test_every_wait_is_bounded(server: Any, client: Client) -> None:
    client.read_resource(CONFIG)
    with server.hold("resources/read"):
        with pytest.raises(MCPSyncError, match="0.2 s"):
            client.read_resource(CONFIG, timeout=0.2)
    assert client.read_resource(CONFIG).text == "colour = blue"
