"""The example sites run with one command, as their first lines say, under the oldest and the newest of their frameworks."""

import json
import os
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from typing import Any, Iterator, Tuple

import pytest

from .conftest import LIMIT, ROOT
from .frameworks import DJANGO, FLASK, Framework

EXAMPLES = ROOT / "examples"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Site:
    """A running example. A context manager, which ends it as Ctrl-C does.

    :param ready: the framework.
    :param name: the example's folder.
    :param log: where its output goes.
    """

    def __init__(self, ready: Any, name: str, log: Any) -> None:
        self.port = free_port()
        self._log = log
        with open(str(log), "wb") as output:
            self._process = subprocess.Popen(
                [str(ready.python), "-W", "error::ResourceWarning", str(EXAMPLES / name / "run.py"), str(self.port)],
                env=dict(ready.environ, PYTHONUNBUFFERED="1"),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(LIMIT)
        finally:
            self._process.kill()
            self._process.wait(LIMIT)
            printed = self.printed()
            print(printed)
        if kind is None:
            assert self._process.returncode == 0
            assert "Traceback" not in printed

    def printed(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def get(self, path: str) -> "Tuple[int, str]":
        """Return the status and the text of a page; waits until the site is there."""
        waiting = threading.Event()
        for _ in range(600):
            assert self._process.poll() is None, self.printed()
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.port, path), timeout=LIMIT) as answer:
                    return answer.status, answer.read().decode("utf-8")
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode("utf-8")
            except urllib.error.URLError:
                waiting.wait(0.1)
        raise AssertionError("the site did not start: " + self.printed())

    def prints(self, text: str) -> None:
        """Wait until it has printed a text."""
        waiting = threading.Event()
        for _ in range(600):
            if text in self.printed():
                return
            waiting.wait(0.1)
        raise AssertionError("%r is not in %s" % (text, self.printed()))

    def eventually(self, path: str, text: str) -> str:
        """Ask for a page until it has a text."""
        waiting = threading.Event()
        for _ in range(600):
            shown = self.get(path)[1]
            if text in shown:
                return shown
            waiting.wait(0.1)
        raise AssertionError("%r is not in %s" % (text, shown))


@pytest.mark.parametrize("framework", [DJANGO[0], DJANGO[-1]], ids=lambda framework: framework.name)
def test_the_django_site(framework: Framework, ready: Any, tmp_path: Any) -> None:
    with Site(ready(framework), "django_site", tmp_path / "log") as site:
        status, shown = site.get("/")
        assert status == 200 and "tea &amp; cake at &lt;four&gt;." in shown
        assert "Edition 2" in site.eventually("/", "Edition 2")
        site.prints("default: docs://notices/today was updated")
        assert "subscriptions/listen" in site.eventually("/mcp/", 'data-state="live"')
        assert json.loads(site.get("/mcp/health/")[1]) == {"status": "ok", "servers": {"default": "ok"}}
        assert json.loads(site.get("/mcp/status.json")[1])["servers"][0]["era"] == "modern"


@pytest.mark.parametrize("framework", [FLASK[0], FLASK[-1]], ids=lambda framework: framework.name)
def test_the_flask_site(framework: Framework, ready: Any, tmp_path: Any) -> None:
    with Site(ready(framework), "flask_site", tmp_path / "log") as site:
        status, shown = site.get("/")
        assert status == 200 and "tea &amp; cake at &lt;four&gt;." in shown
        assert "Edition 2" in site.eventually("/", "Edition 2")
        site.prints("default: docs://notices/today was updated")
        assert "subscriptions/listen" in site.eventually("/mcp/", 'data-state="live"')
        assert json.loads(site.get("/health")[1]) == {"status": "ok", "servers": {"default": "ok"}}
        assert json.loads(site.get("/mcp/status.json")[1])["servers"][0]["era"] == "modern"


def test_manage_py_has_the_commands(ready: Any, server: Any) -> None:
    django = ready(DJANGO[-1])
    done = subprocess.run(
        [str(django.python), str(EXAMPLES / "django_site" / "manage.py"), "mcp_status"],
        env=dict(django.environ, DOCS_MCP_URL=server.url),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("default: ok; %s; modern" % server.url)


def test_flask_has_the_commands(ready: Any, server: Any) -> None:
    flask = ready(FLASK[-1])
    done = subprocess.run(
        [str(flask.python), "-m", "flask", "mcp", "read", "docs://notices/today"],
        cwd=str(EXAMPLES / "flask_site"),
        env=dict(flask.environ, DOCS_MCP_URL=server.url, FLASK_APP="docs_site"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        timeout=LIMIT,
    )
    assert (done.returncode, done.stdout) == (0, "tea at four\n")


COMMANDS = {
    "django": (DJANGO, [str(EXAMPLES / "django_site" / "manage.py"), "mcp_watch"]),
    "flask": (FLASK, ["-m", "flask", "mcp", "watch"]),
}


@pytest.fixture(params=sorted(COMMANDS))
def watching(request: Any, ready: Any, server: Any) -> "Iterator[subprocess.Popen[str]]":
    """A command that follows the document, and has printed its first line."""
    frameworks, arguments = COMMANDS[request.param]
    framework = ready(frameworks[-1])
    process = subprocess.Popen(
        [str(framework.python), *arguments],
        cwd=str(EXAMPLES / "flask_site"),
        env=dict(framework.environ, DOCS_MCP_URL=server.url, FLASK_APP="docs_site", PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    watchdog = threading.Timer(LIMIT, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        assert process.stdout.readline().split("\t")[1:3] == ["current", "docs://notices/today"]
        yield process
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate(timeout=LIMIT)


def test_a_watch_at_a_terminal_ends_quietly_by_ctrl_c(watching: Any, server: Any) -> None:
    server.update("docs://notices/today", "tea at five")
    assert watching.stdout.readline().split("\t")[1:3] == ["updated", "docs://notices/today"]
    watching.send_signal(signal.SIGINT)
    printed, complained = watching.communicate(timeout=LIMIT)
    # What the site's own receivers tell is on standard error.
    assert (printed, watching.returncode) == ("", 130)
    assert "Traceback" not in complained


def test_a_watch_into_a_pipe_that_nobody_reads_ends_quietly(watching: Any, server: Any) -> None:
    watching.stdout.close()
    server.update("docs://notices/today", "tea at five")
    assert "Traceback" not in watching.stderr.read()
    assert watching.wait(LIMIT) != 0
    watching.stdout = None  # as for communicate(), which is called at the end


def test_each_example_is_tested() -> None:
    assert {name for name in os.listdir(str(EXAMPLES)) if name.endswith("_site")} == {"django_site", "flask_site"}
