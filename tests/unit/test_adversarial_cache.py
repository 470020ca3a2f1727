"""What the cache must survive: evictions in the middle of reads, exceptions at any moment, several clients on one memory."""

import threading
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import pytest

from mcp_sync import Client, MCPSyncError, RequestTimeout
from mcp_sync._deadline import Deadline
from mcp_sync.cache import Coverage, Entry, Flight, ResourceCache, Ticket
from mcp_sync.freshness import Lease
from mcp_sync.reads import read_query
from mcp_sync.testing import Server, faults

BOUND = 10.0
A, B = "docs://a", "docs://b"


class Bench:
    """A cache on which nothing ages, with one coverage of a few keys."""

    def __init__(self, *keys: str, **options: Any) -> None:
        self.cache: "ResourceCache[str]" = ResourceCache(clock=lambda: 0.0, **options)
        self.coverage = Coverage()
        self.cache.cover(self.coverage, {key: Lease(1000.0, polled=False) for key in keys}, 1, 1)

    def begin(self, key: str, refresh: bool = True) -> Ticket:
        begun = self.cache.begin_read(key, self.coverage, refresh)
        assert isinstance(begun, Ticket)
        return begun

    def finish(self, ticket: Ticket, value: str, size: int = 1) -> Any:
        stored = self.cache.finish_read(ticket, value, received=0.0, started=0.0, ttl=0.0, size=size)
        self.cache.check()
        return stored

    def read(self, key: str, value: str, size: int = 1) -> Any:
        return self.finish(self.begin(key), value, size)

    def fresh(self, key: str) -> Optional[str]:
        entry = self.cache.peek(key)
        return entry.value if entry is not None and entry.is_fresh(0.0) else None


def test_a_read_that_began_before_one_whose_value_was_evicted_since_does_not_take_the_cache_back() -> None:
    bench = Bench("a", "b", max_entries=1)
    early = bench.begin("a")
    assert bench.read("a", "new").fresh
    bench.read("b", "whatever")  # evicts it
    assert list(bench.cache._entries) == ["b"]
    bench.finish(early, "old")
    assert bench.fresh("a") != "old"


def test_a_read_that_began_before_one_whose_value_was_too_large_does_not_take_the_cache_back() -> None:
    bench = Bench("a", max_bytes=10)
    early = bench.begin("a")
    bench.read("a", "new", size=11)
    bench.finish(early, "old")
    assert bench.fresh("a") != "old"


def test_values_that_grow_shrink_and_do_not_fit_leave_the_two_views_and_the_size_right() -> None:
    import random

    chance = random.Random(20260728)
    keys = [str(number) for number in range(12)]
    bench = Bench(*keys, max_entries=7, max_bytes=100)
    out: List[Ticket] = []
    for step in range(20000):
        key = chance.choice(keys)
        what = chance.random()
        if what < 0.35:
            bench.read(key, "x", size=chance.choice((0, 1, 10, 30, 60, 99, 100, 101, 500)))
        elif what < 0.5:
            out.append(bench.begin(key))
        elif what < 0.65 and out:
            bench.finish(out.pop(chance.randrange(len(out))), "y", size=chance.choice((1, 50, 100, 101)))
        elif what < 0.7 and out:
            bench.cache.abandon_read(out.pop(chance.randrange(len(out))))
        elif what < 0.8:
            bench.cache.peek(key)
        elif what < 0.9:
            bench.cache.changed(key)
        elif what < 0.95:
            bench.cache.finish_missing(bench.begin(key))
        elif what < 0.952:
            bench.cache.clear()
            out.clear()
        elif what < 0.96:
            bench.cache.after_fork_in_child()
            out.clear()
        bench.cache.check()
        entries = bench.cache._entries
        assert bench.cache.size == sum(entry.size for entry in entries.values())
    for ticket in out:
        bench.cache.abandon_read(ticket)
    assert not bench.cache._states


def test_a_caller_that_joined_before_a_notice_gets_the_value_and_one_that_comes_after_it_does_not() -> None:
    bench = Bench("a")
    leader = bench.begin("a", refresh=False)
    joined = bench.cache.begin_read("a", bench.coverage)
    assert isinstance(joined, Flight)
    bench.cache.changed("a")
    late = bench.cache.begin_read("a", bench.coverage)
    assert isinstance(late, Ticket), "what began before the notice is not joined after it"
    bench.finish(leader, "old")
    assert joined.wait(Deadline(0.0)) and joined.value == "old"
    assert bench.fresh("a") is None
    bench.finish(late, "new")
    assert bench.fresh("a") == "new"


# -- exceptions from outside, at any moment ----------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        server.add(A, "old a")
        server.add(B, "old b")
        yield server


