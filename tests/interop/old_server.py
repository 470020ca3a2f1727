"""Servers of the legacy eras, and all that are started over standard input and output, as a test holds them.

All serve the same documents. Most have them in a JSON file; ``server-everything`` gets a folder of its own to serve, in
the place of its documentation.
"""
import json
import os
import shutil
import signal
import time
import uuid
from typing import NamedTuple, Optional, Tuple

from mcp_sync import Client, Command
from mcp_sync._deadline import Deadline

from .environments import clean_environ, node_environment, python_environment
from .real_server import OFFICIAL_PYTHON, OFFICIAL_TYPESCRIPT, TEXTS, typescript_command
from .served import MARK, SERVERS, Served, listening, marked, pause

MCP_1_30 = ("mcp-1.30", "mcp==1.30.*")
# With libraries of their time: the FastMCP class of these two imports what pydantic has no more since 2.13, and with a
# newer anyio the whole server of 1.8 dies of the end of a session.
MCP_1_8 = ("mcp-1.8", "mcp==1.8.*", "pydantic<2.13", "anyio<4.10")
MCP_1_2 = ("mcp-1.2", "mcp==1.2.*", "pydantic<2.13")
EVERYTHING = ("server-everything", "@modelcontextprotocol/server-everything@2026.8.31")

FILES = "demo://resource/static/document/"

# In seconds.
NEVER = 3600.0
OFTEN = 0.3


class Kind(NamedTuple):
    """One server, as one transport reaches it.

    :param program: ``fastmcp`` of the Python SDK 1.x, ``mcpserver`` of 2.x, ``typescript``, or ``everything``.
    :param packages: its environment.
    :param transport: ``http``, ``sse`` or ``stdio``.
    :param revision: what is spoken with it in the end.
    :param keeping: how it is kept current: ``listen``, ``subscribe`` or ``poll``.
    :param era: what the client is told of it; only where it would find out something else.
    :param sessions: whether it has sessions that can be forgotten.
    :param option: what else its program is started with.
    :param face: what distinguishes it, for people, where its version and its transport do not.
    """

    program: str
    packages: Tuple[str, ...]
    transport: str
    revision: str
    keeping: str
    era: str = "auto"
    sessions: bool = True
    option: Optional[str] = None
    face: str = ""


_SUBSCRIBING = {"option": "--subscribe", "face": "subscriptions added"}
_LEGACY = {"era": "legacy", "face": '``era="legacy"``'}

KINDS = {
    "mcp-1.30-http": Kind("fastmcp", MCP_1_30, "http", "2025-11-25", "poll"),
    "mcp-1.30-stdio": Kind("fastmcp", MCP_1_30, "stdio", "2025-11-25", "poll"),
    "mcp-1.30-subscribing-http": Kind("fastmcp", MCP_1_30, "http", "2025-11-25", "subscribe", **_SUBSCRIBING),
    "mcp-1.30-subscribing-stdio": Kind("fastmcp", MCP_1_30, "stdio", "2025-11-25", "subscribe", **_SUBSCRIBING),
    "mcp-1.8-http": Kind("fastmcp", MCP_1_8, "http", "2024-11-05", "poll"),
    "mcp-1.2-sse": Kind("fastmcp", MCP_1_2, "sse", "2024-11-05", "poll"),
    "mcp-1.2-stdio": Kind("fastmcp", MCP_1_2, "stdio", "2024-11-05", "poll", "legacy"),
    "mcp-2.3-legacy-http": Kind("mcpserver", OFFICIAL_PYTHON, "http", "2025-11-25", "poll", **_LEGACY),
    "mcp-2.3-stdio": Kind("mcpserver", OFFICIAL_PYTHON, "stdio", "2026-07-28", "listen", sessions=False),
    "typescript-legacy-http": Kind("typescript", OFFICIAL_TYPESCRIPT, "http", "2025-11-25", "poll", sessions=False, **_LEGACY),
    "typescript-stdio": Kind("typescript", OFFICIAL_TYPESCRIPT, "stdio", "2026-07-28", "listen", sessions=False),
    "everything-http": Kind("everything", EVERYTHING, "http", "2025-11-25", "subscribe"),
    "everything-sse": Kind("everything", EVERYTHING, "sse", "2025-11-25", "subscribe"),
    "everything-stdio": Kind("everything", EVERYTHING, "stdio", "2025-11-25", "subscribe"),
}
ALL = list(KINDS)


