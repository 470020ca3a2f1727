"""Pure values: what a stream told us."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterable, Mapping, NamedTuple, Tuple

from ._value import Value

__all__ = [
    "Acknowledged",
    "Notice",
    "PromptsListChanged",
    "ResourceUpdated",
    "ResourcesListChanged",
    "SubscriptionFilter",
    "ToolsListChanged",
]


class SubscriptionFilter(NamedTuple):
    """What a ``subscriptions/listen`` request asks for, or what its acknowledgement grants.

    See the specification, basic/patterns/subscriptions. Immutable; any thread.

    :param resource_subscriptions: URIs whose updates are wanted, as the client spells them.
    :param resources_list_changed: changes of the catalog.
    :param tools_list_changed: changes of the list of tools.
    :param prompts_list_changed: changes of the list of prompts.
    """

    resource_subscriptions: FrozenSet[str] = frozenset()
    resources_list_changed: bool = False
    tools_list_changed: bool = False
    prompts_list_changed: bool = False

    @classmethod
    def of(cls, uris: Iterable[str], lists: Iterable[str]) -> "SubscriptionFilter":
        """Return the filter for some resources, and some lists: ``"resources"``, ``"tools"``, ``"prompts"``."""
        names = frozenset(lists)
        return cls(frozenset(uris), "resources" in names, "tools" in names, "prompts" in names)

    @property
    def lists(self) -> FrozenSet[str]:
        """The lists whose changes are in it: ``"resources"``, ``"tools"``, ``"prompts"``."""
        flags = (
            ("resources", self.resources_list_changed),
            ("tools", self.tools_list_changed),
            ("prompts", self.prompts_list_changed),
        )
        return frozenset(name for name, wanted in flags if wanted)

    def __bool__(self) -> bool:
        return bool(self.resource_subscriptions or self.lists)

    def to_wire(self) -> Dict[str, Any]:
        """Return the ``notifications`` parameter of the request."""
        wire: Dict[str, Any] = {}
        if self.tools_list_changed:
            wire["toolsListChanged"] = True
        if self.prompts_list_changed:
            wire["promptsListChanged"] = True
        if self.resources_list_changed:
            wire["resourcesListChanged"] = True
        if self.resource_subscriptions:
            wire["resourceSubscriptions"] = sorted(self.resource_subscriptions)
        return wire

    @classmethod
    def from_wire(cls, wire: Any) -> "SubscriptionFilter":
        """Read a filter tolerantly: whatever is not clearly granted is not granted."""
        if not isinstance(wire, Mapping):
            return cls()
        uris = wire.get("resourceSubscriptions")
        return cls(
            resource_subscriptions=_texts(uris),
            resources_list_changed=wire.get("resourcesListChanged") is True,
            tools_list_changed=wire.get("toolsListChanged") is True,
            prompts_list_changed=wire.get("promptsListChanged") is True,
        )

    def contains(self, other: "SubscriptionFilter") -> bool:
        """Return whether everything that ``other`` asks for is in this filter."""
        return self.resource_subscriptions >= other.resource_subscriptions and self.lists >= other.lists


def _texts(values: Any) -> FrozenSet[str]:
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, Mapping)):
        return frozenset()
    return frozenset(value for value in values if isinstance(value, str))


class Notice(Value):
    """Something that the server said changed. It never says how. Immutable; any thread."""

    __slots__ = ()


class ResourceUpdated(Notice):
    """``notifications/resources/updated``.

    :param uri: what changed, as the server spells it; it may be a part of a resource that was asked for.
    """

    __slots__ = ("uri",)
    __match_args__ = ("uri",)
    uri: str

    def __init__(self, uri: str) -> None:
        object.__setattr__(self, "uri", uri)


class ResourcesListChanged(Notice):
    """``notifications/resources/list_changed``: the catalog changed (which resources there are, not what is in them)."""

    __slots__ = ()


class ToolsListChanged(Notice):
    """``notifications/tools/list_changed``."""

    __slots__ = ()


class PromptsListChanged(Notice):
    """``notifications/prompts/list_changed``."""

    __slots__ = ()


class Acknowledged(Notice):
    """``notifications/subscriptions/acknowledged``: from here on the server notifies.

    :param granted: the part of what was asked for that the server agreed to.
    """

    __slots__ = ("granted",)
    __match_args__ = ("granted",)
    granted: SubscriptionFilter

    def __init__(self, granted: SubscriptionFilter) -> None:
        object.__setattr__(self, "granted", granted)


LIST_NOTICES: Tuple[Tuple[str, Notice], ...] = (
    ("notifications/resources/list_changed", ResourcesListChanged()),
    ("notifications/tools/list_changed", ToolsListChanged()),
    ("notifications/prompts/list_changed", PromptsListChanged()),
)
