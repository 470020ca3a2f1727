"""The contract of mcp_sync.cache, in every order in which its threads can be switched.

The real code runs, on real threads of which one runs at a time. Each schedule with up to two preemptions is played (see
:mod:`scheduling`). ``MCP_SYNC_LONG=1`` allows four, and a hundred times as many schedules. To play a failed schedule again::

    cachescenarios.play(scenario, cachecopies.load(), Scheduler(3), choices)
"""

import os
from typing import Any, Iterator, Optional

import cachecopies
import pytest
from cachescenarios import SCENARIOS, Scenario, play
from scheduling import Scheduler, Schedules

LONG = bool(os.environ.get("MCP_SYNC_LONG"))


def play_all(scenario: Scenario, module: Any, scheduler: Scheduler, preemptions: Optional[int], limit: int) -> Schedules:
    schedules = Schedules(preemptions, limit)
    try:
        schedules.search(lambda choices: play(scenario, module, scheduler, choices))
    except AssertionError as error:
        raise AssertionError("%s: %s" % (scenario.name, error)) from error
    return schedules


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Scheduler]:
    scheduler = Scheduler(3)
    yield scheduler
    scheduler.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name.replace(" ", "_"))
def test_no_schedule_breaks_the_contract(scenario: Scenario, scheduler: Scheduler, record_property: Any) -> None:
    preemptions, limit = (4, 500000) if LONG else (2, 5000)
    schedules = play_all(scenario, cachecopies.load(), scheduler, preemptions, limit)
    record_property("schedules", schedules.played)
    print("%s: %d schedules" % (scenario.name, schedules.played))
    assert LONG or schedules.complete
