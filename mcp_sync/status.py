"""Pure values: how a watch is doing, as data."""

import datetime
import enum
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, Optional

__all__ = ["State", "Status"]


class State(enum.Enum):
    """What keeps the watched resources current at the moment."""

    #: Nothing yet: the server is being asked.
    CONNECTING = "connecting"
    #: A stream of notices, acknowledged by the server.
    LIVE = "live"
    #: Reading again at intervals: the server does not notify, or could not be listened to for some time.
    POLLING = "polling"
    #: Nothing: the stream is lost and not yet replaced. Copies are stale.
    INTERRUPTED = "interrupted"
    #: Nothing, and nothing will: the watch or its client is closed.
    CLOSED = "closed"


@dataclass(frozen=True)
class Status:
    """How a watch is doing at one moment. Immutable; any thread; ``str()`` gives one line for a log or a health check.

    :param state: what keeps the resources current.
    :param covered: the watched URIs that the server notifies about.
    :param uncovered: the watched URIs that it does not: they are polled (while ``state`` is LIVE or POLLING).
    :param catalog: how the catalog is kept current: ``"listen"``, ``"poll"``, ``"none"``; or None if it is not watched.
    :param tools: the same of the list of tools.
    :param prompts: the same of the list of prompts.
    :param notified_by: how the server notifies while ``state`` is LIVE: ``"listen"`` (modern) or ``"subscribe"`` (legacy); None
        otherwise.
    :param last_contact: when the server was last heard on the stream, in seconds since 1970; None if never.
    :param last_error: the last thing that went wrong, as text; None if nothing did since the stream is live.
    :param last_ending: how the last stream ended: ``"end of stream"``, ``"reset"``, ``"silence"``, ``"result"``, ``"error"``,
        ``"cancelled"``, ``"no acknowledgement"``, ``"refused"``, ``"unreachable"``; None if none did.
    :param reconnects: how many streams were acknowledged after the first.
    :param gaps: how many times all copies had to be taken for stale.
    """

    state: State
    covered: FrozenSet[str] = frozenset()
    uncovered: FrozenSet[str] = frozenset()
    catalog: Optional[str] = None
    last_contact: Optional[float] = None
    last_error: Optional[str] = None
    last_ending: Optional[str] = None
    reconnects: int = 0
    gaps: int = 0
    tools: Optional[str] = None
    prompts: Optional[str] = None
    notified_by: Optional[str] = None

    def mode_of(self, uri: str) -> str:
        """Return what keeps a watched resource current now: ``"listen"``, ``"subscribe"``, ``"poll"`` or ``"none"``."""
        if uri in self.covered:
            return self.notified_by or "listen"
        return "poll" if uri in self.uncovered and self.state in (State.LIVE, State.POLLING) else "none"

    @property
    def is_live(self) -> bool:
        """Whether everything that is watched lives by notices."""
        lists = (self.catalog, self.tools, self.prompts)
        return self.state is State.LIVE and not self.uncovered and all(how in (None, "listen") for how in lists)

    def to_json(self) -> Dict[str, Any]:
        """Return it as plain values, for a health check."""
        contact = self.last_contact
        return {
            "state": self.state.value,
            "covered": sorted(self.covered),
            "uncovered": sorted(self.uncovered),
            "catalog": self.catalog,
            "tools": self.tools,
            "prompts": self.prompts,
            "notified_by": self.notified_by,
            "last_contact": None
            if contact is None
            else datetime.datetime.fromtimestamp(contact, datetime.timezone.utc).isoformat(),
            "last_error": self.last_error,
            "last_ending": self.last_ending,
            "reconnects": self.reconnects,
            "gaps": self.gaps,
        }

    def __str__(self) -> str:
        parts = ["%s: %d covered, %d not" % (self.state.value, len(self.covered), len(self.uncovered))]
        for name, how in (("catalog", self.catalog), ("tools", self.tools), ("prompts", self.prompts)):
            if how is not None:
                parts.append("%s: %s" % (name, how))
        if self.reconnects:
            parts.append("%d reconnects" % self.reconnects)
        if self.last_ending is not None and self.state is not State.LIVE:
            parts.append("last stream ended by: %s" % self.last_ending)
        if self.last_error is not None:
            parts.append("last error: %s" % self.last_error)
        return "; ".join(parts)
