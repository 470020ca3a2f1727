"""Standard output and the log; text made fit for a terminal; tables.

Servers choose URIs, titles and error messages. On a terminal such text could move the cursor, recolour the screen or
fake a line, so it never gets there as it is: see :func:`clean`. Only ``read`` prints what a resource holds, as ``cat``
does.
"""

import collections
import contextlib
import datetime
import errno
import json
import logging
import os
import select
import shutil
import sys
import unicodedata
from typing import IO, Any, Callable, Deque, Iterable, Iterator, List, Optional, Sequence, Tuple

__all__ = ["Log", "Output", "clean", "complain", "iso", "shorten", "table", "width"]


def clean(text: str) -> str:
    """Return text for one line: what is not printable is shown as an escape sequence, not obeyed."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def iso(moment: Optional[datetime.datetime]) -> Optional[str]:
    """Return a moment as JSON has it."""
    return None if moment is None else moment.isoformat()


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def shorten(text: str, columns: int, mark: str = "…") -> str:
    """Return a text that takes at most so many columns: what is too much is taken from its middle.

    The beginning of a URI says whose it is and its end which one; the middle says least.

    :param mark: what stands for what was taken.
    """
    if width(text) <= columns:
        return text
    if columns <= width(mark):
        return mark[: max(0, columns)]
    room = columns - width(mark)
    head = _as_much(text, room // 2)
    tail = _as_much(text[::-1], room - width(head))[::-1]
    return head + mark + tail


def _as_much(text: str, columns: int) -> str:
    taken = 0
    for position, char in enumerate(text):
        taken += _columns(char)
        if taken > columns:
            return text[:position]
    return text


def table(
    rows: Sequence[Sequence[str]],
    right: Iterable[int] = (),
    columns: Optional[int] = None,
    mark: str = "…",
    paint: Callable[[int, int, str], str] = lambda row, column, text: text,
) -> List[str]:
    """Return the lines of a table.

    :param rows: its cells, cleaned; the first row is the heading.
    :param right: which of its columns stand to the right.
    :param columns: how wide it may be; the widest columns are shortened first. None for as wide as it is.
    :param mark: what stands for what was taken.
    :param paint: adds colours to a text, given the numbers of its row and column.
    """
    widths = [max(width(row[index]) for row in rows) for index in range(len(rows[0]))]
    if columns is not None:
        too_much = sum(widths) + 2 * (len(widths) - 1) - columns
        while too_much > 0 and max(widths) > 1:
            widths[widths.index(max(widths))] -= 1
            too_much -= 1
    to_the_right = frozenset(right)
    lines = []
    for number, row in enumerate(rows):
        cells = []
        for index, cell in enumerate(row):
            short = shorten(cell, widths[index], mark)
            space = " " * (widths[index] - width(short))
            short = paint(number, index, short)
            cells.append(space + short if index in to_the_right else short + space)
        lines.append("  ".join(cells).rstrip())
    return lines


class Output:
    """Where results go. One thread.

    :param stream: standard output, or what stands in its place.
    """

    def __init__(self, stream: Optional[IO[str]]) -> None:
        self._stream = stream
        #: Whether a write failed.
        self.broken = False
        self.is_terminal = stream is not None and stream.isatty()
        self.mark = "…" if self.can_show("…") else "~"

    @property
    def stream(self) -> IO[str]:
        if self._stream is None:
            raise OSError(errno.EBADF, "standard output is closed")
        return self._stream

    @property
    def size(self) -> Tuple[int, int]:
        """The columns and the lines of the terminal."""
        size = shutil.get_terminal_size()
        return size.columns, size.lines

    def can_show(self, text: str) -> bool:
        """Return whether the encoding of the stream has these characters."""
        try:
            text.encode(getattr(self._stream, "encoding", None) or "ascii")
        except UnicodeEncodeError:
            return False
        return True

    def write(self, text: str) -> None:
        """Write text and flush; characters that the stream has not are written as escape sequences."""
        encoding = getattr(self.stream, "encoding", None) or "utf-8"
        with self._watched():
            self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            self.stream.flush()

    def line(self, text: str) -> None:
        self.write(text + "\n")

    def lines(self, lines: Iterable[str]) -> None:
        self.write("".join(line + "\n" for line in lines))

    def document(self, value: Any) -> None:
        """Write one JSON document in several lines."""
        self.line(json.dumps(value, indent=2))

    def json_line(self, value: Any) -> None:
        """Write one JSON document in one line."""
        self.line(json.dumps(value))

    def data(self, data: bytes) -> None:
        """Write bytes as they are."""
        buffer = getattr(self.stream, "buffer", None)
        if buffer is None:
            self.write(data.decode("utf-8", "replace"))  # a program has put something of its own in the place of stdout
        else:
            with self._watched():
                self.stream.flush()
                buffer.write(data)
                buffer.flush()

    def flush(self) -> None:
        """Have written what others, argparse for one, wrote to the stream."""
        if self._stream is not None:
            with self._watched():
                self._stream.flush()

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self.broken = True
            raise

    def nobody_reads(self) -> bool:
        """Return whether the other end of the pipe was closed, where the system can tell without a write."""
        if self.is_terminal or not hasattr(select, "poll"):
            return False
        try:
            poll = select.poll()
            poll.register(self.stream.fileno(), 0)
            return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
        except (OSError, ValueError):
            return False  # no descriptor at all

    def give_up(self) -> None:
        """Have nothing more written, so that the interpreter does not fail once more when it flushes at its end."""
        try:
            descriptor = self.stream.fileno()
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
        except (OSError, ValueError):
            pass  # it has no descriptor, so nothing is flushed to it either


def complain(text: str) -> None:
    """Write one line to standard error, if there is one."""
    try:
        print("mcp-sync: " + clean(" ".join(text.split())), file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass


class Log(logging.Handler):
    """The library's log on standard error: one line each, held back while a table has the terminal. Any thread."""

    #: How many lines are held back at most: the last ones.
    HELD = 1000

    def __init__(self, verbosity: int) -> None:
        super().__init__()
        self.traces = verbosity > 0
        self.threshold = {0: logging.WARNING, 1: logging.INFO}.get(verbosity, logging.DEBUG)
        self._held: Optional[Deque[str]] = None  # guarded by the handler's own lock

    def emit(self, record: logging.LogRecord) -> None:
        text = "%s: %s" % (record.levelname.lower(), record.getMessage())
        if record.exc_info and record.exc_info[1] is not None:
            text += ": %r" % record.exc_info[1]
        if self._held is not None:
            self._held.append(text)
        else:
            complain(text)

    def hold_back(self) -> None:
        """Write nothing until :meth:`let_go`."""
        self.acquire()
        try:
            self._held = collections.deque(maxlen=self.HELD)
        finally:
            self.release()

    def let_go(self) -> None:
        """Write what was held back, and from now on at once."""
        self.acquire()
        try:
            held, self._held = self._held, None
        finally:
            self.release()
        for text in held or ():
            complain(text)
