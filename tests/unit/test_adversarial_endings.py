"""Listeners, credentials, threads and processes that do what they should not, and options at their limits."""

import os
import subprocess
import sys
import textwrap
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

from mcp_sync import Change, Client, ClientClosed, MCPSyncError, State
from mcp_sync._backoff import Backoff
from mcp_sync._deadline import monotonic
from mcp_sync._worker import Worker
from mcp_sync.freshness import Lease
from mcp_sync.reads import CATALOG, Outcome, Query, read_query
from mcp_sync.refresher import Refresher
from mcp_sync.results import ReadResourceResult
from mcp_sync.testing import Server, faults
from mcp_sync.watch import Change as WatchChange
from mcp_sync.watch import _Pending

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


def next_change(watch: Any, timeout: float = 5.0) -> Optional[Change]:
    for change in watch.changes(timeout=timeout):
        return change  # type: ignore[no-any-return]
    return None


def ends(work: Callable[[], Any], bound: float = BOUND) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(bound)
    assert not thread.is_alive(), "it hangs"


# -- listeners ---------------------------------------------------------------------------------------------------------------


def test_a_watch_that_always_has_something_to_tell_does_not_keep_the_others_waiting(server: Server, client: Client) -> None:
    told: List[str] = []
    enough = threading.Event()

    def busy(change: Change) -> None:
        if not told:
            # From here on the other has something to tell as well.
            server.update(B, "new b")
            next_change(witness)
        told.append("busy")
        if "quiet" in told or len(told) >= 20:
            enough.set()
            return
        # While it is being told of one change, there is the next.
        text = "text %d" % len(told)
        server.update(A, text)
        while next_change(witness).current.text != text:  # type: ignore[union-attr]
            pass

    with client.watch(A, on_change=busy) as first, client.watch(B, on_change=lambda change: told.append("quiet")) as second:
        with client.watch(A, B) as witness:
            for watch in (first, second, witness):
                watch.wait_until_current(timeout=BOUND)
            server.update(A, "begin")
            assert enough.wait(30)
    assert "quiet" in told[:5], told


def test_a_listener_that_ends_its_thread_does_not_end_the_calls_to_all_listeners(server: Server, client: Client) -> None:
    told, left = threading.Event(), threading.Event()

    def leave(change: Change) -> None:
        left.set()
        sys.exit(1)  # "the configuration changed: start me again"

    with client.watch(A, on_change=leave) as first, client.watch(B, on_change=lambda change: told.set()) as second:
        first.wait_until_current(timeout=BOUND)
        second.wait_until_current(timeout=BOUND)
        server.update(A, "new a")
        assert left.wait(BOUND)
        server.update(B, "new b")
        assert told.wait(5)


def test_a_status_listener_is_told_of_the_end(server: Server, client: Client) -> None:
    states: List[State] = []
    live, closed = threading.Event(), threading.Event()

    def listener(status: Any) -> None:
        states.append(status.state)
        if status.state is State.LIVE:
            live.set()
        if status.state is State.CLOSED:
            closed.set()

    watch = client.watch(A, on_status=listener)
    assert live.wait(BOUND)
    watch.close()
    assert closed.wait(3), states


def test_a_status_listener_is_not_told_of_a_status_that_is_the_same(server: Server, client: Client) -> None:
    statuses: List[Any] = []
    changed, live = threading.Event(), threading.Event()

    def on_status(status: Any) -> None:
        statuses.append(status)
        if status.state is State.LIVE:
            live.set()

    with client.watch(A, on_status=on_status, on_change=lambda change: changed.set()) as watch:
        watch.wait_until_current(timeout=BOUND)
        assert live.wait(BOUND)
        for number in range(3):
            changed.clear()
            server.update(A, "text %d" % number)
            assert changed.wait(BOUND)
        # One more call of a listener of another watch: everything before it has been told.
        told = threading.Event()
        with client.watch(B, on_status=lambda status: told.set() if status.state is State.LIVE else None):
            assert told.wait(BOUND)
            lives = [status for status in statuses if status.state is State.LIVE and status.covered == {A}]
    assert len({(status.state, status.covered, status.reconnects, status.gaps) for status in lives}) == len(lives)


