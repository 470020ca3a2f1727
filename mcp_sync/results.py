"""What users receive: frozen dataclasses, tolerant parsing, and ``.raw`` for all the rest.

Parsing never raises for a field of the wrong type: the field is then absent. It raises
:class:`~mcp_sync.errors.ProtocolError` only where nothing useful is left.
"""

import base64
import binascii
import dataclasses
import datetime
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Type, TypeVar, Union

from ._deadline import Clock, monotonic
from .errors import ProtocolError, beginning_of
from .freshness import PRIVATE, cache_scope, ttl_seconds

__all__ = [
    "BlobResourceContents",
    "DiscoverResult",
    "Implementation",
    "ListResourcesResult",
    "ListResourceTemplatesResult",
    "ReadResourceResult",
    "Resource",
    "ResourceTemplate",
    "TextResourceContents",
]

_Raw = Mapping[str, Any]


def _text(raw: _Raw, name: str) -> Optional[str]:
    value = raw.get(name)
    return value if isinstance(value, str) else None


def _mapping(raw: _Raw, name: str) -> Dict[str, Any]:
    value = raw.get(name)
    return value if isinstance(value, dict) else {}


def _last_modified(raw: _Raw) -> Optional[datetime.datetime]:
    """Read ``annotations.lastModified`` (ISO 8601); None if absent or unreadable."""
    text = _text(_mapping(raw, "annotations"), "lastModified")
    if text is None:
        return None
    # fromisoformat knew no "Z" before Python 3.11.
    text = text.strip()
    if text[-1:] in ("Z", "z"):
        text = text[:-1] + "+00:00"
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.timezone.utc)


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
        return cls(_text(raw, "name") or "", _text(raw, "version") or "", _text(raw, "title"), raw)


@dataclass(frozen=True)
class TextResourceContents:
    """Text that a resource holds. See the specification, server/resources: Resource Contents.

    :param uri: the URI of this part; a directory, say, has several.
    :param text: the text.
    :param mime_type: its media type, or None.
    :param raw: all that the server sent.
    """

    uri: str
    text: str
    mime_type: Optional[str] = None
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def data(self) -> bytes:
        """The text as UTF-8."""
        return self.text.encode("utf-8", "surrogatepass")

    @property
    def last_modified(self) -> Optional[datetime.datetime]:
        return _last_modified(self.raw)


@dataclass(frozen=True)
class BlobResourceContents:
    """Bytes that a resource holds. See the specification, server/resources: Resource Contents.

    :param uri: the URI of this part.
    :param blob: the bytes as the server sent them, in base64.
    :param mime_type: its media type, or None.
    :param raw: all that the server sent.
    """

    uri: str
    blob: str = field(repr=False)
    mime_type: Optional[str] = None
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def data(self) -> bytes:
        """The bytes, decoded: plain or URL-safe base64, padded or not, in one line or many.

        :raises ProtocolError: if they are not base64.
        """
        text = "".join(self.blob.split()).replace("-", "+").replace("_", "/").rstrip("=")
        try:
            return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        except (binascii.Error, ValueError) as error:
            raise ProtocolError("the blob of %s is not base64: %s" % (self.uri, beginning_of(self.blob, 40))) from error

    @property
    def last_modified(self) -> Optional[datetime.datetime]:
        return _last_modified(self.raw)


Contents = Union[TextResourceContents, BlobResourceContents]


def _contents(raw: Any, asked: str) -> Optional[Contents]:
    if not isinstance(raw, dict):
        return None
    uri = _text(raw, "uri")
    text = _text(raw, "text")
    if text is not None:
        return TextResourceContents(uri if uri is not None else asked, text, _text(raw, "mimeType"), raw)
    blob = _text(raw, "blob")
    if blob is not None:
        return BlobResourceContents(uri if uri is not None else asked, blob, _text(raw, "mimeType"), raw)
    return None


_ResultT = TypeVar("_ResultT", bound="CacheableResult")


@dataclass(frozen=True)
class CacheableResult:
    """What all results that can be kept have in common: where they come from and how old they are.

    See the specification, server/utilities/caching. Immutable; any thread.

    :param raw: the ``result`` object as the server sent it.
    :param stale: True if this copy is known, or must be assumed, to be out of date.
    :param ttl: the server's hint in seconds; 0.0 if it gave none that makes sense.
    :param scope: ``"public"`` or ``"private"``.
    :param started: when the read began, on the client's monotonic clock. The data was current at some moment not before it.
    :param received: when the answer had arrived, on the same clock.
    :param started_at: when the read began, in seconds since 1970 by this machine's clock.
    """

    raw: Dict[str, Any] = field(default_factory=dict, repr=False)
    stale: bool = field(default=False, compare=False)
    ttl: float = field(default=0.0, repr=False, compare=False)
    scope: str = field(default=PRIVATE, repr=False, compare=False)
    started: float = field(default=0.0, repr=False, compare=False)
    received: float = field(default=0.0, repr=False, compare=False)
    started_at: float = field(default=0.0, repr=False, compare=False)
    clock: Clock = field(default=monotonic, repr=False, compare=False)

    @property
    def age(self) -> float:
        """Seconds since the read began that brought this copy."""
        return max(0.0, self.clock() - self.started)

    @property
    def read_at(self) -> datetime.datetime:
        """When the read began that brought this copy (UTC)."""
        return datetime.datetime.fromtimestamp(self.started_at, datetime.timezone.utc)

    @property
    def version(self) -> str:
        """A digest of the content: equal versions hold equal content. Hexadecimal, 16 digits."""
        # Computed at first use, since most reads never ask; writing it twice in two threads writes the same.
        known = self.__dict__.get("_version")
        if known is None:
            known = hashlib.sha256(self._identity()).hexdigest()[:16]
            object.__setattr__(self, "_version", known)
        return str(known)

    def _identity(self) -> bytes:
        return json.dumps(self.content(), sort_keys=True, separators=(",", ":")).encode("ascii")

    def content(self) -> Any:
        """Return the part of ``raw`` that is the resource itself: two results with equal content are one version."""
        return self.raw

    def as_stale(self: _ResultT) -> _ResultT:
        """Return the same copy, labelled stale."""
        return self if self.stale else dataclasses.replace(self, stale=True)

    def __getstate__(self) -> Dict[str, Any]:
        # An injected clock need not be picklable, and means nothing to another process.
        state = dict(self.__dict__)
        state["clock"] = monotonic
        return state


