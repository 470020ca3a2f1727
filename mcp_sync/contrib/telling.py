"""What there is to tell at a terminal: contents, changes, status. For the commands of the frameworks."""

import datetime
import json
import time
from typing import Any, Iterator, List, Optional, Sequence, Union

from .. import Change, Client, MCPSyncError, TextResourceContents
from .clients import Clients
from .report import FAILING, Report, ServerReport, clean, report
from .settings import SettingsError

__all__ = ["ERRORS", "changes", "contents", "is_failing", "status", "status_lines"]

#: What the commands turn into one line for the user.
ERRORS = (MCPSyncError, SettingsError, ValueError)


def contents(client: Client, uri: str, stale_ok: bool = False) -> Union[str, bytes]:
    """Return what a resource holds: text if it is nothing but text, else bytes.

    :param stale_ok: whether an old copy is better than an error. (A new process has none.)
    :raises MCPSyncError: if it cannot be read.
    """
    result = client.read_resource(uri, stale_ok=stale_ok)
    if all(isinstance(part, TextResourceContents) for part in result.contents):
        return "".join(part.data.decode("utf-8", "surrogatepass") for part in result.contents)
    return b"".join(part.data for part in result.contents)


def changes(
    clients: Clients,
    alias: str,
    uris: Sequence[str],
    count: Optional[int] = None,
    timeout: float = 30.0,
    quiet_for: Optional[float] = None,
) -> Iterator[str]:
    """Yield a line for each resource as it is, and then for each change: time, kind, URI and version, with tabs between.

    :param alias: the server.
    :param uris: what to follow; what the settings have watched, if empty.
    :param count: end after so many changes; None for never.
    :param timeout: seconds that the first reads may take.
    :param quiet_for: end after so many seconds without a change; None for never.
    :raises ValueError: if there is nothing to follow.
    :raises MCPSyncError: if the server cannot be reached at the start. Later it is waited for.
    """
    if uris:
        watch: Any = clients[alias].watch(*uris)
    else:
        watch = clients.watch(alias)
        if watch is None:
            raise ValueError("nothing to watch: give URIs, or name some under 'watch' in the settings of %r" % alias)
    watch.wait_until_current(timeout=timeout)
    for uri in watch.uris:
        yield _line(Change("current", uri, None, watch.held(uri).result))
    told = 0
    if count is not None and count <= 0:
        return
    for change in watch.changes(timeout=quiet_for):
        yield _line(change)
        told += 1
        if told == count:
            return


def _line(change: Change) -> str:
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    version = "-" if change.current is None else change.current.version
    return "\t".join([now, change.kind, clean(change.uri or "(%s)" % change.kind), version])


def status(clients: Clients, wait: float) -> Report:
    """Return the status of all, which this process has just begun to watch.

    :param wait: how long to wait for that, in seconds, in all.
    """
    end = time.monotonic() + wait
    started = []
    for alias in clients.aliases:
        try:
            started.append(clients.watch(alias))
        except (SettingsError, MCPSyncError):
            pass  # the report says it
    for watch in started:
        if watch is not None:
            try:
                watch.wait_until_current(timeout=max(0.0, end - time.monotonic()))
            except MCPSyncError:
                pass  # likewise
    return report(clients)


def status_lines(found: Report, as_json: bool = False) -> List[str]:
    """Return a report as lines."""
    if as_json:
        return json.dumps(found.to_json(), indent=2).splitlines()
    lines = []
    for server in found.servers:
        lines.append("%s: %s" % (clean(server.alias), _summary(server)))
        for resource in server.resources:
            age = "" if resource.age is None else ", %.0f s old, version %s" % (resource.age, resource.version)
            error = "" if resource.error is None else " (%s)" % resource.error
            told = "  %s: %s%s, kept current by %s%s" % (resource.name, resource.condition, age, resource.kept_by, error)
            lines.append(clean(told))
    return lines or ["the settings name no servers"]


def _summary(server: ServerReport) -> str:
    if server.error is not None:
        return clean("misconfigured: " + server.error)
    parts = [server.health, server.where]
    if server.era is not None:
        parts.append("%s (%s)" % (server.era, server.protocol_version))
    if server.status is not None:
        parts.append("mode: " + server.mode)
        parts.append(str(server.status))
    return clean("; ".join(parts))


def is_failing(found: Report) -> bool:
    """Whether a command should say so with its exit code."""
    return found.health == FAILING
