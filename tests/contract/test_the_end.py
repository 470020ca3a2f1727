"""The end of a client, in whatever state it is: nothing of it is left, on either side."""

import threading
from typing import Any

import pytest
from combinations import BOUND, CONFIG, NOTIFYING, README, Late, client_of, settled

from mcp_sync import ClientClosed, State
from mcp_sync.testing import StdioServer, faults

notifying = pytest.mark.parametrize("combination", NOTIFYING, indirect=True)


def nothing_is_left(server: Any) -> None:
    """Wait until neither the client's threads nor anything that the server has of it are left."""
    for thread in threading.enumerate():
        if thread.name.startswith("mcp_sync") and "testing" not in thread.name:
            thread.join(BOUND)
            assert not thread.is_alive(), thread.name
    server.wait_for_no_streams(timeout=BOUND)
    server.wait_for_connections(0, timeout=BOUND)  # over stdio, each is a child
    if isinstance(server, StdioServer):
        assert server.pids == ()


def closed(client: Any) -> None:
    """Close a client from another thread, and look that this ends."""
    closing = Late(client.close)
    assert closing.result() is None
    assert client.closed


def test_a_client_that_was_never_used(server: Any) -> None:
    closed(client_of(server))
    assert server.count() == 0
    nothing_is_left(server)


def test_a_client_that_only_read(server: Any) -> None:
    client = client_of(server)
    client.read_resource(CONFIG)
    closed(client)
    nothing_is_left(server)


def test_a_client_that_watches(server: Any, notifies: bool) -> None:
    client = client_of(server)
    watch = client.watch(CONFIG, README, catalog=True)
    settled(watch, notifies)
    closed(client)
    assert watch.status.state is State.CLOSED
    nothing_is_left(server)


def test_a_client_in_the_middle_of_a_read(server: Any) -> None:
    client = client_of(server)
    client.discover()
    with server.hold("resources/read", CONFIG) as gate:
        late = Late(lambda: client.read_resource(CONFIG))
        gate.wait_reached()
        closed(client)
        with pytest.raises(ClientClosed):
            late.result()
        nothing_is_left(server)


def test_a_client_whose_server_never_answers(server: Any) -> None:
    server.inject(faults.Silence(), times=None)
    client = client_of(server)
    watch = client.watch(CONFIG)
    late = Late(lambda: client.read_resource(README))
    server.wait_for_requests(timeout=BOUND)
    closed(client)
    with pytest.raises(ClientClosed):
        late.result()
    assert watch.status.state is State.CLOSED
    server.clear_faults()
    nothing_is_left(server)


@notifying
def test_a_client_whose_server_is_dead(server: Any) -> None:
    client = client_of(server)
    watch = client.watch(CONFIG)
    settled(watch, True)
    server.kill()
    watch.wait_for_state(State.INTERRUPTED, timeout=BOUND)
    closed(client)
    nothing_is_left(server)


def test_a_listener_may_close_its_client(server: Any, notifies: bool) -> None:
    client = client_of(server)
    done = threading.Event()

    def close(change: Any) -> None:
        client.close()
        done.set()

    with client.watch(CONFIG, on_change=close) as watch:
        settled(watch, notifies)
        server.update(CONFIG, "colour = red")
        assert done.wait(BOUND)
    nothing_is_left(server)


def test_everything_asked_of_a_closed_client_is_an_error_that_says_so(server: Any, notifies: bool) -> None:
    client = client_of(server)
    watch = client.watch(CONFIG)
    settled(watch, notifies)
    client.close()
    client.close()
    for ask in (
        lambda: client.read_resource(CONFIG),
        lambda: client.read_resource(CONFIG, stale_ok=True),
        lambda: client.list_resources(),
        lambda: client.discover(),
        lambda: client.watch(README),
        lambda: watch.wait_until_current(timeout=BOUND),
    ):
        with pytest.raises(ClientClosed):
            ask()
    assert list(watch.changes()) == []
    nothing_is_left(server)


@pytest.mark.parametrize("combination", ["legacy, HTTP, sessions"], indirect=True)
def test_the_session_is_given_back(server: Any) -> None:
    with client_of(server) as client, client.watch(CONFIG) as watch:
        settled(watch, True)
        assert len(server.sessions) == 1
    nothing_is_left(server)
    assert server.sessions == ()


@pytest.mark.parametrize(
    "options", [{"ignore_end_of_input": True}, {"ignore_end_of_input": True, "ignore_sigterm": True}]
)
@pytest.mark.parametrize("eras", [("modern",), ("legacy",)])
def test_a_child_that_does_not_want_to_end(eras: Any, options: Any) -> None:
    with StdioServer(eras=eras, **options) as server:
        server.add(CONFIG, "colour = blue")
        with client_of(server) as client, client.watch(CONFIG) as watch:
            settled(watch, True)
        nothing_is_left(server)
        assert ("SIGTERM" in server.happened) == ("ignore_sigterm" in options)
