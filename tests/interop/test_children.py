"""The processes that a client starts: nothing of them is left, however the program ends, and one that ends too early is
replaced.

A process is recognised by a mark in its environment, which its own children inherit, so none of them is overlooked.
"""
import signal
import uuid

import pytest

from mcp_sync import Client, ClientClosed, Command, TransportError

from .environments import npx
from .following import LIMIT, Late, Program, eventually
from .old_server import EVERYTHING, as_json
from .served import MARK, exists, marked
from .test_old_servers import settled, watching

pytestmark = pytest.mark.interop

PYTHON = "mcp-1.30-subscribing-stdio"
# With its updates switched on it looks neither at the end of its input nor at anything else but signals.
EVERYTHING_ELSE = "everything-stdio"


@pytest.fixture(params=[PYTHON, EVERYTHING_ELSE])
def started(request, of_kind):
    """A server that clients start."""
    return of_kind(request.param)


@pytest.mark.parametrize("kind", [PYTHON, "mcp-2.3-stdio", "typescript-stdio", EVERYTHING_ELSE])
def test_after_close_nothing_is_left_not_even_a_zombie(of_kind, kind):
    started = of_kind(kind)
    with started.connected() as client, watching(client, started, started.config) as (_, changes):
        started.change(client, started.config, "retries = 4")
        changes.wait_for_text(started.config, "retries = 4")
        pids = started.pids()
        assert len(pids) == 1
    assert not exists(pids[0])


@pytest.mark.parametrize("kind", [PYTHON, "mcp-2.3-stdio"])
def test_close_ends_a_child_in_the_middle_of_a_read(of_kind, kind):
    server = of_kind(kind)
    server.hold_slow()
    with server.connected() as client:
        late = Late(client, server.slow)
        server.wait_slow_reached()
        pids = server.pids()
    with pytest.raises(ClientClosed):
        late.result()
    assert not any(exists(pid) for pid in pids)


def test_nothing_is_left_of_what_npx_starts(tmp_path):
    mark = uuid.uuid4().hex
    command, variables, directory = npx(EVERYTHING, "mcp-server-everything", "stdio")
    environment = dict(variables, npm_config_cache=str(tmp_path), **{MARK: mark})
    with Client(Command(command, env=environment, cwd=directory)) as client:
        uri = "demo://resource/static/document/features.md"
        assert client.read_resource(uri).text.startswith("#")
        pids = marked(mark)
        assert len(pids) > 1
    eventually(lambda: not any(exists(pid) for pid in pids))
    assert marked(mark) == []


def test_a_child_that_is_killed_again_and_again_is_started_each_time(started):
    with started.connected() as client, watching(client, started, started.config) as (watch, changes):
        before = started.pids()
        for number in (4, 5, 6):
            started.write_state(started.config, "retries = {}".format(number))
            started.kill()
            changes.wait_for_text(started.config, "retries = {}".format(number))
            settled(watch, started)
        after = started.pids()
        assert len(after) == 1 and after != before
        assert watch.status.gaps >= 3
    assert not any(exists(pid) for pid in before + after)


def test_the_last_words_of_a_child_that_does_not_start_are_in_the_error(of_kind):
    everything = of_kind("everything-stdio")
    fastmcp = of_kind("mcp-1.30-stdio")
    for server, argv, words in (
        (everything, everything.target.argv[:-1] + ("nonsense",), "Unknown transport: nonsense"),
        (fastmcp, fastmcp.target.argv[:-1] + ("/no/such/file",), "No such file or directory"),
    ):
        with Client(Command(argv, env=server.target.env)) as client:
            with pytest.raises(TransportError, match=words):
                client.read_resource(server.config, timeout=LIMIT)
        assert server.pids() == []


# -- exit without close ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, how, status",
    [
        (PYTHON, "return", 0),
        (EVERYTHING_ELSE, "return", 0),
        ("typescript-stdio", "exception", 1),
        (EVERYTHING_ELSE, "sys.exit", 0),
    ],
)
def test_a_program_that_ends_without_close_leaves_nothing(of_kind, kind, how, status):
    started = of_kind(kind)
    with Program("leave_children.py", as_json(started), started.config, how) as program:
        assert program.says() == {"text": "retries = 3"}
        assert len(started.pids()) == 1
        program.go_on()
        assert program.ends() == status
        assert started.pids() == []


def test_a_program_that_is_interrupted_at_the_terminal_leaves_nothing(started):
    with Program("leave_children.py", as_json(started), started.config, "waits") as program:
        assert program.says() == {"text": "retries = 3"}
        program.signal(signal.SIGINT)
        assert program.ends() != 0
        assert started.pids() == []


@pytest.mark.parametrize(
    "kind, how",
    [(PYTHON, "os._exit"), (PYTHON, "SIGKILL"), ("typescript-stdio", "SIGKILL"), (EVERYTHING_ELSE, "SIGKILL")],
)
def test_a_program_that_cannot_say_goodbye_leaves_nothing_but_what_is_deaf_to_the_end_of_its_input(of_kind, kind, how):
    started = of_kind(kind)
    with Program("leave_children.py", as_json(started), started.config, how) as program:
        assert program.says() == {"text": "retries = 3"}
        if how == "SIGKILL":
            program.signal(signal.SIGKILL)
        else:
            program.go_on()
        program.ends()
        if kind == EVERYTHING_ELSE:
            started.kill()
        started.wait_until_gone()


# -- fork --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use, how", [("uses", "close"), ("uses", "sys.exit"), ("uses", "os._exit"), ("idles", "sys.exit")]
)
def test_a_forked_child_that_ends_leaves_nothing_and_the_server_of_its_parent_alone(of_kind, use, how):
    server = of_kind(PYTHON)
    with Program("fork_and_leave.py", as_json(server), server.config, use, how) as program:
        assert program.says() == {"parent": "retries = 3", "child": "retries = 3" if use == "uses" else "idle"}
        # The forked child has a server of its own, if it has any.
        assert len(server.pids()) == (2 if use == "uses" else 1)
        program.go_on()
        assert program.says() == {"parent": "retries = 3"}
        eventually(lambda: len(server.pids()) == 1)
        assert server.count_sessions() == (2 if use == "uses" else 1)
        program.go_on()
        assert program.ends() == 0
        assert server.pids() == []


def test_the_server_of_a_parent_ends_although_a_forked_child_lives_on(started):
    with Program("fork_and_leave.py", as_json(started), started.config, "idles", "outlives") as program:
        assert program.says() == {"parent": "retries = 3", "child": "idle"}
        program.go_on()
        assert program.says() == {"closed": True}
        assert started.pids() == []
        program.go_on()
        assert program.ends() == 0
