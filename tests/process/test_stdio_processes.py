"""Servers over stdio at the end of a program, in its forked children and at its terminal."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any, Iterator, List, Tuple

import pytest

from mcp_sync.testing import StdioServer

CONFIG = "docs://service/config"
BOUND = 30.0

pytestmark = pytest.mark.skipif(os.name != "posix", reason="these are about POSIX processes")


@pytest.fixture(params=["modern", "legacy"])
def server(request: Any) -> "Iterator[StdioServer]":
    with StdioServer(eras=(request.param,)) as server:
        server.add(CONFIG, "colour = blue")
        yield server


def source(server: StdioServer, program: str) -> "List[str]":
    head = """
        import os, signal, sys, threading
        from mcp_sync import Client, State
        COMMAND, CONFIG = %r, %r

        def child(work):
            "Run work() in a forked child; return its exit status. The parent waits a bounded time."
            pid = os.fork()
            if pid == 0:
                status = 9
                try:
                    work()
                    status = 0
                except BaseException:
                    import traceback
                    traceback.print_exc()
                finally:
                    sys.stdout.flush()
                    if LEAVES_WITH_EXIT:
                        sys.exit(status)
                    os._exit(status)
            watchdog = threading.Timer(20, lambda: os.kill(pid, 9))
            watchdog.daemon = True
            watchdog.start()
            _, status = os.waitpid(pid, 0)
            watchdog.cancel()
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)

        LEAVES_WITH_EXIT = False
    """ % (server.command, CONFIG)
    # The warning that forking with threads may deadlock is what these tests are about.
    code = textwrap.dedent(head) + textwrap.dedent(program)
    return [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", code]


def run(server: StdioServer, program: str) -> "Tuple[int, str, str]":
    """Run a program with ``COMMAND`` and ``CONFIG`` set, and return exit code, output and errors."""
    done = subprocess.run(
        source(server, program), stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


def wait_for_no_process(server: StdioServer) -> None:
    idle = threading.Event()
    for _ in range(int(BOUND / 0.01)):
        if not server.pids:
            return
        idle.wait(0.01)
    raise AssertionError("these are left: %r" % (server.pids,))


def test_a_program_that_ends_without_close_ends_its_server_and_is_quiet(server: StdioServer) -> None:
    code, out, err = run(
        server,
        """
        client = Client(COMMAND)
        watch = client.watch(CONFIG)
        watch.wait_until_current(timeout=10)
        print(client.read_resource(CONFIG).text)
        """,
    )
    assert (code, out, err) == (0, "colour = blue\n", "")
    wait_for_no_process(server)


def test_a_server_that_ignores_everything_does_not_outlive_the_program() -> None:
    with StdioServer(ignore_end_of_input=True, ignore_sigterm=True) as server:
        server.add(CONFIG, "colour = blue")
        code, out, err = run(
            server,
            """
            client = Client(COMMAND)
            print(client.read_resource(CONFIG).text)
            """,
        )
        assert (code, out, err) == (0, "colour = blue\n", "")
        wait_for_no_process(server)
        assert server.happened == ("started", "end of input", "SIGTERM", "ended")


def test_a_program_that_is_killed_leaves_a_server_that_sees_the_end_of_its_input(server: StdioServer) -> None:
    code, _, _ = run(
        server,
        """
        client = Client(COMMAND)
        client.read_resource(CONFIG)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    assert code == -9
    wait_for_no_process(server)
    assert "end of input" in server.happened


def test_a_program_may_end_by_an_exception_while_calls_are_in_progress(server: StdioServer) -> None:
    with server.hold("resources/read"):
        code, out, err = run(
            server,
            """
            client = Client(COMMAND)
            for _ in range(4):
                threading.Thread(target=lambda: client.read_resource(CONFIG), daemon=True).start()
            client.discover()
            raise SystemExit(5)
            """,
        )
        assert (code, out) == (5, "")
    wait_for_no_process(server)


