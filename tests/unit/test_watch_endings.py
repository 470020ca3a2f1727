"""How streams end, and that every ending is noticed, told apart, and mended without being asked."""

import threading
from typing import Any, Iterator, List

import pytest

from mcp_sync import Change, Client, State
from mcp_sync._backoff import Backoff
from mcp_sync.reads import read_query
from mcp_sync.testing import Server, faults

CONFIG = "docs://service/config"
REAL_NEXT = Backoff.next


def quick(server: Server, **options: Any) -> Client:
    return Client(server.url, **{"throttle": 0.01, "ack_timeout": 5.0, "poll_after": 60.0, **options})


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        server.add(CONFIG, "colour = blue")
        yield server


@pytest.fixture(autouse=True)
def impatient(monkeypatch: Any) -> None:
    """Waits between attempts are as they are, only a hundred times shorter."""
    monkeypatch.setattr(Backoff, "next", lambda self, at_least=None: REAL_NEXT(self, at_least) / 100.0)


def next_change(watch: Any) -> Change:
    for change in watch.changes(timeout=10):
        return change  # type: ignore[no-any-return]
    raise AssertionError("no change came: %s" % watch.status)


@pytest.mark.parametrize(
    "how, told",
    [
        ("eof", "end of stream"),
        ("reset", "reset"),
        ("result", "result"),
        ("error", "error"),
        ("cancelled", "cancelled"),
        ("half_event", "end of stream"),
    ],
)
def test_each_ending_is_told_apart_and_what_changed_meanwhile_is_seen(server: Server, how: str, told: str) -> None:
    with quick(server) as client, client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        old = client.read_resource(CONFIG)
        # The first three attempts to listen again are refused, so that the change happens while nobody listens.
        server.inject(faults.Status(503), method="subscriptions/listen", times=3)
        with server.hold("subscriptions/listen") as gate:
            server.end_streams(how)
            gate.wait_reached()
            status = watch.status
            assert (status.state, status.last_ending, status.gaps) == (State.INTERRUPTED, told, 1)
            assert not watch.is_current
            assert client._reads.peek(read_query(CONFIG)).value is old  # type: ignore[union-attr]
            server.update(CONFIG, "colour = red", notify=False)
        assert next_change(watch).current.text == "colour = red"  # type: ignore[union-attr]
        watch.wait_for_state(State.LIVE, timeout=10)
        assert watch.status.reconnects == 1
        assert server.count("subscriptions/listen") == 5


def test_while_the_stream_is_down_an_old_copy_is_served_only_with_its_label(server: Server) -> None:
    with quick(server) as client, client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        server.kill()
        watch.wait_for_state(State.INTERRUPTED, timeout=10)
        with pytest.raises(Exception, match="cannot be reached|broke"):
            client.read_resource(CONFIG)
        copy = client.read_resource(CONFIG, stale_ok=True)
        assert (copy.text, copy.stale) == ("colour = blue", True)
        assert copy.age >= 0
        server.update(CONFIG, "colour = red")
        server.restart()
        assert next_change(watch).current.text == "colour = red"  # type: ignore[union-attr]


def test_a_dead_peer_that_acknowledged_is_noticed_by_its_silence(server: Server) -> None:
    # A limit that only silence reaches: the server sends nothing at all after the acknowledgement.
    server.inject(faults.Mute(), method="subscriptions/listen", times=1)
    with quick(server, silence_timeout=0.2, max_age=0.2) as client, client.watch(CONFIG) as watch:
        for _ in watch.changes(timeout=0):
            pass
        server.wait_for_requests("subscriptions/listen", 2, timeout=10)
        assert watch.status.last_ending == "silence"


def test_comments_are_signs_of_life(server: Server) -> None:
    server.stop()
    with Server(keep_alive=0.05) as lively:
        lively.add(CONFIG, "colour = blue")
        with quick(lively, silence_timeout=0.6) as client, client.watch(CONFIG) as watch:
            watch.wait_until_current(timeout=10)
            first = watch.status.last_contact
            assert first is not None
            # Longer than the limit, and the stream is still the first one.
            assert list(watch.changes(timeout=1.5)) == []
            assert lively.count("subscriptions/listen") == 1
            assert watch.status.last_contact > first  # type: ignore[operator]


def test_a_server_that_ends_every_stream_at_once_is_not_hammered(server: Server, monkeypatch: Any) -> None:
    waits: List[float] = []
    middle = lambda low, high: (low + high) / 2  # noqa: E731
    next_wait, real = REAL_NEXT, Backoff(0.5, 30.0, middle)
    monkeypatch.setattr(Backoff, "next", lambda self, at_least=None: (waits.append(next_wait(real)), 0.0)[1])
    server.inject(faults.AcknowledgeThenEnd(), method="subscriptions/listen", times=None)
    with quick(server) as client, client.watch(CONFIG):
        server.wait_for_requests("subscriptions/listen", 12, timeout=20)
    # What it would have waited, with an average share of luck, between the first ten connections.
    assert sum(waits[:9]) >= 3.0
    assert max(waits) <= 15.0
    assert waits[:6] == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]