def test_an_interruption_in_the_middle_of_storing_releases_those_who_wait_for_the_read(
    server: Server, monkeypatch: Any
) -> None:
    """Ctrl-C, or a time limit of a worker that is raised from a signal handler, can come anywhere."""
    import mcp_sync.cache

    class Interrupted(BaseException):
        pass

    def interrupt(*args: Any) -> float:
        raise Interrupted()

    with Client(server.url, listen=False, poll_interval=1000.0, throttle=0.0) as client, client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        client._reads.changed(read_query(A))
        with server.hold("resources/read", A) as gate:
            leader = threading.Thread(target=lambda: pytest.raises(Interrupted, client.read_resource, A))
            leader.start()
            gate.wait_reached()
            joined = client._cache.begin_read(client._reads.key(read_query(A)), client._reads.coverage)
            assert isinstance(joined, Flight)
            monkeypatch.setattr(mcp_sync.cache, "fresh_until", interrupt)
        leader.join(BOUND)
        monkeypatch.undo()
        assert joined.wait(Deadline(0.0)) and not joined.succeeded


def test_after_an_interruption_the_next_caller_reads(server: Server, monkeypatch: Any) -> None:
    import mcp_sync.reads

    class Interrupted(BaseException):
        pass

    real = mcp_sync.reads._size

    def interrupt(result: Any) -> int:
        monkeypatch.setattr(mcp_sync.reads, "_size", real)
        raise Interrupted()

    with Client(server.url, listen=False, poll_interval=1000.0, throttle=0.0) as client, client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        client._reads.changed(read_query(A))
        monkeypatch.setattr(mcp_sync.reads, "_size", interrupt)
        with pytest.raises(Interrupted):
            client.read_resource(A)
        # It would wait for the read that was interrupted, to the end of its patience, and so would all that come later.
        assert client.read_resource(A, timeout=5).text == "old a"


# -- several clients on one memory -------------------------------------------------------------------------------------------

TOKENS = {"Bearer alice-1": "alice", "Bearer alice-2": "alice", "Bearer bob-1": "bob"}


def who(headers: Mapping[str, str]) -> Optional[str]:
    sent = {name.lower(): value for name, value in headers.items()}.get("authorization", "")
    return TOKENS.get(sent)


@pytest.fixture
def guarded() -> Iterator[Server]:
    with Server(authenticate=who) as server:
        server.add(A, "old a", cache_scope="public")
        server.add(B, "old b", cache_scope="private")
        yield server


def alice(server: Server, **options: Any) -> Client:
    more: Dict[str, Any] = {"throttle": 0.01}
    more.update(options)
    return Client(server.url, headers={"Authorization": "Bearer alice-1"}, principal="alice", **more)


def other(client: Client, name: str, token: str) -> Client:
    return client.as_principal(name, headers={"Authorization": "Bearer " + token})


def test_what_became_public_is_not_hidden_by_the_older_private_copy(guarded: Server) -> None:
    guarded.add("docs://c", "old", ttl_ms=3600000, cache_scope="private")
    with alice(guarded, share_public=True) as client:
        assert client.read_resource("docs://c").text == "old"
        guarded.remove("docs://c")
        guarded.add("docs://c", "new", ttl_ms=3600000, cache_scope="public")
        assert client.read_resource("docs://c", cache_mode="refresh").text == "new"
        assert client.read_resource("docs://c").text == "new"


def test_what_became_private_is_not_followed_by_the_older_public_copy(guarded: Server) -> None:
    guarded.add("docs://c", "old", ttl_ms=3600000, cache_scope="public")
    with alice(guarded, share_public=True) as client:
        assert client.read_resource("docs://c").text == "old"
        guarded.remove("docs://c")
        guarded.add("docs://c", "new", ttl_ms=0, cache_scope="private")
        assert client.read_resource("docs://c", cache_mode="refresh").text == "new"
        assert client.read_resource("docs://c").text == "new"


def test_a_refresh_by_another_client_of_the_same_principal_leaves_the_watched_copy_current(guarded: Server) -> None:
    with alice(guarded) as client, client.watch(B) as watch:
        watch.wait_until_current(timeout=BOUND)
        renewed = other(client, "alice", "alice-2")
        assert renewed.read_resource(B, cache_mode="refresh").text == "old b"
        watch.wait_until_current(timeout=5)


def test_a_refresh_by_another_principal_leaves_the_shared_and_watched_copy_current(guarded: Server) -> None:
    with alice(guarded, share_public=True) as client, client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        assert other(client, "bob", "bob-1").read_resource(A, cache_mode="refresh").text == "old a"
        watch.wait_until_current(timeout=5)


def test_a_refusal_to_another_principal_leaves_the_shared_and_watched_copy_current(guarded: Server) -> None:
    with alice(guarded, share_public=True) as client, client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        expired = other(client, "bob", "no longer good")
        with pytest.raises(MCPSyncError):
            expired.read_resource(A, cache_mode="refresh")
        watch.wait_until_current(timeout=5)