def test_a_listener_that_adds_a_watch_and_closes_its_own_is_called_no_more(server: Server, client: Client) -> None:
    added: List[Any] = []
    done = threading.Event()

    def listener(change: Change) -> None:
        added.append(client.watch(B))
        watch.close()
        done.set()

    watch = client.watch(A, on_change=listener)
    watch.wait_until_current(timeout=BOUND)
    server.update(A, "new a")
    assert done.wait(BOUND)
    added[0].wait_until_current(timeout=BOUND)
    server.update(A, "newer a")
    server.update(B, "new b")
    change = next_change(added[0])
    assert change is not None and change.uri == B
    assert len(added) == 1


def _result(text: str) -> ReadResourceResult:
    wire = {"contents": [{"uri": A, "text": text}]}
    return ReadResourceResult.from_wire(wire, A, 0.0, 0.0, 0.0, monotonic, None)


def test_what_came_and_went_before_anybody_looked_is_no_removal_of_something_never_seen() -> None:
    pending = _Pending()
    pending.add(read_query(A), WatchChange("appeared", A, None, _result("x")))
    pending.add(read_query(A), WatchChange("removed", A, _result("x"), None))
    change = pending.take()
    assert change is None or change.previous is not None or change.current is not None, change


# -- exceptions in our threads -----------------------------------------------------------------------------------------------


def test_a_thread_that_cannot_be_started_once_does_not_make_the_client_deaf(
    server: Server, client: Client, monkeypatch: Any
) -> None:
    real = Worker.start

    def refuse(self: Worker) -> None:
        monkeypatch.setattr(Worker, "start", real)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Worker, "start", refuse)
    with pytest.raises(RuntimeError):
        client.watch(A)
    with client.watch(A) as watch:
        watch.wait_until_current(timeout=5)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_credentials_that_end_the_thread_do_not_take_the_resource_out_of_the_schedule(server: Server) -> None:
    bad = threading.Event()
    met = threading.Event()

    def auth(request: Any) -> Any:
        if bad.is_set() and threading.current_thread().name.startswith("mcp_sync-refresher"):
            bad.clear()
            met.set()
            raise SystemExit("no credentials")
        return request

    with Client(server.url, auth=auth, throttle=0.01) as client, client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        bad.set()
        server.update(A, "new a")
        assert met.wait(BOUND)
        server.update(A, "newer a")
        for change in watch.changes(timeout=5):
            if change.current.text == "newer a":  # type: ignore[union-attr]
                return
    raise AssertionError("it is never read again")


@pytest.mark.parametrize("where", ["reader", "refresher"])
def test_the_client_can_be_closed_from_each_of_its_own_threads(server: Server, where: str) -> None:
    done = threading.Event()
    armed = threading.Event()
    clients: List[Client] = []

    def auth(request: Any) -> Any:
        if armed.is_set() and threading.current_thread().name.startswith("mcp_sync-" + where):
            armed.clear()
            clients[0].close()
            done.set()
        return request

    client = Client(server.url, auth=auth, throttle=0.01)
    clients.append(client)
    watch = client.watch(A)
    watch.wait_until_current(timeout=BOUND)
    armed.set()
    if where == "reader":
        server.end_streams("eof")
    else:
        server.update(A, "new a")
    assert done.wait(BOUND)
    assert watch.closed
    server.wait_for_no_streams()


