"""The figures that the README shows were measured, and a target that was missed is said to be. Nothing is measured here."""

import re
from pathlib import Path
from typing import List

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests" / "benchmarks" / "RESULTS.rst"


def table(text: str) -> List[str]:
    """Return the lines of the table of figures."""
    found = re.search(r"^(=[= ]+\nwork +mcp_sync +rival .*\n=[= ]+\n(?:.+\n)+?=[= ]+\n)", text, re.M)
    assert found is not None, "there is no table of figures"
    return found.group(1).splitlines()


def rows() -> List[List[str]]:
    """Return work, figure, rival, its figure, ratio and target of each line."""
    lines = table(RESULTS.read_text("utf-8"))
    starts = [found.start() for found in re.finditer("=+", lines[0])]
    return [[line[a:b].strip() for a, b in zip(starts, starts[1:] + [None])] for line in lines[3:-1]]  # type: ignore[list-item]


def test_the_readme_shows_the_figures_that_were_measured() -> None:
    assert table((ROOT / "README.rst").read_text("utf-8")) == table(RESULTS.read_text("utf-8"))


def test_the_results_name_the_command_that_makes_them() -> None:
    assert re.search(r"^Made by ``python tests/benchmarks/figures.py [^`]*--write``", RESULTS.read_text("utf-8"), re.M)
    assert (ROOT / "tests" / "benchmarks" / "figures.py").exists()


@pytest.mark.parametrize("row", rows(), ids=lambda row: "%s_against_%s" % (row[0], row[2]))
def test_a_target_that_was_missed_is_said_to_be(row: List[str]) -> None:
    target = re.fullmatch(r"([≤≥]) ([0-9.]+)(, missed)?", row[5])
    if target is None:
        return  # none, or one for our own figure
    ratio, limit = float(row[4]), float(target.group(2))
    # The ratio is shown rounded.
    within = ratio <= limit + 0.005 if target.group(1) == "≤" else ratio >= limit - 0.005
    assert within or target.group(3)


def test_each_sort_of_work_was_measured() -> None:
    works = " ".join(row[0] for row in rows())
    for sort in ("import", "memory after import", "cold script", "uncached read, 1 thread", "uncached reads, 32 threads"):
        assert sort in works
    for sort in ("cached reads, 32 threads", "notice to fresh", "storm", "baseline", "idle watch", "one more client"):
        assert sort in works
