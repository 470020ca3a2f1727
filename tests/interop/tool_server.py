"""Programs that people have on their machines, and that offer tools and no resources, as a test holds them."""
import uuid
from typing import NamedTuple, Tuple

from mcp_sync import Command

from .environments import node_environment, python_environment
from .served import MARK, marked


class Program(NamedTuple):
    """One program, which a client starts.

    :param packages: its environment.
    :param revision: what is spoken with it in the end.
    :param has_resources: whether it says that it has some, if only an empty catalog.
    """

    packages: Tuple[str, ...]
    revision: str
    has_resources: bool


PROGRAMS = {
    "time of today": Program(("server-time", "mcp-server-time==2026.10.19", "tzdata"), "2026-07-28", True),
    "time of 2025": Program(("server-time", "mcp-server-time==2025.*", "mcp<2", "tzdata"), "2025-11-25", False),
    "filesystem": Program(
        ("server-filesystem", "@modelcontextprotocol/server-filesystem@2026.8.31"), "2025-11-25", False
    ),
}


class ToolServer:
    """A server that a client starts.

    :param name: one of ``PROGRAMS``.
    :param directory: the one that the filesystem server may read.
    """

    def __init__(self, name, directory):
        self.program = PROGRAMS[name]
        self.mark = uuid.uuid4().hex
        argv = self._filesystem(directory) if name == "filesystem" else self._time()
        self.command = Command(argv, env={"PYTHONPATH": None, "PYTHONWARNINGS": None, MARK: self.mark})

    def _time(self):
        return [str(python_environment(*self.program.packages)), "-m", "mcp_server_time", "--local-timezone", "UTC"]

    def _filesystem(self, directory):
        node, modules = node_environment(*self.program.packages)
        script = modules / "@modelcontextprotocol" / "server-filesystem" / "dist" / "index.js"
        return [str(node), str(script), str(directory)]

    def pids(self):
        """The processes that clients have started and that live."""
        return marked(self.mark)
