"""Speaking with a server once it is known how: one class for each era, on any transport.

``base.py`` says what a session is; ``answering.py`` is how a legacy server's own requests are answered.
"""

from .base import Handlers, InvalidParams, Session, SessionGone, Stream, speaks_of_no_session
from .legacy import LegacySession
from .modern import ModernSession

__all__ = [
    "Handlers",
    "InvalidParams",
    "LegacySession",
    "ModernSession",
    "Session",
    "SessionGone",
    "Stream",
    "speaks_of_no_session",
]
