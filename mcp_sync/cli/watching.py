"""The command ``watch``."""

import argparse
from typing import List, Optional

from .._deadline import Deadline
from ..client import Client
from .board import TableTeller
from .exits import OK, UNREACHABLE
from .lines import LineTeller
from .output import Log, Output, complain
from .screen import can_redraw
from .waiting import SLICE, interruptibly
from .watched import Teller, Watched

__all__ = ["watch"]


def watch(client: Client, arguments: argparse.Namespace, output: Output, log: Log) -> int:
    """``mcp-sync watch``."""
    # A server that is not there at the start is more likely a wrong address than an outage.
    interruptibly(client.discover)
    uris: List[str] = list(dict.fromkeys(arguments.uris))
    if arguments.all:
        listed = interruptibly(client.list_resources)
        uris = list(dict.fromkeys(uris + list(listed.uris)))
    watched = Watched(client, uris, arguments.catalog or arguments.all, follow=arguments.all)
    if can_redraw(output) and not arguments.json:
        teller: Teller = TableTeller(watched, output, log)
    else:
        teller = LineTeller(watched, output, arguments.json, arguments.initial)
    end = End(arguments.count, arguments.duration)
    try:
        teller.tick()
        while not end.reached:
            watched.bell.wait(end.deadline.shorter(SLICE))
            watched.bell.clear()
            for change in watched.changes():
                teller.changed(change)
                if end.counts():
                    break
            watched.keep_up()
            teller.tick()
    finally:
        teller.close()
    if end.too_early:
        complain("%d of %d changes came within %g s" % (end.seen, arguments.count, arguments.duration))
        return UNREACHABLE
    return OK


class End:
    """When to end by itself.

    :param count: after so many changes, or None.
    :param duration: after so many seconds, or None.
    """

    def __init__(self, count: Optional[int], duration: Optional[float]) -> None:
        self._count = count
        self.seen = 0
        self.deadline = Deadline(duration)

    def counts(self) -> bool:
        """Note a change, and return whether it was the last."""
        self.seen += 1
        return self.seen == self._count

    @property
    def reached(self) -> bool:
        return self.deadline.expired or (self._count is not None and self.seen >= self._count)

    @property
    def too_early(self) -> bool:
        return self._count is not None and self.seen < self._count
