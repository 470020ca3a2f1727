"""The demonstration: every step happens, and one that does not is noticed."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from typing import Any, Iterator, List

import pytest

import mcp_sync.demo
from mcp_sync import Client, Snapshot
from mcp_sync.cache import ResourceCache
from mcp_sync.cli import main
from mcp_sync.demo import Check, Step, Story
from mcp_sync.upkeep import Upkeep


def test_every_step_happens(capsys: Any) -> None:
    assert main(["demo"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert [line[0] for line in lines if re.match(r"\d\. ", line)] == list("1234567")
    assert "✗" not in out and out.count("✓") >= 15
    assert re.match(r"✓ 7 of 7 steps happened in [\d.]+ s: 10\d\d reads, 10\d\d of them from memory; ", lines[-1])


def test_as_json_it_is_one_line_for_each_step(capsys: Any) -> None:
    assert main(["demo", "--json"]) == 0
    steps = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [step["step"] for step in steps] == list(range(1, 8))
    assert all(step["ok"] and step["checks"] and all(check["ok"] for check in step["checks"]) for step in steps)
    assert steps[-1]["reads"] > steps[-1]["from_memory"] > 1000 > steps[-1]["requests"] > steps[-1]["changes"] > 0


_read_resource = Client.read_resource


def nothing(*_: Any, **__: Any) -> Any:
    """Do nothing, in the place of something that matters."""


@pytest.mark.parametrize(
    "step, owner, name, instead",
    [
        (1, Client, "read_resource", lambda self, uri, **_: _read_resource(self, uri, cache_mode="bypass")),
        (2, Upkeep, "noticed", nothing),
        (3, ResourceCache, "_may_be_stored_locked", lambda *_: True),
        (4, Upkeep, "stream_ended", nothing),
        (5, Upkeep, "must_poll", nothing),
        (6, Client, "as_principal", lambda self, *_, **__: self),
        (7, Snapshot, "moved", lambda self: ()),
    ],
)
def test_a_step_that_does_not_happen_is_noticed(
    step: int, owner: Any, name: str, instead: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, instead)
    monkeypatch.setattr(mcp_sync.demo, "_WAIT", 0.5)
    played: Iterator[Step] = Story().play()
    try:
        steps: List[Step] = [next(played) for _ in range(step)]
    finally:
        played.close()  # type: ignore[attr-defined]
    assert not steps[-1].ok


def test_a_story_with_a_failed_step_ends_with_1(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def untrue(self: Story) -> Iterator[Check]:
        yield Check(True, "so far")
        raise RuntimeError("out of paper")

    monkeypatch.setattr(Story, "_principals", untrue)
    assert main(["demo"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "   ✓ so far" in lines and "   ✗ RuntimeError: out of paper" in lines
    assert lines[-1].startswith("✗ 6 of 7 steps happened")


def test_a_terminal_without_such_signs_gets_words() -> None:
    environment = dict(os.environ, PYTHONIOENCODING="ascii")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "mcp_sync", "demo"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"[ok]") >= 15 and b"[NO]" not in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="this system has no such signals")
def test_ctrl_c_ends_the_story_quietly() -> None:
    command = [sys.executable, "-W", "error", "-m", "mcp_sync", "demo", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as story:
        try:
            assert story.stdout is not None and select.select([story.stdout], [], [], 60)[0]
            story.send_signal(signal.SIGINT)
            _, err = story.communicate(timeout=60)
        finally:
            story.kill()
    assert err == b"" and story.returncode == 130
