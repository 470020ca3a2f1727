"""close() from anywhere, in any state."""

import threading
from typing import Any, Iterator

import pytest

from mcp_sync import Client, ClientClosed, State, TransportError
from mcp_sync.testing import Server, faults

CONFIG = "docs://service/config"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        server.add(CONFIG, "colour = blue")
        yield server


def closes_soon(client: Client) -> None:
    closer = threading.Thread(target=client.close)
    closer.start()
    closer.join(10)
    assert not closer.is_alive(), "close() hangs"


def our_threads() -> Any:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("mcp_sync-re")]


def test_close_on_a_silent_stream_ends_the_thread_and_the_server_sees_the_end(server: Server) -> None:
    client = Client(server.url)
    watch = client.watch(CONFIG)
    watch.wait_until_current(timeout=10)
    closes_soon(client)
    assert our_threads() == []
    server.wait_for_no_streams(timeout=10)
    assert watch.status.state is State.CLOSED


def test_close_while_the_acknowledgement_is_awaited(server: Server) -> None:
    with server.hold("subscriptions/listen") as gate:
        client = Client(server.url)
        client.watch(CONFIG)
        gate.wait_reached()
        closes_soon(client)
        assert our_threads() == []


def test_close_while_waiting_before_the_next_attempt(server: Server) -> None:
    server.inject(faults.Status(503, headers=(("Retry-After", "3000"),)), method="subscriptions/listen", times=None)
    client = Client(server.url)
    client.watch(CONFIG).wait_for_state(State.INTERRUPTED, timeout=10)
    closes_soon(client)
    assert our_threads() == []


def test_close_while_a_read_again_is_in_progress(server: Server) -> None:
    client = Client(server.url)
    watch = client.watch(CONFIG)
    watch.wait_until_current(timeout=10)
    with server.hold("resources/read") as gate:
        server.update(CONFIG, "colour = red")
        gate.wait_reached()
        closes_soon(client)
        assert our_threads() == []


def test_close_does_not_wait_for_a_listener_that_hangs(server: Server) -> None:
    entered, leave = threading.Event(), threading.Event()
    client = Client(server.url, throttle=0.01)
    watch = client.watch(CONFIG, on_change=lambda change: (entered.set(), leave.wait(60)))
    watch.wait_until_current(timeout=10)
    server.update(CONFIG, "colour = red")
    assert entered.wait(10)
    closes_soon(client)
    leave.set()
    client._upkeep.join(10)


def test_many_threads_close_at_once(server: Server) -> None:
    client = Client(server.url)
    client.watch(CONFIG).wait_until_current(timeout=10)
    closers = [threading.Thread(target=client.close) for _ in range(8)]
    for closer in closers:
        closer.start()
    for closer in closers:
        closer.join(10)
        assert not closer.is_alive()


def test_a_client_that_was_never_used_starts_nothing(server: Server) -> None:
    with Client(server.url):
        assert our_threads() == []
    assert server.requests == ()


def test_the_raw_stream_yields_typed_notices_and_ends_gracefully(server: Server) -> None:
    from mcp_sync import ResourcesListChanged, ResourceUpdated

    with Client(server.url) as client, client.listen(CONFIG, resources_list_changed=True) as stream:
        assert stream.acknowledged.resource_subscriptions == {CONFIG}
        assert stream.acknowledged.resources_list_changed and not stream.acknowledged.tools_list_changed
        server.notify_updated(CONFIG)
        assert next(stream) == ResourceUpdated(CONFIG)
        server.notify_resources_list_changed()
        assert next(stream) == ResourcesListChanged()
        server.end_streams("result")
        assert list(stream) == []
        assert stream.ended_by == "result"


def test_the_raw_stream_says_when_it_breaks(server: Server) -> None:
    with Client(server.url) as client, client.listen(CONFIG) as stream:
        server.end_streams("reset")
        with pytest.raises(TransportError):
            next(stream)
        assert list(stream) == []
        assert stream.ended_by == "broken"


def test_the_raw_stream_ends_by_its_own_time_limit(server: Server) -> None:
    with Client(server.url) as client, client.listen(CONFIG, timeout=0.1) as stream:
        assert list(stream) == []
        assert stream.ended_by == "timeout"


def test_the_raw_stream_is_closed_from_another_thread(server: Server) -> None:
    with Client(server.url) as client:
        stream = client.listen(CONFIG)
        notices: Any = []
        reader = threading.Thread(target=lambda: notices.extend(stream))
        reader.start()
        stream.close()
        reader.join(10)
        assert not reader.is_alive() and notices == []
        server.wait_for_no_streams(timeout=10)


def test_the_raw_stream_without_acknowledgement_is_an_error(server: Server) -> None:
    server.inject(faults.NoAcknowledgement(), method="subscriptions/listen", times=None)
    with Client(server.url, ack_timeout=0.2) as client:
        with pytest.raises(TransportError, match="acknowledgement"):
            client.listen(CONFIG)


def test_a_raw_stream_of_nothing_is_refused(server: Server) -> None:
    with Client(server.url) as client:
        with pytest.raises(ValueError, match="nothing to listen for"):
            client.listen()
    with pytest.raises(ClientClosed):
        client.listen(CONFIG)
