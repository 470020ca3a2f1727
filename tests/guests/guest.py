"""A program that this library is a guest of, running: its processes, what they answer, what they note, how they end."""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from interop.environments import clean_environ

import mcp_sync

# Only a failure reaches it, in seconds.
LIMIT = float(os.environ.get("MCP_SYNC_TEST_LIMIT", "30"))
PROGRAMS = Path(__file__).resolve().parent / "programs"
README = (Path(__file__).resolve().parents[2] / "README.rst").read_text("utf-8")


def eventually(check, what):
    """Return the first value of ``check()`` that is true."""
    give_up = time.monotonic() + LIMIT
    pause = threading.Event()
    while True:
        value = check()
        if value:
            return value
        assert time.monotonic() < give_up, what() if callable(what) else what
        pause.wait(0.05)


def _stat(pid):
    """:returns: state, parent and session of a process; None if there is none."""
    try:
        fields = Path("/proc/{}/stat".format(pid)).read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[1]), int(fields[3])


def _processes():
    found = {int(name): _stat(name) for name in os.listdir("/proc") if name.isdigit()}
    return {pid: stat for pid, stat in found.items() if stat is not None and stat[0] not in "ZX"}


def sockets_of(pid):
    """The sockets that a process has open, by inode."""
    found = set()
    try:
        for name in os.listdir("/proc/{}/fd".format(pid)):
            try:
                target = os.readlink("/proc/{}/fd/{}".format(pid, name))
            except OSError:
                continue  # closed meanwhile
            if target.startswith("socket:"):
                found.add(target)
    except OSError:
        pass
    return found


class Guest:
    """Runs a command in a session of its own. A context manager, which ends all that is left of it.

    :param command: the program and its arguments; ``{socket}`` in them is the address that it is to listen at.
    :param server: the MCP server over HTTP, if there is one.
    :param begin: False to start it by :meth:`begin`.
    :param environ: what it has in its environment beside what this process has.
    """

    def __init__(self, command, server, begin=True, **environ):
        self.directory = Path(tempfile.mkdtemp(prefix="guest-"))
        self.socket = str(self.directory / "http")
        self._events = self.directory / "events"
        self._events.touch()
        self._log = self.directory / "log"
        # This package, and none of those that are installed beside it here.
        library = self.directory / "library"
        library.mkdir()
        (library / "mcp_sync").symlink_to(Path(mcp_sync.__file__).resolve().parent, target_is_directory=True)
        self.environment = dict(clean_environ(), PYTHONPATH="{}:{}".format(library, PROGRAMS), PYTHONDONTWRITEBYTECODE="1")
        self.environment.update(MCP_EVENTS=str(self._events), NO_PROXY="127.0.0.1", **environ)
        if server is not None:
            self.environment.update(MCP_URL=server.url)
        self._command = [str(word).replace("{socket}", self.socket) for word in command]
        if begin:
            self.begin()

    def add_to_environment(self, **environ):
        self.environment.update(environ)

    def begin(self):
        with open(str(self._log), "wb") as log:
            self.process = subprocess.Popen(
                self._command,
                cwd=str(self.directory),
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self.process.pid

    # -- its processes -------------------------------------------------------------------------------------------------

    def processes(self):
        """The pids of all of it that run."""
        return {pid for pid, stat in _processes().items() if stat[2] == self.pid}

    def children(self):
        """The pids of the main process's own children."""
        return {pid for pid, stat in _processes().items() if stat[1] == self.pid}

    def send(self, number):
        os.kill(self.pid, number)

    def end(self, number=signal.SIGTERM):
        """Ask it to end, and see that nothing is left of it.

        :returns: its exit code.
        """
        self.send(number)
        code = self.process.wait(LIMIT)
        eventually(lambda: not self.processes(), lambda: "left: {}".format(self.processes()))
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Shown by pytest if the test fails.
        print(self.log(), self._events.read_text())
        for pid in self.processes() | {self.pid} if self.process.poll() is None else self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        self.process.stdin.close()
        self.process.wait(LIMIT)
        shutil.rmtree(str(self.directory), ignore_errors=True)

    def tell(self, line):
        self.process.stdin.write(line.encode("utf-8") + b"\n")
        self.process.stdin.flush()

    # -- what it says --------------------------------------------------------------------------------------------------

    def log(self):
        return self._log.read_bytes().decode("utf-8", "replace")

    def events(self, kind):
        """What was noted: pairs of a pid and a text."""
        lines = [line.split(" ", 2) for line in self._events.read_text().splitlines()]
        return [(int(line[1]), line[2]) for line in lines if line[0] == kind]

    def noted(self, kind, text):
        """The pids of those that noted this."""
        return {pid for pid, noted in self.events(kind) if noted == text}

    def asking(self, path="/"):
        """Ask in a thread of its own, whatever comes of it."""
        thread = threading.Thread(target=self._ask, args=(path, []))
        thread.start()
        return thread

    def _ask(self, path, got):
        answer = self.ask(path)
        if answer is not None:
            got.append(answer)

    def ask(self, path="/"):
        """:returns: one answer of one of its processes; None if there is none, because it has not begun or is just ending."""
        connection = http.client.HTTPConnection("guest", timeout=LIMIT)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(LIMIT)
        try:
            connection.sock.connect(self.socket)
            connection.request("GET", path, headers={"Connection": "close"})
            answer = connection.getresponse()
            if answer.status != 200:
                return None
            return json.loads(answer.read().decode("utf-8"))
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def everyone(self, text, workers=2, path="/"):
        """Ask until each worker has answered with this text.

        :returns: the last answer of each, by pid.
        """
        answers, last = {}, [None]

        def all_have():
            assert self.process.poll() is None, "it has ended"
            got = []
            # At the same time, since one that is idle may take all that come one after the other.
            asking = [threading.Thread(target=self._ask, args=(path, got)) for _ in range(4 * workers)]
            for thread in asking:
                thread.start()
            for thread in asking:
                thread.join()
            for answer in got:
                last[0] = answer
                assert "error" not in answer and not answer["stale"], answer
                if answer["text"] == text:
                    answers[answer["pid"]] = answer
            for pid in set(answers) - self.processes():
                del answers[pid]
            return len(answers) >= workers

        eventually(all_have, lambda: "not all have {!r}: {}; {}".format(text, answers, last[0]))
        return answers

    def the_parent_goes_on(self, server, uri):
        """Change a resource until the main process has noted a change: at the first one it may not have read it yet."""
        before = self.events("changed")

        def told():
            server.update(uri, "colour = {}".format(len(server.history(uri))))
            return self.pid in {pid for pid, _ in self.events("changed")[len(before) :]}

        eventually(told, lambda: "the parent's stream does not go on: {}".format(self.events("changed")))

    def no_socket_is_shared(self, answers):
        """Check that what each has open to the server, no other process has."""
        for pid, answer in answers.items():
            assert answer["connections"], answer
            for other in self.processes() - {pid}:
                assert not sockets_of(other).intersection(answer["connections"]), (pid, other, self.processes())
