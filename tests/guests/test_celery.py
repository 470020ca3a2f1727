"""Celery's prefork pool: tasks that hold a client which was made before the fork, soft time limits, recycling, the end."""
import json
import re
import shlex
import signal
import subprocess
import threading

import pytest

from .conftest import CONFIG
from .guest import LIMIT, PROGRAMS, README, Guest, eventually

RECYCLED_AFTER = 4


def readme_command():
    [command] = re.findall(r"^    celery (.*)$", README, re.M)
    return shlex.split(command)


class Pool:
    """A worker of Celery, and a process that has it carry out tasks."""

    def __init__(self, python, server, *more):
        self.guest = Guest([python, "-m", "celery"] + readme_command() + list(more), server, begin=False)
        files = self.guest.directory / "files"
        for name in ("queue", "control", "results"):
            (files / name).mkdir(parents=True)
        self.guest.add_to_environment(MCP_FILES=str(files))
        self.guest.begin()
        self._caller = subprocess.Popen(
            [str(python), str(PROGRAMS / "caller.py")],
            env=self.guest.environment,
            cwd=str(self.guest.directory),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )
        # Ends what waits for an answer that does not come.
        self._watchdog = threading.Timer(4 * LIMIT, self._caller.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def begin(self, task):
        self._caller.stdin.write(task + "\n")
        self._caller.stdin.flush()

    def result(self):
        line = self._caller.stdout.readline()
        assert line, "no answer:\n" + self.guest.log()
        return json.loads(line)

    def run(self, task):
        self.begin(task)
        return self.result()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self._caller.stdin.close()
        self._caller.stdout.close()
        self._caller.kill()
        self._caller.wait(LIMIT)
        self._watchdog.cancel()
        self._watchdog.join()
        self.guest.__exit__(*exc_info)


def test_the_readme_tells_what_is_run_here():
    command = readme_command()
    assert command[:5] == ["--app", "tasks", "worker", "--pool", "prefork"] and "--max-tasks-per-child" in command


def test_tasks_keep_current_with_a_client_that_was_made_before_the_fork(python, server):
    with Pool(python, server, "--concurrency", "2", "--max-tasks-per-child", str(RECYCLED_AFTER)) as pool:
        guest, seen = pool.guest, {}

        def both():
            answer = pool.run("read")
            assert answer["text"] == "colour = blue" and not answer["stale"], answer
            assert answer["parent"] == guest.pid
            guest.no_socket_is_shared({answer["pid"]: answer})
            seen[answer["pid"]] = answer
            return len(seen) >= 3  # one of the first two was replaced

        eventually(both, lambda: seen)
        assert not set(seen) <= guest.processes()

        server.update(CONFIG, "colour = red")
        eventually(lambda: pool.run("read")["text"] == "colour = red", "it is not told")
        guest.the_parent_goes_on(server, CONFIG)
        assert guest.end() == 0
        server.wait_for_no_streams(timeout=30)
        assert "Traceback" not in guest.log()


def test_after_a_soft_time_limit_in_the_middle_of_a_read_the_next_task_reads(python, server):
    with Pool(python, server, "--concurrency", "1") as pool:
        before = pool.run("read")
        server.wait_for_streams(2, timeout=30)
        for _ in range(3):
            with server.hold("resources/read"):
                assert pool.run("read_patiently 0.2") == "too long in {}".format(before["pid"])
            after = pool.run("read")
            assert (after["pid"], after["text"], after["stale"]) == (before["pid"], "colour = blue", False)
        server.update(CONFIG, "colour = red")
        eventually(lambda: pool.run("read")["text"] == "colour = red", "it is not told")
        assert pool.guest.end() == 0


@pytest.mark.parametrize("number", [signal.SIGQUIT])
def test_a_pool_that_is_ended_in_the_middle_of_a_read_ends(number, python, server):
    with Pool(python, server, "--concurrency", "1") as pool:
        pool.run("read")
        with server.hold("resources/read"):
            asked = server.count("resources/read")
            pool.begin("read_patiently")
            server.wait_for_requests("resources/read", asked + 1, timeout=30)
            pool.guest.end(number)
    server.wait_for_no_streams(timeout=30)
