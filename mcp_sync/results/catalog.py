"""Which resources there are: the answers to ``resources/list`` and ``resources/templates/list``."""

import datetime
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Tuple, Type, TypeVar

from .._deadline import Clock
from ..freshness import PRIVATE, cache_scope, ttl_seconds
from .base import CacheableResult, last_modified, list_field, text_field

__all__ = ["ListResourceTemplatesResult", "ListResourcesResult", "Resource", "ResourceTemplate", "list_from_pages"]


@dataclass(frozen=True)
class Resource:
    """One line of the catalog. See the specification, server/resources: Resource.

    :param uri: what to read it by.
    :param name: its name for programs.
    :param title: its name for people, or None.
    :param description: what it is, or None.
    :param mime_type: its media type, or None.
    :param size: its size in bytes, or None.
    :param raw: all that the server sent.
    """

    uri: str
    name: str = ""
    title: Optional[str] = None
    description: Optional[str] = None
    mime_type: Optional[str] = None
    size: Optional[int] = None
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def last_modified(self) -> Optional[datetime.datetime]:
        return last_modified(self.raw)

    @classmethod
    def from_wire(cls, raw: Any) -> Optional["Resource"]:
        if not isinstance(raw, dict):
            return None
        uri = text_field(raw, "uri")
        if uri is None:
            return None
        size = raw.get("size")
        return cls(
            uri,
            text_field(raw, "name") or "",
            text_field(raw, "title"),
            text_field(raw, "description"),
            text_field(raw, "mimeType"),
            size if isinstance(size, int) and not isinstance(size, bool) else None,
            raw,
        )


@dataclass(frozen=True)
class ResourceTemplate:
    """A pattern of resources. See the specification, server/resources: Resource Templates.

    :param uri_template: the pattern (RFC 6570).
    :param name: its name for programs.
    :param title: its name for people, or None.
    :param description: what it is, or None.
    :param mime_type: the media type of all that match, or None.
    :param raw: all that the server sent.
    """

    uri_template: str
    name: str = ""
    title: Optional[str] = None
    description: Optional[str] = None
    mime_type: Optional[str] = None
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_wire(cls, raw: Any) -> Optional["ResourceTemplate"]:
        if not isinstance(raw, dict):
            return None
        pattern = text_field(raw, "uriTemplate")
        if pattern is None:
            return None
        return cls(
            pattern,
            text_field(raw, "name") or "",
            text_field(raw, "title"),
            text_field(raw, "description"),
            text_field(raw, "mimeType"),
            raw,
        )


@dataclass(frozen=True)
class ListResourcesResult(CacheableResult):
    """The complete catalog: the answers to ``resources/list``, all pages. Iterable.

    See the specification, server/resources: Listing Resources.

    :param resources: the resources, each URI once.
    """

    resources: Tuple[Resource, ...] = ()

    def __iter__(self) -> Iterator[Resource]:
        return iter(self.resources)

    def __len__(self) -> int:
        return len(self.resources)

    @property
    def uris(self) -> Tuple[str, ...]:
        """The URIs, in the server's order."""
        return tuple(resource.uri for resource in self.resources)

    def find(self, uri: str) -> Optional[Resource]:
        """Return the line about ``uri``, or None if it is not listed."""
        # Made at first use, as the version is.
        index: Optional[Dict[str, Resource]] = self.__dict__.get("_index")
        if index is None:
            index = {resource.uri: resource for resource in self.resources}
            object.__setattr__(self, "_index", index)
        return index.get(uri)

    def content(self) -> Any:
        return self.raw.get("resources")


@dataclass(frozen=True)
class ListResourceTemplatesResult(CacheableResult):
    """The complete list of templates, all pages. Iterable. See the specification, server/resources: Resource Templates.

    :param resource_templates: the templates.
    """

    resource_templates: Tuple[ResourceTemplate, ...] = ()

    def __iter__(self) -> Iterator[ResourceTemplate]:
        return iter(self.resource_templates)

    def __len__(self) -> int:
        return len(self.resource_templates)

    def content(self) -> Any:
        return self.raw.get("resourceTemplates")


_ListT = TypeVar("_ListT", ListResourcesResult, ListResourceTemplatesResult)


def list_from_pages(
    cls: Type[_ListT],
    pages: List[Tuple[Dict[str, Any], float]],
    started: float,
    started_at: float,
    clock: Clock,
) -> _ListT:
    """Join the pages of a list.

    The whole is current no longer than its most short-lived page, and public only if every page is.

    :param pages: each page's ``result`` with the moment it was received.
    :raises ProtocolError: if a page holds no such list.
    """
    name = "resources" if cls is ListResourcesResult else "resourceTemplates"
    items: Dict[str, Any] = {}
    joined: List[Any] = []
    received = pages[-1][1]
    ttl = min(ttl_seconds(page.get("ttlMs")) - (received - at) for page, at in pages)
    scopes = {cache_scope(page.get("cacheScope")) for page, _ in pages}
    for page, _ in pages:
        for raw in list_field(page, name):
            item: Any = Resource.from_wire(raw) if name == "resources" else ResourceTemplate.from_wire(raw)
            if item is None:
                continue
            # Pages are read at different moments: a resource that moved between them comes twice.
            key = item.uri if name == "resources" else item.uri_template
            if key not in items:
                items[key] = item
                joined.append(raw)
    raw_list = dict(pages[0][0])
    raw_list.pop("nextCursor", None)
    raw_list[name] = joined
    fields: Dict[str, Any] = {"resources" if name == "resources" else "resource_templates": tuple(items.values())}
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
