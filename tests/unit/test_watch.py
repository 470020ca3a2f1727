"""A watch from start to end, on the good road: current, notified, pinned."""

import threading
from typing import Any, Iterator, List

import pytest

from mcp_sync import Change, Client, ClientClosed, RequestTimeout, StaleError, State
from mcp_sync.testing import Server

CONFIG = "docs://service/config"
README = "docs://service/readme"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        server.add(CONFIG, "colour = blue", mime_type="text/plain")
        server.add(README, "# Read me")
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url, throttle=0.01) as client:
        yield client


def next_change(watch: Any) -> Change:
    for change in watch.changes(timeout=10):
        return change  # type: ignore[no-any-return]
    raise AssertionError("no change came: %s" % watch.status)


def test_a_watched_resource_is_read_once_and_then_served_from_memory(server: Server, client: Client) -> None:
    with client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        first = client.read_resource(CONFIG)
        assert first.text == "colour = blue"
        assert all(client.read_resource(CONFIG) is first for _ in range(100))
        assert server.count("resources/read") == 1
        assert not first.stale


def test_a_change_is_read_without_anybody_asking_and_told_to_a_waiting_loop(server: Server, client: Client) -> None:
    with client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        server.update(CONFIG, "colour = red")
        change = next_change(watch)
        assert (change.kind, change.uri, change.merged) == ("updated", CONFIG, 0)
        assert change.previous is not None and change.previous.text == "colour = blue"  # type: ignore[attr-defined]
        assert change.current is not None and change.current.text == "colour = red"  # type: ignore[attr-defined]
        assert client.read_resource(CONFIG) is change.current


def test_after_a_notice_no_call_is_answered_from_a_read_that_began_before_it(server: Server, client: Client) -> None:
    with client.watch(CONFIG, README) as watch:
        watch.wait_until_current(timeout=10)
        with server.hold("resources/read", CONFIG, at="answer") as gate:
            old: List[str] = []
            asker = threading.Thread(
                target=lambda: old.append(client.read_resource(CONFIG, cache_mode="refresh").text)
            )
            asker.start()
            gate.wait_reached()
            # Its answer is on the way, with the old text. Now the text changes, and the client is told.
            server.update(CONFIG, "colour = red")
            gate.wait_reached(2)  # the notice made the refresher ask as well: so it was read
            gate.release()
            asker.join(10)
        assert old == ["colour = blue"]
        assert client.read_resource(CONFIG).text == "colour = red"


def test_a_notice_about_a_part_of_a_resource_or_in_another_spelling_concerns_it(server: Server, client: Client) -> None:
    with client.watch("docs://service/config") as watch:
        watch.wait_until_current(timeout=10)
        for number, spelled in enumerate(
            ["docs://service/config/part/one", "DOCS://Service/config", "docs://service/config/", "docs://service/%63onfig"]
        ):
            server.update(CONFIG, "colour %d" % number, notify=False)
            server.notify_updated(CONFIG, as_uri=spelled)
            assert next_change(watch).current.text == "colour %d" % number  # type: ignore[union-attr]


def test_two_watches_of_one_resource_share_a_stream_and_the_last_to_close_ends_it(server: Server, client: Client) -> None:
    first = client.watch(CONFIG)
    second = client.watch(CONFIG)
    first.wait_until_current(timeout=10)
    second.wait_until_current(timeout=10)
    assert server.streams == 1
    assert server.count("subscriptions/listen") == 1
    first.close()
    server.update(CONFIG, "colour = red")
    assert next_change(second).kind == "updated"
    second.close()
    server.wait_for_no_streams()
    assert second.status.state is State.CLOSED