def test_retry_after_is_honoured(server: Server, monkeypatch: Any) -> None:
    asked: List[Any] = []
    monkeypatch.setattr(Backoff, "next", lambda self, at_least=None: (asked.append(at_least), 0.0)[1])
    server.inject(faults.RateLimited(retry_after="7"), method="subscriptions/listen", times=1)
    with quick(server) as client, client.watch(CONFIG) as watch:
        watch.wait_for_state(State.LIVE, timeout=10)
    assert asked[0] == 7.0


def test_something_unreadable_on_the_stream_may_have_been_a_notice_and_the_stream_lives(server: Server) -> None:
    with quick(server) as client, client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        for number, junk in enumerate(
            [b"data: {not json}\n\n", b"data: \xff\xfe\n\n", b'data: [{"jsonrpc":"2.0"}]\n\n', b'data: {"jsonrpc":"2.0"}\n\n']
        ):
            server.update(CONFIG, "colour %d" % number, notify=False)
            server.send(junk)
            assert next_change(watch).current.text == "colour %d" % number  # type: ignore[union-attr]
        assert server.count("subscriptions/listen") == 1
        assert watch.status.state is State.LIVE


def test_what_is_no_notice_is_ignored_and_the_stream_lives(server: Server) -> None:
    with quick(server) as client, client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        reads = server.count("resources/read")
        for message in (
            {"jsonrpc": "2.0", "method": "notifications/unheard/of", "params": {}},
            {"jsonrpc": "2.0", "id": 0, "method": "sampling/createMessage", "params": {}},
            {"jsonrpc": "2.0", "id": 12345678901234567, "result": {}},
            {
                "jsonrpc": "2.0",
                "method": "notifications/resources/updated",
                "params": {"uri": CONFIG, "_meta": {"io.modelcontextprotocol/subscriptionId": "another"}},
            },
        ):
            server.send(message)
        server.update(CONFIG, "colour = red")
        assert next_change(watch).current.text == "colour = red"  # type: ignore[union-attr]
        assert server.count("resources/read") == reads + 1
        assert server.count("subscriptions/listen") == 1


class Attempts:
    """Stands in for the pauses between attempts to listen: each lasts until it is let go."""

    def __init__(self, monkeypatch: Any) -> None:
        self._reached = threading.Semaphore(0)
        self._go = threading.Semaphore(0)
        monkeypatch.setattr(Backoff, "next", lambda _, at_least=None: self._next())

    def _next(self) -> float:
        if "mcp_sync-reader" in threading.current_thread().name:
            self._reached.release()
            assert self._go.acquire(timeout=20)
        return 0.0

    def wait_for_end(self) -> None:
        """Return when an attempt has ended."""
        assert self._reached.acquire(timeout=20)

    def go_on(self) -> None:
        """Let the next one be made."""
        self._go.release()


@pytest.mark.parametrize("sessions", [True, False])
def test_a_legacy_server_that_cannot_notify_is_asked_what_it_is_by_now_and_not_greeted_again(
    monkeypatch: Any, sessions: bool
) -> None:
    attempts = Attempts(monkeypatch)
    with Server(eras=["legacy"], sessions=sessions, subscribe=False, list_changed=False) as server:
        server.add(CONFIG, "colour = blue")
        with quick(server, poll_interval=3600.0) as client, client.watch(CONFIG) as watch:
            watch.wait_until_current(timeout=10)
            for number in range(3):
                attempts.wait_for_end()
                assert watch.status.last_ending == "refused"
                assert server.count("server/discover") == 1 + number
                attempts.go_on()
            attempts.wait_for_end()
            assert server.count("initialize") == 1
            server.kill()
            attempts.go_on()
            attempts.wait_for_end()
            assert watch.status.last_ending in ("refused", "unreachable")
            # Greeted by a read, it is not greeted once more by the one who listens.
            server.restart()
            assert client.read_resource(CONFIG, cache_mode="refresh").text == "colour = blue"
            attempts.go_on()
            attempts.wait_for_end()
            assert server.count("initialize") == (2 if sessions else 1)
            attempts.go_on()


@pytest.mark.parametrize("sessions", [True, False])
def test_a_server_that_takes_the_place_of_a_legacy_one_and_refuses_nothing_is_found_to_be_modern(
    monkeypatch: Any, sessions: bool
) -> None:
    attempts = Attempts(monkeypatch)
    with Server(eras=["legacy"], sessions=sessions, subscribe=False, list_changed=False) as old:
        old.add(CONFIG, "colour = blue")
        with quick(old, poll_interval=3600.0) as client, client.watch(CONFIG) as watch:
            watch.wait_until_current(timeout=10)
            attempts.wait_for_end()
            old.stop()
            with Server(eras=["legacy", "modern"], sessions=False, port=old.port) as new:
                new.add(CONFIG, "colour = red")
                attempts.go_on()
                watch.wait_for_state(State.LIVE, timeout=10)
                assert client.protocol_version == "2026-07-28"
                assert next_change(watch).current.text == "colour = red"  # type: ignore[union-attr]
                monkeypatch.setattr(Backoff, "next", REAL_NEXT)
                client.close()
