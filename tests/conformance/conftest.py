"""Fixtures for the conformance suite, and the table of what it said."""
import textwrap

import pytest

from .scenarios import SCENARIOS, not_run_yet
from .suite import Suite

_REPORT = "conformance report"
_ROW = "%-36s %-11s %-11s %-7s %9s %7s %7s %12s"


class Report:
    """What is shown at the end: the scenarios that were run in this session, and those that were left out."""

    def __init__(self):
        self.outcomes = {}
        self.left_out = {}

    def lines(self):
        yield _ROW % ("scenario", "revision", "spoke", "result", "succeeded", "failed", "warned", "not reached")
        for scenario in SCENARIOS:
            outcome = self.outcomes.get(scenario)
            if outcome is not None:
                result = "FAILED" if outcome.faults else "passed"
                counts = tuple(outcome.count(s) or "-" for s in ("SUCCESS", "FAILURE", "WARNING", "SKIPPED"))
                revision = "extension" if scenario.extension else scenario.version
                yield _ROW % ((scenario.name, revision, outcome.spoke or "-", result) + counts)
        passed = sum(not outcome.faults for outcome in self.outcomes.values())
        yield "%d of %d passed" % (passed, len(SCENARIOS))
        for reason in sorted(set(self.left_out.values())):
            names = [name for name, why in self.left_out.items() if why == reason]
            yield "not yet run because it %s, %d scenarios:" % (reason, len(names))
            for line in textwrap.wrap(", ".join(names), 110, break_on_hyphens=False, break_long_words=False):
                yield "    " + line


def pytest_configure(config):
    config.addinivalue_line("markers", "conformance: runs the official conformance suite")
    setattr(config, _REPORT, Report())


def pytest_terminal_summary(terminalreporter, config):
    report = getattr(config, _REPORT)
    if report.outcomes:
        terminalreporter.section("conformance of the client")
        for line in report.lines():
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def report(request):
    """What is shown at the end."""
    return getattr(request.config, _REPORT)


@pytest.fixture(scope="session")
def suite(report):
    """The suite, installed at first need."""
    suite = Suite()
    for name in suite.scenarios():
        reason = not_run_yet(name)
        if reason is not None:
            report.left_out[name] = reason
    return suite
