"""What a server says of itself: the answer to ``server/discover``."""

from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, Optional, Tuple

from .._deadline import Clock
from ..errors import ProtocolError, beginning_of
from ..freshness import cache_scope, ttl_seconds
from .base import mapping_field, text_field
from .kept import KeptResult

__all__ = ["DiscoverResult", "Implementation"]


@dataclass(frozen=True)
class Implementation:
    """The software that a server says it is. Display it; never decide by it.

    :param name: its name.
    :param version: its version.
    :param title: a name for people, or None.
    :param raw: all of it.
    """

    name: str = ""
    version: str = ""
    title: Optional[str] = None
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_wire(cls, raw: Any) -> "Implementation":
        if not isinstance(raw, dict):
            return cls()
        return cls(text_field(raw, "name") or "", text_field(raw, "version") or "", text_field(raw, "title"), raw)


@dataclass(frozen=True)
class DiscoverResult(KeptResult):
    """What a server says of itself: the answer to ``server/discover``. See the specification, server/discover.

    :param supported_versions: the protocol revisions that it speaks.
    :param capabilities: what it can do, as it came.
    :param server_info: the software that it says it is.
    :param instructions: how it wants to be used, in plain language, or None.
    """

    supported_versions: Tuple[str, ...] = ()
    capabilities: Dict[str, Any] = field(default_factory=dict)
    server_info: Implementation = Implementation()
    instructions: Optional[str] = None

    @property
    def can_subscribe(self) -> bool:
        """Whether it notifies of changes of single resources (``resources.subscribe``)."""
        return mapping_field(self.capabilities, "resources").get("subscribe") is True

    @property
    def can_list_changed(self) -> bool:
        """Whether it notifies of changes of the catalog (``resources.listChanged``)."""
        return "resources" in self.notified_lists

    @property
    def notified_lists(self) -> FrozenSet[str]:
        """The lists that it notifies of changes of: ``"resources"`` (the catalog), ``"tools"``, ``"prompts"``."""
        names = ("resources", "tools", "prompts")
        return frozenset(name for name in names if mapping_field(self.capabilities, name).get("listChanged") is True)

    @classmethod
    def from_wire(cls, raw: Any, started: float, received: float, started_at: float, clock: Clock) -> "DiscoverResult":
        """Read a result.

        :raises ProtocolError: if it is not an object.
        """
        if not isinstance(raw, dict):
            raise ProtocolError("the server's description of itself is no object: %s" % beginning_of(raw))
        versions = raw.get("supportedVersions")
        return cls(
            raw=raw,
            ttl=ttl_seconds(raw.get("ttlMs")),
            scope=cache_scope(raw.get("cacheScope")),
            started=started,
            received=received,
            started_at=started_at,
            clock=clock,
            supported_versions=tuple(v for v in versions if isinstance(v, str)) if isinstance(versions, list) else (),
            capabilities=mapping_field(raw, "capabilities"),
            server_info=Implementation.from_wire(mapping_field(raw, "_meta").get("io.modelcontextprotocol/serverInfo")),
            instructions=text_field(raw, "instructions"),
        )
