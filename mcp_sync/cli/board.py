"""One table, redrawn in place: how ``watch`` tells a person."""

import datetime
from typing import Any, Dict, List, Optional, Tuple

from .._deadline import monotonic
from ..results import CacheableResult, ListResourcesResult
from ..status import State, Status
from ..watch import Change
from .output import Log, Output, clean, shorten, table, width
from .screen import Screen, colours_wanted
from .waiting import Suspension
from .watched import CATALOG_NAME, Teller, Watched

__all__ = ["TableTeller"]

_GREEN, _YELLOW, _RED, _BOLD, _PLAIN = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[1m", "\x1b[0m"
_STATE_COLOURS = {"current": _GREEN, "stale": _YELLOW, "missing": _RED, "not read": _YELLOW}
_HEADING = ["URI", "STATE", "AGE", "VERSION", "KEPT BY"]
_STATE_COLUMN, _AGE_COLUMN, _VERSION_COLUMN = 1, 2, 3
#: How much of a version is shown where there is no room for all of it.
_SHORT_VERSION = 8
#: Where there is not even so much room for URIs, other columns are left out, these first.
_ROOM_FOR_URIS = 12
_LEFT_OUT_FIRST = (_VERSION_COLUMN, _AGE_COLUMN)
#: With fewer lines than this, empty ones are left out.
_ROOMY = 12


class TableTeller(Teller):
    """Shows everything in one table. The table as it was last stays on the terminal at the end."""

    def __init__(self, watched: Watched, output: Output, log: Log) -> None:
        self._watched = watched
        self._output = output
        self._screen = Screen(output)
        self._colours = colours_wanted()
        self._changes = 0
        self._last_change = ""
        self._changed_uris: Dict[Optional[str], None] = {}  # the last one last
        self._drawn_as: Any = None
        self._ended = False
        self._log = log
        log.hold_back()
        self._suspension = Suspension()

    def changed(self, change: Change) -> None:
        self._changes += 1
        self._changed_uris.pop(change.uri, None)
        self._changed_uris[change.uri] = None
        now = datetime.datetime.now().strftime("%H:%M:%S")
        what = CATALOG_NAME + " changed" if change.uri is None else "%s %s" % (clean(change.uri), change.kind)
        self._last_change = "%s: %s" % (now, what)

    def tick(self) -> None:
        if self._suspension.asked:
            self._screen.leave()
            self._suspension.stop()
            self._drawn_as = None
        size = self._output.size
        # Ages move on with the seconds; all else when something happened.
        state = (size, self._changes, self._watched.status, int(monotonic()))
        if state != self._drawn_as:
            self._drawn_as = state
            self._screen.draw(self._lines(*size))

    def close(self) -> None:
        try:
            self._screen.leave()
            if self._drawn_as is not None:
                self._ended = True
                self._output.lines(self._lines(*self._output.size))
        finally:
            self._suspension.close()
            self._log.let_go()

    # -- the lines -----------------------------------------------------------------------------------------------------

    def _lines(self, columns: int, height: int) -> List[str]:
        status = self._watched.status
        above = self._connection(status, columns)
        below = [self._counted(columns)]
        if height >= _ROOMY:
            above.append("")
            below.insert(0, "")
        room = max(1, height - len(above) - 1 - len(below))
        shown, hidden = self._shown(room)
        if hidden:
            how = "all current" if self._watched.is_current else "watched as well"
            below.insert(0, self._fit("and %d more, %s" % (hidden, how), columns))
        return (above + self._table(shown, status, columns) + below)[:height]

    def _connection(self, status: Status, columns: int) -> List[str]:
        # The state goes first, since that is not what is shortened.
        parts = ["%s: %s" % (_in_words(status), clean(self._watched.client.where))]
        if status.last_contact is not None:
            heard = datetime.datetime.now().timestamp() - status.last_contact
            parts.append("heard on the stream %s ago" % _age(heard))
        if status.reconnects:
            parts.append("reconnected %s" % ("once" if status.reconnects == 1 else "%d times" % status.reconnects))
        line = self._fit("; ".join(parts), columns)
        lines = [_BOLD + line + _PLAIN if self._colours else line]
        if status.last_error is not None:
            lines.append(self._fit("last error: " + clean(status.last_error), columns))
        return lines

    def _counted(self, columns: int) -> str:
        counted = "%d change%s" % (self._changes, "" if self._changes == 1 else "s")
        if self._last_change:
            counted += ", the last at " + self._last_change
        return self._fit(counted + (". Ended." if self._ended else ". Ctrl-C ends."), columns)

    def _fit(self, text: str, columns: int) -> str:
        return shorten(text, columns, self._output.mark)

    def _shown(self, room: int) -> Tuple[List[Optional[str]], int]:
        """Return what is shown, and how many are not. The catalog goes first, then what changed last, then the rest."""
        names: List[Optional[str]] = [None] if self._watched.catalog else []
        names.extend(self._watched.uris)
        if len(names) <= room:
            return names, 0
        room = max(1, room - 1)
        first = dict.fromkeys(names[:1] if self._watched.catalog else [])
        first.update(dict.fromkeys(reversed(list(self._changed_uris))))
        first.update(dict.fromkeys(names))
        chosen = set(list(first)[:room])
        return [name for name in names if name in chosen], len(names) - len(chosen)

    def _table(self, names: List[Optional[str]], status: Status, columns: int) -> List[str]:
        held = {name: self._watched.held(name) for name in names}
        rows = [_HEADING]
        for name in names:
            result = held[name]
            if result is None:
                state, age, version = "missing" if self._watched.is_missing(name) else "not read", "", ""
            else:
                state, age, version = "stale" if result.stale else "current", _age(result.age), result.version
            rows.append([self._name(name, result), state, age, version, _kept_by(name, status)])
        if sum(_widths(rows)) > columns:
            for row in rows[1:]:
                row[_VERSION_COLUMN] = row[_VERSION_COLUMN][:_SHORT_VERSION]
        right = [_AGE_COLUMN]
        for column in _LEFT_OUT_FIRST:
            if sum(_widths(rows)[1:]) + _ROOM_FOR_URIS > columns:
                rows = [row[:column] + row[column + 1 :] for row in rows]
                right = [] if column == _AGE_COLUMN else right
        return table(rows, right, columns, self._output.mark, self._paint)

    def _name(self, name: Optional[str], result: Optional[CacheableResult]) -> str:
        if name is not None:
            return clean(name)
        listed = " %d resources" % len(result) if isinstance(result, ListResourcesResult) else ""
        return CATALOG_NAME + listed

    def _paint(self, row: int, column: int, text: str) -> str:
        colour = _BOLD if row == 0 else _STATE_COLOURS.get(text, "") if column == _STATE_COLUMN else ""
        return colour + text + _PLAIN if colour and text and self._colours else text


def _widths(rows: List[List[str]]) -> List[int]:
    """Return how wide each column is, with the space beside it."""
    return [max(width(row[index]) for row in rows) + (2 if index else 0) for index in range(len(rows[0]))]


def _in_words(status: Status) -> str:
    return {
        State.CONNECTING: "connecting",
        State.LIVE: "live",
        State.POLLING: "polling",
        State.INTERRUPTED: "interrupted, trying again",
        State.CLOSED: "closed",
    }[status.state]


def _kept_by(name: Optional[str], status: Status) -> str:
    if name is None:
        return {"listen": "listening", "poll": "polling"}.get(status.catalog or "", "nothing")
    return {"listen": "listening", "subscribe": "subscribed", "poll": "polling"}.get(status.mode_of(name), "nothing")


def _age(seconds: float) -> str:
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return "%d %s" % (seconds // unit, name)
    return "%d s" % max(0, seconds)
