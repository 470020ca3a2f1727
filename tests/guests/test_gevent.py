"""gevent, patched before anything else: nothing blocks the hub, nothing is shared by greenlets that should not be."""
import pytest

from mcp_sync.testing import Server, StdioServer

from .conftest import CONFIG
from .guest import PROGRAMS, Guest, eventually


@pytest.fixture(params=["modern", "legacy", "http+sse", "stdio"])
def kind(request):
    return request.param


@pytest.fixture
def server(kind):
    made = {
        "modern": lambda: Server(),
        "legacy": lambda: Server(eras=["legacy"]),
        "http+sse": lambda: Server(transport="http+sse"),
        "stdio": lambda: StdioServer(),
    }
    with made[kind]() as server:
        server.add(CONFIG, "colour = blue")
        yield server


def running(python, program, server):
    where = {"MCP_COMMAND": "\n".join(server.command)} if isinstance(server, StdioServer) else {"MCP_URL": server.url}
    return Guest([python, "-W", "error", "-W", "ignore::DeprecationWarning", PROGRAMS / "patched.py", program], None, **where)


def when_it_waits(guest):
    """Wait until the program has come to where others have to go on."""
    eventually(lambda: "go" in guest.log().split("\n") or guest.process.poll() is not None, guest.log)
    assert guest.process.poll() is None, guest.log()


def output(guest):
    assert guest.process.wait(60) == 0, guest.log()
    eventually(lambda: not guest.processes(), lambda: "left: {}".format(guest.processes()))
    return [line for line in guest.log().splitlines() if line != "go"]


def test_greenlets_wait_for_answers_at_the_same_time(python, server):
    with running(python, "reads_wait_together", server) as guest:
        with server.hold("resources/read") as gate:
            when_it_waits(guest)
            gate.wait_reached(3, timeout=30)
            guest.tell("go on")
        assert output(guest) == [str(["colour = blue"] * 3)]


def test_one_greenlet_follows_the_changes_and_the_others_go_on(python, server):
    with running(python, "a_watch_is_waited_for", server) as guest:
        when_it_waits(guest)
        server.update(CONFIG, "colour = red")
        guest.tell("go on")
        assert output(guest) == ["colour = red live"]


def test_close_wakes_greenlets_that_wait(python, server):
    with running(python, "close_wakes_those_who_wait", server) as guest:
        with server.hold("resources/read") as gate:
            when_it_waits(guest)
            gate.wait_reached(1, timeout=30)
            guest.tell("go on")
            assert output(guest) == ["ClientClosed"]


def test_a_timeout_of_gevent_ends_a_call_and_the_next_one_reads(python, server):
    with running(python, "a_gevent_timeout_passes_through", server) as guest:
        with server.hold("resources/read"):
            when_it_waits(guest)
        guest.tell("go on")
        assert output(guest) == ["timed out", "timed out", "colour = blue"]


def test_a_forked_child_reads_for_itself_and_the_parent_goes_on(python, server):
    with running(python, "a_forked_child_goes_on_and_so_does_the_parent", server) as guest:
        when_it_waits(guest)
        server.update(CONFIG, "colour = red")
        guest.tell("go on")
        assert output(guest) == ["colour = blue live", "colour = red", "colour = red 0 0", "0"]