@dataclass(frozen=True)
class ReadResourceResult(CacheableResult):
    """The answer to ``resources/read``. See the specification, server/resources.

    :param uri: the URI that was asked for.
    :param contents: its parts; most resources have one.
    """

    uri: str = ""
    contents: Tuple[Contents, ...] = ()

    @property
    def text(self) -> str:
        """The text of the first text part.

        :raises ProtocolError: if there is none: the resource holds only bytes (see ``data``), or nothing.
        """
        for part in self.contents:
            if isinstance(part, TextResourceContents):
                return part.text
        raise ProtocolError("%s holds no text (%s)" % (self.uri, "only bytes: use .data" if self.contents else "it is empty"))

    @property
    def data(self) -> bytes:
        """The bytes of the first part: text as UTF-8, a blob decoded; nothing if there is no part.

        :raises ProtocolError: if the blob is not base64.
        """
        return self.contents[0].data if self.contents else b""

    @property
    def mime_type(self) -> Optional[str]:
        """The media type of the first part, or None."""
        return self.contents[0].mime_type if self.contents else None

    @property
    def last_modified(self) -> Optional[datetime.datetime]:
        """The newest moment of change that the server tells of any part, or None."""
        return max((part.last_modified for part in self.contents if part.last_modified is not None), default=None)

    def content(self) -> Any:
        return self.raw.get("contents")

    @classmethod
    def from_wire(
        cls, raw: Any, uri: str, started: float, received: float, started_at: float, clock: Clock
    ) -> "ReadResourceResult":
        """Read a result.

        :raises ProtocolError: if there is no list of contents in it.
        """
        listed = _listed(raw, "contents")
        contents = tuple(part for part in (_contents(item, uri) for item in listed) if part is not None)
        if listed and not contents:
            raise ProtocolError("the server sent contents of %s without text or blob: %s" % (uri, beginning_of(listed)))
        return cls(
            raw,
            False,
            ttl_seconds(raw.get("ttlMs")),
            cache_scope(raw.get("cacheScope")),
            started,
            received,
            started_at,
            clock,
            uri,
            contents,
        )


def _listed(raw: Any, name: str) -> List[Any]:
    value = raw.get(name) if isinstance(raw, dict) else None
    if not isinstance(value, list):
        raise ProtocolError('the server sent a result without a list of "%s": %s' % (name, beginning_of(raw)))
    return value


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
        return _last_modified(self.raw)

    @classmethod
    def from_wire(cls, raw: Any) -> Optional["Resource"]:
        if not isinstance(raw, dict):
            return None
        uri = _text(raw, "uri")
        if uri is None:
            return None
        size = raw.get("size")
        return cls(
            uri,
            _text(raw, "name") or "",
            _text(raw, "title"),
            _text(raw, "description"),
            _text(raw, "mimeType"),
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
        pattern = _text(raw, "uriTemplate")
        if pattern is None:
            return None
        return cls(
            pattern,
            _text(raw, "name") or "",
            _text(raw, "title"),
            _text(raw, "description"),
            _text(raw, "mimeType"),
            raw,
        )


@dataclass(frozen=True)
class ListResourcesResult(CacheableResult):
    """The complete catalog: the answers to ``resources/list``, all pages. Iterable. See the specification, server/resources.

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
        for raw in _listed(page, name):
            item: Any = Resource.from_wire(raw) if name == "resources" else ResourceTemplate.from_wire(raw)
            # Pages are read at different moments: a resource that moved between them comes twice.
            key = None if item is None else getattr(item, "uri", None) or item.uri_template
            if key is not None and key not in items:
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


@dataclass(frozen=True)
class DiscoverResult(CacheableResult):
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
        return _mapping(self.capabilities, "resources").get("subscribe") is True

    @property
    def can_list_changed(self) -> bool:
        """Whether it notifies of changes of the catalog (``resources.listChanged``)."""
        return _mapping(self.capabilities, "resources").get("listChanged") is True

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
            capabilities=_mapping(raw, "capabilities"),
            server_info=Implementation.from_wire(_mapping(raw, "_meta").get("io.modelcontextprotocol/serverInfo")),
            instructions=_text(raw, "instructions"),
        )
