"""A report as one page of HTML: no script, no file beside it, readable on a phone and without colours."""

import base64
import datetime
import hashlib
from html import escape
from string import Template
from typing import Iterable, List, Optional, Tuple

from .. import State, Status
from .report import Report, ResourceReport, ServerReport, clean

__all__ = ["CONTENT_SECURITY_POLICY", "MOST_ROWS", "page"]

#: How many resources of one server are shown; those that need attention come first. The JSON has all.
MOST_ROWS = 200

_STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --ground: #ffffff; --soft: #59636e; --line: #d1d9e0; --card: #f6f8fa;
  --good: #116329; --warn: #7d4e00; --bad: #a40e26; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --ground: #0d1117; --soft: #9198a1; --line: #3d444d;
  --card: #151b23; --good: #4ac26b; --warn: #e3b341; --bad: #ff8182; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 70rem; color: var(--text); background: var(--ground);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.15rem; margin: 0; }
header, section { margin-bottom: 1rem; }
section { border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; background: var(--card); }
.top { display: flex; flex-wrap: wrap; gap: .25rem .75rem; align-items: baseline; }
.soft { color: var(--soft); margin: 0; }
.good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); }
.word { font-weight: 600; white-space: nowrap; }
code { font: .9em/1.5 ui-monospace, monospace; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(13rem, 100%), 1fr)); gap: .5rem 1rem; margin: .75rem 0; }
dt { color: var(--soft); font-size: .85rem; } dd { margin: 0; }
.wide { grid-column: span 2; } .all { grid-column: 1 / -1; }
table { width: 100%; border-collapse: collapse; }
caption { text-align: left; color: var(--soft); font-size: .85rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-top: 1px solid var(--line);
  font-weight: 400; }
