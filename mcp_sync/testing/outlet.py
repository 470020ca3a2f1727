"""From an :class:`~mcp_sync.testing.answer.Answer` to bytes on the wire."""

import http.client
import itertools
import zlib
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Tuple

from .answer import EVENT_STREAM, JSON, Answer
from .protocol import Item, encode
from .wire import Wire

# Line ends of one event with the lines "event", "data" and the empty one. A line that ends in CR is never followed by
# an empty one that ends in LF: those two bytes together would be one line end.
_MIXED = (("\r", "\r\n", "\n"), ("\n", "\r", "\r"), ("\r\n", "\n", "\r\n"), ("\n", "\r", "\r\n"))


class Cut(Exception):
    """The answer has been sent up to the offset at which it is to be cut."""


class Outlet:
    """Sends one answer: its head, then its body, in whatever shape the answer asks for.

    :param wire: where to.
    :param answer: what.
    :param last: whether the connection ends after it.

    Threads: for the owner of the wire only.
    """

    def __init__(self, wire: Wire, answer: Answer, last: bool) -> None:
        self._wire = wire
        self._answer = answer
        self._last = last
        self._compressor: Any = zlib.compressobj(wbits=zlib.MAX_WBITS | 16) if answer.gzip else None
        ends = _MIXED if answer.line_end == "mixed" else ((answer.line_end,) * 3,)
        self._line_ends: Iterator[Sequence[str]] = itertools.cycle(ends)
        self._started = False
        self._answer_left = answer.cut_answer
        self._body_left = answer.cut_body
        self._encoded: Tuple[Optional[Item], bytes] = (None, b"")

    def send_whole(self) -> None:
        """Send an answer whose end is known.

        :raises Cut: the answer is to be cut before its end.
        """
        answer = self._answer
        if answer.body is not None:
            body = answer.body
        elif answer.events:
            body = self._events(answer.items)
        else:
            body = encode(answer.items[-1]) if answer.items and isinstance(answer.items[-1], dict) else b""
        body = self._shaped(body, last=True)
        head = self._head(len(body))
        if answer.framing == "length":
            # Together: a client that sees the head sees the body, and a small answer is one segment.
            self._emit(head + self._bounded(body))
            self._check_body()
        else:
            self._emit(head)
            self._emit_body(body)
            self._end_body()

    def start(self) -> None:
        """Send the head of an answer that lasts, and its first items."""
        self._emit(self._head(0))
        self.write(self._answer.items)

    def write(self, items: Iterable[Item]) -> None:
        """Send events now, all of them in one go where the shape allows.

        :raises Cut: the answer is to be cut here.
        """
        data = self._shaped(self._events(items), last=False)
        if data:
            self._emit_body(data)

    def finish(self) -> None:
        """Send what tells the client that the body is complete."""
        if self._compressor is not None:
            self._emit_body(self._compressor.flush())
        self._end_body()

    # -- shape ---------------------------------------------------------------------------------------------------

    def _events(self, items: Iterable[Item]) -> bytes:
        parts: List[bytes] = []
        for item in items:
            if isinstance(item, bytes):
                parts.append(item)
                continue
            # The same notice a thousand times is one object a thousand times: encode it once.
            if item is not self._encoded[0]:
                self._encoded = (item, encode(item))
            first, second, third = (end.encode("ascii") for end in next(self._line_ends))
            parts.append(b"event: message" + first + b"data: " + self._encoded[1] + second + third)
        return b"".join(parts)

    def _shaped(self, data: bytes, last: bool) -> bytes:
        if self._answer.bom and not self._started:
            data = b"\xef\xbb\xbf" + data
        self._started = True
        if self._compressor is not None and data:
            flush = zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH
            data = self._compressor.compress(data) + self._compressor.flush(flush)
        return data

    def _head(self, length: int) -> bytes:
        answer = self._answer
        lines = ["HTTP/1.1 {} {}".format(answer.status, http.client.responses.get(answer.status, "Unknown"))]
        content_type = answer.content_type
        if content_type is None:
            content_type = EVENT_STREAM if answer.events else JSON if answer.items else ""
        if content_type:
            lines.append("Content-Type: " + content_type)
        if answer.events:
            # basic/transports/streamable-http, "Receiving Messages": proxies must not hold events back.
            lines += ["Cache-Control: no-cache", "X-Accel-Buffering: no"]
        if answer.gzip:
            lines.append("Content-Encoding: gzip")
        if answer.framing == "chunked":
            lines.append("Transfer-Encoding: chunked")
        elif answer.framing == "length":
            lines.append("Content-Length: {}".format(length))
        if self._last:
            lines.append("Connection: close")
        lines += ["{}: {}".format(name, value) for name, value in answer.headers]
        return "\r\n".join(lines + ["", ""]).encode("utf-8")

    # -- bytes ---------------------------------------------------------------------------------------------------

    def _bounded(self, data: bytes) -> bytes:
        if self._body_left is None:
            return data
        data, self._body_left = data[:self._body_left], self._body_left - len(data)
        return data

    def _check_body(self) -> None:
        if self._body_left is not None and self._body_left < 0:
            raise Cut()

    def _emit_body(self, data: bytes) -> None:
        data = self._bounded(data)
        if self._answer.framing == "chunked":
            size = self._answer.piece or len(data) or 1
            for start in range(0, len(data), size):
                piece = data[start:start + size]
                self._emit(b"%x\r\n%b\r\n" % (len(piece), piece), whole=True)
        else:
            self._emit(data)
        self._check_body()

    def _end_body(self) -> None:
        if self._answer.framing == "chunked":
            self._emit(b"0\r\n\r\n")

    def _emit(self, data: bytes, whole: bool = False) -> None:
        if self._answer_left is not None:
            data, self._answer_left = data[:self._answer_left], self._answer_left - len(data)
        size = len(data) if whole or not self._answer.piece else self._answer.piece
        for start in range(0, len(data), max(1, size)):
            self._wire.send(data[start:start + size])
        if self._answer_left is not None and self._answer_left < 0:
            raise Cut()
