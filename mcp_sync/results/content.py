"""What a resource holds: the answer to ``resources/read``, and its parts."""

import datetime
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, Union

from .._deadline import Clock
from ..errors import ProtocolError, beginning_of
from ..freshness import cache_scope, ttl_seconds
from .base import CacheableResult, bytes_of, last_modified, list_field, text_field

__all__ = ["BlobResourceContents", "Contents", "ReadResourceResult", "TextResourceContents", "contents_from_wire"]


# Thousands of results are kept, most of them small, and what the server sent would be most of what they weigh. So of an ordinary
# one only that is kept which is no field of its own anyway, and ``raw`` is put together again when somebody asks for it.

# All the orders in which the fields of an ordinary text came so far.
_orders: Dict[Tuple[str, ...], Tuple[str, ...]] = {}
_ORDINARY = frozenset(["uri", "mimeType", "text"])

# The last result without its contents, and how it is written: a server says the same of itself, and of how long it lasts, again
# and again.
_last_frame: Tuple[str, Dict[str, Any]] = ("", {})


class _Assembled:
    """A value that can put together what the server sent."""

    def _assemble(self) -> Dict[str, Any]:
        raise NotImplementedError

    if not TYPE_CHECKING:  # which would then take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            # Only asked for what is not there. Without a look into __dict__, which takes memory for good.
            if name == "raw":
                return self._assemble()
            raise AttributeError("%r object has no attribute %r" % (type(self).__name__, name))


@dataclass(frozen=True)
class TextResourceContents(_Assembled):
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

    def _assemble(self) -> Dict[str, Any]:
        values = {"uri": self.uri, "mimeType": self.mime_type, "text": self.text}
        names: Tuple[str, ...] = object.__getattribute__(self, "_order")
        return {name: values[name] for name in names}

    @property
    def data(self) -> bytes:
        """The text as UTF-8."""
        return self.text.encode("utf-8", "surrogatepass")

    @property
    def last_modified(self) -> Optional[datetime.datetime]:
        return last_modified(self.raw)


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
        return bytes_of(self.blob, "the blob of %s" % self.uri)

    @property
    def last_modified(self) -> Optional[datetime.datetime]:
        return last_modified(self.raw)


Contents = Union[TextResourceContents, BlobResourceContents]


def contents_from_wire(raw: Any, asked: str) -> Optional[Contents]:
    """Read one part; None if it holds neither text nor bytes.

    :param asked: the URI of a part that names none.
    """
    if not isinstance(raw, dict):
        return None
    uri = text_field(raw, "uri")
    if uri == asked or uri is None:
        uri = asked  # not an equal one
    text = text_field(raw, "text")
    if text is not None:
        kind = text_field(raw, "mimeType")
        part = TextResourceContents(uri, text, kind if kind is None else sys.intern(kind), raw)
        if _ORDINARY.issuperset(raw) and all(type(value) is str for value in raw.values()):
            order = tuple(raw)
            object.__setattr__(part, "_order", _orders.setdefault(order, order))
            object.__delattr__(part, "raw")
        return part
    blob = text_field(raw, "blob")
    if blob is not None:
        return BlobResourceContents(uri, blob, text_field(raw, "mimeType"), raw)
    return None


@dataclass(frozen=True)
class ReadResourceResult(_Assembled, CacheableResult):
    """The answer to ``resources/read``. See the specification, server/resources.

    :param uri: the URI that was asked for.
    :param contents: its parts; most resources have one.
    :param listed_last_modified: when the resource last changed according to the catalog, if a current one was at hand.
    """

    uri: str = ""
    contents: Tuple[Contents, ...] = ()
    listed_last_modified: Optional[datetime.datetime] = field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The text of the first text part.

        :raises ProtocolError: if there is none: the resource holds only bytes (see ``data``), or nothing.
        """
        for part in self.contents:
            if isinstance(part, TextResourceContents):
                return part.text
        why = "only bytes: use .data" if self.contents else "it is empty"
        raise ProtocolError("%s holds no text (%s)" % (self.uri, why))

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
        """When it last changed, as the server tells with a part of the content or in the catalog; None if nowhere."""
        told = [part.last_modified for part in self.contents] + [self.listed_last_modified]
        return max((moment for moment in told if moment is not None), default=None)

    def content(self) -> Any:
        return self.raw.get("contents")

    def _assemble(self) -> Dict[str, Any]:
        frame: Dict[str, Any] = object.__getattribute__(self, "_frame")
        return {**frame, "contents": [part.raw for part in self.contents]}

    @classmethod
    def from_wire(
        cls,
        raw: Any,
        uri: str,
        started: float,
        received: float,
        started_at: float,
        clock: Clock,
        listed_last_modified: Optional[datetime.datetime] = None,
    ) -> "ReadResourceResult":
        """Read a result.

        :raises ProtocolError: if there is no list of contents in it.
        """
        global _last_frame
        listed = list_field(raw, "contents")
        contents = tuple(part for part in (contents_from_wire(item, uri) for item in listed) if part is not None)
        if listed and not contents:
            raise ProtocolError("the server sent contents of %s without text or blob: %s" % (uri, beginning_of(listed)))
        result = cls(
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
            listed_last_modified,
        )
        if len(contents) == len(listed):
            frame = {**raw, "contents": None}  # in its place
            written = repr(frame)  # tells apart what is equal and not the same: 0 and False, and two orders
            last = _last_frame
            if written != last[0]:
                _last_frame = last = (written, frame)
            object.__setattr__(result, "_frame", last[1])
            object.__delattr__(result, "raw")
        return result
