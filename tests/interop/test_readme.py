"""What the README says of servers that others wrote: its table is what these tests run, and its commands do what it shows.

The commands run as they stand there, but for the addresses, and with ``--initial``, which says when a watch has begun.
"""
import json
import os
import queue
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from .environments import clean_environ
from .following import LIMIT, eventually
from .legacy_wire import HTTPSession, request
from .old_server import EVERYTHING, FILES
from .table import package_of, table

pytestmark = pytest.mark.interop

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.rst").read_text("utf-8")
FEATURES = FILES + "features.md"
CONFIG = "docs://service/config"
TOGGLE = {"name": "toggle-subscriber-updates", "arguments": {}}
TIME = r"\d\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"
VERSION = "[0-9a-f]{16}"


def test_the_table_of_servers_in_the_readme_is_what_these_tests_run():
    rows = table()
    assert rows in README, "the README's table should be:\n\n" + rows
    assert README.count("\nPyPI ") + README.count("\nnpm ") == rows.count("\nPyPI ") + rows.count("\nnpm ")


def shown(word):
    """Return the arguments of the one command ``watch`` of the README that has this word."""
    commands = [shlex.split(line) for line in re.findall(r"^    mcp-sync (watch .*)$", README, re.M)]
    [command] = [command for command in commands if word in command]
    return command


def replaced(command, word, *by):
    """Return a command with other words in the place of one."""
    at = command.index(word)
    return command[:at] + list(by) + command[at + 1 :]


class Watching:
    """The command line in a process of its own, whose lines go into a pipe. A context manager, which ends it by Ctrl-C.

    :param command: its arguments.
    :param variables: what it has in its environment beside what this process has.
    """

    def __init__(self, command, **variables):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mcp_sync", command[0], "--initial"] + command[1:],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            cwd=str(REPOSITORY),
            env=dict(clean_environ(), **variables),
            universal_newlines=True,
        )
        self._lines = queue.Queue()
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def _receive(self):
        for line in self._process.stdout:
            self._lines.put(line)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self._process.send_signal(signal.SIGINT)
        try:
            status = self._process.wait(timeout=LIMIT)
        finally:
            self._process.kill()
            self._process.wait(timeout=10)
            self._thread.join(timeout=10)
            self._process.stdout.close()
        if kind is None:
            assert status == 130
            assert self._lines.empty(), "a line too much: " + self._lines.get()

    def next(self):
        """Return the kind, the URI and the version of the next line."""
        line = self._lines.get(timeout=LIMIT)
        found = re.match("%s\t([a-z]+)\t([^\t]+)\t(%s)\n$" % (TIME, VERSION), line)
        assert found, line
        return found.groups()

    def tells(self, kind, uri):
        """Wait for the next line, which is about this, and return its version."""
        told = self.next()
        assert told[:2] == (kind, uri)
        return told[2]


def test_the_lines_that_the_readme_shows_look_like_those_that_are_printed():
    lines = re.findall(r"^    (\S+)  +([a-z]+)  +(\S+)  +(\S+)$", README, re.M)
    assert [kind for _, kind, _, _ in lines] == ["current", "updated"]
    for time, _, uri, version in lines:
        assert re.match(TIME + "$", time) and re.match(VERSION + "$", version) and uri == CONFIG


def test_watch_against_everything_over_http(of_kind):
    server = of_kind("everything-http")
    server.write_state(FEATURES, "# First")
    server.restart()
    printed = server.log_size()
    with Watching(replaced(shown(FEATURES), "http://127.0.0.1:3001/mcp", server.target)) as watching:
        first = watching.tells("current", FEATURES)
        [session] = re.findall(r"Session initialized with ID: (\S+)", server.logged(since=printed))
        headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": server.kind.revision}
        with HTTPSession(server.target, **headers) as another_hand:
            # Switched on, it says at once that everything has changed, and then every five seconds.
            server.write_state(FEATURES, "# Second")
            another_hand.call("tools/call", **TOGGLE)
            second = watching.tells("updated", FEATURES)
            another_hand.call("tools/call", **TOGGLE)
            server.write_state(FEATURES, "# First")
            another_hand.call("tools/call", **TOGGLE)
            assert watching.tells("updated", FEATURES) == first != second


def test_watch_against_everything_over_stdio(of_kind, tmp_path):
    server = of_kind("everything-stdio")
    server.write_state(FEATURES, "# First")
    others = len(server.listed)
    pipe = tmp_path / "another-hand"
    os.mkfifo(str(pipe))
    interject = str(Path(__file__).resolve().parent / "programs" / "interject.py")
    command = shown("npx")
    npm = command[command.index("--") + 1 :]
    assert npm == ["npx", "-y", package_of(EVERYTHING[1])[0].split("``")[1], "stdio"]
    command = command[: -len(npm)] + [sys.executable, interject, str(pipe)] + list(server.target.argv)
    variables = {name: value for name, value in server.target.env.items() if value is not None}
    with Watching(command, **variables) as watching, open(str(pipe), "r+b", buffering=0) as another_hand:

        def toggle():
            another_hand.write(json.dumps(dict(request("tools/call", **TOGGLE), id="another")).encode("ascii") + b"\n")

        began = dict(watching.next()[:2][::-1] for _ in range(others + 2))
        assert set(began.values()) == {"current"} and {FEATURES, "(catalog)"} < set(began)
        server.write_state(FEATURES, "# Second")
        toggle()
        second = watching.tells("updated", FEATURES)
        toggle()
        server.write_state(FEATURES, "# Third")
        toggle()
        assert watching.tells("updated", FEATURES) != second
    eventually(lambda: server.pids() == [])


def test_watch_against_an_old_server_that_has_to_be_polled(of_kind):
    server = of_kind("mcp-1.2-sse")
    with Watching(replaced(shown("--poll-interval"), "http://127.0.0.1:8000/sse", server.target)) as watching:
        first = watching.tells("current", CONFIG)
        server.write_state(CONFIG, "retries = 4")
        assert watching.tells("updated", CONFIG) != first
        server.write_state(CONFIG, "retries = 3")
        assert watching.tells("updated", CONFIG) == first
