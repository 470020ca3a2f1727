"""Whether a client that does not conform is told from one that does."""
import os

import pytest

from .scenarios import MODERN, SCENARIOS

pytestmark = pytest.mark.conformance

NOTHING = ""

A_PART = """
import sys
from mcp_sync import Client
with Client(sys.argv[-1]) as client:
    client.list_resources()
"""

AN_UNHAPPY_END = """
import runpy
runpy.run_path({driver!r}, run_name="__main__")
raise SystemExit(3)
"""

HANGS = """
import os, pathlib, threading
pathlib.Path({pid!r}).write_text(str(os.getpid()))
threading.Event().wait()
"""


@pytest.fixture
def judge(suite, tmp_path):
    """Return what is wrong with a program in a scenario."""

    def judge(name, program, **options):
        [scenario] = [found for found in SCENARIOS if found.name == name and found.version in (MODERN, "2025-11-25")]
        driver = tmp_path / "driver.py"
        driver.write_text(program)
        results = tmp_path / "results"
        results.mkdir()
        return suite.outcome(scenario, results, driver, **options).faults

    return judge


@pytest.mark.parametrize(
    "name, expected",
    [
        ("initialize", "0 checks succeeded, not 1"),
        ("http-standard-headers", "0 checks succeeded, not 9"),
        ("sep-2640-client-no-prefetch", "0 checks succeeded, not 1"),
    ],
)
def test_a_client_that_does_nothing_fails_where_the_suite_lets_it_pass(judge, name, expected):
    assert judge(name, NOTHING) == [expected]


def test_a_client_that_does_only_a_part_fails(judge):
    assert judge("http-standard-headers", A_PART) == ["1 checks succeeded, not 9"]


def test_a_client_that_conforms_and_ends_with_an_error_fails_where_the_suite_allows_it(judge):
    from .suite import DRIVER

    program = AN_UNHAPPY_END.format(driver=str(DRIVER))
    assert judge("http-invalid-tool-headers", program) == ["the driver ended with 3"]


def test_a_client_that_hangs_is_ended_and_fails(judge, tmp_path):
    pid = tmp_path / "pid"
    assert judge("initialize", HANGS.format(pid=str(pid)), limit=2.0) != []
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
