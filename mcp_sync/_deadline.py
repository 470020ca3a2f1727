"""One deadline carried through many steps, and the clock that everything here counts by.

The clock is monotonic and, where the system has such a one, goes on while the machine is suspended: a laptop that slept for
an hour has copies that are an hour old.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import Callable, Optional

from .errors import RequestTimeout

__all__ = ["Clock", "Deadline", "bounded", "monotonic"]

#: More seconds than this (three years) are no limit: the system's own timers overflow somewhere beyond.
_ENDLESS = 1e8

Clock = Callable[[], float]


def _choose_clock() -> Clock:
    # Linux stops CLOCK_MONOTONIC during suspend and offers CLOCK_BOOTTIME, which does not. On macOS the POSIX clock goes on
    # during sleep while time.monotonic() stops. Windows counts suspended time in time.monotonic() itself.
    names = ["CLOCK_BOOTTIME"]
    if sys.platform == "darwin":
        names.append("CLOCK_MONOTONIC")
    for name in names:
        clock_id = getattr(time, name, None)
        if clock_id is None:
            continue
        try:
            time.clock_gettime(clock_id)
        except OSError:
            continue
        return functools.partial(time.clock_gettime, clock_id)
    return time.monotonic


monotonic: Clock = _choose_clock()


def bounded(seconds: Optional[float]) -> Optional[float]:
    """Return a limit in a form that every wait can take: None for infinity, and for what comes near it."""
    return None if seconds is None or seconds >= _ENDLESS else seconds


class Deadline:
    """A moment after which nobody waits any more. Immutable; any thread may ask it.

    :param timeout: seconds from now, or None for no limit.
    :param what: what is being waited for, for the message of the error.
    :param clock: seconds, never going back.
    :param option: what it was set by, for the same message.
    """

    __slots__ = ("timeout", "what", "_clock", "_end", "_option")

    def __init__(
        self,
        timeout: Optional[float],
        what: str = "the request",
        clock: Clock = monotonic,
        option: str = "timeout=",
    ) -> None:
        self.timeout = timeout = bounded(timeout)
        self.what = what
        self._clock = clock
        self._option = option
        self._end = None if timeout is None else clock() + timeout

    def remaining(self) -> Optional[float]:
        """Return the seconds that are left, never below zero; None if there is no limit."""
        if self._end is None:
            return None
        left = self._end - self._clock()
        return left if left > 0.0 else 0.0

    @property
    def expired(self) -> bool:
        return self._end is not None and self._clock() >= self._end

    def shorter(self, limit: Optional[float]) -> Optional[float]:
        """Return what is left, or ``limit`` seconds if that is less."""
        left = self.remaining()
        if left is None:
            return limit
        return left if limit is None or left < limit else limit

    def error(self, may_have_run: bool = True) -> RequestTimeout:
        """Return the exception that says that this deadline passed."""
        return RequestTimeout(
            "%s took longer than its limit of %g s (%s)" % (self.what, self.timeout or 0.0, self._option),
            may_have_run=may_have_run,
        )