def test_credentials_that_raise_in_every_thread_are_an_error_in_the_status_and_no_more(server: Server) -> None:
    bad = threading.Event()

    def auth(request: Any) -> Any:
        if bad.is_set():
            raise ValueError("the vault is sealed")
        return request

    with Client(server.url, auth=auth, throttle=0.01) as client, client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        bad.set()
        server.end_streams("eof")
        watch.wait_for_state(State.INTERRUPTED, timeout=BOUND)
        with pytest.raises(MCPSyncError, match="vault"):
            client.read_resource(A)
        assert client.read_resource(A, stale_ok=True).stale
        bad.clear()
        server.update(A, "new a", notify=False)
        change = next_change(watch, BOUND)
        assert change is not None and change.current.text == "new a"  # type: ignore[union-attr]


def test_two_loops_share_the_changes_of_one_watch_without_loss_or_doubles(server: Server, client: Client) -> None:
    uris = ["docs://many/%d" % number for number in range(40)]
    for uri in uris:
        server.add(uri, "old")
    seen: List[Any] = []
    all_seen = threading.Event()

    def loop() -> None:
        for change in watch.changes():
            seen.append((change.uri, change.current.text))  # type: ignore[union-attr]
            if len(seen) >= len(uris):
                all_seen.set()

    with client.watch(*uris) as watch:
        watch.wait_until_current(timeout=BOUND)
        loops = [threading.Thread(target=loop) for _ in range(2)]
        for thread in loops:
            thread.start()
        for uri in uris:
            server.update(uri, "new")
        assert all_seen.wait(BOUND), len(seen)
    for thread in loops:
        thread.join(BOUND)
        assert not thread.is_alive()
    assert sorted(seen) == sorted((uri, "new") for uri in uris)


# -- watches in every state --------------------------------------------------------------------------------------------------


def test_watches_begin_and_end_while_connecting_polling_and_interrupted(server: Server, client: Client) -> None:
    with server.hold("subscriptions/listen") as gate:
        first = client.watch(A)
        gate.wait_reached()
        assert first.status.state is State.CONNECTING
        client.watch(B).close()
        second = client.watch(C)
        first.close()
    second.wait_until_current(timeout=BOUND)
    server.inject(faults.Close(), method="subscriptions/listen", times=None)
    server.end_streams("reset")
    second.wait_for_state(State.INTERRUPTED, timeout=BOUND)
    client.watch(B).close()
    third = client.watch(A)
    second.close()
    server.clear_faults()
    third.wait_until_current(timeout=BOUND)
    assert third.status.covered == {A}
    server.inject(faults.Status(405), method="subscriptions/listen", times=None)
    server.end_streams("eof")
    third.wait_for_state(State.POLLING, timeout=BOUND)
    fourth = client.watch(B)
    fourth.wait_until_current(timeout=BOUND)
    third.close()
    assert fourth.status.state is State.POLLING
    server.clear_faults()
    fourth.wait_for_state(State.LIVE, timeout=BOUND)
    fourth.close()
    server.wait_for_no_streams()


def test_a_watch_that_begins_and_ends_again_and_again_while_the_server_hangs_does_not_pile_up_threads(
    server: Server, client: Client
) -> None:
    with server.hold("subscriptions/listen") as gate:
        for number in range(20):
            with client.watch(A):
                if number == 0:
                    gate.wait_reached()
        readers = [thread for thread in threading.enumerate() if thread.name.startswith("mcp_sync-reader")]
    assert len(readers) <= 3


def test_a_reader_that_is_about_to_end_is_not_counted_on(server: Server, client: Client) -> None:
    reader = client._upkeep._reader
    ended, leave = threading.Semaphore(0), threading.Event()
    real = reader._main

    def main(run: Any) -> None:
        real(run)
        ended.release()
        assert leave.wait(3 * BOUND)  # the thread has nothing more to do, and is still there

    with server.hold("subscriptions/listen") as gate:
        reader._main = main  # type: ignore[method-assign]
        for number in (1, 2):
            with client.watch(A):
                gate.wait_reached(number)
    for _ in (1, 2):
        assert ended.acquire(timeout=BOUND)
    try:
        with client.watch(A) as watch:
            watch.wait_until_current(timeout=5)
    finally:
        leave.set()


# -- close -------------------------------------------------------------------------------------------------------------------


