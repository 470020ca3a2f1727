"""Response bytes to events: a tolerant byte source in front of sseclient-py.

sseclient-py reads the fields of an event. What it leaves to others is done here, before it sees a byte: line ends of
every kind and mixed, cut anywhere; a byte-order mark; a limit on size; half an event at the end of the stream (which is
no event); one bad byte (which costs one event, not the stream); comments, which servers send as signs of life; and
events of many lines, which it joins in quadratic time.

See the specification, basic/transports/streamable-http: Receiving Messages.
"""

from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from .errors import MessageTooLarge, ProtocolError, beginning_of

try:
    from sseclient import SSEClient
except ImportError as error:  # pragma: no cover - told by a test in a process of its own
    raise ImportError("mcp_sync needs the package sseclient-py: pip install sseclient-py") from error

if not hasattr(SSEClient, "events"):
    raise ImportError(
        "another package's module is in the way under the name 'sseclient': mcp_sync needs sseclient-py "
        "(pip uninstall sseclient; pip install --force-reinstall sseclient-py)"
    )

__all__ = ["Event", "EventStream"]

_BOM = b"\xef\xbb\xbf"
# An event of more lines than this is handed to sseclient-py as one of a single line of data.
_MANY_LINES = 32
# What stands for a line feed in that line: control characters, which JSON does not allow, in an order that nobody uses.
_LINE_FEED = b"\x1e\x1f\x1e"


class Event(NamedTuple):
    """One event.

    :param name: its type; ``"message"`` if the stream did not say.
    :param data: its data, lines joined by line feeds.
    :param id: its id, or None.
    :param retry: the time to wait before a reconnection, in milliseconds, as it came; or None.
    """

    name: str
    data: str
    id: Optional[str]
    retry: Optional[str]


class EventStream:
    """Iterates over the events in some chunks of bytes. One thread.

    An event that cannot be read is yielded as the :class:`ProtocolError` that says why, and the stream goes on.

    :param chunks: the bytes, cut anywhere; an empty chunk means nothing.
    :param max_event_bytes: an event, or a line, longer than this ends the stream with :class:`MessageTooLarge`.
    """

    def __init__(self, chunks: Iterator[bytes], max_event_bytes: int) -> None:
        self._chunks = chunks
        self._max_event_bytes = max_event_bytes
        #: How many comments came so far. Servers send them as keep-alives.
        self.comments = 0
        #: The first bytes of the stream, for error messages.
        self.beginning = b""
        # The event that sseclient-py has in hand, and whether its data was put on one line.
        self._block = b""
        self._joined = False
        self._blocks = self._split()
        self._events: Iterator[Any] = SSEClient(self._blocks).events()

    def __iter__(self) -> "EventStream":
        return self

    def __next__(self) -> Any:
        """Return the next :class:`Event`, or a :class:`ProtocolError` in the place of one that could not be read."""
        try:
            event = next(self._events)
        except UnicodeDecodeError:
            # sseclient's generator died of it; the source did not, so a new one takes over behind the bad event.
            self._events = SSEClient(self._blocks).events()
            return ProtocolError("the server sent an event that is not UTF-8: %s" % beginning_of(self._block))
        data = event.data
        if self._joined:
            data = data.replace(_LINE_FEED.decode("ascii"), "\n")
        return Event(event.event, data, event.id, event.retry)

    def _split(self) -> Iterator[bytes]:
        """Yield whole events, each with line feeds only and closed by an empty line."""
        pending = bytearray()  # the line that has no end yet
        lines: List[bytes] = []  # of the event that has no end yet
        size = 0  # of those lines, a line end after each included
        for chunk in self._with_line_feeds():
            if b"\n" not in chunk:
                pending += chunk
                self._check(size + len(pending))
                continue
            ended = bytes(pending + chunk).split(b"\n")
            pending = bytearray(ended.pop())
            for line in ended:
                if not line:
                    if lines:
                        self._joined = len(lines) > _MANY_LINES
                        self._block = b"\n".join(_with_one_line_of_data(lines) if self._joined else lines)
                        lines, size = [], 0
                        yield self._block + b"\n\n"
                    continue
                self._check(size + len(line))
                if line[:1] == b":":
                    self.comments += 1
                else:
                    lines.append(line)
                    size += len(line) + 1
            if pending:
                self._check(size + len(pending))
        # What is left is half an event, which is no event.

    def _check(self, size: int) -> None:
        if size > self._max_event_bytes:
            raise MessageTooLarge(
                "the server sent an event of more than %d bytes (max_message_bytes); it began: %s"
                % (self._max_event_bytes, beginning_of(self.beginning))
            )

    def _with_line_feeds(self) -> Iterator[bytes]:
        """Yield the bytes with every line end turned into a line feed."""
        after_cr = False
        for chunk in self._without_bom():
            if after_cr and chunk[:1] == b"\n":
                # The second half of a CRLF whose first half, already taken as a line end, came with the chunk before.
                chunk = chunk[1:]
                if not chunk:
                    after_cr = False
                    continue
            after_cr = chunk[-1:] == b"\r"
            if b"\r" in chunk:
                chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            yield chunk

    def _without_bom(self) -> Iterator[bytes]:
        held: Optional[bytes] = b""  # bytes that may turn out to be a byte-order mark; None once that is decided
        for chunk in self._chunks:
            if not chunk:
                continue
            if held is not None:
                chunk = held + chunk
                if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
                    held = chunk
                    continue
                held = None
                if chunk.startswith(_BOM):
                    chunk = chunk[len(_BOM) :]
                    if not chunk:
                        continue
            if len(self.beginning) < 400:
                self.beginning += chunk[: 400 - len(self.beginning)]
            yield chunk
        if held:
            self.beginning = held
            yield held


def _with_one_line_of_data(lines: List[bytes]) -> List[bytes]:
    try:
        b"\n".join(lines).decode("utf-8")
    except UnicodeDecodeError as error:
        # Refused as a short event is, whichever line the bad byte is in: also one that is left out below.
        return [lines[0], error.object[error.start : error.end]]
    data: List[bytes] = []
    others: Dict[bytes, bytes] = {}  # of each other field only the last line counts
    for line in lines:
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value[1:] if value[:1] == b" " else value)
        elif name in (b"event", b"id", b"retry"):
            others[name] = line
    return list(others.values()) + ([b"data: " + _LINE_FEED.join(data)] if data else [])
