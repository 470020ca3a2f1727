"""One modern server as a test holds it: its process, its documents, and the strings by which a test moves it."""
import shutil

from . import wire
from .environments import node_environment, python_environment
from .served import SERVERS, Served

CONFIG = "docs://service/config"
README = "docs://service/readme"
SLOW = Served.slow
GUIDE = "docs://guides/install"
MISSING = "docs://service/missing"

TEXTS = {
    CONFIG: "retries = 3",
    README: "# The service",
    "docs://service/changelog": "1.0: first version",
    "docs://service/limits": "100 requests a minute",
    "docs://service/contacts": "Ask in the hall: Grüße, 您好",
    SLOW: "slow, first edition",
    GUIDE: "Unpack it.",
}
LISTED = [uri for uri in TEXTS if uri != GUIDE]

DEAF_KIND = "fastmcp"
FASTMCP = ("fastmcp", "fastmcp==4.2.*")
OFFICIAL_PYTHON = ("official-python", "mcp==2.3.*")
OFFICIAL_TYPESCRIPT = ("official-typescript", "@modelcontextprotocol/server@2.4.0", "zod@^4.2.0")

#: The environment of each.
PACKAGES = {
    "official-python": OFFICIAL_PYTHON,
    "fastmcp-listening": FASTMCP,
    "official-typescript": OFFICIAL_TYPESCRIPT,
    DEAF_KIND: FASTMCP,
}
#: What distinguishes it, for people, where its version does not.
FACES = {"fastmcp-listening": "listening added"}
KINDS = list(PACKAGES)
LISTENING_KINDS = [kind for kind in KINDS if kind != DEAF_KIND]


def typescript_command(directory, *arguments):
    """:returns: what starts the server of ``official_typescript.mjs``, from a copy in ``directory``."""
    node, modules = node_environment(*OFFICIAL_TYPESCRIPT)
    # Node looks for packages beside the script, wherever it was started from.
    script = directory / "official_typescript.mjs"
    shutil.copy(str(SERVERS / script.name), str(script))
    (directory / "node_modules").symlink_to(modules)
    return [str(node), str(script)] + list(arguments)


class RealServer(Served):
    """A modern server that others wrote, over streamable HTTP. One test at a time; any thread.

    :param kind: one of ``KINDS``.
    :param directory: an empty directory for its documents and its log.
    :param port: where it listens; None for a port of its own.
    """

    def __init__(self, kind, directory, port=None):
        super().__init__(directory, port)
        self.kind = kind
        self.listens = kind in LISTENING_KINDS
        self.url = "http://127.0.0.1:{}/mcp".format(self.port)
        self._command = self._prepare()
        self._write(TEXTS)

    def _prepare(self):
        arguments = [str(self.port), str(self.state)]
        if self.kind == "official-typescript":
            return typescript_command(self.directory, *arguments)
        python = str(python_environment(*PACKAGES[self.kind]))
        if self.kind == "official-python":
            return [python, str(SERVERS / "official_python.py")] + arguments
        return [python, str(SERVERS / "fastmcp_server.py")] + arguments + (["--listen"] if self.listens else [])

    def _knock(self):
        wire.call(self.url, "server/discover")

    def ready_for_next_test(self):
        """The documents as they were in the beginning, and a process that holds nothing of an earlier test."""
        self._forget_controls()
        self._write(TEXTS)
        if self._catalog_changed or not self.alive:
            self._catalog_changed = False
            self.restart()

    # What is in it.

    def set_text(self, uri, text):
        """Change a document by a tool of the server, which announces the change."""
        wire.call_tool(self.url, "set_text", uri=uri, text=text)

    def touch(self, uri):
        """Let the server announce a change without making one."""
        wire.call_tool(self.url, "touch", uri=uri)

    def add_document(self, uri, text):
        """Add to the catalog by a tool of the server, which announces that."""
        self._catalog_changed = True
        wire.call_tool(self.url, "add_document", uri=uri, text=text)

    def count_reads(self, uri):
        """How many reads of ``uri`` have reached this life of the server."""
        return int(wire.call_tool(self.url, "count_reads", uri=uri))
