"""What all results have that keep what the server sent as it came: all but those of reads, of which there may be thousands."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Dict, TypeVar

from .._deadline import Clock, monotonic
from ..freshness import PRIVATE
from .base import CacheableResult

__all__ = ["KeptResult"]

_ResultT = TypeVar("_ResultT", bound="KeptResult")


@dataclass(frozen=True)
class KeptResult(CacheableResult):
    """The fields of a :class:`CacheableResult`."""

    raw: Dict[str, Any] = field(default_factory=dict, repr=False)
    stale: bool = field(default=False, compare=False)
    ttl: float = field(default=0.0, repr=False, compare=False)
    scope: str = field(default=PRIVATE, repr=False, compare=False)
    started: float = field(default=0.0, repr=False, compare=False)
    received: float = field(default=0.0, repr=False, compare=False)
    started_at: float = field(default=0.0, repr=False, compare=False)
    clock: Clock = field(default=monotonic, repr=False, compare=False)

    def as_stale(self: _ResultT) -> _ResultT:
        return self if self.stale else dataclasses.replace(self, stale=True)

    def _state(self) -> Dict[str, Any]:
        return dict(self.__dict__)
