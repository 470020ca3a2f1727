"""What a resource holds: the answer to ``resources/read``, and its parts."""

import datetime
import sys
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple, Union

from .._deadline import Clock
from ..errors import ProtocolError, beginning_of
from ..freshness import cache_scope, ttl_seconds
from .base import CacheableResult, bytes_of, last_modified, list_field, text_field

__all__ = ["BlobResourceContents", "Contents", "ReadResourceResult", "TextResourceContents", "contents_from_wire"]


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
    text = text_field(raw, "text")
    if text is not None:
        return TextResourceContents(uri if uri is not None else asked, text, text_field(raw, "mimeType"), raw)
    blob = text_field(raw, "blob")
    if blob is not None:
        return BlobResourceContents(uri if uri is not None else asked, blob, text_field(raw, "mimeType"), raw)
    return None


@dataclass(frozen=True)
class ReadResourceResult(CacheableResult):
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
        list_field(raw, "contents")
        raw = _lean(raw, uri)
        listed = raw["contents"]
        contents = tuple(part for part in (contents_from_wire(item, uri) for item in listed) if part is not None)
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
            listed_last_modified,
        )


#: The last ``_meta`` that was seen: a server says the same of itself with every result.
_last_meta: Dict[str, Any] = {}


#: Fields whose values are few, and the same in thousands of results.
_FEW = frozenset(["resultType", "cacheScope", "mimeType"])


def _lean(raw: Dict[str, Any], uri: str) -> Dict[str, Any]:
    """Return an equal result that shares with all others what they have in common: names of fields, a few values, ``_meta``.

    For a small text these are most of what a result weighs, and thousands of them are kept.
    """
    global _last_meta

    def shared(name: str, value: Any) -> Any:
        if name in _FEW and type(value) is str:
            return sys.intern(value)
        return uri if name == "uri" and value == uri else value

    lean = {sys.intern(name): shared(name, value) for name, value in raw.items()}
    lean["contents"] = [
        {sys.intern(name): shared(name, value) for name, value in part.items()} if isinstance(part, dict) else part
        for part in raw["contents"]
    ]
    meta = raw.get("_meta")
    if isinstance(meta, dict):
        if meta != _last_meta:
            _last_meta = meta
        lean["_meta"] = _last_meta
    return lean
