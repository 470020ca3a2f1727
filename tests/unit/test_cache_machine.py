"""The contract of mcp_sync.cache, over random histories of one server and three clients.

The normal run plays the same histories each time. ``MCP_SYNC_LONG=1`` plays many more, other ones at each run; a failure
prints the steps that lead to it.
"""

import os
from typing import Any

import cachecopies
from cachemachine import machine_for
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

LONG = bool(os.environ.get("MCP_SYNC_LONG"))


def play(module: Any, examples: int, steps: int, derandomize: bool = True, shrink: bool = True) -> None:
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    run_state_machine_as_test(
        machine_for(module),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=derandomize,
            database=None,
            deadline=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_no_history_of_a_server_and_three_clients_breaks_the_contract() -> None:
    if LONG:
        play(cachecopies.load(), examples=10000, steps=80, derandomize=False)
    else:
        play(cachecopies.load(), examples=60, steps=50)
