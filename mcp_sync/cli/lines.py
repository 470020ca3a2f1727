"""A line for each change: how ``watch`` tells a pipe, a file or a program."""

import datetime
from typing import Any, Dict, Optional

from ..watch import Change
from .output import Output, clean
from .watched import CATALOG_NAME, Teller, Watched

__all__ = ["LineTeller"]


class LineTeller(Teller):
    """Prints a line for each change.

    :param as_json: whether the lines are JSON documents.
    :param initial: whether there is one for each resource at the start.
    """

    def __init__(self, watched: Watched, output: Output, as_json: bool, initial: bool) -> None:
        self._watched = watched
        self._output = output
        self._as_json = as_json
        self._to_begin_with: Dict[Optional[str], None] = {}  # what the first lines are still to be about, in order
        if initial:
            self._to_begin_with.update(dict.fromkeys([None] if watched.catalog else []))
            self._to_begin_with.update(dict.fromkeys(watched.uris))

    def changed(self, change: Change) -> None:
        self._to_begin_with.pop(change.uri, None)
        self._tell(change)

    def tick(self) -> None:
        for uri in list(self._to_begin_with):
            held = self._watched.held(uri)
            if held is not None and not held.stale:
                del self._to_begin_with[uri]
                self._tell(Change("current", uri, None, held))
        if self._output.nobody_reads():
            raise BrokenPipeError

    def _tell(self, change: Change) -> None:
        now = datetime.datetime.now(datetime.timezone.utc)
        version = None if change.current is None else change.current.version
        if self._as_json:
            document: Dict[str, Any] = {
                "time": now.isoformat(timespec="milliseconds"),
                "kind": change.kind,
                "uri": change.uri,
                "version": version,
                "previous_version": None if change.previous is None else change.previous.version,
                "merged": change.merged,
            }
            if change.uri is None:
                document.update(added=sorted(change.added), removed=sorted(change.removed))
            self._output.json_line(document)
        else:
            name = CATALOG_NAME if change.uri is None else clean(change.uri)
            self._output.line("\t".join([now.isoformat(timespec="seconds"), change.kind, name, version or "-"]))
