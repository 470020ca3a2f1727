"""How far a call has come, in one line of a terminal that is redrawn in place."""

import math
import os
import time
from typing import Optional

from ..calling import Progress
from .output import Output, clean, shorten, width
from .screen import can_redraw

try:
    # The extra [cli]. Only its drawing is used: no thread, no lock.
    from tqdm.std import tqdm
except ImportError:
    tqdm = None

__all__ = ["Bar", "columns_of"]

_ERASE_LINE = "\r\x1b[2K"
#: Seconds between two drawings, at least: a server may tell of its progress a thousand times a second.
_PAUSE = 0.05


def columns_of(output: Output) -> int:
    """Return how wide the terminal of an output is: what is asked for otherwise is the terminal of standard output."""
    try:
        columns = os.get_terminal_size(output.stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return columns or output.size[0]


class Bar:
    """One line at the bottom of a terminal, if that can be redrawn; otherwise nothing. One thread.

    :param output: the terminal, or what stands in its place.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        #: Whether anything is ever shown.
        self.works = can_redraw(output)
        self._began = time.monotonic()
        self._last: Optional[Progress] = None
        self._drawn = ""
        self._drawn_at = -math.inf

    def progressed(self, progress: Progress) -> None:
        """Show this from now on."""
        self._last = progress

    def tick(self) -> None:
        """Draw, if there is something new: seconds pass, too."""
        now = time.monotonic()
        if not self.works or self._last is None or now - self._drawn_at < _PAUSE:
            return
        columns = max(1, columns_of(self._output) - 1)  # in the last one, some terminals begin a new line
        line = _line(self._last, now - self._began, columns, self._output)
        if line != self._drawn:
            self._drawn, self._drawn_at = line, now
            self._output.write(_ERASE_LINE + line)

    def clear(self) -> None:
        """Take the line away, so that something else can be written in its place."""
        if self._drawn:
            self._drawn, self._drawn_at = "", -math.inf
            self._output.write(_ERASE_LINE)


def _line(progress: Progress, seconds: float, columns: int, output: Output) -> str:
    fraction = progress.fraction
    message = clean(" ".join((progress.message or "")[:500].split()))
    # The message has what is left when there is room for a bar that says something.
    message = _start_of(message, max(0, columns - (38 if fraction is not None else 20)), output.mark)
    if fraction is None:
        return shorten("  ".join(part for part in (_number(progress.progress), _time(seconds), message) if part), columns)
    if tqdm is None:
        return _plain(fraction, seconds, columns, message)
    form = "{percentage:3.0f}% |{bar}| {elapsed}<{remaining}" + ("  " + message.replace("{", "{{").replace("}", "}}"))
    # A rate that is no more than nothing would give an end in a billion years.
    line = tqdm.format_meter(
        round(fraction, 3), 1.0, seconds, ncols=columns, bar_format=form.rstrip(), ascii=not output.can_show("█▏")
    )
    return str(line)


def _start_of(text: str, columns: int, mark: str) -> str:
    if width(text) <= columns:
        return text
    while text and width(text) + width(mark) > columns:
        text = text[:-1]
    return text + mark if text else ""


def _plain(fraction: float, seconds: float, columns: int, message: str) -> str:
    left, right = "%3d%% [" % (fraction * 100), "] " + "  ".join(part for part in (_time(seconds), message) if part)
    room = columns - width(left) - width(right)
    if room < 1:
        return shorten(left.rstrip(" [") + "  " + _time(seconds), columns, "")
    done = int(room * fraction)
    return left + "#" * done + "-" * (room - done) + right


def _number(value: float) -> str:
    return "%d" % value if abs(value) < 1e15 and value == int(value) else "%.4g" % value


def _time(seconds: float) -> str:
    minutes, rest = divmod(math.floor(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return "%d:%02d:%02d" % (hours, minutes, rest) if hours else "%02d:%02d" % (minutes, rest)
