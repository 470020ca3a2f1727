"""One real server as a test holds it: its process, its documents, and the strings by which a test moves it."""
import json
import random
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

from . import wire
from .environments import clean_environ, node_environment, python_environment

CONFIG = "docs://service/config"
README = "docs://service/readme"
SLOW = "docs://service/slow"
GUIDE = "docs://guides/install"
MISSING = "docs://service/missing"

TEXTS = {
    CONFIG: "retries = 3",
    README: "# The service",
    "docs://service/changelog": "1.0: first version",
    "docs://service/limits": "100 requests a minute",
    "docs://service/contacts": "Ask in the hall: Grüße, 您好",
    SLOW: "slow, first edition",
    GUIDE: "Unpack it.",
}
LISTED = [uri for uri in TEXTS if uri != GUIDE]

DEAF_KIND = "fastmcp"
LISTENING_KINDS = ["official-python", "fastmcp-listening", "official-typescript"]
KINDS = LISTENING_KINDS + [DEAF_KIND]

START_LIMIT = 60.0
_SERVERS = Path(__file__).resolve().parent / "servers"


class RealServer:
    """A server that others wrote. One test at a time; any thread.

    :param kind: one of ``KINDS``.
    :param directory: an empty directory for its documents and its log.
    """

    def __init__(self, kind, directory):
        self.kind = kind
        self.listens = kind in LISTENING_KINDS
        self.directory = Path(str(directory))
        self.state = self.directory / "documents.json"
        self.log = self.directory / "server.log"
        self.port = _free_port()
        self.url = "http://127.0.0.1:{}/mcp".format(self.port)
        self._process = None
        self._catalog_changed = False
        self._command = self._prepare()
        self._write(TEXTS)

    def _prepare(self):
        arguments = [str(self.port), str(self.state)]
        if self.kind == "official-typescript":
            node, modules = node_environment("official-typescript", "@modelcontextprotocol/server@2.4.0", "zod@^4.2.0")
            # Node looks for packages beside the script, wherever it was started from.
            script = self.directory / "official_typescript.mjs"
            shutil.copy(str(_SERVERS / script.name), str(script))
            (self.directory / "node_modules").symlink_to(modules)
            return [str(node), str(script)] + arguments
        if self.kind == "official-python":
            python = python_environment("official-python", "mcp==2.3.*")
            return [str(python), str(_SERVERS / "official_python.py")] + arguments
        python = python_environment("fastmcp", "fastmcp==4.2.*")
        return [str(python), str(_SERVERS / "fastmcp_server.py")] + arguments + (["--listen"] if self.listens else [])

    # Life and death.

    @property
    def alive(self):
        return self._process is not None and self._process.poll() is None

    def start(self):
        """Start, and return once it answers; if it does not, what it printed is in the error."""
        with open(str(self.log), "ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,  # the server ends when this closes: it does not outlive a killed test run
                stdout=log,
                stderr=log,
                cwd=str(self.directory),
                env=dict(clean_environ(), PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1"),
            )
        give_up = time.monotonic() + START_LIMIT
        while True:
            try:
                wire.call(self.url, "server/discover")
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
            _pause()

    def kill(self):
        """SIGKILL: no goodbye to anybody."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(timeout=10)
            process.stdin.close()

    stop = kill

    def restart(self):
        """Start again on the same port, with whatever the documents are now."""
        self.kill()
        self.start()

    def ready_for_next_test(self):
        """The documents as they were in the beginning, and a process that holds nothing of an earlier test."""
        for control in self.directory.glob(self.state.name + ".*"):
            control.unlink()
        self._write(TEXTS)
        if self._catalog_changed or not self.alive:
            self._catalog_changed = False
            self.restart()

    def log_size(self):
        return self.log.stat().st_size if self.log.exists() else 0

    def logged(self, since=0):
        """What the server printed, or the end of it."""
        if not self.log.exists():
            return ""
        return self.log.read_bytes()[since:][-8000:].decode("utf-8", "replace")

    # What is in it.

    def set_text(self, uri, text):
        """Change a document by a tool of the server, which announces the change."""
        wire.call_tool(self.url, "set_text", uri=uri, text=text)

    def touch(self, uri):
        """Let the server announce a change without making one."""
        wire.call_tool(self.url, "touch", uri=uri)

    def add_document(self, uri, text):
        """Add to the catalog by a tool of the server, which announces that."""
        self._catalog_changed = True
        wire.call_tool(self.url, "add_document", uri=uri, text=text)

    def count_reads(self, uri):
        """How many reads of ``uri`` have reached this life of the server."""
        return int(wire.call_tool(self.url, "count_reads", uri=uri))

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

    # Reads that stand still.

    def hold_slow(self, number=1):
        """Hold one read of ``SLOW``: it takes the text that is there when it arrives, then waits for ``release_slow``.

        Call it with 1, 2, ... to hold as many reads, in the order of their arrival.
        """
        self._control("hold", number).write_text("")

    def wait_slow_reached(self, timeout=10.0, number=1):
        """Return once that read stands still, its text in hand."""
        give_up = time.monotonic() + timeout
        while not self._control("reached", number).exists():
            assert time.monotonic() < give_up, "no read of {} arrived\n{}".format(SLOW, self.logged())
            _pause()

    def release_slow(self, number=1):
        """Let that read answer."""
        self._control("release", number).write_text("")

    def _control(self, what, number):
        return self.directory / "{}.{}-{}".format(self.state.name, what, number)


def _pause():
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
