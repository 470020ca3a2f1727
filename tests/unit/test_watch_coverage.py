"""What a server acknowledges, and what becomes of the rest: partly covered, not at all, later again."""

from typing import Any, Iterator

import pytest

from mcp_sync import Change, Client, State
from mcp_sync._backoff import Backoff
from mcp_sync.testing import Server, faults

CONFIG = "docs://service/config"
README = "docs://service/readme"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: Any) -> None:
    real = Backoff.next
    monkeypatch.setattr(Backoff, "next", lambda self, at_least=None: real(self, at_least) / 100.0)


def quick(server: Server, **options: Any) -> Client:
    return Client(server.url, **{"throttle": 0.01, "poll_interval": 0.05, "ack_timeout": 5.0, **options})


def filled(**options: Any) -> Server:
    server = Server(**options)
    server.add(CONFIG, "colour = blue")
    server.add(README, "# Read me")
    return server


@pytest.fixture
def server() -> Iterator[Server]:
    with filled() as server:
        yield server


def next_change(watch: Any, kind: str = "updated") -> Change:
    for change in watch.changes(timeout=10):
        if change.kind == kind:
            return change  # type: ignore[no-any-return]
    raise AssertionError("no change came: %s" % watch.status)


def test_what_is_not_acknowledged_is_polled_and_the_status_says_which(server: Server) -> None:
    server.inject(faults.AcknowledgeOnly({"resourceSubscriptions": [README]}), method="subscriptions/listen", times=None)
    with quick(server) as client, client.watch(CONFIG, README, catalog=True) as watch:
        watch.wait_until_current(timeout=10)
        status = watch.status
        assert status.state is State.LIVE and not status.is_live
        assert (status.covered, status.uncovered, status.catalog) == ({README}, {CONFIG}, "poll")
        server.update(CONFIG, "colour = red", notify=False)
        assert next_change(watch).uri == CONFIG
        server.add("docs://service/new", "new", notify=False)
        # The catalog tells sizes too: that of the changed document is a change of it, which may come before.
        added = next_change(watch, "catalog").added or next_change(watch, "catalog").added
        assert added == {"docs://service/new"}


@pytest.mark.parametrize(
    "fault",
    [
        faults.EmptyAcknowledgement(),
        faults.JsonRpcError(-32601, "Method not found", http_status=404),
        faults.JsonRpcError(-32000, "too many streams", http_status=200),
        faults.Status(405),
        faults.Status(406),
        faults.Accepted202(),
        faults.RawBody(b'{"jsonrpc":"2.0","method":"x"}\n{"jsonrpc":"2.0","method":"y"}\n', "application/json"),
        faults.RawBody(b"<html>hello</html>", "text/html"),
    ],
    ids=lambda fault: repr(fault)[:50],
)
def test_a_server_that_does_not_let_us_listen_is_polled_and_listened_to_when_it_does(server: Server, fault: Any) -> None:
    server.inject(fault, method="subscriptions/listen", times=2)
    with quick(server) as client, client.watch(CONFIG) as watch:
        server.wait_for_requests("subscriptions/listen", 1, timeout=10)
        server.update(CONFIG, "colour = red", notify=False)
        watch.wait_for_state(State.LIVE, timeout=10)
        watch.wait_until_current(timeout=10)
        assert client.read_resource(CONFIG).text == "colour = red"
        assert watch.status.last_ending == "refused" or watch.status.last_ending == "error"


@pytest.mark.parametrize("options", [{"subscribe": False, "list_changed": False}, {"subscribe": False, "list_changed": True}])
def test_the_two_capabilities_are_looked_at_separately(options: Any) -> None:
    with filled(**options) as server, quick(server) as client, client.watch(CONFIG, catalog=True) as watch:
        watch.wait_until_current(timeout=10)
        listens = bool(options["list_changed"])
        watch.wait_for_state(State.LIVE if listens else State.POLLING, timeout=10)
        assert watch.status.uncovered == {CONFIG}
        assert watch.status.catalog == ("listen" if listens else "poll")
        assert (server.count("subscriptions/listen") > 0) is listens
        server.update(CONFIG, "colour = red", notify=False)
        assert next_change(watch).current.text == "colour = red"  # type: ignore[union-attr]