def test_close_has_one_limit_however_many_principals_have_listeners_that_hang(server: Server, monkeypatch: Any) -> None:
    entered = threading.Semaphore(0)
    leave = threading.Event()
    client = Client(server.url, throttle=0.01)
    others = [client.as_principal(str(number), headers={"X-Who": str(number)}) for number in range(3)]
    for one in others:
        watch = one.watch(A, on_change=lambda change: (entered.release(), leave.wait(60)))
        watch.wait_until_current(timeout=BOUND)
    server.update(A, "new a")
    for _ in others:
        assert entered.acquire(timeout=BOUND)
    waits: List[float] = []
    real = threading.Thread.join

    def join(self: threading.Thread, timeout: Optional[float] = None) -> None:
        if self.name.startswith("mcp_sync-listeners"):
            waits.append(timeout or 0.0)
        real(self, timeout)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "join", join)
        client.close()
    leave.set()
    for one in others:
        one._upkeep.join(BOUND)
    assert sum(waits) <= 1.5, "it would wait for each of them in turn"


def test_closing_the_first_client_closes_all_that_come_from_it_directly_or_not(server: Server) -> None:
    with Client(server.url) as client:
        second = client.as_principal("second", headers={"X-Who": "second"})
        third = second.as_principal("third", headers={"X-Who": "third"})
        third.watch(A).wait_until_current(timeout=BOUND)
    try:
        assert second.closed and third.closed
        server.wait_for_no_streams()
    finally:
        third.close()


