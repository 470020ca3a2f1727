"""How the clients of one process are doing, as data."""

import datetime
import os
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple
from urllib.parse import urlsplit, urlunsplit

from .. import Client, Held, MCPSyncError, ResourceNotFound, State, Status, Watch
from .clients import Clients
from .settings import SettingsError

__all__ = ["DEGRADED", "FAILING", "OK", "UNWATCHED", "Report", "ResourceReport", "ServerReport", "clean", "report"]

#: All that is watched is current.
OK = "ok"
#: Something is not current, but there is a copy of it that may be used with ``stale_ok=True``.
DEGRADED = "degraded"
#: Something was never read, or its copy is too old.
FAILING = "failing"
#: Nothing is watched, so that nothing is known without asking.
UNWATCHED = "unwatched"

_WORST_FIRST = (FAILING, DEGRADED, OK, UNWATCHED)
_LISTS = {"resources": "catalog", "tools": "tools", "prompts": "prompts"}
_KEPT_BY = {"listen": "notices", "subscribe": "notices", "poll": "polling", "none": "nothing"}
_LONGEST = 1000


@dataclass(frozen=True)
class ResourceReport:
    """One watched resource, or list. Immutable; any thread.

    :param name: its URI; for a list ``"catalog"``, ``"tools"`` or ``"prompts"``.
    :param is_list: whether it is a list.
    :param kept_by: ``"notices"``, ``"polling"`` or ``"nothing"``.
    :param condition: ``"current"``, ``"stale"``, ``"missing"`` (the server says that there is none) or ``"unread"``.
    :param age: of the copy, in seconds; None if there is none.
    :param version: a digest of the copy; None if there is none.
    :param read_at: when the read began that brought the copy (UTC); None if there is none.
    :param error: why there is no copy, or no newer one; None if nothing went wrong.
    :param too_old: whether the copy is older than ``max_stale``.
    """

    name: str
    is_list: bool
    kept_by: str
    condition: str
    age: Optional[float] = None
    version: Optional[str] = None
    read_at: Optional[datetime.datetime] = None
    error: Optional[str] = None
    too_old: bool = False

    def to_json(self) -> Dict[str, Any]:
        """Return it as plain values."""
        return {
            "name": self.name,
            "is_list": self.is_list,
            "kept_by": self.kept_by,
            "condition": self.condition,
            "age": None if self.age is None else round(self.age, 3),
            "version": self.version,
            "read_at": None if self.read_at is None else self.read_at.isoformat(),
            "error": self.error,
        }


@dataclass(frozen=True)
class ServerReport:
    """One server, and what is watched there. Immutable; any thread.

    :param alias: its name in the settings.
    :param health: one of the words of this module.
    :param where: its address or command, without what may be secret in it.
    :param era: ``"modern"`` or ``"legacy"``; None if that is not known yet.
    :param protocol_version: the revision that is spoken; None if that is not known yet.
    :param mode: what keeps the watched resources current: ``"subscriptions/listen"``, ``"resources/subscribe"``,
        ``"list notifications"``, one of these with ``" and polling"``, ``"polling"`` or ``"nothing"``.
    :param status: of its watches; None if there are none.
    :param resources: what is watched.
    :param error: why there is no client; None if there is one.
    """

    alias: str
    health: str
    where: str = ""
    era: Optional[str] = None
    protocol_version: Optional[str] = None
    mode: str = "nothing"
    status: Optional[Status] = None
    resources: Tuple[ResourceReport, ...] = ()
    error: Optional[str] = None

    @property
    def state(self) -> str:
        """The state of its watches; ``"unwatched"`` if there are none, ``"misconfigured"`` if there is no client."""
        if self.error is not None:
            return "misconfigured"
        return UNWATCHED if self.status is None else self.status.state.value

    def to_json(self) -> Dict[str, Any]:
        """Return it as plain values."""
        document: Dict[str, Any] = {
            "alias": self.alias,
            "health": self.health,
            "where": self.where,
            "era": self.era,
            "protocol_version": self.protocol_version,
            "mode": self.mode,
        }
        document.update((self.status or Status(State.CONNECTING)).to_json())
        document.update(state=self.state, resources=[resource.to_json() for resource in self.resources])
        if self.error is not None:
            document["last_error"] = self.error
        elif document["last_error"] is not None:
            document["last_error"] = _short(document["last_error"])
        return document


