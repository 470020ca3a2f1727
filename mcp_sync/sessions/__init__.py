"""Speaking with a server once it is known how: one class for each era, on any transport.

``base.py`` says what a session is; ``answering.py`` is how a legacy server's own requests are answered. ``legacy.py`` is loaded
when such a server is spoken with.
"""

from .base import Handlers, InvalidParams, Session, SessionGone, Stream, speaks_of_no_session
from .modern import ModernSession

__all__ = [
    "Handlers",
    "InvalidParams",
    "ModernSession",
    "Session",
    "SessionGone",
    "Stream",
    "speaks_of_no_session",
]
