"""A child that is forked while a server runs has no part in it."""

import os
import select
import socket

import pytest
from embedded_client import LIMIT

from mcp_sync.testing import Server, StdioServer

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    # Forking with threads is what is tested.
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


class _Child:
    """A forked child that does something, says so, and lives until it is let go."""

    def __init__(self, work):
        done_read, self._done = os.pipe()
        self._go, go_write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(go_write)
                work()
                os.write(self._done, b"!")
                select.select([self._go], [], [], 30)
                status = 0
            finally:
                os._exit(status)
        os.close(self._done)
        os.close(self._go)
        self._go_write = go_write
        with os.fdopen(done_read, "rb") as done:
            assert select.select([done], [], [], LIMIT)[0]
            assert done.read(1) == b"!"

    def let_go(self):
        os.close(self._go_write)
        assert os.waitpid(self.pid, 0)[1] == 0


def test_a_child_keeps_no_connection_and_no_port_open(server):
    with socket.create_connection((server.host, server.port), LIMIT) as sock:
        server.wait_for_connections(1)
        child = _Child(sock.close)  # the client's own copy, which would hide the reset
        try:
            server.kill()
            with pytest.raises(ConnectionResetError):
                sock.recv(1)
            server.start()  # the port is free although the child lives
        finally:
            child.let_go()


def test_a_child_may_end_its_copy_without_touching_the_parents_server(server, peer):
    server.add("a://x", "1")
    assert peer.read("a://x").text == "1"

    def work():
        assert server.connections == 0
        server.stop()
        server.kill()

    child = _Child(work)
    try:
        assert peer.read("a://x").text == "1"
        assert server.connections == 1
    finally:
        child.let_go()


def test_a_child_keeps_no_legacy_stream_and_no_process_open(legacy):
    from stdio_client import StdioPeer

    with Server(eras=["legacy"]) as server, StdioServer() as twin:
        stream = legacy(server).listen()
        process = StdioPeer(twin.command)
        assert "result" in process.new("resources/list")
        server.wait_for_streams(1)

        def work():
            assert (server.connections, twin.connections) == (0, 0)
            server.stop()
            twin.kill()

        child = _Child(work)
        try:
            assert "result" in process.new("resources/list")
            server.add("a://x", "1")
            assert stream.next()["method"] == "notifications/resources/list_changed"
            twin.kill()
            assert process.process.wait(LIMIT) < 0
        finally:
            child.let_go()
            process.close()


def test_a_child_may_start_the_server_for_itself(server, peer):
    server.add("a://x", "1")

    def work():
        from embedded_client import Peer

        server.stop()
        server._life._port = 0  # the parent has the other one
        with server:
            mine = Peer(server)
            assert mine.read("a://x").text == "1"
            mine.close()

    child = _Child(work)
    try:
        assert peer.read("a://x").text == "1"
    finally:
        child.let_go()
