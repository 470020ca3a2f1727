"""What all complete lists have in common, and how one is joined from its pages."""

from dataclasses import dataclass, field
from typing import Any, Callable, ClassVar, Dict, Generic, Iterator, List, NamedTuple, Optional, Tuple, Type, TypeVar

from .._deadline import Clock
from ..freshness import PRIVATE, cache_scope, ttl_seconds
from .base import list_field
from .kept import KeptResult

__all__ = ["LeftOut", "ListResult", "Shape", "list_from_pages"]


class Shape(NamedTuple):
    """What tells one kind of list from another.

    :param wire: the name of the list in the answer.
    :param field: the name of the list in the result.
    :param parse: reads one item; returns None for what is none.
    :param key: the attribute that tells items apart.
    :param names: True if the key is a name that programs act by, so that a second item of that name is worth a warning.
    """

    wire: str
    field: str
    parse: Callable[[Any], Optional[Any]]
    key: str
    names: bool = False


class LeftOut(NamedTuple):
    """An item that the server listed and the result does not.

    :param name: its name.
    :param reason: why; the end of a sentence.
    """

    name: str
    reason: str


_ItemT = TypeVar("_ItemT")


@dataclass(frozen=True)
class ListResult(KeptResult, Generic[_ItemT]):
    """A complete list, all pages. Iterable. Immutable; any thread.

    :param left_out: what the server listed, but cannot be used, and why.
    """

    SHAPE: ClassVar[Shape]

    left_out: Tuple[LeftOut, ...] = field(default=(), repr=False, compare=False)

    @property
    def _items(self) -> Tuple[_ItemT, ...]:
        items: Tuple[_ItemT, ...] = getattr(self, self.SHAPE.field)
        return items

    def __iter__(self) -> Iterator[_ItemT]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def keys(self) -> Tuple[str, ...]:
        """What tells the items apart (names, URIs), in the server's order."""
        return tuple(self._index)

    @property
    def _index(self) -> Dict[str, _ItemT]:
        # Made at first use, as the version is.
        index: Optional[Dict[str, _ItemT]] = self.__dict__.get("_indexed")
        if index is None:
            index = {getattr(item, self.SHAPE.key): item for item in self._items}
            object.__setattr__(self, "_indexed", index)
        return index

    def find(self, key: str) -> Optional[_ItemT]:
        """Return the item with this name or URI, or None if it is not listed."""
        return self._index.get(key)

    def content(self) -> Any:
        return self.raw.get(self.SHAPE.wire)


_ListT = TypeVar("_ListT", bound="ListResult[Any]")


def _fit(item: Any) -> Optional[str]:
    return None


def list_from_pages(
    cls: Type[_ListT],
    pages: List[Tuple[Dict[str, Any], float]],
    started: float,
    started_at: float,
    clock: Clock,
    problem_with: Callable[[Any], Optional[str]] = _fit,
) -> _ListT:
    """Join the pages of a list.

    The whole is current no longer than its most short-lived page, and public only if every page is.

    :param pages: each page's ``result`` with the moment it was received.
    :param problem_with: says why an item cannot be used and is to be left out; None if it can.
    :raises ProtocolError: if a page holds no such list.
    """
    shape = cls.SHAPE
    items: Dict[str, Any] = {}
    joined: Dict[str, Tuple[int, Any]] = {}  # with the number of the page
    left_out: Dict[LeftOut, None] = {}
    received = pages[-1][1]
    ttl = min(ttl_seconds(page.get("ttlMs")) - (received - at) for page, at in pages)
    scopes = {cache_scope(page.get("cacheScope")) for page, _ in pages}
    for number, (page, _) in enumerate(pages):
        for raw in list_field(page, shape.wire):
            item = shape.parse(raw)
            if item is None:
                continue
            key = getattr(item, shape.key)
            problem = problem_with(item)
            if problem is not None:
                left_out[LeftOut(key, problem)] = None
            elif key not in items:
                items[key] = item
                joined[key] = (number, raw)
            elif shape.names and (joined[key][0] == number or joined[key][1] != raw):
                # Pages are read at different moments: what moved between them comes twice, and is the same.
                left_out[LeftOut(key, "another of this name was listed before it, and counts")] = None
    raw_list = dict(pages[0][0])
    raw_list.pop("nextCursor", None)
    raw_list[shape.wire] = [raw for _, raw in joined.values()]
    fields: Dict[str, Any] = {shape.field: tuple(items.values()), "left_out": tuple(left_out)}
    return cls(
        raw=raw_list,
        ttl=max(0.0, ttl),
        scope=scopes.pop() if len(scopes) == 1 else PRIVATE,
        started=started,
        received=received,
        started_at=started_at,
        clock=clock,
        **fields
    )
