"""The proxy does what it says, one fault at a time; and what the client makes of each."""

import threading
from typing import Any, Callable, Dict, Iterator, Optional

import pytest

from mcp_sync import Client, MCPSyncError, State
from mcp_sync._deadline import monotonic
from mcp_sync.testing import Server

from .proxy import KINDS, Fault, Proxy

A, B = "docs://a", "docs://b"
TEXTS = {A: "a, " * 400, B: "b, " * 400}
BOUND = 15.0
OPTIONS: Dict[str, Any] = {
    "timeout": 1.0,
    "ack_timeout": 1.0,
    "silence_timeout": 1.0,
    "max_age": 60.0,
    "throttle": 0.01,
    "poll_interval": 3600.0,
}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(keep_alive=0.2) as server:
        for uri, text in TEXTS.items():
            server.add(uri, text)
        yield server
        server.wait_for_connections(0, timeout=BOUND)


def url(proxy: Proxy) -> str:
    return "http://127.0.0.1:%d/mcp" % proxy.port


@pytest.mark.parametrize("fault", [None, "delay", "drip", "overtaken", "deaf"])
def test_what_comes_late_or_slowly_comes_whole(fault: Optional[str], server: Server) -> None:
    seconds = 0.02
    with Proxy(server.port, lambda: None if fault is None else Fault(fault, 1 << 30, seconds)) as proxy:
        with Client(url(proxy)) as client:
            assert [client.read_resource(uri).text for uri in (A, B, A)] == [TEXTS[A], TEXTS[B], TEXTS[A]]
        assert fault in (None, "overtaken", "deaf") or proxy.bitten[fault]


@pytest.mark.parametrize("fault", ["cut", "reset", "half-open"])
@pytest.mark.parametrize("after", [0, 20, 400])
def test_an_answer_that_breaks_off_is_an_error_or_read_again_and_never_half_of_it(
    fault: str, after: int, server: Server
) -> None:
    # The first connection is for finding out what the server is; the one that is opened after it breaks.
    with Proxy(server.port) as proxy, Client(url(proxy), timeout=0.5) as client:
        client.discover()
        proxy.links[0].fault = Fault(fault, after)
        try:
            assert client.read_resource(A).text == TEXTS[A]
        except MCPSyncError:
            pass
        proxy.wait_for_bite(fault)
        assert client.read_resource(A, timeout=BOUND).text == TEXTS[A]


def test_an_answer_that_comes_a_second_time_is_not_taken_for_the_next_one(server: Server) -> None:
    with Proxy(server.port) as proxy, Client(url(proxy)) as client:
        client.discover()
        proxy.links[0].fault = Fault("repeated")
        assert client.read_resource(A).text == TEXTS[A]
        for _ in range(4):
            try:
                assert client.read_resource(B).text == TEXTS[B]
                assert client.read_resource(A).text == TEXTS[A]
            except MCPSyncError:
                pass
        assert proxy.bitten["repeated"]


@pytest.mark.parametrize("fault", ["deaf", "half-open", "cut", "reset"])
def test_connections_that_have_died_are_noticed_and_what_changed_meanwhile_is_seen(fault: str, server: Server) -> None:
    with Proxy(server.port) as proxy, Client(url(proxy), **OPTIONS) as client, client.watch(A) as watch:
        watch.wait_for_state(State.LIVE, timeout=BOUND)
        watch.wait_until_current(timeout=BOUND)
        # A server that sends signs of life is missed sooner than one that does not.
        heard = watch.status.last_contact
        until(lambda: watch.status.last_contact != heard)
        # All that there are, that of the stream and those of calls; what is opened later is whole.
        for link in proxy.links:
            link.fault = Fault(fault)
        server.update(A, "changed")
        proxy.wait_for_bite(fault)
        watch_sees(watch, "changed")
        assert watch.status.gaps >= 1


def test_packets_that_are_dropped_after_the_acknowledgement_are_missed(server: Server) -> None:
    # Nor does any sign of life arrive, so that only the age of what was read is left.
    options = dict(OPTIONS, max_age=1.0, silence_timeout=0.5)
    with Proxy(server.port, lambda: Fault("deaf", 1 << 30)) as proxy, Client(url(proxy), **options) as client:
        with client.watch(A) as watch:
            watch.wait_for_state(State.LIVE, timeout=BOUND)
            watch.wait_until_current(timeout=BOUND)
            proxy.choose = None
            server.update(A, "changed")
            watch_sees(watch, "changed")
            until(lambda: watch.status.gaps >= 1)
            assert proxy.bitten["deaf"]


def until(condition: Callable[[], Any]) -> None:
    """Wait until something is so."""
    end = monotonic() + BOUND
    while not condition():
        assert monotonic() < end
        threading.Event().wait(0.01)


def watch_sees(watch: Any, text: str) -> None:
    """Wait until a watch has come to a text, unasked."""
    for change in watch.changes(timeout=BOUND):
        if change.current.text == text:
            return
    raise AssertionError(str(watch.status))


def test_every_kind_has_its_test() -> None:
    assert set(KINDS) == {"delay", "drip", "overtaken", "cut", "reset", "half-open", "deaf", "repeated"}


def test_a_server_that_is_not_there_is_told(server: Server) -> None:
    with Proxy(server.port) as proxy, Client(url(proxy)) as client:
        assert client.read_resource(A).text == TEXTS[A]
        server.kill()
        with pytest.raises(MCPSyncError):
            client.read_resource(A)
        server.start()
        assert client.read_resource(A).text == TEXTS[A]
