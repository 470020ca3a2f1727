"""The fixtures of the contract: each test runs once for every combination of era and transport."""

from typing import Any, Iterator

import pytest
from combinations import COMBINATIONS, CONFIG, LIMITS, README, client_of

from mcp_sync import Client


@pytest.fixture(params=list(COMBINATIONS))
def combination(request: Any) -> str:
    """The era and the transport. A test may name those that it is about by ``indirect`` parametrisation."""
    return str(request.param)


@pytest.fixture
def server(combination: str) -> Iterator[Any]:
    with COMBINATIONS[combination]() as server:
        server.add(CONFIG, "colour = blue", mime_type="text/plain")
        server.add(README, "# Read me")
        server.add(LIMITS, "100 a minute")
        yield server


@pytest.fixture
def notifies(combination: str) -> bool:
    """Whether the server tells of changes."""
    return "cannot" not in combination


@pytest.fixture
def client(server: Any) -> Iterator[Client]:
    with client_of(server) as client:
        yield client
