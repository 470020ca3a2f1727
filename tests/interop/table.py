"""The README's table of the servers that work: what these tests run, and hold the client against, in rows."""
import re
from typing import NamedTuple

from . import old_server, real_server, tool_server
from .wire import REVISION

TRANSPORTS = {"http": "HTTP", "sse": "HTTP+SSE", "stdio": "stdio"}
KEEPING = {
    "listen": "``subscriptions/listen``",
    "subscribe": "``resources/subscribe``",
    "poll": "polling",
    "nothing": "nothing: it has tools only",
}
HEADING = ("server", "over", "revision", "what keeps resources current")


class Row(NamedTuple):
    """What is known of one server.

    :param package: its name in its index, ``PyPI`` or ``npm``.
    :param version: as the tests ask for it, without what is left open.
    :param face: what distinguishes it, where the version does not.
    :param transports: the keys of ``TRANSPORTS`` over which it is reached.
    :param revision: what is spoken with it in the end.
    :param keeping: a key of ``KEEPING``.
    """

    package: str
    version: str
    face: str
    transports: tuple
    revision: str
    keeping: str

    def cells(self):
        server = "%s %s" % (self.package, self.version) + (", " + self.face if self.face else "")
        over = ", ".join(name for key, name in TRANSPORTS.items() if key in self.transports)
        return server, over, self.revision, KEEPING[self.keeping]


def package_of(requirement):
    """Return the package and the version of a requirement of pip or npm."""
    found = re.match(r"(?P<name>@?[^@=]+)(?P<pin>==|@)(?P<version>[0-9.]*[0-9])(\.\*)?$", requirement)
    assert found, "not a package of one version: %s" % requirement
    index = "PyPI" if found.group("pin") == "==" else "npm"
    return "%s ``%s``" % (index, found.group("name")), found.group("version")


def every_server():
    """Yield a row for each server and transport that the tests run."""
    for kind in real_server.KINDS:
        keeping = "listen" if kind in real_server.LISTENING_KINDS else "poll"
        face = real_server.FACES.get(kind, "")
        yield Row(*package_of(real_server.PACKAGES[kind][1]), face, ("http",), REVISION, keeping)
    for kind in old_server.KINDS.values():
        package = package_of(kind.packages[1])
        yield Row(*package, kind.face, (kind.transport,), kind.revision, kind.keeping)
    for program in tool_server.PROGRAMS.values():
        keeping = "poll" if program.has_resources else "nothing"
        yield Row(*package_of(program.packages[1]), "", ("stdio",), program.revision, keeping)


def rows():
    """Return the rows of the table: one for all transports of a server, its versions together, the newest first."""
    found = {}
    for row in every_server():
        same = row._replace(transports=())
        found[same] = found.get(same, ()) + row.transports
    merged = [row._replace(transports=transports) for row, transports in found.items()]
    packages = list(dict.fromkeys(row.package for row in merged))
    newest = {row: [-int(part) for part in row.version.split(".")] for row in merged}
    return sorted(merged, key=lambda row: (packages.index(row.package), newest[row], bool(row.face)))


def table():
    """Return the table, as reStructuredText."""
    lines = [HEADING] + [row.cells() for row in rows()]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADING))]
    rule = "  ".join("=" * width for width in widths)
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    return "\n".join([rule, text[0], rule] + text[1:] + [rule]) + "\n"
