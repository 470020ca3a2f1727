"""Pure rules: how long a result may be served as current.

===========================================  =========================================  ==================================
situation                                    fresh while                                bound on what is served as fresh
===========================================  =========================================  ==================================
covered by a live, acknowledged stream       no notice, and younger than ``max_age``    the notice's delay; ``max_age`` if
                                                                                        the network fails silently
not covered, server sent ``ttlMs > 0``       younger than ``ttlMs``, at most 24 hours   the server's own hint
watched, stream refused or impossible        younger than the poll interval, or than    one poll interval
                                             ``ttlMs`` if that is longer
neither watched nor hinted                   never (``default_ttl``, which is 0)        --
===========================================  =========================================  ==================================

See the specification, server/utilities/caching.
"""

import math
from typing import Any, NamedTuple, Optional

__all__ = ["MAX_TTL", "PRIVATE", "PUBLIC", "Lease", "cache_scope", "fresh_until", "ttl_seconds"]

#: No hint of a server is believed for longer, in seconds.
MAX_TTL = 24 * 3600.0

PUBLIC = "public"
PRIVATE = "private"

_NEVER = -math.inf


class Lease(NamedTuple):
    """How a kept key is kept current, and for how long a read of it counts.

    :param seconds: counted from the start of the read.
    :param polled: True if only polling keeps it current, False if a live stream covers it.
    """

    seconds: float
    polled: bool


def ttl_seconds(ttl_ms: Any) -> float:
    """Return the seconds that a server's ``ttlMs`` is worth.

    It has to be a whole number of milliseconds, not negative. Anything else is worth nothing, since a hint that makes no
    sense is no promise; more than 24 hours is worth 24 hours.

    :param ttl_ms: the value as it came, or None if it was absent.
    """
    if isinstance(ttl_ms, bool) or not isinstance(ttl_ms, (int, float)):
        return 0.0
    if isinstance(ttl_ms, float) and not ttl_ms.is_integer():
        # Fractions, and NaN and the infinities, which are not integers either.
        return 0.0
    if ttl_ms <= 0:
        return 0.0
    # Compared before dividing: an integer of a thousand digits does not fit into a float.
    return MAX_TTL if ttl_ms >= MAX_TTL * 1000 else ttl_ms / 1000.0


def cache_scope(value: Any) -> str:
    """Return ``"public"`` only for exactly that; absent and unknown scopes are private."""
    return PUBLIC if value == PUBLIC and isinstance(value, str) else PRIVATE


def fresh_until(lease: Optional[Lease], started: float, received: float, ttl: float) -> float:
    """Return the moment at which a read stops being fresh, on the clock of ``started`` and ``received``.

    :param lease: how the key was kept current when the read began, or None if it was not.
    :param started: when the read began; its answer may have been current only then.
    :param received: when its answer had arrived; a server's hint counts from there.
    :param ttl: the server's hint in seconds (or the client's ``default_ttl``).
    """
    hinted = received + ttl if ttl > 0.0 else _NEVER
    if lease is None:
        return hinted
    leased = started + lease.seconds
    return max(leased, hinted) if lease.polled else leased
