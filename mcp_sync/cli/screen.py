"""A text that is redrawn in place, on a terminal's other screen, so that what was on the terminal before comes back."""

import os
import sys
from typing import List

from .output import Output

__all__ = ["Screen", "can_redraw", "colours_wanted"]

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # the other screen; no cursor; too long lines do not wrap
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME = "\x1b[H"
_ERASE_LINE = "\x1b[2K"
_ERASE_BELOW = "\x1b[J"


def can_redraw(output: Output) -> bool:
    """Return whether the output is a terminal that understands how to move the cursor."""
    if not output.is_terminal or os.environ.get("TERM") == "dumb":
        return False
    if sys.platform == "win32":
        # The old console has to be asked for it; the newer terminals tell of themselves.
        return any(name in os.environ for name in ("WT_SESSION", "ANSICON", "TERM", "ConEmuANSI"))
    return bool(os.environ.get("TERM"))


def colours_wanted() -> bool:
    """Return whether the user wants colours. See https://no-color.org."""
    return not os.environ.get("NO_COLOR")


class Screen:
    """One text on the whole terminal. One thread.

    :param output: the terminal.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._entered = False

    def draw(self, lines: List[str]) -> None:
        """Show these lines, no more than the terminal has, in the place of those that were shown before."""
        start = _HOME if self._entered else _ENTER + _HOME
        self._entered = True
        # In one piece, so it does not flicker. Each line is erased before it is written: after a full one, the cursor
        # stands on its last character.
        below = "\n" + _ERASE_BELOW if len(lines) < self._output.size[1] else ""
        self._output.write(start + "\n".join(_ERASE_LINE + line for line in lines) + below)

    def leave(self) -> None:
        """Give the terminal back as it was."""
        if self._entered:
            self._entered = False
            self._output.write(_LEAVE)
