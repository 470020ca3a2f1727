"""What a test follows a client with: its changes, a read in a thread of its own, a program of its own."""
import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

import mcp_sync

# Only a failure reaches it, in seconds.
LIMIT = float(os.environ.get("MCP_SYNC_TEST_LIMIT", "30"))


class Changes:
    """A thread that waits in ``watch.changes()``."""

    def __init__(self, watch):
        self._watch = watch
        self._got = queue.Queue()
        self._thread = threading.Thread(target=self._consume, daemon=True)
        self._thread.start()

    def _consume(self):
        for change in self._watch.changes():
            self._got.put(change)

    def wait_for(self, wanted):
        """Return the next change that is ``wanted(change)``, dropping those before it."""
        seen = []
        give_up = time.monotonic() + LIMIT
        while time.monotonic() < give_up:
            try:
                change = self._got.get(timeout=1.0)
            except queue.Empty:
                continue
            if wanted(change):
                return change
            seen.append(change)
        raise AssertionError("not among the changes: {!r}; {}".format(seen, self._watch.status))

    def wait_for_text(self, uri, text):
        return self.wait_for(lambda change: change.uri == uri and change.current and change.current.text == text)

    def end(self):
        self._thread.join(timeout=5)
        assert not self._thread.is_alive(), "changes() does not end with its watch"


class Late:
    """A read in a thread of its own."""

    def __init__(self, client, uri, **options):
        self._outcome = []
        self._thread = threading.Thread(target=self._read, args=(client, uri, options), daemon=True)
        self._thread.start()

    def _read(self, client, uri, options):
        try:
            self._outcome.append(client.read_resource(uri, timeout=LIMIT, **options))
        except Exception as error:
            self._outcome.append(error)

    @property
    def waits(self):
        return not self._outcome

    def result(self):
        self._thread.join(timeout=LIMIT + 5)
        assert self._outcome, "the read never ended"
        if isinstance(self._outcome[0], Exception):
            raise self._outcome[0]
        return self._outcome[0]


def eventually(condition):
    give_up = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < give_up, "it never became true"
        threading.Event().wait(0.02)


class Program:
    """A program of ``programs/`` that writes one JSON object a line and waits for lines."""

    def __init__(self, name, *arguments):
        path = [str(Path(mcp_sync.__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve().parent / "programs" / name)] + list(arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, path))),
            universal_newlines=True,
        )
        self._lines = queue.Queue()
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def _receive(self):
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("null")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait(timeout=10)
        self._thread.join(timeout=10)
        self._process.stdin.close()
        self._process.stdout.close()

    def says(self):
        """:returns: the next object; None if the program ended."""
        return json.loads(self._lines.get(timeout=2 * LIMIT))

    def go_on(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def signal(self, number):
        self._process.send_signal(number)

    def ends(self):
        """:returns: the exit status."""
        return self._process.wait(timeout=LIMIT)
