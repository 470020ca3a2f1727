"""Blocks of content: what tools answer with and prompts are made of. See the specification, server/tools: Tool Result."""

import datetime
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Optional, Tuple, Type, TypeVar, Union

from .base import bytes_of, last_modified, list_field, mapping_field, text_field
from .catalog import Resource
from .content import Contents, TextResourceContents, contents_from_wire

__all__ = [
    "AudioContent",
    "ContentBlock",
    "EmbeddedResource",
    "ImageContent",
    "ResourceLink",
    "TextContent",
    "UnknownContent",
    "block_from_wire",
    "blocks_from_wire",
    "text_of",
]


class _Annotated:
    raw: Dict[str, Any]

    @property
    def annotations(self) -> Dict[str, Any]:
        """For whom it is, and how important (``audience``, ``priority``), as it came."""
        return mapping_field(self.raw, "annotations")

    @property
    def last_modified(self) -> Optional[datetime.datetime]:
        return last_modified(self.raw)


@dataclass(frozen=True)
class TextContent(_Annotated):
    """Text. Immutable; any thread.

    :param text: the text.
    :param raw: all that the server sent.
    """

    text: str
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_wire(cls, raw: Dict[str, Any]) -> "Optional[TextContent]":
        text = text_field(raw, "text")
        return None if text is None else cls(text, raw)


_MediaT = TypeVar("_MediaT", bound="_Media")


@dataclass(frozen=True)
class _Media(_Annotated):
    encoded: str = field(repr=False)
    mime_type: Optional[str] = None
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def data(self) -> bytes:
        """The bytes, decoded: plain or URL-safe base64, padded or not, in one line or many.

        :raises ProtocolError: if they are not base64.
        """
        return bytes_of(self.encoded, "the content of type %s" % (self.mime_type or "(none given)"))

    @classmethod
    def from_wire(cls: Type[_MediaT], raw: Dict[str, Any]) -> Optional[_MediaT]:
        encoded = text_field(raw, "data")
        return None if encoded is None else cls(encoded, text_field(raw, "mimeType"), raw)


@dataclass(frozen=True)
class ImageContent(_Media):
    """An image: ``data`` has its bytes. Immutable; any thread.

    :param encoded: the bytes as the server sent them, in base64.
    :param mime_type: its media type, or None.
    :param raw: all that the server sent.
    """


@dataclass(frozen=True)
class AudioContent(_Media):
    """A sound: ``data`` has its bytes. Immutable; any thread.

    :param encoded: the bytes as the server sent them, in base64.
    :param mime_type: its media type, or None.
    :param raw: all that the server sent.
    """


@dataclass(frozen=True)
class ResourceLink(Resource):
    """A resource that can be read; it need not be in the catalog. Fields as of :class:`Resource`. Immutable; any thread."""

    @property
    def annotations(self) -> Dict[str, Any]:
        """For whom it is, and how important (``audience``, ``priority``), as it came."""
        return mapping_field(self.raw, "annotations")


@dataclass(frozen=True)
class EmbeddedResource(_Annotated):
    """A resource with what it holds. Immutable; any thread.

    :param resource: what it holds: text or bytes, with its URI.
    :param raw: all that the server sent.
    """

    resource: Contents
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def uri(self) -> str:
        return self.resource.uri

    @property
    def data(self) -> bytes:
        """Its bytes; a text's as UTF-8.

        :raises ProtocolError: if they are not base64.
        """
        return self.resource.data

    @classmethod
    def from_wire(cls, raw: Dict[str, Any]) -> "Optional[EmbeddedResource]":
        contents = contents_from_wire(raw.get("resource"), "")
        return None if contents is None else cls(contents, raw)


@dataclass(frozen=True)
class UnknownContent:
    """A block of a type that is not known here, or that lacks what makes it one of its type. Immutable; any thread.

    :param type: what the server calls it; empty if it does not say.
    :param raw: all that the server sent, whatever it is.
    """

    type: str = ""
    raw: Any = field(default=None, repr=False, hash=False)


ContentBlock = Union[TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource, UnknownContent]

_TYPES: Dict[str, Callable[[Dict[str, Any]], Optional[ContentBlock]]] = {
    "text": TextContent.from_wire,
    "image": ImageContent.from_wire,
    "audio": AudioContent.from_wire,
    "resource_link": ResourceLink.from_wire,
    "resource": EmbeddedResource.from_wire,
}


def block_from_wire(raw: Any) -> ContentBlock:
    """Read one block. What cannot be read is :class:`UnknownContent`."""
    if not isinstance(raw, dict):
        return UnknownContent("", raw)
    kind = text_field(raw, "type") or ""
    parse = _TYPES.get(kind)
    block = None if parse is None else parse(raw)
    return UnknownContent(kind, raw) if block is None else block


def blocks_from_wire(raw: Any, name: str) -> Tuple[ContentBlock, ...]:
    """Read the list of blocks in a field.

    :raises ProtocolError: if there is none.
    """
    return tuple(block_from_wire(item) for item in list_field(raw, name))


def text_of(block: ContentBlock) -> Optional[str]:
    """Return the text of a block, or None if it has none."""
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
        return block.resource.text
    return None
