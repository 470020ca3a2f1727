"""The soak in its short form, against the official Python SDK's server; see the package ``stress``."""

from typing import Any, Callable, Optional

import pytest
from stress.served import Official
from stress.soak import Soak

from mcp_sync._backoff import Backoff

pytestmark = pytest.mark.interop

SECONDS = 12.0


def test_every_read_keeps_the_contract_and_nothing_is_left(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def lucky(first: float, cap: float, uniform: Optional[Callable[[float, float], float]] = None) -> Backoff:
        return Backoff(first, cap, lambda low, high: low + 0.05 * (high - low))

    # So little time must not be spent waiting.
    monkeypatch.setattr("mcp_sync.reader.Backoff", lucky)
    monkeypatch.setattr("mcp_sync.refresher.Backoff", lucky)
    report = Soak(5, lambda judge: Official(judge, tmp_path)).run(SECONDS)
    print(report)
    assert not report.violations, str(report)
    assert report.reads > 500 and report.verdicts["notices"] and report.restarts
    assert report.after.threads <= report.before.threads and report.after.files <= report.before.files, str(report)
