"""What watches must survive: threads that overtake each other, streams that replace each other, answers that come late."""

import threading
from typing import Any, Callable, Iterator, List, Optional

import pytest

from mcp_sync import Change, Client, State
from mcp_sync._backoff import Backoff
from mcp_sync.notices import ResourceUpdated
from mcp_sync.testing import Server, StdioServer, faults

A, B, C = "docs://a", "docs://b", "docs://c"
BOUND = 10.0


@pytest.fixture(autouse=True)
def impatient(monkeypatch: Any) -> None:
    real = Backoff.next
    monkeypatch.setattr(Backoff, "next", lambda self, at_least=None: real(self, at_least) / 100.0)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        for uri in (A, B, C):
            server.add(uri, "old " + uri)
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url, throttle=0.01, ack_timeout=5.0, poll_after=60.0) as client:
        yield client


class Stop:
    """Stops the first call of a method that comes from a given thread (or fits a condition), until it is let go on."""

    def __init__(self, owner: Any, name: str, when: Callable[..., bool] = lambda *args: True) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        self._real = getattr(owner, name)
        self._when = when
        setattr(owner, name, self._call)

    def _call(self, *args: Any, **named: Any) -> Any:
        if not self.reached.is_set() and self._when(*args):
            self.reached.set()
            assert self.go_on.wait(3 * BOUND)
        return self._real(*args, **named)

    def wait(self) -> None:
        assert self.reached.wait(BOUND)


