"""Response bytes to events: a tolerant byte source in front of sseclient-py.

sseclient-py reads the fields of an event. What it leaves to others is done here, before it sees a byte: line ends of
every kind and mixed, cut anywhere; a byte-order mark; a limit on size; half an event at the end of the stream (which is
no event); one bad byte (which costs one event, not the stream); comments, which servers send as signs of life; and
events of many lines, which it joins in quadratic time.

See the specification, basic/transports/streamable-http: Receiving Messages.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional

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
# Of so many events, none of them longer than so many bytes, it is remembered what they mean.
_REMEMBERED = 1024
_REMEMBERED_LENGTH = 1024


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
        self._pending = bytearray()  # the line that has no end yet
        self._lines: List[bytes] = []  # of the event that has no end yet
        self._size = 0  # of those lines, a line end after each included
        self._known: Dict[bytes, Any] = {}  # what is yielded in the place of some events, by their bytes
        self._yielded: Optional[bytes] = None  # the bytes of the event that was yielded last, if that can be remembered
        self._handed: Optional[bytes] = None  # the event that sseclient-py is to read next
        self._fields: Iterator[Any] = iter(())
        self._events = self._read()

    def __iter__(self) -> Iterator[Any]:
        return self._events

    def __next__(self) -> Any:
        """Return the next :class:`Event`, or a :class:`ProtocolError` in the place of one that could not be read."""
        return next(self._events)

    def again(self, meaning: Any) -> None:
        """Let the event that was yielded last mean this whenever it comes again, byte for byte.

        ``meaning`` is yielded in its place; and only once for all those that have arrived together, since the second of them
        says nothing that was not known when the first was looked at.

        :param meaning: what the event says, if it says the same each time and saying it twice makes no difference.
        """
        if self._yielded is not None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[self._yielded] = meaning

    def _read(self) -> Iterator[Any]:
        known = self._known
        for blocks in self._split():
            for block in blocks:
                self._yielded = None
                event = known.get(block)
                if event is None:
                    event = self._parsed(block)
                if event is not None:
                    yield event
                # The next may be long in coming, and this may be large: an acknowledgement names all that is watched.
                del event, block
            del blocks

    def _parsed(self, block: bytes) -> Any:
        """Return what an event says, or None for one without any data."""
        if b"\n:" in block or block[:1] in (b":", b"\n", b"") or block[-1:] == b"\n" or len(block) > self._max_event_bytes:
            # One of those of which nothing was looked at; so there is no line in hand.
            block = next(self._by_line(block + b"\n\n"), b"")
            if not block:
                return None
        joined = block.count(b"\n") >= _MANY_LINES
        if joined:
            block = b"\n".join(_with_one_line_of_data(block.split(b"\n")))
        self._handed = block + b"\n\n"
        try:
            event = next(self._fields, None)
            if event is None and self._handed is not None:
                # sseclient's generator has ended: it died of the event before, or found no data in that and nothing behind it.
                self._fields = SSEClient(self._handing()).events()
                event = next(self._fields, None)
        except UnicodeDecodeError:
            return ProtocolError("the server sent an event that is not UTF-8: %s" % beginning_of(block))
        if event is None:
            return None
        if len(block) > _REMEMBERED_LENGTH:
            self._fields = iter(())  # it would hold the event until it is given the next
        if joined:
            return Event(event.event, event.data.replace(_LINE_FEED.decode("ascii"), "\n"), event.id, event.retry)
        if event.id is None and event.retry is None and len(block) <= _REMEMBERED_LENGTH:
            self._yielded = block
        return Event(event.event, event.data, event.id, event.retry)

    def _handing(self) -> Iterator[bytes]:
        while self._handed is not None:
            handed, self._handed = self._handed, None
            yield handed

    def _split(self) -> Iterator[Iterable[bytes]]:
        """Yield whole events, those of each chunk together, with line feeds only and without the empty line that closes them.

        They may have comments in them and more empty lines around them.
        """
        for chunk in self._with_line_feeds():
            if self._pending or self._lines:
                # First what is left of the event in hand.
                end = self._end_in(chunk)
                yield self._by_line(chunk[:end])
                chunk = chunk[end:]
            whole, end_of_event, half = chunk.rpartition(b"\n\n")
            if end_of_event:
                yield self._once_each(whole.split(b"\n\n"))
            if half:
                yield self._by_line(half)
        # What is left is half an event, which is no event.

    def _once_each(self, blocks: List[bytes]) -> Iterable[bytes]:
        """Return the blocks without those that say again what one before them says."""
        different = dict.fromkeys(blocks)
        if len(different) == len(blocks):
            return blocks
        known = self._known
        if different.keys() <= known.keys():
            return different  # a storm of notices
        # What is not known may count each time. Of what is known, the first is left.
        return [block for block in blocks if block not in known or different.pop(block, block) is None]

    def _end_in(self, chunk: bytes) -> int:
        """Return where the event in hand ends."""
        if chunk[:1] == b"\n" and not self._pending:
            return 1
        at = chunk.find(b"\n\n")
        return len(chunk) if at < 0 else at + 2

    def _by_line(self, piece: bytes) -> Iterator[bytes]:
        """Yield the events that end in this piece, and keep what is left of it."""
        if b"\n" not in piece:
            self._pending += piece
            self._check(self._size + len(self._pending))
            return
        ended = bytes(self._pending + piece).split(b"\n")
        self._pending = bytearray(ended.pop())
        for line in ended:
            if not line:
                if self._lines:
                    block = b"\n".join(self._lines)
                    self._lines, self._size = [], 0
                    yield block
                continue
            self._check(self._size + len(line))
            if line[:1] == b":":
                self.comments += 1
            else:
                self._lines.append(line)
                self._size += len(line) + 1
        if self._pending:
            self._check(self._size + len(self._pending))

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
                # As replace() does, which takes twice as long where there are many.
                chunk = b"\n".join(chunk.split(b"\r\n")).replace(b"\r", b"\n")
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