def test_polling_reads_again_and_again_but_serves_from_memory_in_between(server: Server) -> None:
    with quick(server, listen=False, poll_interval=30.0) as client, client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        assert watch.status.state is State.POLLING
        held = client.read_resource(CONFIG)
        assert client.read_resource(CONFIG) is held
        assert server.count("subscriptions/listen") == 0
        assert server.count("resources/read") == 1


def test_a_missing_acknowledgement_is_not_waited_for_for_ever(server: Server) -> None:
    server.inject(faults.NoAcknowledgement(), method="subscriptions/listen", times=1)
    with quick(server, ack_timeout=0.3, poll_after=60.0) as client, client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        assert watch.status.last_ending == "no acknowledgement"
        assert server.count("subscriptions/listen") == 2


def test_an_acknowledgement_after_an_event_counts(server: Server) -> None:
    server.inject(faults.AcknowledgeAfterEvent(), method="subscriptions/listen", times=1)
    with quick(server) as client, client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        assert watch.status.covered == {CONFIG}


def id_as_text(call: Any) -> Any:
    return faults.WrongId(str(call.request.id))(call)


@pytest.mark.parametrize("fault", [id_as_text, faults.WrongId(None), faults.NoMeta()], ids=["as text", "null", "no _meta"])
def test_a_mangled_or_missing_subscription_id_does_no_harm_over_http(server: Server, fault: Any) -> None:
    server.inject(fault, method="subscriptions/listen", times=1)
    with quick(server) as client, client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        assert watch.status.covered == {CONFIG}
        server.update(CONFIG, "colour = red")
        assert next_change(watch).current.text == "colour = red"  # type: ignore[union-attr]


def test_a_silent_server_that_claims_to_notify_is_bounded_by_the_age_limit(server: Server) -> None:
    with quick(server, max_age=0.2) as client, client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        assert watch.status.covered == {CONFIG}
        server.update(CONFIG, "colour = red", notify=False)  # it forgets to say so
        assert next_change(watch).current.text == "colour = red"  # type: ignore[union-attr]


def test_a_server_that_limits_streams_is_polled_and_not_hammered() -> None:
    with filled(max_streams=1) as server:
        with quick(server) as first, first.watch(CONFIG) as watch:
            watch.wait_until_current(timeout=10)
            with quick(server, poll_after=0.0) as second, second.watch(CONFIG) as other:
                other.wait_until_current(timeout=10)
                other.wait_for_state(State.POLLING, timeout=10)
                server.update(CONFIG, "colour = red")
                assert next_change(other).current.text == "colour = red"  # type: ignore[union-attr]
            # One client that wants more than its one stream: the first gives way to the wider one.
            with first.watch(README) as further:
                further.wait_until_current(timeout=10)
                further.wait_for_state(State.LIVE, timeout=10)
                assert further.status.covered == {README}
                assert watch.status.covered == {CONFIG}


def test_a_long_interruption_is_polled_and_polling_ends_when_the_stream_is_back(server: Server) -> None:
    with quick(server, poll_after=0.0) as client, client.watch(CONFIG) as watch:
        watch.wait_until_current(timeout=10)
        server.inject(faults.Close(), method="subscriptions/listen", times=None)
        server.end_streams("reset")
        watch.wait_for_state(State.POLLING, timeout=10)
        server.update(CONFIG, "colour = red", notify=False)
        assert next_change(watch).current.text == "colour = red"  # type: ignore[union-attr]
        server.clear_faults()
        watch.wait_for_state(State.LIVE, timeout=10)
        watch.wait_until_current(timeout=10)
        assert watch.status.covered == {CONFIG}


def test_a_server_that_learns_to_notify_is_listened_to(server: Server) -> None:
    port = server.port
    server.stop()
    with filled(port=port, subscribe=False, list_changed=False) as old, quick(old) as client:
        watch = client.watch(CONFIG)
        watch.wait_for_state(State.POLLING, timeout=10)
        old.kill()
        with filled(port=port):
            watch.wait_for_state(State.LIVE, timeout=10)
            watch.wait_until_current(timeout=10)
            assert watch.status.covered == {CONFIG}