def in_thread(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def joined(thread: threading.Thread) -> None:
    thread.join(BOUND)
    assert not thread.is_alive()


def let_through(gate: Any, turn: int) -> None:
    """Let only one request through, counted from 0 in the order in which they came."""
    real = gate._passes
    gate._passes = lambda number: number == turn or real(number)
    for wire in list(gate._held):
        wire.wake()


def next_change(watch: Any, timeout: float = 5.0) -> Optional[Change]:
    for change in watch.changes(timeout=timeout):
        return change  # type: ignore[no-any-return]
    return None


# -- registrations that overtake each other ----------------------------------------------------------------------------------


def test_a_watch_that_begins_while_the_last_one_ends_is_listened_for(server: Server, client: Client) -> None:
    first = client.watch(A)
    first.wait_until_current(timeout=BOUND)
    # The thread that ends the first has found out that nothing is wanted any more, and is then overtaken.
    stop = Stop(client._upkeep._reader, "want", lambda wanted, registration: not wanted)
    closer = in_thread(first.close)
    stop.wait()
    with client.watch(A) as second:
        stop.go_on.set()
        joined(closer)
        second.wait_until_current(timeout=BOUND)
        server.wait_for_streams(1)
        server.update(A, "new")
        change = next_change(second)
        assert change is not None and change.current.text == "new"  # type: ignore[union-attr]
        assert client.read_resource(A).text == "new"


def test_a_watch_that_begins_when_the_reader_has_just_given_up_is_not_live_without_a_stream(
    server: Server, client: Client
) -> None:
    first = client.watch(A)
    first.wait_until_current(timeout=BOUND)
    stop = Stop(client._upkeep, "_given_up")
    closer = in_thread(first.close)
    stop.wait()
    server.wait_for_no_streams()
    with server.hold("subscriptions/listen") as gate:
        with client.watch(A) as second:
            stop.go_on.set()
            joined(closer)
            gate.wait_reached()
            # There is no stream, so nothing can be known of this change.
            server.update(A, "new")
            assert second.status.state is not State.LIVE
            assert client.read_resource(A).text == "new"


def test_of_two_watches_that_begin_at_the_same_time_both_are_listened_for(server: Server, client: Client) -> None:
    stop = Stop(client._upkeep._reader, "want", lambda wanted, registration: wanted.resource_subscriptions == {A})
    watches: List[Any] = []
    slow = in_thread(lambda: watches.append(client.watch(A)))
    stop.wait()
    with client.watch(B) as second:
        stop.go_on.set()
        joined(slow)
        watches[0].wait_until_current(timeout=BOUND)
        second.wait_until_current(timeout=BOUND)
        # Every stream to come is for both.
        server.end_streams("eof")
        server.wait_for_requests("subscriptions/listen", server.count("subscriptions/listen") + 1)
        second.wait_until_current(timeout=5)
        assert (watches[0].status.covered, second.status.covered) == ({A}, {B})


def test_what_is_watched_is_read_again_although_an_older_registration_came_late_to_the_schedule(
    server: Server, client: Client
) -> None:
    stop = Stop(client._upkeep._refresher, "keep", lambda queries, registration: len(list(queries)) == 1)
    watches: List[Any] = []
    slow = in_thread(lambda: watches.append(client.watch(A)))
    stop.wait()
    with client.watch(B) as second:
        second.wait_until_current(timeout=BOUND)
        stop.go_on.set()
        joined(slow)
        watches[0].wait_until_current(timeout=BOUND)
        server.update(B, "new")
        change = next_change(second)
        assert change is not None and change.current.text == "new"  # type: ignore[union-attr]


# -- streams that take over --------------------------------------------------------------------------------------------------


def test_a_notice_that_was_on_its_way_on_the_first_stream_is_not_lost_when_a_wider_one_takes_over(
    server: Server, client: Client
) -> None:
    with client.watch(A, B) as watch:
        watch.wait_until_current(timeout=BOUND)
        # The reader is behind: of the many notices about B, and the one about A after them, most have not left the server.
        stop = Stop(client._upkeep, "noticed", lambda notice: notice == ResourceUpdated(B))
        server.notify_updated(B, times=100000)
        stop.wait()
        server.update(A, "new A")
        with client.watch(C) as wider:
            wider.wait_until_current(timeout=BOUND)
            server.wait_for_streams(1)  # the wider one has taken over
            stop.go_on.set()
            change = next_change(watch)
            assert change is not None and change.current.text == "new A"  # type: ignore[union-attr]
            assert client.read_resource(A).text == "new A"


def test_over_one_channel_no_notice_is_lost_when_a_wider_stream_takes_over() -> None:
    with StdioServer() as server:
        for uri in (A, B, C):
            server.add(uri, "old " + uri)
        with Client(server.command, throttle=0.01) as client, client.watch(A, B) as watch:
            watch.wait_until_current(timeout=BOUND)
            stop = Stop(client._upkeep, "noticed", lambda notice: notice == ResourceUpdated(B))
            taken_over = threading.Event()
            first = client._upkeep._reader._run.stream.exchange  # type: ignore[union-attr]
            interrupt = first.interrupt
            first.interrupt = lambda: (interrupt(), taken_over.set())  # type: ignore[method-assign]
            server.notify_updated(B)
            stop.wait()
            server.update(A, "new A")
            with client.watch(C) as wider:
                wider.wait_until_current(timeout=BOUND)
                assert taken_over.wait(BOUND)
                stop.go_on.set()
                change = next_change(watch)
                assert change is not None and change.current.text == "new A"  # type: ignore[union-attr]


def test_a_first_stream_that_ended_before_the_wider_one_began_is_a_gap(server: Server, client: Client) -> None:
    with client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        stop = Stop(client._upkeep, "noticed")
        # Of no interest to anybody; it only keeps the reader busy.
        server.send({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": C}})
        stop.wait()
        server.end_streams("eof")  # the first stream is over, which its reader has not seen yet
        server.update(A, "new A")  # nobody is told
        with client.watch(C) as wider:
            wider.wait_until_current(timeout=BOUND)
            stop.go_on.set()
            assert next_change(watch) is not None
            assert client.read_resource(A).text == "new A"


def test_what_the_wider_stream_does_not_cover_any_more_is_polled_from_then_on(server: Server) -> None:
    with Client(server.url, throttle=0.01, poll_interval=0.05) as client, client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        assert watch.status.covered == {A}
        server.inject(faults.AcknowledgeOnly({"resourceSubscriptions": [B]}), method="subscriptions/listen", times=None)
        with client.watch(B) as wider:
            wider.wait_until_current(timeout=BOUND)
            assert watch.status.uncovered == {A}
            server.update(A, "new A", notify=False)
            change = next_change(watch)
            assert change is not None and change.current.text == "new A"  # type: ignore[union-attr]


def test_what_comes_under_a_live_stream_is_read_again_even_if_a_hint_says_that_the_old_copy_is_good(server: Server) -> None:
    server.add("docs://hinted", "old", ttl_ms=3600000)
    with Client(server.url, throttle=0.01) as client, client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        assert client.read_resource("docs://hinted").text == "old"
        server.update("docs://hinted", "new")  # nobody listens for it, and nobody will be told again
        with client.watch("docs://hinted") as second:
            second.wait_for_state(State.LIVE, timeout=BOUND)
            server.wait_for_requests("subscriptions/listen", 2)
            second.wait_until_current(timeout=BOUND)
            assert client.read_resource("docs://hinted").text == "new"


def test_a_wider_stream_that_nobody_wants_any_more_costs_no_gap_when_it_fails(server: Server, client: Client) -> None:
    with client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        held = client.read_resource(A)
        server.inject(faults.Status(503), method="subscriptions/listen", times=1)
        with server.hold("subscriptions/listen") as gate:
            client.watch(B).close()
            gate.wait_reached()
        server.wait_for_requests("subscriptions/listen", 2)
        ended = threading.Event()
        real = client._upkeep.stream_ended

        def stream_ended(*args: Any) -> None:
            real(*args)
            ended.set()

        client._upkeep.stream_ended = stream_ended  # type: ignore[method-assign]
        ended.wait(1.0)
        assert watch.status.gaps == 0
        assert client.read_resource(A) is held


def test_a_reader_that_was_given_up_does_not_say_that_the_next_one_polls(server: Server, client: Client) -> None:
    server.inject(faults.Status(405), method="subscriptions/listen", times=1)
    stop = Stop(client._upkeep, "stream_ended")
    first = client.watch(A)
    stop.wait()
    reader = client._upkeep._reader._run.worker  # type: ignore[union-attr]
    first.close()
    with client.watch(B) as second:
        second.wait_until_current(timeout=BOUND)
        assert second.status.state is State.LIVE
        stop.go_on.set()
        assert reader is not None and reader.join(BOUND)
        assert second.status.state is State.LIVE
        assert second.status.covered == {B}


# -- answers that come late --------------------------------------------------------------------------------------------------


def test_an_old_answer_that_there_is_no_such_thing_does_not_undo_a_newer_read(server: Server, client: Client) -> None:
    server.remove(A, notify=False)
    with client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        with server.hold("resources/read", A, at="answer") as gate:
            asker = in_thread(lambda: pytest.raises(Exception, client.read_resource, A, cache_mode="refresh"))
            gate.wait_reached()
            # From here on it exists; the answer that it does not is still on its way.
            server.add(A, "there")
            server.notify_updated(A)
            gate.wait_reached(2)
            # The newer read comes back first.
            let_through(gate, 1)
            change = next_change(watch)
            assert change is not None and change.kind == "appeared"
            gate.release()
            joined(asker)
        assert watch.held(A).result is not None
        assert watch.snapshot().missing == frozenset()
        late = next_change(watch, timeout=0)
        assert late is None, "it is there, and was all the time: %s" % late.kind


def test_an_old_answer_that_there_is_no_such_thing_does_not_void_a_newer_read_in_flight_for_good(
    server: Server, client: Client
) -> None:
    server.remove(A, notify=False)
    with client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        with server.hold("resources/read", A, at="answer") as gate:
            asker = in_thread(lambda: pytest.raises(Exception, client.read_resource, A, cache_mode="refresh"))
            gate.wait_reached()
            server.add(A, "there")
            server.notify_updated(A)
            gate.wait_reached(2)
            let_through(gate, 0)
            joined(asker)
            gate.release()
        change = next_change(watch)
        assert change is not None and change.kind == "appeared"


def test_a_refusal_to_one_caller_does_not_swallow_the_change_that_is_being_read(server: Server, client: Client) -> None:
    with client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        with server.hold("resources/read", A) as gate:
            server.inject(faults.Unauthorized(), method="resources/read", uri=A)
            asker = in_thread(lambda: pytest.raises(Exception, client.read_resource, A, cache_mode="refresh"))
            gate.wait_reached()
            server.update(A, "new A")
            gate.wait_reached(2)
            let_through(gate, 0)
            joined(asker)
            gate.release()
        for change in watch.changes(timeout=5):
            if change.current is not None:
                assert change.current.text == "new A"  # type: ignore[attr-defined]
                break
        else:
            raise AssertionError("the change was never read: %s" % (watch.held(A),))


def test_a_copy_that_was_looked_up_before_the_resource_went_does_not_bring_it_back(server: Server, client: Client) -> None:
    with client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        # One more watch begins: it has the copy in its hand, and is overtaken.
        stop = Stop(client._upkeep, "_observed", lambda *told: threading.current_thread() is second)
        second = threading.Thread(target=lambda: client.watch(A))
        second.start()
        stop.wait()
        server.remove(A)
        server.notify_updated(A)
        change = next_change(watch)
        assert change is not None and change.kind == "removed"
        stop.go_on.set()
        joined(second)
        late = next_change(watch, timeout=0)
        assert late is None, "it is gone, and was all the time: %s" % late.kind


# -- what is missing ---------------------------------------------------------------------------------------------------------


def test_of_something_missing_nothing_is_known_while_nobody_listens(server: Server, client: Client) -> None:
    server.remove(A, notify=False)
    with client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        with server.hold("subscriptions/listen") as gate:
            server.end_streams("eof")
            gate.wait_reached()
            watch.wait_for_state(State.INTERRUPTED, timeout=BOUND)
            assert not watch.is_current
            with pytest.raises(Exception):
                client.read_resource(A)
            server.add(A, "there", notify=False)
            assert not watch.is_current, "nothing would tell that it is there now"


def test_after_a_notice_about_something_missing_it_is_not_current_until_it_was_read_again(
    server: Server, client: Client
) -> None:
    server.remove(A, notify=False)
    with client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        read = threading.Event()
        real = client._upkeep.noticed

        def noticed(notice: Any) -> None:
            real(notice)
            read.set()

        client._upkeep.noticed = noticed  # type: ignore[method-assign]
        with server.hold("resources/read"):
            server.add(A, "there")
            server.notify_updated(A)
            assert read.wait(BOUND)
            assert not watch.is_current
        watch.wait_until_current(timeout=BOUND)
        assert watch.snapshot()[A].text == "there"


# -- snapshots ---------------------------------------------------------------------------------------------------------------


def test_a_snapshot_of_what_was_stored_a_moment_ago_does_not_say_that_it_moved_back(server: Server, client: Client) -> None:
    with client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        stop = Stop(client._reads, "observer", lambda *told: True)
        server.update(A, "new A")
        stop.wait()
        pinned = watch.snapshot()
        assert pinned[A].text == "new A"
        moved = pinned.moved()
        stop.go_on.set()
        assert moved == (), "it says that it is now %s" % [change.current for change in moved]


def test_under_constant_change_a_watch_still_moves_forward(server: Server, client: Client) -> None:
    noticed = threading.Semaphore(0)
    real = client._upkeep.noticed

    def counted(notice: Any) -> None:
        real(notice)
        noticed.release()

    client._upkeep.noticed = counted  # type: ignore[method-assign]
    with client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        with server.hold("resources/read", A, at="answer") as gate:
            server.update(A, "text 0")
            for number in range(1, 11):
                gate.wait_reached(number)
                server.update(A, "text %d" % number)
                # Each answer arrives after one more notice.
                assert noticed.acquire(timeout=BOUND)
                if number == 1:
                    assert noticed.acquire(timeout=BOUND)
                gate.release(1)
            gate.wait_reached(11)
            seen = next_change(watch, timeout=0)
        assert seen is not None, "ten answers came, each newer than the one before, and nobody was told of any"
