"""The soak in its short form, against the embedded server; and that it would see it if the contract were broken."""

from typing import Any, Callable, Optional

import pytest

from mcp_sync._backoff import Backoff
from mcp_sync.cache import ResourceCache

from .served import Embedded
from .soak import Report, Soak

SECONDS = 6.0


@pytest.fixture(autouse=True)
def luck(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little time must not be spent waiting: chance always lets the client try again soon."""

    def lucky(first: float, cap: float, uniform: Optional[Callable[[float, float], float]] = None) -> Backoff:
        return Backoff(first, cap, lambda low, high: low + 0.05 * (high - low))

    monkeypatch.setattr("mcp_sync.reader.Backoff", lucky)
    monkeypatch.setattr("mcp_sync.refresher.Backoff", lucky)


def soak(seed: int, seconds: float = SECONDS, **options: Any) -> Report:
    report = Soak(seed, lambda judge: Embedded(judge, **options)).run(seconds)
    print(report)
    return report


@pytest.mark.parametrize("era, seed", [("modern", 1), ("legacy", 2)])
def test_every_read_keeps_the_contract_and_nothing_is_left(era: str, seed: int) -> None:
    report = soak(seed, eras=(era,))
    assert not report.violations, str(report)
    assert report.reads > 500 and report.verdicts["notices"] and report.restarts
    assert report.after.threads <= report.before.threads and report.after.files <= report.before.files, str(report)
    assert report.after.memory < report.settled.memory + 120.0, str(report)


def test_a_client_whose_notices_do_not_reach_its_cache_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ResourceCache, "changed", lambda *_: False)
    report = soak(3, 30.0)
    assert any("a notice of version" in why or "newer one" in why for why in report.violations), str(report)
    assert "seed 3" in str(report)
