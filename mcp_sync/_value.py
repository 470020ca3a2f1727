"""Values that are written out, and no dataclasses.

Every program loads these, or makes thousands of them: loading ``dataclasses`` takes longer than all of this package, and an
instance with slots weighs half as much as one without.
"""

from typing import Any, Tuple

__all__ = ["Value"]


class Value:
    """Something immutable that is equal to what has the same class and parts. Any thread.

    Whoever derives from it names its slots, fills them by ``object.__setattr__``, and says in :meth:`_parts` what it is made of,
    in the order of its parameters.
    """

    __slots__ = ()

    def _parts(self) -> Tuple[Any, ...]:
        return ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("cannot assign to %r: a %s does not change" % (name, type(self).__name__))

    def __delattr__(self, name: str) -> None:
        raise AttributeError("cannot delete %r: a %s does not change" % (name, type(self).__name__))

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and bool(self._parts() == other._parts())

    def __hash__(self) -> int:
        return hash((type(self), self._parts()))

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), self._parts()

    def __repr__(self) -> str:
        return "%s(%s)" % (type(self).__name__, ", ".join(map(repr, self._parts())))
