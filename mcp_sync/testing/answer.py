"""An answer before it is sent: a value that says what goes over the wire and in which shape.

A fault takes the ordinary answer and returns a changed one, so almost every way in which HTTP or an event stream can
be odd is a field here. :mod:`mcp_sync.testing.outlet` turns it into bytes.
"""

import dataclasses
from typing import Any, Optional, Tuple

from .protocol import Item, Message
from .streams import Stream

JSON = "application/json"
EVENT_STREAM = "text/event-stream"


@dataclasses.dataclass(frozen=True)
class Answer:
    """What answers one HTTP request.

    :param items: the messages to send. As JSON only the last one, which is the response, goes out; as events each is
        one event, and bytes among them go out untouched.
    :param events: send ``items`` as an event stream, not as one JSON document.
    :param stream: the listen stream that follows ``items``; it lasts until one side ends it.
    :param resumable: whether the events have ids, and are kept for a client that resumes the stream (legacy era).
    :param body: the body, as bytes, in place of ``items``.
    :param status: the HTTP status.
    :param headers: names and values besides those that follow from the rest.
    :param content_type: the media type; by default the one that fits; ``""`` sends none.
    :param framing: ``"length"`` (Content-Length), ``"chunked"``, or ``"close"`` (the end of the connection ends
        the body).
    :param line_end: how lines of events end: ``"\\n"``, ``"\\r"``, ``"\\r\\n"``, or ``"mixed"``.
    :param bom: start the body with a byte-order mark.
    :param gzip: compress the body.
    :param piece: send at most that many bytes at a time, each lot a TCP segment (and a chunk) of its own.
    :param cut_answer: stop after that many bytes of the whole answer, status line and framing included.
    :param cut_body: stop after that many bytes of the body, framing not included.
    :param after_cut: ``"close"``, ``"reset"`` or ``"silence"``: what follows the cut.
    """

    items: Tuple[Item, ...] = ()
    events: bool = False
    stream: Optional[Stream] = None
    resumable: bool = False
    body: Optional[bytes] = None
    status: int = 200
    headers: Tuple[Tuple[str, str], ...] = ()
    content_type: Optional[str] = None
    framing: str = "length"
    line_end: str = "\n"
    bom: bool = False
    gzip: bool = False
    piece: Optional[int] = None
    cut_answer: Optional[int] = None
    cut_body: Optional[int] = None
    after_cut: str = "close"

    def replace(self, **changes: Any) -> "Answer":
        """This answer with some fields changed."""
        return dataclasses.replace(self, **changes)

    @property
    def response(self) -> Optional[Message]:
        """The JSON-RPC response in this answer, if there is one (a listen stream has none yet)."""
        for item in reversed(self.items):
            if isinstance(item, dict) and ("result" in item or "error" in item):
                return item
        return None

    def with_response(self, response: Message) -> "Answer":
        """This answer with another JSON-RPC response in the place of its own."""
        items = list(self.items)
        own = self.response
        if own is None:
            items.append(response)
        else:
            items[items.index(own)] = response
        return self.replace(items=tuple(items))
