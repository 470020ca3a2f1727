"""What all servers of these tests have in common: a process, a log, documents, and reads that stand still."""
import json
import os
import random
import socket
import subprocess
import threading
import time
from pathlib import Path

from .environments import clean_environ

START_LIMIT = 60.0
SERVERS = Path(__file__).resolve().parent / "servers"


class Served:
    """A server that others wrote, in the hands of a test. One test at a time; any thread.

    :param directory: an empty directory for its documents and its log.
    :param port: where it listens; None for a port of its own.
    """

    #: The command that starts it, and the variables that it needs.
    _command = ()
    _variables = {}
    #: What it prints when it has broken by itself and can only be started again; None if it is not known to do that.
    _last_words = None
    #: The document whose reads can be held.
    slow = "docs://service/slow"

    def __init__(self, directory, port=None):
        self.directory = Path(str(directory))
        self.state = self.directory / "documents.json"
        self.log = self.directory / "server.log"
        self.port = _free_port() if port is None else port
        self._process = None
        self._printed_before = 0
        self._catalog_changed = False

    # Life and death.

    @property
    def alive(self):
        return self._process is not None and self._process.poll() is None

    def start(self):
        """Start, and return once it answers; if it does not, what it printed is in the error."""
        self._printed_before = self.log_size()
        with open(str(self.log), "ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,  # the server ends when this closes: it does not outlive a killed test run
                stdout=log,
                stderr=log,
                cwd=str(self.directory),
                env=dict(clean_environ(), PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1", **self._variables),
            )
        give_up = time.monotonic() + START_LIMIT
        while True:
            try:
                self._knock()
                return
            except OSError as error:  # what requests raises is one
                last = error
            if self._process.poll() is not None or time.monotonic() > give_up:
                ended = self._process.poll()
                self.kill()
                raise RuntimeError(
                    "{} did not start ({}): {}\n{}".format(
                        self.kind, "still running" if ended is None else "exit {}".format(ended), last, self.logged()
                    )
                )
            pause()

    def _knock(self):
        """Raise OSError unless it answers."""
        raise NotImplementedError

    def kill(self):
        """SIGKILL: no goodbye to anybody."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(timeout=10)
            process.stdin.close()

    def stop(self):
        """End it, for good."""
        self.kill()

    def restart(self):
        """Start again on the same port, with whatever the documents are now."""
        self.kill()
        self.start()

    @property
    def broke(self):
        """Whether it has broken by itself since it was started, and will serve nobody any more."""
        return self._last_words is not None and self._last_words in self.logged(since=self._printed_before)

    def log_size(self):
        return self.log.stat().st_size if self.log.exists() else 0

    def logged(self, since=0):
        """What the server printed, or the end of it."""
        if not self.log.exists():
            return ""
        return self.log.read_bytes()[since:][-8000:].decode("utf-8", "replace")

    # What is in it.

    def write_state(self, uri, text):
        """Change a document behind the server's back; None removes it (the catalog follows at the next start)."""
        texts = json.loads(self.state.read_text(encoding="utf-8"))
        if text is None:
            texts.pop(uri, None)
            self._catalog_changed = True
        else:
            self._catalog_changed = self._catalog_changed or uri not in texts
            texts[uri] = text
        self._write(texts)

    def _write(self, texts):
        unfinished = self.directory / "documents.unfinished"
        unfinished.write_text(json.dumps(texts), encoding="utf-8")
        unfinished.replace(self.state)

    def _forget_controls(self):
        for control in self.directory.glob(self.state.name + ".*"):
            control.unlink()

    # Reads that stand still.

    def hold_slow(self, number=1):
        """Hold one read of the slow document: it takes the text that is there when it arrives, then waits for
        ``release_slow``.

        Call it with 1, 2, ... to hold as many reads, in the order of their arrival.
        """
        self._control("hold", number).write_text("")

    def wait_slow_reached(self, timeout=10.0, number=1):
        """Return once that read stands still, its text in hand."""
        give_up = time.monotonic() + timeout
        while not self._control("reached", number).exists():
            assert time.monotonic() < give_up, "no read of {} arrived\n{}".format(self.slow, self.logged())
            pause()

    def release_slow(self, number=1):
        """Let that read answer."""
        self._control("release", number).write_text("")

    def _control(self, what, number):
        return self.directory / "{}.{}-{}".format(self.state.name, what, number)


def listening(port):
    """Raise OSError unless somebody listens there."""
    socket.create_connection(("127.0.0.1", port), timeout=5.0).close()


def pause():
    threading.Event().wait(0.02)


def _free_port():
    """A free port below those that the system gives to outgoing connections.

    While the server is dead, clients knock at its port. Were it one of the system's own choosing, a knock could get
    that very port as its near end, be connected to itself, and keep the server from coming back.
    """
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


# -- processes that are not ours ---------------------------------------------------------------------------------------

MARK = "MCP_SYNC_INTEROP_MARK"


def marked(mark):
    """:returns: the numbers of all processes that live with that mark in their environment, grandchildren included."""
    wanted = "{}={}".format(MARK, mark).encode("ascii")
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/{}/environ".format(name), "rb") as file:
                    if wanted in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                pass  # it ended, or is somebody else's
    return found


def exists(pid):
    """Return whether there is such a process, if only its remains that nobody has collected."""
    return os.path.exists("/proc/{}".format(pid))
