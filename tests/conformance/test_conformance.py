"""The scenarios of the official conformance suite, each run alone.

Together the suite would neither look at how a client ends nor at whether it did anything.
"""
import pytest

from .scenarios import SCENARIOS, not_run_yet

pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: "%s-%s" % scenario[:2])
def test_the_client_conforms(scenario, suite, report, tmp_path):
    outcome = report.outcomes[scenario] = suite.outcome(scenario, tmp_path)
    print(outcome.printed)  # pytest shows it if this fails
    assert outcome.faults == []


def test_every_scenario_of_the_suite_is_run_at_every_revision_or_left_out_for_a_reason(suite):
    ours = {}
    for scenario in SCENARIOS:
        ours.setdefault(scenario.name, []).append("extension" if scenario.extension else scenario.version)
    listed = {name: versions for name, versions in suite.scenarios().items() if not_run_yet(name) is None}
    assert listed == ours
