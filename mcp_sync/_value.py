"""Values that are written out, and no dataclasses.

Every program loads these, or makes thousands of them: loading ``dataclasses`` takes longer than all of this package, and an
instance with slots weighs half as much as one without.
"""

from __future__ import annotations

from typing import Any, Tuple

__all__ = ["Value"]


class Value:
    """Something immutable that is equal to what has the same class and parts. Any thread.

    Whoever derives from it names its slots, fills them by ``object.__setattr__``, and says in ``__match_args__`` what it is made
    of, in the order of its parameters: ``match`` takes them from there, too.
    """

    __slots__ = ()
    __match_args__: Tuple[str, ...] = ()

    def _parts(self) -> Tuple[Any, ...]:
        """Return what makes two of them equal."""
        return tuple([getattr(self, name) for name in self.__match_args__])

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("cannot assign to %r: a %s does not change" % (name, type(self).__name__))

    def __delattr__(self, name: str) -> None:
        raise AttributeError("cannot delete %r: a %s does not change" % (name, type(self).__name__))

    def __eq__(self, other: Any) -> Any:
        # Whatever is no such value may know better: unittest.mock.ANY is equal to all.
        return self._parts() == other._parts() if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._parts()))

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), self._parts()

    def __repr__(self) -> str:
        parts = zip(self.__match_args__, self._parts())
        return "%s(%s)" % (type(self).__name__, ", ".join("%s=%r" % part for part in parts))
