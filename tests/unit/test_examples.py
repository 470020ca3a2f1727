"""Every example runs, as its first lines say."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Dict

from mcp_sync.testing import Server

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def run(*command: str, typed: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=str(ROOT),
        # The plugin is named on the command line, since where the package is installed it would be found a second time.
        env=dict(os.environ, PYTHONPATH=str(ROOT), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
        input=typed,
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
    # As in an application's own repository: this one's settings are not theirs.
    settings = ["-c", os.devnull, "--rootdir", str(EXAMPLES), "-W", "error"]
    plugin = ["-p", "mcp_sync.testing.pytest_plugin"]
    shown = run("-m", "pytest", "-q", *settings, *plugin, str(EXAMPLES / "test_my_application.py"))
    assert "3 passed" in shown


def test_call_a_tool_shows_what_it_answers_and_how_it_fails() -> None:
    assert run(str(EXAMPLES / "call_a_tool.py")).splitlines() == [
        "divide: Divides, and keeps the rest",
        'text: {"whole": 3, "rest": 1}',
        'for programs: {"whole": 3, "rest": 1}',
        "failed: the tool divide failed: ZeroDivisionError: integer division or modulo by zero",
        "refused: Unknown tool: multiply (code -32602)",
    ]


def test_call_a_tool_calls_that_of_another_server() -> None:
    with Server() as server:
        image = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
        server.add_tool("draw", lambda arguments: [{"type": "text", "text": arguments["what"]}, image])
        assert run(str(EXAMPLES / "call_a_tool.py"), server.url) == "draw: (no description)\n"
        shown = run(str(EXAMPLES / "call_a_tool.py"), server.url, "draw", '{"what": "a cat"}')
    assert shown == "text: a cat\nan image of 5 bytes\n"


def test_ask_the_user_asks_now_and_later() -> None:
    shown = run(str(EXAMPLES / "ask_the_user.py"), typed="\nAda\n")
    assert shown.endswith(
        "Booked: 1 to Rome for Ada\n"
        "to be asked later, who: Who flies to Oslo?\n"
        "Booked: 2 to Oslo for Ada\n"
    )
    assert "Who flies to Rome?\nSeats [1]: Name: Booked" in shown
    assert "\nSeats [1]: Not booked.\n" in run(str(EXAMPLES / "ask_the_user.py"), typed="")


def test_ask_the_user_asks_for_another_server() -> None:
    def tool(arguments: Dict[str, Any], call: Any) -> str:
        fields = {"n": {"type": "integer"}}
        form = {"message": "How many?", "requestedSchema": {"type": "object", "properties": fields}}
        return str(call.ask({"n": {"method": "elicitation/create", "params": form}}, timeout=60)["n"]["content"]["n"] + 1)

    for eras in (["modern"], ["legacy"]):
        with Server(eras=eras, answer="sse") as server:
            server.add_tool("ask", tool)
            assert run(str(EXAMPLES / "ask_the_user.py"), server.url, "ask", typed="41\n").endswith("n: 42\n")


def test_long_task_shows_progress_and_cancels_and_picks_up_a_task() -> None:
    shown = run(str(EXAMPLES / "long_task.py")).splitlines()
    assert shown[:6] == [
        "   33% epoch 1",
        "   67% epoch 2",
        "  100% epoch 3",
        "done: trained for 3 epochs",
        "   50% epoch 1",
        "cancelled: tools/call (train) was cancelled: it takes too long",
    ]
    # How many messages of the task are seen depends on when it is asked.
    assert shown[6] == "begun, and stored" and shown[-1] == "completed: trained for 3 epochs"


def test_long_task_waits_for_the_tool_of_another_server() -> None:
    def tool(arguments: Dict[str, Any], call: Any) -> str:
        call.progress(1)
        call.progress(2, message="half")
        return "ready"

    with Server() as server:
        server.add_tool("work", tool)
        assert run(str(EXAMPLES / "long_task.py"), server.url, "work") == "  \n  half\ndone: ready\n"


def test_no_example_is_forgotten() -> None:
    tested = {"keep_current.py", "test_my_application.py", "call_a_tool.py", "ask_the_user.py", "long_task.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == tested
