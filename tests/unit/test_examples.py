"""Every example runs, as its first lines say."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from mcp_sync.testing import Server

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=str(ROOT),
        # The plugin is named on the command line, since where the package is installed it would be found a second time.
        env=dict(os.environ, PYTHONPATH=str(ROOT), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_keep_current_prints_each_edition_until_ctrl_c() -> None:
    with Server() as server:
        server.add("docs://example", "edition 0")
        program = subprocess.Popen(
            [sys.executable, "-W", "error", str(EXAMPLES / "keep_current.py"), server.url, "docs://example"],
            env=dict(os.environ, PYTHONPATH=str(ROOT)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
        )
        watchdog = threading.Timer(60, program.kill)
        watchdog.start()
        assert program.stdout is not None
        try:
            assert program.stdout.readline() == "now: edition 0\n"
            for edition in range(1, 4):
                server.update("docs://example", "edition %d" % edition)
                assert program.stdout.readline() == "updated: edition %d\n" % edition
            program.send_signal(signal.SIGINT)
            assert program.stdout.read() == ""
            assert program.wait(60) == 0
        finally:
            watchdog.cancel()
            program.kill()
            program.wait(60)
            program.stdout.close()


def test_the_tests_of_an_application_pass() -> None:
    shown = run("-m", "pytest", "-q", "-p", "mcp_sync.testing.pytest_plugin", str(EXAMPLES / "test_my_application.py"))
    assert "3 passed" in shown


def test_no_example_is_forgotten() -> None:
    tested = {"keep_current.py", "test_my_application.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == tested
