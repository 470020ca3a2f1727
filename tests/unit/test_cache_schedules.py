"""The contract of mcp_sync.cache, in every order in which its threads can be switched.

The real code runs, on real threads of which one runs at a time. Each schedule with up to two preemptions is played (see
:mod:`scheduling`), some 15,000 together. ``MCP_SYNC_LONG=1`` allows five preemptions, and up to 100,000 schedules of each
scenario. To play a failed schedule again::

    cachescenarios.play(scenario, cachecopies.load(), Scheduler(3), choices)
"""

import os
from typing import Any, Iterator, List, Optional

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
    preemptions, limit = (5, 100000) if LONG else (2, 5000)
    schedules = play_all(scenario, cachecopies.load(), scheduler, preemptions, limit)
    record_property("schedules", schedules.played)
    print("%s: %d schedules" % (scenario.name, schedules.played))
    assert LONG or schedules.complete
    assert schedules.played > 10, "the threads do not meet anywhere"


def test_the_search_plays_every_order(scheduler: Scheduler) -> None:
    orders: List[str] = []

    def play_one(choices: Any) -> Any:
        order: List[str] = []

        def body(name: str) -> None:
            order.append(name)
            scheduler.point()
            order.append(name)

        decisions = scheduler.run([lambda: body("a"), lambda: body("b")], choices)
        orders.append("".join(order))
        return decisions

    schedules = Schedules(preemptions=None, limit=100)
    schedules.search(play_one)
    assert sorted(orders) == ["aabb", "abab", "abba", "baab", "baba", "bbaa"] and schedules.complete


def test_threads_that_wait_for_each_other_are_found_and_the_schedule_can_be_played_again(scheduler: Scheduler) -> None:
    def play_one(choices: Any) -> Any:
        one, other = scheduler.Lock(), scheduler.Lock()

        def body(first: Any, second: Any) -> None:
            with first:
                with second:
                    pass

        return scheduler.run([lambda: body(one, other), lambda: body(other, one)], choices)

    with pytest.raises(AssertionError, match="wait for each other") as caught:
        Schedules(preemptions=2, limit=100).search(play_one)
    choices = eval(str(caught.value).split("choices ")[1].split("]")[0] + "]")
    with pytest.raises(AssertionError, match="wait for each other"):
        play_one(choices)
