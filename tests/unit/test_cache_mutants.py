"""Each rule of mcp_sync.cache, taken out on purpose, makes the test fail that is there for it.

The list is in :mod:`cachemutants`. The normal run plays against each mutant the one test that is named there;
``MCP_SYNC_LONG=1`` plays them all, and prints which of them notice (``pytest -s``).
"""

import contextlib
import io
import os
from typing import Any, Callable, Dict, Iterator

import cachecopies
import pytest
import test_cache_endings
import test_cache_machine
import test_cache_orders
import test_cache_rules
import test_cache_schedules
from cachemutants import MUTANTS, Mutant
from cachescenarios import SCENARIOS, Scenario
from scheduling import Scheduler

LONG = bool(os.environ.get("MCP_SYNC_LONG"))


def _enumeration(module: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("Coverage", "Flight", "ResourceCache", "Ticket"):
            patch.setattr(test_cache_orders, name, getattr(module, name))
        test_cache_orders.test_no_order_of_two_reads_two_changes_and_two_notices_leaves_the_cache_stale_or_takes_it_back()
        test_cache_orders.test_a_refresh_goes_back_only_where_two_overlapping_reads_were_served_in_the_other_order(("A", "B"))
        test_cache_orders.test_for_a_key_that_is_never_fresh_two_callers_are_two_reads_in_every_order()


def _machine(module: Any) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        test_cache_machine.play(module, examples=200, steps=50, shrink=False)


def _schedules(scenario: Scenario) -> Callable[[Any], None]:
    def test(module: Any) -> None:
        scheduler = Scheduler(3)
        try:
            test_cache_schedules.play_all(scenario, module, scheduler, preemptions=2, limit=5000)
        finally:
            scheduler.close()

    return test


def _rule(check: Callable[[test_cache_rules.Bench], None]) -> Callable[[Any], None]:
    return lambda module: check(test_cache_rules.Bench(module))


def _endings(module: Any) -> None:
    test_cache_endings.count_twice(module)
    test_cache_endings.play_all(module)


TESTS: Dict[str, Callable[[Any], Any]] = {
    "enumeration": _enumeration,
    "endings": _endings,
    "machine": _machine,
}
TESTS.update(("rules: " + name, _rule(check)) for name, check in test_cache_rules.RULES.items())
TESTS.update(("schedules: " + scenario.name, _schedules(scenario)) for scenario in SCENARIOS)


def noticed_by(name: str, mutant: Mutant) -> bool:
    module = cachecopies.load(mutant.changes)
    try:
        TESTS[name](module)
    except Exception:
        return True  # mostly an AssertionError; but a broken cache may also fail by itself
    return False


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.rule.replace(" ", "_"))
def test_a_rule_that_is_taken_out_is_missed(mutant: Mutant) -> None:
    if LONG:
        found = [name for name in TESTS if noticed_by(name, mutant)]
        print("%-75s %s" % (mutant.rule, ", ".join(found)))
        assert mutant.by in found
    else:
        assert noticed_by(mutant.by, mutant), "nothing in %s notices" % mutant.by


@pytest.fixture(scope="module", autouse=True)
def the_list_is_of_different_mutants() -> Iterator[None]:
    assert len({mutant.changes for mutant in MUTANTS}) == len({mutant.rule for mutant in MUTANTS}) == len(MUTANTS)
    yield