def test_more_resources_are_added_without_a_gap(server: Server, client: Client) -> None:
    with client.watch(CONFIG) as first:
        first.wait_until_current(timeout=10)
        held = client.read_resource(CONFIG)
        with client.watch(README) as second:
            second.wait_until_current(timeout=10)
            server.wait_for_requests("subscriptions/listen", 2)
            assert client.read_resource(CONFIG) is held, "the first was not read again"
            assert first.status.gaps == second.status.gaps == 0
            assert second.status.covered == {README}
            server.update(CONFIG, "colour = red")
            assert next_change(first).uri == CONFIG
            server.update(README, "# Read me again")
            assert next_change(second).uri == README


def test_the_catalog_and_the_contents_change_apart(server: Server, client: Client) -> None:
    with client.watch(CONFIG, catalog=True) as watch:
        watch.wait_until_current(timeout=10)
        reads = server.count("resources/read")
        lists = server.count("resources/list")
        server.add("docs://service/new", "new")
        change = next_change(watch)
        assert (change.kind, change.uri) == ("catalog", None)
        assert change.added == {"docs://service/new"} and not change.removed
        assert server.count("resources/read") == reads
        server.update(CONFIG, "colour = red")
        assert next_change(watch).kind == "updated"
        assert server.count("resources/list") == lists + 1


def test_a_resource_that_left_the_catalog_is_looked_at_again_and_its_copy_is_gone(server: Server, client: Client) -> None:
    with client.watch(CONFIG, catalog=True) as watch:
        watch.wait_until_current(timeout=10)
        server.remove(CONFIG)
        kinds = {next_change(watch).kind, next_change(watch).kind}
        assert kinds == {"catalog", "removed"}
        with pytest.raises(Exception, match="not found|Unknown|No resource|exist"):
            client.read_resource(CONFIG, stale_ok=True)
        watch.wait_until_current(timeout=10)
        server.add(CONFIG, "colour = grey")
        assert {next_change(watch).kind, next_change(watch).kind} == {"catalog", "appeared"}


def test_a_snapshot_keeps_one_version_and_knows_afterwards_what_moved(server: Server, client: Client) -> None:
    with client.watch(CONFIG, README, catalog=True) as watch:
        watch.wait_until_current(timeout=10)
        pinned = watch.snapshot()
        assert dict(pinned) == {CONFIG: client.read_resource(CONFIG), README: client.read_resource(README)}
        assert pinned.catalog is not None and pinned.catalog.uris == (CONFIG, README)
        assert pinned.is_current() and not pinned.stale
        server.update(CONFIG, "colour = red")
        next_change(watch)
        assert pinned[CONFIG].text == "colour = blue"
        assert not pinned.is_current()
        (moved,) = pinned.moved()
        assert (moved.kind, moved.uri, moved.current.text) == ("updated", CONFIG, "colour = red")  # type: ignore
        server.kill()
        watch.wait_for_state(State.INTERRUPTED, timeout=10)
        kinds = {change.uri: change.kind for change in pinned.moved()}
        assert kinds == {CONFIG: "updated", README: "unknown", None: "unknown"}


def test_a_snapshot_before_anything_was_read_says_what_to_do(server: Server, client: Client) -> None:
    with server.hold("resources/read"):
        watch = client.watch(CONFIG)
        with pytest.raises(StaleError, match="wait_until_current"):
            watch.snapshot()


def test_waiting_too_short_says_what_is_missing_and_why(server: Server, client: Client) -> None:
    with server.hold("resources/read"):
        with client.watch(CONFIG) as watch:
            with pytest.raises(RequestTimeout, match="1 of 1 .*" + CONFIG):
                watch.wait_until_current(timeout=0.05)


def test_changes_that_nobody_fetches_are_merged_into_the_last(server: Server, client: Client) -> None:
    with client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        other = client.watch(CONFIG)  # fetches each change, so that the test knows when it was seen
        for number in range(5):
            server.update(CONFIG, "colour %d" % number)
            assert next_change(other).current.text == "colour %d" % number  # type: ignore[union-attr]
        change = next_change(watch)
        assert change.previous.text == "colour = blue"  # type: ignore[union-attr]
        assert change.current.text == "colour 4"  # type: ignore[union-attr]
        assert change.merged == 4
        assert list(watch.changes(timeout=0)) == []


