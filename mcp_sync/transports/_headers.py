"""Pure rules: what the headers of an HTTP answer mean."""

from __future__ import annotations

import datetime
import email.utils
import re
from typing import Optional

__all__ = ["body_length", "media_type", "retry_after_seconds"]

#: No server's wish to wait is honoured for longer, in seconds.
_MAX_RETRY_AFTER = 3600.0

#: The most digits of a length: int() refuses any number of them.
_MAX_DIGITS = 18

# Compiled when it is needed, which is rare.
_SECONDS = r"[0-9]+(\.[0-9]*)?"


def media_type(content_type: Optional[str]) -> str:
    """Return the bare media type of a ``Content-Type``, in lower case; empty if there is none."""
    return (content_type or "").split(";", 1)[0].strip().lower()


def body_length(content_length: Optional[str]) -> Optional[int]:
    """Return what a ``Content-Length`` says, or None if there is none.

    :raises ValueError: if it says nothing that makes sense, so that nobody knows where the answer ends.
    """
    if content_length is None:
        return None
    digits = content_length.strip()
    # isdigit() alone takes superscripts for digits.
    if not (digits.isdigit() and digits.isascii() and len(digits) <= _MAX_DIGITS):
        raise ValueError("its length is %r" % content_length[:40])
    return int(content_length)


def retry_after_seconds(value: Optional[str]) -> Optional[float]:
    """Return what a ``Retry-After`` asks for, in seconds and at most an hour; None if it is absent or unreadable."""
    if value is None:
        return None
    text = value.strip()
    if re.fullmatch(_SECONDS, text):
        return min(float(text), _MAX_RETRY_AFTER)
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    seconds = (moment - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    return min(max(seconds, 0.0), _MAX_RETRY_AFTER)
