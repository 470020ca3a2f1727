"""What all results have in common, and how to read what a server sends without stumbling.

Parsing never raises for a field of the wrong type: the field is then absent. It raises
:class:`~mcp_sync.errors.ProtocolError` only where nothing useful is left.
"""

from __future__ import annotations

import abc
import base64
import binascii
import datetime
import hashlib
import json
import re
import time
from typing import Any, Dict, List, Mapping, Optional, TypeVar

from .._deadline import Clock, monotonic
from ..errors import ProtocolError, beginning_of

__all__ = [
    "CacheableResult",
    "bytes_of",
    "integer_field",
    "last_modified",
    "list_field",
    "mapping_field",
    "moment",
    "object_field",
    "text_field",
]

_Raw = Mapping[str, Any]


def text_field(raw: _Raw, name: str) -> Optional[str]:
    """Return the text in a field, or None."""
    value = raw.get(name)
    return value if isinstance(value, str) else None


def integer_field(raw: _Raw, name: str) -> Optional[int]:
    """Return the integer in a field, or None."""
    value = raw.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def object_field(raw: _Raw, name: str) -> Optional[Dict[str, Any]]:
    """Return the object in a field, or None."""
    value = raw.get(name)
    return value if isinstance(value, dict) else None


def mapping_field(raw: _Raw, name: str) -> Dict[str, Any]:
    """Return the object in a field, or an empty one."""
    value = raw.get(name)
    return value if isinstance(value, dict) else {}


def list_field(raw: Any, name: str) -> List[Any]:
    """Return the list in a field.

    :raises ProtocolError: if there is none.
    """
    value = raw.get(name) if isinstance(raw, dict) else None
    if not isinstance(value, list):
        raise ProtocolError('the server sent a result without a list of "%s": %s' % (name, beginning_of(raw)))
    return value


def bytes_of(encoded: str, what: str) -> bytes:
    """Decode base64: plain or URL-safe, padded or not, in one line or many.

    :param what: what it is, for the message of the error.
    :raises ProtocolError: if it is not base64.
    """
    text = "".join(encoded.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ProtocolError("%s is not base64: %s" % (what, beginning_of(encoded, 40))) from error


# ISO 8601 as it is written in JSON. Not datetime.fromisoformat(): each Python reads another part of it.
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(:\d\d)?(?:[.,](\d+))? ?(?:([Zz])|([+-]\d\d):?(\d\d)?)?)?", re.ASCII
)


def moment(text: Optional[str]) -> Optional[datetime.datetime]:
    """Read a date and time (ISO 8601; UTC if it does not say); None if absent or unreadable."""
    match = _MOMENT.fullmatch((text or "").strip())
    if match is None:
        return None
    day, minute, second, fraction, _, hours, minutes = match.groups()
    written = "%sT%s%s.%s%s:%s" % (
        day,
        minute or "00:00",
        second or ":00",
        ((fraction or "") + "000000")[:6],
        hours or "+00",
        minutes or "00",
    )
    try:
        return datetime.datetime.fromisoformat(written)
    except ValueError:
        return None


def last_modified(raw: _Raw) -> Optional[datetime.datetime]:
    """Read ``annotations.lastModified``; None if absent or unreadable."""
    return moment(text_field(mapping_field(raw, "annotations"), "lastModified"))


_ResultT = TypeVar("_ResultT", bound="CacheableResult")


class CacheableResult(abc.ABC):
    """What all results that can be kept have in common: where they come from and how old they are.

    See the specification, server/utilities/caching. Immutable; any thread.

    :param raw: the ``result`` object as the server sent it.
    :param stale: True if this copy is known, or must be assumed, to be out of date.
    :param ttl: the server's hint in seconds; 0.0 if it gave none that makes sense.
    :param scope: ``"public"`` or ``"private"``.
    :param started: when the read began, on the client's monotonic clock: the data was current at some later moment.
    :param received: when the answer had arrived, on the same clock.
    :param started_at: when the read began, in seconds since 1970 by this machine's clock.
    :param clock: what ``started`` and ``received`` count by.
    """

    __slots__ = ()

    raw: Dict[str, Any]
    stale: bool
    ttl: float
    scope: str
    started: float
    received: float
    started_at: float
    clock: Clock

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
        known = getattr(self, "_version", None)
        if known is None:
            known = hashlib.sha256(self._identity()).hexdigest()[:16]
            object.__setattr__(self, "_version", known)
        return str(known)

    def _identity(self) -> bytes:
        return json.dumps(self.content(), sort_keys=True, separators=(",", ":")).encode("ascii")

    def content(self) -> Any:
        """Return the part of ``raw`` that is the resource itself: two results with equal content are one version."""
        return self.raw

    @abc.abstractmethod
    def as_stale(self: _ResultT) -> _ResultT:
        """Return the same copy, labelled stale."""

    @abc.abstractmethod
    def _state(self) -> Dict[str, Any]:
        """Return all attributes."""

    def __getstate__(self) -> Dict[str, Any]:
        # Neither an injected clock nor any monotonic clock's time means anything to another process.
        return dict(self._state(), clock=None)

    def __setstate__(self, state: Dict[str, Any]) -> None:
        # Its age goes on by the calendar, which is all that two machines have in common.
        began = monotonic() - max(0.0, time.time() - state["started_at"])
        took = state["received"] - state["started"]
        for name, value in dict(state, clock=monotonic, started=began, received=began + took).items():
            object.__setattr__(self, name, value)