def test_a_client_with_a_status_listener_is_closed_at_the_end_of_the_interpreter_without_a_word(server: Server) -> None:
    program = textwrap.dedent(
        """
        import atexit
        from mcp_sync import Client
        client = Client(%r)
        atexit.register(client.close)
        watch = client.watch("docs://a")
        watch.wait_until_current(timeout=20)
        watch.on_status(lambda status: None)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program % server.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_while_another_thread_holds_every_lock_leaves_a_child_that_can_read_and_close(server: Server) -> None:
    program = textwrap.dedent(
        """
        import contextlib, os, signal, threading
        from mcp_sync import Client, _fork
        client = Client(%r)
        watch = client.watch("docs://a")
        watch.wait_until_current(timeout=20)
        owners = [owner for owner in _fork._registered if hasattr(owner, "_lock")]
        assert len(owners) >= 8, owners
        held, forked = threading.Event(), threading.Event()

        def hold():
            with contextlib.ExitStack() as locks:
                for owner in owners:
                    locks.enter_context(owner._lock)
                held.set()
                forked.wait(20)

        thread = threading.Thread(target=hold)
        thread.start()
        assert held.wait(20)
        pid = os.fork()
        if pid == 0:
            signal.alarm(10)
            watch.wait_until_current(timeout=5)
            client.close()
            os._exit(0)
        forked.set()
        _, status = os.waitpid(pid, 0)
        thread.join()
        client.close()
        print(status)
        """
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program % server.url],
        stdout=subprocess.PIPE,
        universal_newlines=True,
        timeout=60,
    )
    assert done.stdout == "0\n"


def test_close_while_another_thread_starts_one_of_the_threads_raises_nothing(server: Server, monkeypatch: Any) -> None:
    reached, go_on = threading.Event(), threading.Event()
    real = threading.Thread.start

    def start(self: threading.Thread) -> None:
        if self.name.startswith("mcp_sync-reader"):
            reached.set()
            assert go_on.wait(BOUND)
        real(self)

    client = Client(server.url)
    monkeypatch.setattr(threading.Thread, "start", start)
    watcher = threading.Thread(target=lambda: client.watch(A))
    watcher.start()
    assert reached.wait(BOUND)
    try:
        client.close()
    finally:
        go_on.set()
        watcher.join(BOUND)


def test_a_close_that_was_interrupted_can_be_repeated(server: Server, monkeypatch: Any) -> None:
    client = Client(server.url)
    watch = client.watch(A)
    watch.wait_until_current(timeout=BOUND)

    def interrupt() -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt()

    monkeypatch.setattr(client._upkeep, "close", interrupt)
    with pytest.raises(KeyboardInterrupt):
        client.close()
    client.close()
    try:
        server.wait_for_no_streams(timeout=5)
    finally:
        client._upkeep.close()
        client._connection.close()


# -- the schedule ------------------------------------------------------------------------------------------------------------


class _Reads:
    """Reads nothing, at once."""

    def __init__(self) -> None:
        from mcp_sync.cache import Coverage

        self.coverage = Coverage()
        self.begun: List[Query] = []
        self.settled = True

    def key(self, query: Query) -> Query:
        return query

    def get(self, query: Query, deadline: Any, refresh: bool = False) -> Outcome:
        self.begun.append(query)
        return Outcome(None, self.settled)  # type: ignore[arg-type]


@pytest.fixture
def schedule() -> Iterator[Callable[..., Any]]:
    made: List[Refresher] = []

    def make(reads: _Reads, done: Callable[[Query], None], **options: Any) -> Refresher:
        more: Dict[str, Any] = {"threads": 2, "throttle": 0.0, "timeout": 5.0, "clock": monotonic}
        more.update(options)
        refresher = Refresher(reads, "test", done, lambda query, error: None, **more)  # type: ignore[arg-type]
        made.append(refresher)
        return refresher

    yield make
    for refresher in made:
        refresher.close()
        refresher.join(BOUND)


def test_what_is_said_to_have_changed_is_pending_although_the_throttle_holds_it_back(schedule: Any) -> None:
    reads, done = _Reads(), threading.Event()
    reads.coverage.leases = {CATALOG: Lease(1e6, polled=False)}
    refresher = schedule(reads, lambda query: done.set(), throttle=1000.0)
    refresher.keep([CATALOG])
    refresher.soon([CATALOG])
    assert done.wait(BOUND)
    assert not refresher.is_pending(CATALOG)
    refresher.soon([CATALOG])
    assert refresher.is_pending(CATALOG)


@pytest.mark.parametrize("seconds", [1e10, 1e300])
def test_a_very_long_age_limit_does_not_end_the_thread_that_waits_for_it(schedule: Any, caplog: Any, seconds: float) -> None:
    reads, done = _Reads(), threading.Event()
    reads.coverage.leases = {CATALOG: Lease(seconds, polled=False)}
    refresher = schedule(reads, lambda query: done.set(), threads=1, uniform=lambda low, high: high)
    refresher.keep([CATALOG])
    refresher.soon([CATALOG])
    assert done.wait(BOUND)
    refresher._workers[0].join(1.0)
    assert refresher._workers[0].alive, caplog.text


def test_a_read_that_was_refused_is_made_again_without_another_notice(schedule: Any) -> None:
    """Not only notices refuse a read: a refusal to somebody else does, and the end of somebody else's stream."""
    reads, done = _Reads(), threading.Event()
    reads.coverage.leases = {CATALOG: Lease(1e6, polled=False)}
    reads.settled = False
    real = reads.get

    def get(query: Query, deadline: Any, refresh: bool = False) -> Outcome:
        outcome = real(query, deadline, refresh)
        reads.settled = True
        return outcome

    reads.get = get  # type: ignore[method-assign]
    refresher = schedule(reads, lambda query: done.set())
    refresher.keep([CATALOG])
    refresher.soon([CATALOG])
    assert done.wait(5), "it is read again only when the copy that was never stored is too old"


def test_after_a_suspension_what_is_watched_is_read_again_soon(server: Server, monkeypatch: Any) -> None:
    import mcp_sync.client

    asleep = [0.0]
    monkeypatch.setattr(mcp_sync.client, "monotonic", lambda: monotonic() + asleep[0])
    with Client(server.url, throttle=0.01) as client, client.watch(A) as watch:
        watch.wait_until_current(timeout=BOUND)
        asleep[0] = 3600.0  # the lid was closed for an hour
        assert not watch.is_current
        watch.wait_until_current(timeout=15)


# -- options at their limits -------------------------------------------------------------------------------------------------

FOREVER = float("inf")


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": FOREVER},
        {"timeout": None},
        {"max_age": FOREVER},
        {"max_age": 1e12},
        {"ack_timeout": FOREVER},
        {"silence_timeout": FOREVER},
        {"poll_after": FOREVER},
        {"connect_timeout": FOREVER},
        {"poll_interval": FOREVER, "listen": False},
        {"refresh_threads": 0},
        {"throttle": 0},
    ],
    ids=repr,
)
def test_a_limit_that_is_none_or_endless_is_no_limit(server: Server, options: Dict[str, Any]) -> None:
    with Client(server.url, **options) as client, client.watch(A, catalog=True) as watch:
        watch.wait_until_current(timeout=5)
        assert client.read_resource(A).text == "old " + A
        server.update(A, "new a")
        if "listen" not in options:
            change = next_change(watch)
            assert change is not None and change.current.text == "new a"  # type: ignore[union-attr]


