"""Things that go wrong, as values: give them to ``Server.inject``.

::

    from mcp_sync.testing import Server, faults

    server.inject(faults.Status(503), times=3)                            # three times, whatever is asked
    server.inject(faults.RateLimited(retry_after="2"), method="resources/read")
    server.inject(faults.Bom(), faults.Drip(1), method="subscriptions/listen", times=None)

Each changes one thing about the ordinary answer, or takes its place, so that several can be combined. Where to look:

* :mod:`~mcp_sync.testing.faults.answers`: another answer than the right one;
* :mod:`~mcp_sync.testing.faults.delivery`: the right answer, badly delivered or not at all;
* :mod:`~mcp_sync.testing.faults.listening`: listen streams that are acknowledged wrongly;
* :mod:`~mcp_sync.testing.faults.asking`: what the server wants to know before it answers (legacy era).

They apply to every era and transport, as far as there is something there for them to change. With HTTP+SSE, an answer
that holds a message goes out on the stream, and one that holds none (``Status``, ``Redirect`` ...) answers the POST;
what they do over stdio is told at :class:`~mcp_sync.testing.StdioServer`.

What happens to a listen stream *after* it was opened is not here: see ``Server.end_streams`` and ``Server.send``.
A fault of one's own is any callable; :mod:`mcp_sync.testing.call` tells how.
"""

from .answers import (
    Accepted202,
    Edit,
    JsonRpcError,
    NoMeta,
    NoResponse,
    Prelude,
    RateLimited,
    RawBody,
    RawResult,
    Redirect,
    Result,
    Status,
    Unauthorized,
    WrongId,
)
from .asking import Ask
from .delivery import (
    Bom,
    Close,
    ContentType,
    CutAndResume,
    CutAt,
    Drip,
    Framing,
    Gzip,
    HalfHeaders,
    LineEnds,
    OnAnotherStream,
    Reset,
    Silence,
)
from .listening import (
    AcknowledgeAfterEvent,
    AcknowledgeOnly,
    AcknowledgeThenEnd,
    EmptyAcknowledgement,
    Mute,
    NoAcknowledgement,
)

__all__ = [
    "Accepted202", "AcknowledgeAfterEvent", "AcknowledgeOnly", "AcknowledgeThenEnd", "Ask", "Bom", "Close",
    "ContentType", "CutAndResume", "CutAt", "Drip", "Edit", "EmptyAcknowledgement", "Framing", "Gzip", "HalfHeaders",
    "JsonRpcError", "LineEnds", "Mute", "NoAcknowledgement", "NoMeta", "NoResponse", "OnAnotherStream", "Prelude",
    "RateLimited", "RawBody", "RawResult", "Redirect", "Reset", "Result", "Silence", "Status", "Unauthorized",
    "WrongId",
]