def test_ctrl_c_at_the_terminal_does_not_reach_the_server_before_the_program_ends_it(server: StdioServer) -> None:
    program = """
        client = Client(COMMAND)
        try:
            print(client.read_resource(CONFIG).text, flush=True)
            threading.Event().wait(20)
        except KeyboardInterrupt:
            # The server is as it was: the same process answers.
            print(client.read_resource(CONFIG, cache_mode="refresh").text, flush=True)
            client.close()
    """
    process = subprocess.Popen(source(server, program), stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"colour = blue\n"
        # As a terminal does it: to the whole group of the program.
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.readline() == b"colour = blue\n"
        assert process.wait(BOUND) == 0
    finally:
        process.kill()
        process.communicate()
    wait_for_no_process(server)
    assert server.happened.count("started") == 1


@pytest.mark.parametrize("leaves", ["_exit", "exit"])
def test_a_forked_child_starts_a_server_of_its_own_and_leaves_its_parents_alone(
    server: StdioServer, leaves: str
) -> None:
    code, out, err = run(
        server,
        """
        LEAVES_WITH_EXIT = %r
        client = Client(COMMAND)
        watch = client.watch(CONFIG)
        watch.wait_until_current(timeout=10)
        first = client._transport._child.process.pid

        def work():
            assert client.read_resource(CONFIG, cache_mode="refresh", timeout=10).text == "colour = blue"
            assert client._transport._child.process.pid != first
            if not LEAVES_WITH_EXIT:
                client.close()

        assert child(work) == 0
        assert client._transport._child.process.pid == first
        assert client._transport._child.process.poll() is None
        assert client.read_resource(CONFIG, cache_mode="refresh", timeout=10).text == "colour = blue"
        assert watch.status.state is State.LIVE and watch.status.gaps == 0
        client.close()
        """
        % (leaves == "exit"),
    )
    assert (code, out, err) == (0, "", "")
    wait_for_no_process(server)
    assert server.happened.count("started") == 2


def test_a_forked_child_that_does_nothing_keeps_nothing_of_its_parents_server_alive(server: StdioServer) -> None:
    code, out, err = run(
        server,
        """
        client = Client(COMMAND)
        client.read_resource(CONFIG)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(writing)
            os.read(reading, 1)       # until the parent is done
            os._exit(0)
        os.close(reading)
        client.close()                # the server sees the end of its input although the child lives
        os.close(writing)
        os.waitpid(pid, 0)
        """,
    )
    assert (code, out, err) == (0, "", "")
    wait_for_no_process(server)
    assert server.happened == ("started", "end of input", "ended")


def test_a_fork_while_calls_are_in_progress_and_locks_are_held_leaves_the_child_able_to_read(
    server: StdioServer,
) -> None:
    code, out, err = run(
        server,
        """
        client = Client(COMMAND)
        client.read_resource(CONFIG)
        stop = threading.Event()

        def hammer():
            while not stop.is_set():
                client.read_resource(CONFIG, cache_mode="bypass")

        threads = [threading.Thread(target=hammer, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            assert child(lambda: client.read_resource(CONFIG, cache_mode="refresh", timeout=15) and client.close()) == 0
        stop.set()
        for thread in threads:
            thread.join(20)
        client.close()
        """,
    )
    assert (code, out, err) == (0, "", "")
    wait_for_no_process(server)


def test_a_listener_that_was_inherited_is_closed_in_the_child_without_a_word_to_the_parents_server(
    server: StdioServer,
) -> None:
    code, out, err = run(
        server,
        """
        client = Client(COMMAND)
        listening = client.listen(CONFIG)

        def work():
            listening.close()
            client.close()

        assert child(work) == 0
        listening.close()
        client.close()
        """,
    )
    assert (code, out, err) == (0, "", "")
    wait_for_no_process(server)
    ends = [r.method for r in server.requests if r.method in ("notifications/cancelled", "resources/unsubscribe")]
    assert len(ends) == 1


def test_many_clients_with_servers_of_their_own_leave_nothing_behind(server: StdioServer) -> None:
    code, out, err = run(
        server,
        """
        def files():
            return len(os.listdir("/proc/self/fd"))

        before = files()
        for _ in range(10):
            clients = [Client(COMMAND) for _ in range(3)]
            for client in clients:
                client.read_resource(CONFIG)
            for client in clients:
                client.close()
        assert files() == before, (files(), before)
        assert [t.name for t in threading.enumerate()] == ["MainThread"]
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print("no child is left")
        """,
    )
    assert (code, out, err) == (0, "no child is left\n", "")
    wait_for_no_process(server)


def test_a_program_with_more_files_than_select_knows_can_speak_with_its_server(server: StdioServer) -> None:
    code, out, err = run(
        server,
        """
        import resource
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < 1300:
            raise SystemExit(77)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1300), hard))
        kept = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
        client = Client(COMMAND)
        print(client.read_resource(CONFIG).text)
        client.close()
        """,
    )
    if code == 77:
        pytest.skip("this system does not let a process have so many files")
    assert (code, out, err) == (0, "colour = blue\n", "")