def test_listeners_are_called_one_at_a_time_in_a_thread_of_their_own_and_may_call_the_client(
    server: Server, client: Client
) -> None:
    seen: "List[str]" = []
    done = threading.Event()

    def listener(change: Change) -> None:
        seen.append(client.read_resource(README, cache_mode="refresh").text)
        seen.append(threading.current_thread().name)
        client.close()
        done.set()

    watch = client.watch(CONFIG, on_change=listener)
    watch.wait_until_current(timeout=10)
    server.update(CONFIG, "colour = red")
    assert done.wait(10)
    assert seen == ["# Read me", "mcp_sync-listeners-127.0.0.1"]
    assert client.closed and watch.closed
    with pytest.raises(ClientClosed):
        client.read_resource(CONFIG)


def test_a_listener_that_raises_does_not_end_the_others(server: Server, client: Client, caplog: Any) -> None:
    seen: List[str] = []
    both = threading.Event()

    def bad(change: Change) -> None:
        raise RuntimeError("a user's own error")

    def good(change: Change) -> None:
        seen.append(change.current.text)  # type: ignore[union-attr]
        both.set()

    with client.watch(CONFIG, on_change=bad) as watch:
        watch.on_change(good)
        watch.wait_until_current(timeout=10)
        server.update(CONFIG, "colour = red")
        assert both.wait(10)
        assert seen == ["colour = red"]
    assert "a listener failed" in caplog.text


def test_a_listener_that_stopped_costs_no_memory_and_sees_the_last_state(server: Server, client: Client) -> None:
    stopped, go_on, seen = threading.Event(), threading.Event(), []

    def listener(change: Change) -> None:
        stopped.set()
        assert go_on.wait(30)
        seen.append(change)

    with client.watch(CONFIG, on_change=listener) as watch:
        watch.wait_until_current(timeout=10)
        server.update(CONFIG, "first")
        assert stopped.wait(10)
        for number in range(100):
            server.update(CONFIG, "colour %d" % number)
        server.notify_updated(CONFIG, times=100000)
        last = threading.Event()

        def on_last(change: Change) -> None:
            if change.current.text == "colour 99":  # type: ignore[union-attr]
                last.set()

        for change in watch.changes(timeout=30):
            if change.current.text == "colour 99":  # type: ignore[union-attr]
                break
        watch.on_change(on_last)
        assert len(watch._for_listeners) == 1
        go_on.set()
        assert last.wait(30)
        assert [change.current.text for change in seen][0] == "first"  # type: ignore


def test_status_listeners_are_told_of_each_state_that_lasts(server: Server, client: Client) -> None:
    states: List[State] = []
    live, interrupted = threading.Event(), threading.Event()

    def listener(status: Any) -> None:
        states.append(status.state)
        (live if status.state is State.LIVE else interrupted if status.state is State.INTERRUPTED else live).set()

    with client.watch(CONFIG, on_status=listener):
        assert live.wait(10)
        server.kill()
        assert interrupted.wait(10)
    assert states[-2:] == [State.LIVE, State.INTERRUPTED] or states[-1] is State.INTERRUPTED


def test_closing_a_watch_ends_its_loops(server: Server, client: Client) -> None:
    watch = client.watch(CONFIG)
    watch.wait_until_current(timeout=10)
    ended = threading.Event()

    def loop() -> None:
        for _ in watch.changes():
            pass
        ended.set()

    thread = threading.Thread(target=loop)
    thread.start()
    watch.close()
    assert ended.wait(10)
    thread.join(10)
    with pytest.raises(ClientClosed):
        watch.wait_until_current(timeout=10)


def test_what_cannot_be_watched_is_refused_at_once(client: Client) -> None:
    with pytest.raises(ValueError, match="nothing to watch"):
        client.watch()
    with pytest.raises(TypeError, match="watch\\(\\*uris\\)"):
        client.watch([CONFIG])  # type: ignore[arg-type]