def kinds(**wanted):
    """:returns: the names of the kinds whose fields have these values."""
    return [name for name in ALL if all(getattr(KINDS[name], field) == wanted[field] for field in wanted)]


class OldServer(Served):
    """A server of a legacy era, or one on standard input and output. One test at a time; any thread.

    :param name: one of ``KINDS``.
    :param directory: an empty directory for its documents and its log.
    :param port: where it listens, if it does; None for a port of its own.
    """

    def __init__(self, name, directory, port=None):
        super().__init__(directory, port)
        self.name = name
        self.kind = KINDS[name]
        self.stdio = self.kind.transport == "stdio"
        self.told = self.kind.keeping != "poll"
        self.mark = uuid.uuid4().hex
        self.files = None
        if self.kind.packages == MCP_1_8:
            # Before 1.12, an exception in one session (a client that goes at a bad moment is enough) ended the task group of
            # all sessions, and every further request was answered 500.
            self._last_words = "Task group is not initialized"
        if self.kind.program == "everything":
            self.texts = {FILES + uri.rsplit("/", 1)[1] + ".md": text for uri, text in TEXTS.items()}
            prefix, suffix = FILES, ".md"
        else:
            self.texts = dict(TEXTS)
            prefix, suffix = "docs://service/", ""
        self.config, self.readme, self.limits, self.missing = (
            prefix + word + suffix for word in ("config", "readme", "limits", "missing")
        )
        #: What :meth:`add_document` adds.
        self.added = "demo://resource/session/added" if self.kind.program == "everything" else prefix + "added"
        self._command = self._prepare()
        #: What a client is given.
        self.target = Command(self._command, env=self._environment()) if self.stdio else self._url()
        self._write(self.texts)

    def _url(self):
        return "http://127.0.0.1:{}/{}".format(self.port, "sse" if self.kind.transport == "sse" else "mcp")

    def _environment(self):
        """What the child of a client has in its environment beside what this process has."""
        unwanted = {name: None for name in set(os.environ) - set(clean_environ())}
        return dict(unwanted, PYTHONDONTWRITEBYTECODE="1", **{MARK: self.mark})

    def _prepare(self):
        kind, port = self.kind, "stdio" if self.stdio else str(self.port)
        if kind.program == "everything":
            return self._prepare_everything()
        if kind.program == "typescript":
            return typescript_command(self.directory, port, str(self.state))
        python = str(python_environment(*kind.packages))
        if kind.program == "mcpserver":
            return [python, str(SERVERS / "official_python.py"), port, str(self.state)]
        transport = {"http": "streamable-http"}.get(kind.transport, kind.transport)
        command = [python, str(SERVERS / "old_fastmcp.py"), transport, str(self.port), str(self.state)]
        return command + ([kind.option] if kind.option else [])

    def _prepare_everything(self):
        node, modules = node_environment(*self.kind.packages)
        package = modules / "@modelcontextprotocol" / "server-everything"
        # A copy, because it serves the files of a folder beside its own code.
        shutil.copytree(str(package / "dist"), str(self.directory / "dist"))
        shutil.copy(str(package / "package.json"), str(self.directory))
        (self.directory / "node_modules").symlink_to(modules)
        self.files = self.directory / "dist" / "docs"
        script = [str(self.directory / "dist" / "index.js")]
        if self.stdio:
            return [str(node)] + script + ["stdio"]
        self._variables = {"PORT": str(self.port)}
        # It would outlive a killed test run: it does not look at its standard input.
        ends = "data:text/javascript,process.stdin.on('end',()=>process.exit(3)).resume()"
        name = {"http": "streamableHttp", "sse": "sse"}[self.kind.transport]
        return [str(node), "--import", ends] + script + [name]

    # For a client.

    def connected(self, **options):
        """:returns: a client of it, which is told no more of it than its address, or its command."""
        return Client(self.target, **dict({"era": self.kind.era, "poll_interval": self.poll_interval}, **options))

    @property
    def poll_interval(self):
        """So long where the server tells of changes that only what it tells can be the reason why one is seen."""
        return NEVER if self.told else OFTEN

    # Life and death.

    def start(self):
        if not self.stdio:
            super().start()

    def _knock(self):
        listening(self.port)

    def kill(self):
        """SIGKILL: no goodbye to anybody. Over stdio, to whatever the clients have started."""
        if self.stdio:
            for pid in self.pids():
                os.kill(pid, signal.SIGKILL)
        else:
            super().kill()

    def pids(self):
        """The processes that clients have started and that live."""
        return marked(self.mark)

    def wait_until_gone(self, timeout=10.0):
        """Return once no process that a client has started lives."""
        give_up = time.monotonic() + timeout
        while self.pids():
            assert time.monotonic() < give_up, "still there: {}".format(self.pids())
            pause()

    def ready_for_next_test(self):
        """The documents as they were in the beginning, and a process that holds nothing of an earlier test."""
        self._forget_controls()
        self._write(self.texts)
        if not self.stdio and (self._catalog_changed or not self.alive or self.broke):
            self.restart()
        self._catalog_changed = False

    # What is in it.

    def write_state(self, uri, text):
        if self.files is None:
            super().write_state(uri, text)
            return
        path = self._path(uri)
        self._catalog_changed = self._catalog_changed or text is None or not path.exists()
        if text is None:
            path.unlink()
        else:
            unfinished = self.directory / "documents.unfinished"
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(path)

    def _write(self, texts):
        if self.files is None:
            super()._write(texts)
            return
        for path in self.files.iterdir():
            path.unlink()
        for uri, text in texts.items():
            self._path(uri).write_text(text, encoding="utf-8")
        (self.files / "instructions.md").write_text("Documents that change while you look at them.", encoding="utf-8")

    def _path(self, uri):
        return self.files / uri[len(FILES):]

    @property
    def listed(self):
        """The URIs of the catalog."""
        if self.files is not None:
            return set(self.texts) | {FILES + "instructions.md"}
        return {uri for uri in self.texts if not uri.startswith("docs://guides/")}

    def change(self, client, uri, text):
        """Change a document, and let the server announce it if it can."""
        self.write_state(uri, text)
        if self.told:
            self.announce(client, uri)

    def announce(self, client, uri):
        """Let the server say that this document has changed, whether it has or not, to the session of this client."""
        if self.files is None:
            call_tool(client, "touch", uri=uri)
        elif call_tool(client, "toggle-subscriber-updates").startswith("Stopped"):
            # It says so at once when it is switched on, and then every five seconds.
            call_tool(client, "toggle-subscriber-updates")

    def add_document(self, client):
        """Add ``added`` to the catalog by a tool of the server, which announces that if it can."""
        self._catalog_changed = True
        if self.files is None:
            call_tool(client, "add_document", uri=self.added, text="new")
        else:
            call_tool(client, "gzip-file-as-resource", name="added", data="data:text/plain,new")

    # What happened, as far as the server can be made to tell.

    @property
    def counts_reads(self):
        return self.files is None

    @property
    def counts_sessions(self):
        return self.files is None and self.kind.sessions

    def count_sessions(self):
        """How many sessions have begun since the test did."""
        return self._notes().count("session")

    def count_reads(self, uri):
        """How many reads of ``uri`` have come since the test began."""
        return self._notes().count("read " + uri)

    def _notes(self):
        path = self.directory / (self.state.name + ".notes")
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def call_tool(client, tool, **arguments):
    """Call a tool in the client's own session. :returns: the first text of the answer, or None if there is none."""
    params = {"name": tool, "arguments": arguments}
    result = client._connection.call("tools/call", params, deadline=Deadline(10.0))
    text = result["content"][0].get("text")
    assert not result.get("isError"), "the tool {} failed: {}".format(tool, text)
    return text


def as_json(server):
    """:returns: all that a program of ``programs/`` needs for a client of that server."""
    target = server.target
    if server.stdio:
        target = {"argv": list(target.argv), "env": dict(target.env)}
    announce = None
    if server.told:
        announce = {"name": "toggle-subscriber-updates", "arguments": {}}
        if server.files is None:
            announce = {"name": "touch", "arguments": {"uri": server.config}}
    told = {"target": target, "era": server.kind.era, "poll_interval": server.poll_interval, "announce": announce}
    return json.dumps(told)
