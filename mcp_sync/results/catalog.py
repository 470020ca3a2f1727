"""Which resources there are: the answers to ``resources/list`` and ``resources/templates/list``."""

import datetime
from dataclasses import dataclass, field
from typing import Any, ClassVar, Dict, Mapping, Optional, Tuple, Type, TypeVar

from .. import templates
from .base import integer_field, last_modified, text_field
from .lists import ListResult, Shape

__all__ = ["ListResourceTemplatesResult", "ListResourcesResult", "Resource", "ResourceTemplate"]

_ResourceT = TypeVar("_ResourceT", bound="Resource")


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
    def from_wire(cls: Type[_ResourceT], raw: Any) -> Optional[_ResourceT]:
        if not isinstance(raw, dict):
            return None
        uri = text_field(raw, "uri")
        if uri is None:
            return None
        return cls(
            uri,
            text_field(raw, "name") or "",
            text_field(raw, "title"),
            text_field(raw, "description"),
            text_field(raw, "mimeType"),
            integer_field(raw, "size"),
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

    @property
    def variables(self) -> Tuple[str, ...]:
        """The names of its variables, in its order. Needs and raises what :meth:`expand` does."""
        return templates.variables(self.uri_template)

    def expand(self, *given: Mapping[str, Any], **values: Any) -> str:
        """Return the URI that the template makes of some values; needs the extra ``mcp-sync-client[templates]``.

        ::

            template.expand(path="src/main.rs")             # or, for a name that is none in Python:
            template.expand({"owner-name": "x"})

        :param given: the variables, as mappings.
        :param values: more of them. What is None, or not given, is left out, as RFC 6570 says.
        :raises NotSupported: if the package ``uritemplate`` is not installed.
        :raises ValueError: if the template makes no sense, or has no variable of that name.
        """
        merged: Dict[str, Any] = {}
        for mapping in given + (values,):
            merged.update(mapping)
        return templates.expand(self.uri_template, merged)

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
class ListResourcesResult(ListResult[Resource]):
    """The complete catalog: the answers to ``resources/list``, all pages. Iterable.

    See the specification, server/resources: Listing Resources.

    :param resources: the resources, each URI once.
    """

    SHAPE: ClassVar[Shape] = Shape("resources", "resources", Resource.from_wire, "uri")

    resources: Tuple[Resource, ...] = ()

    @property
    def uris(self) -> Tuple[str, ...]:
        """The URIs, in the server's order."""
        return self.keys


@dataclass(frozen=True)
class ListResourceTemplatesResult(ListResult[ResourceTemplate]):
    """The complete list of templates, all pages. Iterable. See the specification, server/resources: Resource Templates.

    :param resource_templates: the templates.
    """

    SHAPE: ClassVar[Shape] = Shape("resourceTemplates", "resource_templates", ResourceTemplate.from_wire, "uri_template")

    resource_templates: Tuple[ResourceTemplate, ...] = ()