@pytest.mark.parametrize("options", [{"max_entries": 0}, {"max_bytes": 0}, {"max_age": 0}], ids=repr)
def test_a_client_that_may_keep_nothing_still_reads_and_says_of_a_watch_why_it_cannot_be_current(
    server: Server, options: Dict[str, Any]
) -> None:
    with Client(server.url, throttle=0.05, **options) as client:
        assert client.read_resource(A).text == "old " + A
        with client.watch(A) as watch:
            watch.wait_for_state(State.LIVE, timeout=BOUND)
            assert not client.read_resource(A).stale


@pytest.mark.parametrize("timeout", [0, -1, 0.0])
def test_no_time_at_all_is_an_error_at_once_and_leaves_nothing_behind(client: Client, timeout: float) -> None:
    with pytest.raises(MCPSyncError):
        client.read_resource(A, timeout=timeout)
    assert client._cache._states == {}
    assert client.read_resource(A, timeout=BOUND).text == "old " + A


def test_a_call_may_have_an_endless_limit_of_its_own(client: Client) -> None:
    assert client.read_resource(A, timeout=FOREVER).text == "old " + A


def test_the_same_resource_twice_and_an_empty_uri_are_harmless(server: Server, client: Client) -> None:
    with client.watch(A, A, "") as watch:
        assert watch.uris == (A, "")
        watch.wait_until_current(timeout=BOUND)
        assert watch.snapshot().missing <= {""}
        server.update(A, "new a")
        change = next_change(watch)
        assert change is not None and change.uri == A


@pytest.mark.parametrize("uri", [None, b"docs://a", 7, ["docs://a"]], ids=repr)
def test_what_is_no_uri_is_refused_before_anything_is_sent(server: Server, client: Client, uri: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        client.read_resource(uri)
    with pytest.raises((TypeError, ValueError)):
        client.listen(uri)
    assert server.requests == ()


def test_ten_thousand_resources_are_watched_through_one_client() -> None:
    with Server() as server:
        uris = ["docs://%d" % number for number in range(10000)]
        for uri in uris:
            server.add(uri, uri)
        with Client(server.url, throttle=0.01) as client, client.watch(*uris) as watch:
            watch.wait_until_current(timeout=120)
            assert len(watch.status.covered) == 10000
            server.update(uris[7777], "new")
            change = next_change(watch)
            assert change is not None and change.uri == uris[7777]


def test_calls_after_the_end_say_that_it_is_the_end(server: Server, client: Client) -> None:
    watch = client.watch(A)
    watch.wait_until_current(timeout=BOUND)
    client.close()
    for call in (lambda: client.watch(A), lambda: client.listen(A), lambda: client.read_resource(A, stale_ok=True)):
        with pytest.raises(ClientClosed):
            call()
    assert list(watch.changes(timeout=FOREVER)) == []
    ends(client.close)
