"""How long a result may be served as current."""

import math
from typing import Any, Optional

import pytest

from mcp_sync.freshness import MAX_TTL, PRIVATE, PUBLIC, Lease, cache_scope, fresh_until, ttl_seconds


@pytest.mark.parametrize(
    "ttl_ms, seconds",
    [
        (0, 0.0),
        (1, 0.001),
        (1500, 1.5),
        (300000, 300.0),
        (300000.0, 300.0),
        (86399999, 86399.999),
        (86400000, MAX_TTL),
        (10**15, MAX_TTL),
        (1e15, MAX_TTL),
        (10**1000, MAX_TTL),
        (1e308, MAX_TTL),
        (None, 0.0),
        (-1, 0.0),
        (-1e300, 0.0),
        (-(10**1000), 0.0),
        (1.5, 0.0),
        (0.5, 0.0),
        ("300000", 0.0),
        ("", 0.0),
        (True, 0.0),
        (False, 0.0),
        (math.nan, 0.0),
        (math.inf, 0.0),
        (-math.inf, 0.0),
        ([300000], 0.0),
        ({"ms": 1}, 0.0),
    ],
    ids=lambda value: repr(value)[:12] if not isinstance(value, int) or abs(value) < 10**20 else "huge",
)
def test_a_hint_counts_only_if_it_makes_sense(ttl_ms: Any, seconds: float) -> None:
    assert ttl_seconds(ttl_ms) == seconds


@pytest.mark.parametrize(
    "value, scope",
    [
        ("public", PUBLIC),
        ("private", PRIVATE),
        (None, PRIVATE),
        ("Public", PRIVATE),
        ("public ", PRIVATE),
        ("", PRIVATE),
        ("shared", PRIVATE),
        (True, PRIVATE),
        (0, PRIVATE),
        (["public"], PRIVATE),
    ],
)
def test_only_what_is_called_public_is_public(value: Any, scope: str) -> None:
    assert cache_scope(value) == scope


COVERED = Lease(300.0, polled=False)
POLLED = Lease(30.0, polled=True)


@pytest.mark.parametrize(
    "lease, ttl, until",
    [
        # Nobody keeps it current: the server's hint, from the receipt; without one, never.
        (None, 0.0, -math.inf),
        (None, 60.0, 105.0 + 60.0),
        # Covered: max_age from the start of the read, whatever the server hints.
        (COVERED, 0.0, 100.0 + 300.0),
        (COVERED, 1.0, 100.0 + 300.0),
        (COVERED, 1e4, 100.0 + 300.0),
        # Polled: the interval, or the hint if that is longer.
        (POLLED, 0.0, 100.0 + 30.0),
        (POLLED, 1.0, 100.0 + 30.0),
        (POLLED, 60.0, 105.0 + 60.0),
    ],
)
def test_a_result_is_fresh_until_then(lease: "Optional[Lease]", ttl: float, until: float) -> None:
    assert fresh_until(lease, started=100.0, received=105.0, ttl=ttl) == until
