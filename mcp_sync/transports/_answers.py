"""Pure rules: what the headers of an HTTP answer mean."""

import datetime
import email.utils
from typing import Optional

__all__ = ["media_type", "retry_after_seconds"]

#: No server's wish to wait is honoured for longer, in seconds.
_MAX_RETRY_AFTER = 3600.0


def media_type(content_type: Optional[str]) -> str:
    """Return the bare media type of a ``Content-Type``, in lower case; empty if there is none."""
    return (content_type or "").split(";", 1)[0].strip().lower()


def retry_after_seconds(value: Optional[str]) -> Optional[float]:
    """Return what a ``Retry-After`` asks for, in seconds and at most an hour; None if it is absent or unreadable."""
    if value is None:
        return None
    text = value.strip()
    if text.isdigit():
        return min(float(text[:9]), _MAX_RETRY_AFTER)
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    seconds = (moment - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    return min(max(seconds, 0.0), _MAX_RETRY_AFTER)
