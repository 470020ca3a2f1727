"""What a resource holds: the answer to ``resources/read``, and its parts.

Thousands of these are kept, most of them small, and what the server sent would be most of what they weigh. So of an ordinary one
only that is kept which is no attribute of its own anyway, and ``raw`` is put together again when somebody asks for it.
"""

from __future__ import annotations

import copy
import datetime
import sys
from typing import Any, Dict, Optional, Tuple, Union

from .._deadline import Clock, monotonic
from .._value import Value
from ..errors import ProtocolError, beginning_of
from ..freshness import PRIVATE, cache_scope, ttl_seconds
from .base import CacheableResult, bytes_of, last_modified, list_field, text_field

__all__ = ["BlobResourceContents", "Contents", "ReadResourceResult", "TextResourceContents", "contents_from_wire"]

_set = object.__setattr__  # past what makes a value immutable

# All the orders in which the fields of an ordinary text came so far.
_Order = Tuple[str, ...]
_orders: Dict[_Order, _Order] = {}
_ORDINARY = frozenset(["uri", "mimeType", "text"])

# A result without its contents. And the last one, beside how it is written: a server says the same of itself, and of how long it
# lasts, again and again.
_Frame = Tuple[Dict[str, Any]]
_last_frame: Tuple[str, _Frame] = ("", ({},))
# As many characters it has at most: it outlives its result, and its client.
_LONGEST_FRAME = 16 * 1024


class TextResourceContents(Value):
    """Text that a resource holds. See the specification, server/resources: Resource Contents. Immutable; any thread.

    :param uri: the URI of this part; a directory, say, has several.
    :param text: the text.
    :param mime_type: its media type, or None.
    :param raw: all that the server sent; or only the order of its fields, if there are none but these three.
    """

    __slots__ = ("uri", "text", "mime_type", "_raw")
    __match_args__ = ("uri", "text", "mime_type", "raw")
    uri: str
    text: str
    mime_type: Optional[str]
    _raw: Union[Dict[str, Any], _Order]

    def __init__(
        self, uri: str, text: str, mime_type: Optional[str] = None, raw: Union[Dict[str, Any], _Order, None] = None
    ) -> None:
        _set(self, "uri", uri)
        _set(self, "text", text)
        _set(self, "mime_type", mime_type)
        _set(self, "_raw", {} if raw is None else raw)

    @property
    def raw(self) -> Dict[str, Any]:
        """All that the server sent."""
        raw = self._raw
        if isinstance(raw, dict):
            return raw
        values = {"uri": self.uri, "mimeType": self.mime_type, "text": self.text}
        return {name: values[name] for name in raw}

    @property
    def data(self) -> bytes:
        """The text as UTF-8."""
        return self.text.encode("utf-8", "surrogatepass")

    @property
    def last_modified(self) -> Optional[datetime.datetime]:
        return last_modified(self._raw) if isinstance(self._raw, dict) else None

    def _parts(self) -> Tuple[Any, ...]:
        return self.uri, self.text, self.mime_type

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), self._parts() + (self._raw,)

    def __repr__(self) -> str:
        return "TextResourceContents(uri=%r, text=%r, mime_type=%r)" % self._parts()


class BlobResourceContents(Value):
    """Bytes that a resource holds. See the specification, server/resources: Resource Contents. Immutable; any thread.

    :param uri: the URI of this part.
    :param blob: the bytes as the server sent them, in base64.
    :param mime_type: its media type, or None.
    :param raw: all that the server sent.
    """

    __slots__ = ("uri", "blob", "mime_type", "raw")
    __match_args__ = ("uri", "blob", "mime_type", "raw")
    uri: str
    blob: str
    mime_type: Optional[str]
    raw: Dict[str, Any]

    def __init__(self, uri: str, blob: str, mime_type: Optional[str] = None, raw: Optional[Dict[str, Any]] = None) -> None:
        _set(self, "uri", uri)
        _set(self, "blob", blob)
        _set(self, "mime_type", mime_type)
        _set(self, "raw", {} if raw is None else raw)

    @property
    def data(self) -> bytes:
        """The bytes, decoded: plain or URL-safe base64, padded or not, in one line or many.

        :raises ProtocolError: if they are not base64.
        """
        return bytes_of(self.blob, "the blob of %s" % self.uri)

    @property
    def last_modified(self) -> Optional[datetime.datetime]:
        return last_modified(self.raw)

    def _parts(self) -> Tuple[Any, ...]:
        return self.uri, self.blob, self.mime_type

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), self._parts() + (self.raw,)

    def __repr__(self) -> str:
        return "BlobResourceContents(uri=%r, mime_type=%r)" % (self.uri, self.mime_type)


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
        kept: Union[Dict[str, Any], _Order] = raw
        if _ORDINARY.issuperset(raw) and all(type(value) is str for value in raw.values()):
            order = tuple(raw)
            kept = _orders.setdefault(order, order)
        return TextResourceContents(uri, text, kind if kind is None else sys.intern(kind), kept)
    blob = text_field(raw, "blob")
    if blob is not None:
        return BlobResourceContents(uri, blob, text_field(raw, "mimeType"), raw)
    return None