@dataclass(frozen=True)
class Report:
    """All clients of one process at one moment. Immutable; any thread.

    :param servers: them, in the order of the settings.
    :param made_at: when, in seconds since 1970.
    :param pid: the process.
    """

    servers: Tuple[ServerReport, ...]
    made_at: float
    pid: int

    @property
    def health(self) -> str:
        """The worst of all; :data:`OK` if nothing is watched."""
        found = [server.health for server in self.servers]
        worst = next((word for word in _WORST_FIRST if word in found), OK)
        return OK if worst == UNWATCHED else worst

    def health_document(self) -> Dict[str, Any]:
        """Return what may be told to everybody: no addresses, no URIs, no errors."""
        return {"status": self.health, "servers": {server.alias: server.health for server in self.servers}}

    def to_json(self) -> Dict[str, Any]:
        """Return it as plain values."""
        made_at = datetime.datetime.fromtimestamp(self.made_at, datetime.timezone.utc)
        return {
            "status": self.health,
            "made_at": made_at.isoformat(timespec="milliseconds"),
            "pid": self.pid,
            "servers": [server.to_json() for server in self.servers],
        }


def report(clients: Clients) -> Report:
    """Return how the clients of this process are doing. Starts those that have not been used yet, and waits for nothing."""
    return Report(tuple(_server(clients, alias) for alias in clients.aliases), time.time(), os.getpid())


def _server(clients: Clients, alias: str) -> ServerReport:
    try:
        client = clients[alias]
        max_stale = clients.settings(alias).max_stale
    except (SettingsError, MCPSyncError) as error:
        return ServerReport(alias, FAILING, error=_short(str(error)))
    watches = client.watches
    status = _together([watch.status for watch in watches])
    resources = tuple(_resources(watches, max_stale))
    return ServerReport(
        alias,
        _health(resources),
        _without_secrets(client),
        client.era,
        None if client.era is None else client.protocol_version,
        _mode(status),
        status,
        resources,
    )


def _together(found: List[Status]) -> Optional[Status]:
    """One status for all watches of a client, which share a stream."""
    if not found:
        return None
    lists = {}
    for name in _LISTS.values():
        lists[name] = next((how for how in (getattr(status, name) for status in found) if how is not None), None)
    first = found[0]
    return Status(
        first.state,
        frozenset().union(*(status.covered for status in found)),
        frozenset().union(*(status.uncovered for status in found)),
        lists["catalog"],
        first.last_contact,
        first.last_error,
        first.last_ending,
        first.reconnects,
        first.gaps,
        lists["tools"],
        lists["prompts"],
        first.notified_by,
    )


def _mode(status: Optional[Status]) -> str:
    if status is None:
        return "nothing"
    ways = []
    lists = [how for how in (status.catalog, status.tools, status.prompts) if how is not None]
    if status.covered or "listen" in lists:
        if status.notified_by == "subscribe":
            ways.append("resources/subscribe" if status.covered else "list notifications")
        else:
            ways.append("subscriptions/listen")
    if status.state in (State.LIVE, State.POLLING) and (status.uncovered or "poll" in lists):
        ways.append("polling")
    return " and ".join(ways) or "nothing"


def _resources(watches: Tuple[Watch, ...], max_stale: Optional[float]) -> List[ResourceReport]:
    found: Dict[Tuple[bool, str], ResourceReport] = {}
    for watch in watches:
        status = watch.status
        for uri in watch.uris:
            kept_by = _KEPT_BY[status.mode_of(uri)]
            found.setdefault((False, uri), _resource(uri, False, kept_by, watch.held(uri), max_stale))
        for name in watch.lists:
            kind = _LISTS[name]
            kept_by = _KEPT_BY[getattr(status, kind) or "none"]
            found.setdefault((True, kind), _resource(kind, True, kept_by, watch.held(kind=kind), max_stale))
    return list(found.values())


def _resource(name: str, is_list: bool, kept_by: str, held: Held, max_stale: Optional[float]) -> ResourceReport:
    error = None if held.error is None else _short(str(held.error))
    result = held.result
    if result is None:
        missing = isinstance(held.error, ResourceNotFound)
        return ResourceReport(name, is_list, kept_by, "missing" if missing else "unread", error=error)
    return ResourceReport(
        name,
        is_list,
        kept_by,
        "current" if held.current else "stale",
        result.age,
        result.version,
        result.read_at,
        error,
        not held.current and max_stale is not None and result.age > max_stale,
    )


def _health(resources: Tuple[ResourceReport, ...]) -> str:
    if not resources:
        return UNWATCHED
    if any(resource.condition == "unread" or resource.too_old for resource in resources):
        return FAILING
    return OK if all(resource.condition == "current" for resource in resources) else DEGRADED


def _without_secrets(client: Client) -> str:
    """Where the server is. Queries of URLs and arguments of commands may be keys."""
    parts = urlsplit(client.where)
    if parts.scheme in ("http", "https"):
        return urlunsplit((parts.scheme, parts.netloc, parts.path, "…" if parts.query else "", ""))
    words = client.where.split()
    return " ".join(words[:2] + ["…"] if len(words) > 2 else words)


def _short(text: str) -> str:
    """What a server had a hand in is as long as it likes."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def clean(text: str) -> str:
    """Return text for one line: what is not printable is shown as an escape sequence, not obeyed."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
