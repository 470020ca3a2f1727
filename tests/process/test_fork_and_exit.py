"""What happens at the end of a process, and in a child of it. Each program runs in a process of its own, with a bound."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
from typing import Any, Iterator, Tuple

import pytest

from mcp_sync.testing import Server, faults

CONFIG = "docs://service/config"

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        server.add(CONFIG, "colour = blue")
        yield server


def run(server: Server, program: str) -> Tuple[int, str, str]:
    """Run a program with ``URL`` and ``CONFIG`` set, and return exit code, output and errors."""
    head = """
        import os, sys, threading
        from mcp_sync import Client, State
        URL, CONFIG = %r, %r

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
                    os._exit(status)
            ended = threading.Event()
            watchdog = threading.Timer(20, lambda: os.kill(pid, 9))
            watchdog.daemon = True
            watchdog.start()
            _, status = os.waitpid(pid, 0)
            watchdog.cancel()
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    """ % (server.url, CONFIG)
    code = textwrap.dedent(head) + textwrap.dedent(program)
    # The warning that forking with threads may deadlock is what these tests are about.
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_program_that_ends_without_close_ends_at_once_and_quietly(server: Server) -> None:
    code, out, err = run(
        server,
        """
        client = Client(URL)
        watch = client.watch(CONFIG, catalog=True, on_change=print)
        watch.wait_until_current(timeout=10)
        print(client.read_resource(CONFIG).text)
        """,
    )
    assert (code, out, err) == (0, "colour = blue\n", "")
    server.wait_for_no_streams(timeout=10)


def test_a_client_that_is_forgotten_during_the_end_of_the_interpreter_does_no_harm(server: Server) -> None:
    code, out, err = run(
        server,
        """
        import atexit

        class Holder:
            def __del__(self):
                self.client.close()

        holder = Holder()
        holder.client = Client(URL)
        holder.watch = holder.client.watch(CONFIG)
        holder.watch.wait_until_current(timeout=10)
        sys.modules["kept"] = holder
        atexit.register(lambda: holder.client.read_resource(CONFIG))
        unused = Client(URL)
        del unused
        """,
    )
    assert (code, out, err) == (0, "", "")


def test_a_program_that_is_ended_in_the_middle_of_a_read_ends(server: Server) -> None:
    with server.hold("resources/read"):
        code, out, err = run(
            server,
            """
            import signal
            client = Client(URL)
            threading.Thread(target=lambda: client.read_resource(CONFIG), daemon=True).start()
            client.watch(CONFIG).wait_for_state(State.LIVE, timeout=10)
            os.kill(os.getpid(), signal.SIGTERM)
            """,
        )
    assert code == -15 and out == ""


def test_ctrl_c_interrupts_a_call_and_a_waiting_loop(server: Server) -> None:
    with server.hold("resources/read"):
        code, out, err = run(
            server,
            """
            import signal
            main = threading.main_thread()

            def interrupt_when_waiting(reached):
                "Press Ctrl-C; again after a while, since one in the moment before the wait begins is only seen at its end."
                interrupted = threading.Event()
                def work():
                    reached()
                    while not interrupted.is_set():
                        signal.pthread_kill(main.ident, signal.SIGINT)
                        interrupted.wait(0.5)
                threading.Thread(target=work, daemon=True).start()
                return interrupted

            client = Client(URL)
            began = threading.Event()
            from mcp_sync.transports._sockets import _GuardedRead
            real = _GuardedRead.readinto
            def readinto(self, buffer):
                began.set()  # the request is out, and its answer is waited for
                return real(self, buffer)
            _GuardedRead.readinto = readinto
            try:
                interrupted = interrupt_when_waiting(lambda: began.wait(10))
                client.read_resource(CONFIG)
            except KeyboardInterrupt:
                interrupted.set()
                print("call interrupted")
            watch = client.watch(CONFIG)
            watch.wait_for_state(State.LIVE, timeout=10)
            try:
                interrupted = interrupt_when_waiting(lambda: None)
                for change in watch.changes():
                    pass
            except KeyboardInterrupt:
                interrupted.set()
                print("loop interrupted")
            client.close()
            """,
        )
    assert (code, out, err) == (0, "call interrupted\nloop interrupted\n", "")


@needs_fork
def test_a_forked_child_reads_and_watches_for_itself_and_the_parent_goes_on(server: Server) -> None:
    code, out, err = run(
        server,
        """
        client = Client(URL, throttle=0.01)
        watch = client.watch(CONFIG)
        watch.wait_until_current(timeout=10)
        old = client.read_resource(CONFIG)

        def work():
            assert client.read_resource(CONFIG) is not old, "the parent's copy may be out of date here"
            watch.wait_until_current(timeout=10)
            assert watch.status.state is State.LIVE
            names = sorted(t.name for t in threading.enumerate())
            print("child:", names)

        assert child(work) == 0
        assert client.read_resource(CONFIG) is old, "the parent is undisturbed"
        assert watch.status.gaps == 0 and watch.status.reconnects == 0
        client.close()
        """,
    )
    assert (code, err) == (0, "")
    assert out == "child: ['MainThread', 'mcp_sync-reader-127.0.0.1', 'mcp_sync-refresher-127.0.0.1']\n"
    # One stream of the parent, one of the child; each ended.
    assert server.count("subscriptions/listen") == 2
    server.wait_for_no_streams(timeout=10)


@needs_fork
def test_a_fork_while_every_lock_is_held_leaves_a_child_that_reads(server: Server) -> None:
    code, out, err = run(
        server,
        """
        client = Client(URL)
        watch = client.watch(CONFIG, on_change=print)
        watch.wait_until_current(timeout=10)
        upkeep = client._upkeep
        locks = [client._cache._lock, upkeep._lock, upkeep._reader._lock, upkeep._refresher._lock,
                 upkeep._notifier._lock, watch._lock, client._transport._lock, client._connection._changed,
                 client._connection._negotiator._ids._lock]
        held, forked = threading.Event(), threading.Event()

        def holder():
            for lock in locks:
                lock.acquire()
            held.set()
            forked.wait(30)
            for lock in locks:
                lock.release()

        thread = threading.Thread(target=holder)
        thread.start()
        held.wait(10)

        def work():
            print(client.read_resource(CONFIG, timeout=10).text)
            watch.wait_until_current(timeout=10)
            client.close()

        status = child(work)
        forked.set()
        thread.join(10)
        assert status == 0, status
        print(client.read_resource(CONFIG).text)
        client.close()
        """,
    )
    assert (code, out, err) == (0, "colour = blue\ncolour = blue\n", "")


@needs_fork
def test_parent_and_child_never_get_each_others_answers(server: Server) -> None:
    for number in range(50):
        server.add("docs://%d" % number, "text %d" % number)
    code, out, err = run(
        server,
        """
        client = Client(URL)
        client.read_resource("docs://0")  # a connection lies in the pool, and will be inherited

        def read_all():
            for turn in range(4):
                for number in range(50):
                    assert client.read_resource("docs://%d" % number).text == "text %d" % number

        go_r, go_w = os.pipe()
        def work():
            os.write(go_w, b"x")
            read_all()
        thread = threading.Thread(target=lambda: (os.read(go_r, 1), read_all(), print("parent read all")))
        thread.start()
        assert child(work) == 0
        thread.join(20)
        client.close()
        """,
    )
    assert (code, out, err) == (0, "parent read all\n", "")


@needs_fork
def test_no_socket_of_the_parent_is_open_in_a_child(server: Server) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("this system does not tell who has which file open")
    code, out, err = run(
        server,
        """
        def sockets():
            found = set()
            for name in os.listdir("/proc/self/fd"):
                try:
                    found.add(os.readlink("/proc/self/fd/" + name))
                except OSError:
                    pass  # the list itself
            return {name for name in found if name.startswith("socket:")}

        client = Client(URL)
        watch = client.watch(CONFIG)
        watch.wait_until_current(timeout=10)
        client.read_resource(CONFIG, cache_mode="refresh")
        inherited = sockets()
        assert len(inherited) >= 2, inherited  # the stream, and a connection in the pool

        def work():
            assert not sockets(), sockets()
            watch.wait_until_current(timeout=10)
            assert sockets() and not sockets() & inherited

        assert child(work) == 0
        assert inherited <= sockets()
        client.close()
        assert not sockets()
        """,
    )
    assert (code, out, err) == (0, "", "")


@needs_fork
def test_a_fork_waits_until_a_socket_that_is_being_made_is_known(server: Server) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("this system does not tell who has which file open")
    code, out, err = run(
        server,
        """
        import socket
        made, forking, forked = threading.Event(), threading.Event(), threading.Event()

        class Slow(socket.socket):
            def __init__(self, *args, **options):
                super().__init__(*args, **options)
                if threading.current_thread() is reading:
                    made.set()
                    forking.wait(10)
                    forked.wait(0.5)  # which it must not be yet

        client = Client(URL)
        # Of the hooks that are called before, the last comes first.
        os.register_at_fork(before=forking.set, after_in_parent=forked.set)
        reading = threading.Thread(target=lambda: print(client.read_resource(CONFIG).text))
        socket.socket = Slow
        reading.start()
        made.wait(10)

        def work():
            found = [name for name in os.listdir("/proc/self/fd")]
            links = [os.readlink("/proc/self/fd/" + name) for name in found if os.path.exists("/proc/self/fd/" + name)]
            assert not [link for link in links if link.startswith("socket:")], links

        assert child(work) == 0
        reading.join(10)
        client.close()
        """,
    )
    assert (code, out, err) == (0, "colour = blue\n", "")


def test_nothing_is_imported_by_a_client_at_work_but_while_forks_are_held_off(server: Server) -> None:
    # What a thread imports at the moment of a fork, the child has half of.
    code, out, err = run(
        server,
        """
        from mcp_sync import _fork
        held_off, unguarded = [], []

        class Looking:
            def find_spec(self, name, path=None, target=None):
                (held_off if _fork.held_off()._is_owned() else unguarded).append(name)

        sys.meta_path.insert(0, Looking())
        client = Client(URL)
        watch = client.watch(CONFIG, catalog=True, on_change=print)
        watch.wait_until_current(timeout=10)
        client.read_resource(CONFIG, cache_mode="refresh")
        try:
            client.read_resource("docs://missing")
        except Exception as error:
            str(error)
        client.close()
        print("mcp_sync.upkeep" in held_off, unguarded)
        """,
    )
    assert (code, out, err) == (0, "True []\n", "")


@pytest.mark.parametrize("options", [{}, {"eras": ("legacy",)}, {"transport": "http+sse"}])
def test_nor_is_what_a_server_of_any_era_needs_and_a_call_that_asks_back(options: Any) -> None:
    form = {"message": "?", "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}}}
    question = {"method": "elicitation/create", "params": form}
    with Server(**options) as server:
        server.add(CONFIG, "colour = blue")
        server.add_tool(
            "ask",
            lambda arguments, call: {"did": call.ask({"sure": question})["sure"]["action"]},
            output_schema={"type": "object", "properties": {"did": {"type": "string"}}},
        )
        code, out, err = run(
            server,
            """
            from mcp_sync import _fork
            unguarded = []

            class Looking:
                def find_spec(self, name, path=None, target=None):
                    if not _fork.held_off()._is_owned():
                        unguarded.append(name)

            sys.meta_path.insert(0, Looking())
            client = Client(URL, on_elicitation=lambda params: {"sure": True})
            print(client.read_resource(CONFIG).text, client.call_tool("ask").structured_content["did"])
            client.close()
            print(unguarded)
            """,
        )
    assert (code, out, err) == (0, "colour = blue accept\n[]\n", "")


@needs_fork
def test_a_child_counts_its_own_gaps_and_reconnections(server: Server) -> None:
    code, out, err = run(
        server,
        """
        client = Client(URL, throttle=0.01)
        watch = client.watch(CONFIG)
        watch.wait_until_current(timeout=10)

        def work():
            watch.wait_until_current(timeout=10)
            status = watch.status
            print(status.gaps, status.reconnects, status.last_ending, status.last_error)

        assert child(work) == 0
        client.close()
        """,
    )
    assert (code, out, err) == (0, "0 0 None None\n", "")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_of_multiprocessing_reads_for_itself(method: str, server: Server, tmp_path: Any) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("this system cannot %s" % method)
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import multiprocessing, sys, threading
            from mcp_sync import Client

            METHOD, URL, CONFIG = sys.argv[1:]
            client = Client(URL, throttle=0.01)
            watch = client.watch(CONFIG)

            def work(inherited):
                result = client.read_resource(CONFIG, timeout=2)
                assert result.text == "colour = blue" and not result.stale and id(result) != inherited
                watch.wait_until_current(timeout=10)

            if __name__ == "__main__":
                watch.wait_until_current(timeout=10)
                process = multiprocessing.get_context(METHOD).Process(target=work, args=(id(client.read_resource(CONFIG)),))
                process.start()
                process.join(30)
                status = watch.status
                print(process.exitcode, status.state.name, status.gaps, status.reconnects)
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", str(program), method, server.url, CONFIG],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 LIVE 0 0\n", "")
    assert server.count("subscriptions/listen") == 2
    server.wait_for_no_streams(timeout=10)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that send signals")
@pytest.mark.parametrize("transport", ["streamable", "http+sse"])
@pytest.mark.parametrize("answer", ["nothing", "half of its headers"])
def test_what_the_handler_of_a_signal_raises_ends_a_call_as_it_is(transport: str, answer: str) -> None:
    with Server(transport=transport) as server:
        server.add(CONFIG, "colour = blue")
        if answer == "nothing":
            server.hold("resources/read")
        else:
            server.inject(faults.HalfHeaders(), method="resources/read", times=None)
        code, out, err = run(
            server,
            """
            import signal

            class TookTooLong(Exception):
                pass

            def handler(number, frame):
                raise TookTooLong("of a kind that no library knows")

            signal.signal(signal.SIGALRM, handler)
            client = Client(URL)
            client.list_resources()
            for _ in range(2):
                signal.setitimer(signal.ITIMER_REAL, 0.3)
                try:
                    client.read_resource(CONFIG)
                except TookTooLong as error:
                    print(error)
            client.close()
            """,
        )
    assert (code, out, err) == (0, "of a kind that no library knows\n" * 2, "")


@needs_fork
def test_an_inherited_connection_is_dropped_without_a_farewell(server: Server) -> None:
    code, out, err = run(
        server,
        """
        client = Client(URL, throttle=0.01)
        watch = client.watch(CONFIG)
        watch.wait_until_current(timeout=10)
        assert child(client.close) == 0
        assert child(lambda: None) == 0
        # The stream of the parent is still the first one, and works.
        print(watch.status.state.name, watch.status.gaps, client.read_resource(CONFIG).text)
        client.close()
        """,
    )
    assert (code, out, err) == (0, "LIVE 0 colour = blue\n", "")
    assert server.count("subscriptions/listen") == 1


def test_a_foreign_module_called_sseclient_is_named_in_one_sentence(tmp_path: "os.PathLike[str]") -> None:
    with open(os.path.join(str(tmp_path), "sseclient.py"), "w") as module:
        module.write("class SSEClient(object):\n    pass\n")
    code = "import sys; sys.path.insert(0, %r); import mcp_sync" % str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60
    )
    assert done.returncode == 1
    assert "ImportError: another package's module is in the way" in done.stderr and "sseclient-py" in done.stderr