def test_a_gap_of_one_principals_stream_does_not_hold_up_the_other(guarded: Server) -> None:
    with alice(guarded, share_public=True) as client:
        bob = other(client, "bob", "bob-1")
        with bob.watch(A) as his:
            his.wait_until_current(timeout=BOUND)
            with client.watch(A) as hers:
                hers.wait_until_current(timeout=BOUND)
                client.read_resource(A, cache_mode="refresh")  # the copy that both have is hers now
            # She listens no more.
            his.wait_until_current(timeout=5)


def test_a_notice_to_one_principal_voids_what_another_is_reading_of_a_shared_copy(guarded: Server) -> None:
    with alice(guarded, share_public=True) as client, client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        bob = other(client, "bob", "bob-1")
        got: List[Tuple[str, bool]] = []
        with guarded.hold("resources/read", A, at="answer") as gate:
            reader = threading.Thread(target=lambda: got.append(_told(bob.read_resource(A, cache_mode="refresh"))))
            reader.start()
            gate.wait_reached()
            guarded.update(A, "new a")
            gate.wait_reached(2)
            gate.release(1)
            reader.join(BOUND)
            assert got == [("old a", False)]
            # Nobody who asks from here on gets that, as fresh.
            assert client._reads.fresh(read_query(A)) is None and bob._reads.fresh(read_query(A)) is None
        watch.wait_until_current(timeout=BOUND)
        assert client.read_resource(A).text == bob.read_resource(A).text == "new a"


def _told(result: Any) -> Tuple[str, bool]:
    return result.text, result.stale


def test_hits_without_a_lock_during_eviction_removal_clearing_and_forking_are_whole_or_none() -> None:
    bench = Bench("a", "b", "c", max_entries=2, max_bytes=100)
    stop = threading.Event()
    wrong: List[Any] = []

    def hit() -> None:
        while not stop.is_set():
            for key in "abc":
                entry = bench.cache.peek(key)
                if entry is not None and (not isinstance(entry, Entry) or not entry.value.startswith(key)):
                    wrong.append((key, entry.value))

    hitters = [threading.Thread(target=hit) for _ in range(4)]
    for hitter in hitters:
        hitter.start()
    for number in range(3000):
        key = "abc"[number % 3]
        bench.read(key, key + str(number), size=1 + number % 70)
        if number % 2:
            bench.cache.changed("b")
        else:
            bench.cache.finish_missing(bench.begin("a"))
        if number % 100 == 0:
            bench.cache.clear()
    stop.set()
    for hitter in hitters:
        hitter.join(BOUND)
    assert wrong == []


def test_while_one_waits_for_what_fails_it_is_not_asked_for_more_often_than_the_server_allows(server: Server) -> None:
    with Client(server.url, throttle=0.01) as client, client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        limited = server.inject(faults.RateLimited(retry_after="3600"), method="resources/read", times=None)
        server.update(A, "new a")
        limited.wait_used(1)
        with pytest.raises(RequestTimeout, match="429"):
            watch.wait_until_current(timeout=2.5)
        assert limited.used == 1


def test_a_change_to_what_is_out_of_date_already_says_so(server: Server) -> None:
    with Client(server.url, throttle=0.01) as client, client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        noticed = threading.Semaphore(0)
        real = client._upkeep.noticed

        def counted(notice: Any) -> None:
            real(notice)
            noticed.release()

        client._upkeep.noticed = counted  # type: ignore[method-assign]
        with server.hold("resources/read", A, at="answer") as gate:
            server.update(A, "text 1")
            assert noticed.acquire(timeout=BOUND)
            gate.wait_reached()
            server.update(A, "text 2")
            assert noticed.acquire(timeout=BOUND)
            gate.release(1)  # the first answer arrives after the notice about the second change
            gate.wait_reached(2)
            for change in watch.changes(timeout=0):
                assert change.current.text == "text 1"  # type: ignore[union-attr]
                assert change.current.stale, "it was known to be out of date when it arrived"  # type: ignore[union-attr]


def test_there_is_no_moment_without_a_stream_in_which_a_copy_counts_as_covered(server: Server) -> None:
    with Client(server.url, throttle=0.01) as client:
        first = client.watch(A)
        first.wait_until_current(timeout=BOUND)
        reader = client._upkeep._reader
        ended, go_on = threading.Event(), threading.Event()
        real = reader.want

        def want(wanted: Any, *more: Any) -> Any:
            told = real(wanted, *more)
            if not wanted:
                ended.set()
                assert go_on.wait(3 * BOUND)
            return told

        reader.want = want  # type: ignore[method-assign]
        closer = threading.Thread(target=first.close)
        closer.start()
        assert ended.wait(BOUND)
        server.wait_for_no_streams()
        with server.hold("subscriptions/listen") as gate:
            begun: List[Any] = []
            beginner = threading.Thread(target=lambda: begun.append(client.watch(A)))
            beginner.start()
            gate.wait_reached()
            server.update(A, "new a")  # nobody is told
            try:
                assert client.read_resource(A).text == "new a"
            finally:
                go_on.set()
                closer.join(BOUND)
                beginner.join(BOUND)
                begun[0].close()
