"""The fixtures of the contract: each test runs once for every combination of era and transport."""

from typing import Any, Callable, Iterator, Optional

import pytest
from combinations import COMBINATIONS, CONFIG, LIMITS, README, client_of

from mcp_sync import Client
from mcp_sync._backoff import Backoff


@pytest.fixture(params=list(COMBINATIONS))
def combination(request: Any) -> str:
    """The era and the transport. A test may name those that it is about by ``indirect`` parametrisation."""
    return str(request.param)


@pytest.fixture(autouse=True)
def luck(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chance decides how long a client waits before it tries again. Here it is always short, and grows as ever."""

    def lucky(first: float, cap: float, uniform: Optional[Callable[[float, float], float]] = None) -> Backoff:
        return Backoff(first, cap, lambda low, high: low + 0.05 * (high - low))

    monkeypatch.setattr("mcp_sync.reader.Backoff", lucky)
    monkeypatch.setattr("mcp_sync.refresher.Backoff", lucky)


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