thead th { color: var(--soft); font-size: .85rem; border-top: 0; }
td.narrow { white-space: nowrap; }
@media (max-width: 45rem) {
  dl { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, caption, tbody, tr, th, td { display: block; }
  tr { border-top: 1px solid var(--line); padding: .5rem 0; }
  th, td { border: 0; padding: .1rem 0; } td.narrow { white-space: normal; }
  td[data-label]::before { content: attr(data-label) ": "; color: var(--soft); }
}
"""

_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode("utf-8")).digest()).decode("ascii")

#: Nothing but this page's own style.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" % _HASH
)

_PAGE = Template(
    """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta http-equiv="refresh" content="$refresh">
<title>$title</title>
<style>$style</style>
</head>
<body>
<header>
<div class="top"><h1>MCP servers</h1> $health</div>
<p class="soft">$summary · $when · process $pid · refreshes every $refresh s · <a href="$json">as JSON</a></p>
</header>
<main>
$servers
</main>
</body>
</html>
"""
)

_SERVER = Template(
    """<section id="$identity" data-alias="$alias" data-state="$state">
<div class="top"><h2>$alias</h2> $health</div>
<p class="soft"><code>$where</code></p>
<dl>
$facts
</dl>
$resources
</section>"""
)

_TABLE = Template(
    """<table>
<caption>$caption</caption>
<thead><tr><th scope="col">Resource</th><th scope="col">Copy</th><th scope="col">Kept current by</th>\
<th scope="col">Age</th><th scope="col">Version</th></tr></thead>
<tbody>
$rows
</tbody>
</table>"""
)

# A sign and a word for each, so that neither needs its colour. (Escapes, because some of these signs are coloured pictures
# on some systems unless the last one asks for text.)
_WORDS = {
    "ok": ("good", "\u2713", "ok"),
    "degraded": ("warn", "\u25b2", "degraded"),
    "failing": ("bad", "\u2715", "failing"),
    "unwatched": ("soft", "\u25cb", "not watched"),
    "current": ("good", "\u2713", "current"),
    "stale": ("warn", "\u25b2", "stale"),
    "missing": ("warn", "\u2013", "missing"),
    "unread": ("bad", "\u2715", "never read"),
    "live": ("good", "\u25cf", "live"),
    "polling": ("good", "\u21bb", "polling"),
    "connecting": ("warn", "\u2026", "connecting"),
    "interrupted": ("bad", "\u25b2", "interrupted"),
    "closed": ("soft", "\u25cb", "closed"),
    "misconfigured": ("bad", "\u2715", "misconfigured"),
}
_ORDER = {"unread": 0, "missing": 1, "stale": 2, "current": 3}


def page(report: Report, refresh: int = 5, json_address: str = "status.json") -> str:
    """Return the page.

    :param report: what to show.
    :param refresh: seconds after which a browser loads it again.
    :param json_address: where the same is as JSON, for a link.
    """
    servers = "\n".join(_server(server, number, report.made_at) for number, server in enumerate(report.servers))
    count = len(report.servers)
    return _PAGE.substitute(
        refresh=max(1, int(refresh)),
        title="MCP servers: %s" % _text(report.health),
        style=_STYLE,
        health=_word(report.health),
        summary="1 server" if count == 1 else "%d servers" % count,
        when=_time(report.made_at),
        pid=report.pid,
        json=escape(json_address),
        servers=servers or '<p class="soft">The settings name no servers.</p>',
    )


def _text(value: str) -> str:
    """Text that a server may have had a hand in: nothing of it is markup, and nothing turns the line around."""
    return escape(clean(value))


def _word(name: str) -> str:
    colour, sign, word = _WORDS[name]
    return '<span class="word %s"><span aria-hidden="true">%s</span> %s</span>' % (colour, sign, word)


def _time(moment: float) -> str:
    told = datetime.datetime.fromtimestamp(moment, datetime.timezone.utc)
    return '<time datetime="%s">%s</time>' % (told.isoformat(), told.strftime("%Y-%m-%d %H:%M:%S UTC"))


def _duration(seconds: float) -> str:
    for limit, unit, name in ((120.0, 1.0, "s"), (7200.0, 60.0, "min"), (172800.0, 3600.0, "h")):
        if seconds < limit:
            return "%.0f %s" % (seconds / unit, name)
    return "%.0f days" % (seconds / 86400.0)


def _server(server: ServerReport, number: int, now: float) -> str:
    return _SERVER.substitute(
        identity="server-%d" % number,
        alias=_text(server.alias),
        state=_text(server.state),
        health=_word(server.health),
        where=_text(server.where),
        facts="\n".join(_fact(*fact) for fact in _facts(server, now)),
        resources=_table(server.resources),
    )


def _fact(name: str, value: str, width: str = "") -> str:
    return "<div%s><dt>%s</dt><dd>%s</dd></div>" % (' class="%s"' % width if width else "", name, value)


def _facts(server: ServerReport, now: float) -> Iterable[Tuple[str, ...]]:
    yield "State", _word(server.state)
    if server.error is None:
        yield "Era", _text(server.era or "not known yet")
        yield "Protocol revision", _text(server.protocol_version or "not known yet")
    status = server.status
    if status is not None:
        yield "Mode", _text(server.mode), "wide"
        yield "Covered by notices", _count(len(status.covered))
        yield "Not covered", _count(len(status.uncovered))
        yield "Reconnects", str(status.reconnects)
        yield "Gaps", str(status.gaps)
        yield "Last contact", _ago(status.last_contact, now), "wide"
        if status.last_ending is not None:
            yield "Last stream ended by", _text(status.last_ending)
    error = server.error or _last_error(status, server.resources)
    yield "Last error", "none" if error is None else '<span class="bad">%s</span>' % _text(error), "all"


def _last_error(status: Optional[Status], resources: Iterable[ResourceReport]) -> Optional[str]:
    if status is not None and status.last_error is not None and status.state is not State.CLOSED:
        return status.last_error[:1000]
    return next((resource.error for resource in resources if resource.error is not None), None)


def _count(number: int) -> str:
    return "1 URI" if number == 1 else "%d URIs" % number


def _ago(moment: Optional[float], now: float) -> str:
    return "never" if moment is None else "%s ago (%s)" % (_duration(max(0.0, now - moment)), _time(moment))


def _table(resources: Tuple[ResourceReport, ...]) -> str:
    if not resources:
        return '<p class="soft">Nothing is watched: resources are read when the site asks for them.</p>'
    rows = sorted(resources, key=lambda resource: _ORDER[resource.condition])  # stable: else the order of the settings
    caption = "Watched: %d" % len(rows)
    if len(rows) > MOST_ROWS:
        caption += "; shown are the first %d, those with trouble before the others" % MOST_ROWS
    return _TABLE.substitute(caption=caption, rows="\n".join(_row(row) for row in rows[:MOST_ROWS]))


def _row(resource: ResourceReport) -> str:
    name = "<em>%s</em>" % _text(resource.name) if resource.is_list else "<code>%s</code>" % _text(resource.name)
    cells: List[str] = ['<th scope="row">%s</th>' % name]
    copy = _word(resource.condition)
    if resource.error is not None:
        copy += '<br><span class="soft">%s</span>' % _text(resource.error)
    cells.append('<td data-label="Copy">%s</td>' % copy)
    cells.append('<td data-label="Kept current by" class="narrow">%s</td>' % _text(resource.kept_by))
    age = "–" if resource.age is None else _duration(resource.age)
    cells.append('<td data-label="Age" class="narrow">%s</td>' % age)
    cells.append('<td data-label="Version" class="narrow"><code>%s</code></td>' % _text(resource.version or "–"))
    return '<tr data-condition="%s">%s</tr>' % (resource.condition, "".join(cells))