class ReadResourceResult(CacheableResult, Value):
    """The answer to ``resources/read``. See the specification, server/resources. Immutable; any thread.

    It has all that a :class:`CacheableResult` has, and:

    :param uri: the URI that was asked for.
    :param contents: its parts; most resources have one.
    :param listed_last_modified: when the resource last changed according to the catalog, if a current one was at hand.
    """

    __match_args__ = (
        "raw",
        "stale",
        "ttl",
        "scope",
        "started",
        "received",
        "started_at",
        "clock",
        "uri",
        "contents",
        "listed_last_modified",
    )
    __slots__ = ("_raw",) + __match_args__[1:] + ("_text", "_version", "__weakref__")
    _raw: Union[Dict[str, Any], _Frame]
    uri: str
    contents: Tuple[Contents, ...]
    listed_last_modified: Optional[datetime.datetime]
    _text: Optional[str]

    def __init__(
        self,
        raw: Union[Dict[str, Any], _Frame, None] = None,
        stale: bool = False,
        ttl: float = 0.0,
        scope: str = PRIVATE,
        started: float = 0.0,
        received: float = 0.0,
        started_at: float = 0.0,
        clock: Clock = monotonic,
        uri: str = "",
        contents: Tuple[Contents, ...] = (),
        listed_last_modified: Optional[datetime.datetime] = None,
    ) -> None:
        _set(self, "_raw", {} if raw is None else raw)
        _set(self, "stale", stale)
        _set(self, "ttl", ttl)
        _set(self, "scope", scope)
        _set(self, "started", started)
        _set(self, "received", received)
        _set(self, "started_at", started_at)
        _set(self, "clock", clock)
        _set(self, "uri", uri)
        _set(self, "contents", contents)
        _set(self, "listed_last_modified", listed_last_modified)
        # Looked for once; it may be asked for a million times a second.
        texts = [part.text for part in contents if isinstance(part, TextResourceContents)]
        _set(self, "_text", texts[0] if texts else None)

    @property
    def raw(self) -> Dict[str, Any]:  # type: ignore[override]
        """The ``result`` object as the server sent it."""
        raw = self._raw
        # A copy, since others have the same frame: what somebody does to it is done to it alone.
        return {**copy.deepcopy(raw[0]), "contents": self.content()} if isinstance(raw, tuple) else raw

    @property
    def text(self) -> str:
        """The text of the first text part.

        :raises ProtocolError: if there is none: the resource holds only bytes (see ``data``), or nothing.
        """
        text = self._text
        if text is not None:
            return text
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
        return [part.raw for part in self.contents] if isinstance(self._raw, tuple) else self._raw.get("contents")

    def as_stale(self) -> "ReadResourceResult":
        if self.stale:
            return self
        stale = object.__new__(type(self))
        for name, value in dict(self._state(), stale=True).items():
            _set(stale, name, value)
        return stale

    def _state(self) -> Dict[str, Any]:
        # But for the last, by which others refer to it.
        return {name: getattr(self, name) for name in self.__slots__[:-1] if hasattr(self, name)}

    # Not as other values do it: there is a state to be told.
    __reduce__ = object.__reduce__  # type: ignore[assignment]

    def _parts(self) -> Tuple[Any, ...]:
        return self.raw, self.uri, self.contents

    def __repr__(self) -> str:
        return "ReadResourceResult(stale=%r, uri=%r, contents=%r)" % (self.stale, self.uri, self.contents)

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
        kept: Union[Dict[str, Any], _Frame] = raw
        if len(contents) == len(listed):
            frame = {**raw, "contents": None}  # in its place
            written = repr(frame)  # tells apart what is equal and not the same: 0 and False, and two orders
            last = _last_frame
            if written != last[0]:
                last = (written, (frame,))
                if len(written) <= _LONGEST_FRAME:
                    _last_frame = last
            kept = last[1]
        return cls(
            kept,
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
