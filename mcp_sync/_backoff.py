"""How long to wait before trying again: exponential, with full jitter, capped."""

import random
from typing import Callable, Optional

__all__ = ["Backoff", "jittered"]


def jittered(seconds: float, uniform: Callable[[float, float], float] = random.uniform) -> float:
    """Return an interval about as long as ``seconds``, so that many clients do not come at the same moment."""
    return uniform(0.8, 1.2) * seconds


class Backoff:
    """Counts failures and says how long to wait. One thread at a time.

    :param first: the longest wait after the first failure, in seconds; it doubles with each further one.
    :param cap: the longest wait ever, in seconds.
    :param uniform: where chance comes from.
    """

    def __init__(self, first: float, cap: float, uniform: Callable[[float, float], float] = random.uniform) -> None:
        self._first = first
        self._cap = cap
        self._uniform = uniform
        self.failures = 0

    def next(self, at_least: Optional[float] = None) -> float:
        """Note one more failure and return the seconds to wait.

        :param at_least: what the server asked for (``Retry-After``), in seconds.
        """
        # The exponent is bounded so that years of failures do not overflow a float.
        limit = min(self._cap, self._first * 2.0 ** min(self.failures, 30))
        self.failures += 1
        wait = self._uniform(0.0, limit)
        return wait if at_least is None else max(wait, at_least + self._uniform(0.0, 0.1 * at_least))

    def reset(self) -> None:
        """Forget the failures."""
        self.failures = 0
