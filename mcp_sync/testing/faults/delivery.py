"""Faults that leave the answer right and deliver it badly, or never.

The request is carried out, except where it says otherwise.
"""

import dataclasses
from typing import Optional

from ..answer import Answer
from ..call import Call


@dataclasses.dataclass(frozen=True)
class Reset:
    """A TCP reset in place of an answer.

    :param executed: whether the request is carried out before.
    """

    executed: bool = False

    def __call__(self, call: Call) -> Optional[Answer]:
        if self.executed:
            call.proceed()
        call.wire.ask_reset()
        return None


@dataclasses.dataclass(frozen=True)
class Close:
    """The ordinary end of the connection (FIN) in place of an answer.

    :param executed: whether the request is carried out before.
    """

    executed: bool = False

    def __call__(self, call: Call) -> Optional[Answer]:
        if self.executed:
            call.proceed()
        return None


@dataclasses.dataclass(frozen=True)
class Silence:
    """Not a byte, until ``Server.clear_faults()`` or the end of the server; only then is the request carried out."""

    def __call__(self, call: Call) -> Answer:
        call.pause()
        return call.proceed()


@dataclasses.dataclass(frozen=True)
class HalfHeaders:
    """The status line and the beginning of a header, and then silence (see :class:`Silence`)."""

    def __call__(self, call: Call) -> Answer:
        return call.proceed().replace(cut_answer=len("HTTP/1.1 200 OK\r\nContent-Ty"), after_cut="silence")


@dataclasses.dataclass(frozen=True)
class Drip:
    """The answer a few bytes at a time, without delay: each lot is a TCP segment, and in a chunked body a chunk.

    :param chunk: bytes in a lot.
    """

    chunk: int = 1

    def __call__(self, call: Call) -> Answer:
        return call.proceed().replace(piece=self.chunk)


@dataclasses.dataclass(frozen=True)
class CutAt:
    """The answer up to some byte, and no further. An answer that is not longer goes out whole.

    :param offset: how many bytes are sent.
    :param of: what the offset counts: ``"answer"``, everything from the status line on, or ``"body"``, the body without
        its framing (chunk sizes).
    :param then: ``"close"`` (FIN), ``"reset"``, or ``"silence"`` (see :class:`Silence`).
    """

    offset: int
    of: str = "answer"
    then: str = "close"

    def __call__(self, call: Call) -> Answer:
        answer = call.proceed()
        if self.of == "body":
            return answer.replace(cut_body=self.offset, after_cut=self.then)
        return answer.replace(cut_answer=self.offset, after_cut=self.then)


@dataclasses.dataclass(frozen=True)
class CutAndResume:
    """An event stream that ends before the answer, which is then for the GET that resumes it (legacy era).

    The answer is looked up, and held by gates, when the connection has ended; the resuming GET waits for it. In the
    modern era, with HTTP+SSE and over stdio it changes nothing.

    Page: basic/transports of 2025-11-25, "Resumability and Redelivery".

    :param retry_ms: when the client is to resume, in milliseconds; ``None`` does not say.
    """

    retry_ms: Optional[int] = None

    def __call__(self, call: Call) -> Answer:
        call.interrupt(self.retry_ms)
        return call.proceed()


@dataclasses.dataclass(frozen=True)
class OnAnotherStream:
    """The right answer on the client's standalone stream, and 202 in its place (legacy era, Streamable HTTP).

    Without such a stream, the answer comes where it belongs.
    """

    def __call__(self, call: Call) -> Answer:
        answer = call.proceed()
        try:
            call.tell(*answer.items)
        except (TimeoutError, ValueError):
            return answer
        return Answer(status=202)


@dataclasses.dataclass(frozen=True)
class Gzip:
    """The body compressed, asked for or not; a listen stream too."""

    def __call__(self, call: Call) -> Answer:
        return call.proceed().replace(gzip=True)


@dataclasses.dataclass(frozen=True)
class Bom:
    """A byte-order mark before the body."""

    def __call__(self, call: Call) -> Answer:
        return call.proceed().replace(bom=True)


@dataclasses.dataclass(frozen=True)
class LineEnds:
    """Other line ends in the events of an event stream (an answer as JSON has none).

    :param end: ``"\\n"``, ``"\\r"``, ``"\\r\\n"``, or ``"mixed"`` for all of them in turn.
    """

    end: str = "mixed"

    def __call__(self, call: Call) -> Answer:
        return call.proceed().replace(line_end=self.end)


@dataclasses.dataclass(frozen=True)
class ContentType:
    """Another ``Content-Type`` header, for instance ``'Text/Event-Stream ; charset="UTF-8"'``.

    :param value: the header's value; ``""`` sends none.
    """

    value: str

    def __call__(self, call: Call) -> Answer:
        return call.proceed().replace(content_type=self.value)


@dataclasses.dataclass(frozen=True)
class Framing:
    """Another way to tell the client where the body ends.

    :param how: ``"length"`` (not for a listen stream), ``"chunked"``, or ``"close"``.
    """

    how: str

    def __call__(self, call: Call) -> Answer:
        return call.proceed().replace(framing=self.how)
