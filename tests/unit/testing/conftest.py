"""Fixtures of the tests of the embedded server."""

import os
import threading

import pytest
from embedded_client import LIMIT, Peer
from legacy_client import LegacyPeer

from mcp_sync.testing import Server


def _sockets():
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink("/proc/self/fd/" + number))
        except OSError:
            pass  # the descriptor of the listing itself
    return {link for link in found if link.startswith("socket:")}


@pytest.fixture(autouse=True)
def nothing_is_left():
    """After each test no thread of the server is left, and no socket that was not there before."""
    counted = os.path.isdir("/proc/self/fd")
    before = _sockets() if counted else set()
    yield
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("mcp_sync-testing")]
    assert not left
    if counted:
        assert not _sockets() - before


@pytest.fixture
def server(nothing_is_left):
    """A started server."""
    with Server() as started:
        yield started


@pytest.fixture
def peers(nothing_is_left):
    """Makes clients, and closes them afterwards."""
    made = []

    def make(server, **headers):
        made.append(Peer(server, **headers))
        return made[-1]

    yield make
    for peer in made:
        peer.close()


@pytest.fixture
def legacy(nothing_is_left):
    """Makes clients of the legacy era, with the handshake done, and closes them afterwards."""
    made = []

    def make(server, begin=True, **headers):
        made.append(LegacyPeer(server, **headers))
        if begin:
            made[-1].begin()
        return made[-1]

    yield make
    for peer in made:
        peer.close()


@pytest.fixture
def peer(server, peers):
    """A client of the started server."""
    return peers(server)


@pytest.fixture
def in_thread(nothing_is_left):
    """Runs something in a thread; calling what it returns gives the result, or raises what was raised."""
    threads = []

    def run(work):
        outcome = {}

        def body():
            try:
                outcome["result"] = work()
            except BaseException as error:
                outcome["error"] = error

        thread = threading.Thread(target=body, name="test-work", daemon=True)
        threads.append(thread)
        thread.start()

        def finish():
            thread.join(LIMIT * 2)
            assert not thread.is_alive()
            if "error" in outcome:
                raise outcome["error"]
            return outcome["result"]

        return finish

    yield run
    for thread in threads:
        thread.join(LIMIT * 2)
        assert not thread.is_alive()
