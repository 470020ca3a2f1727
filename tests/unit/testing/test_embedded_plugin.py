"""The pytest fixture, and what the package may import."""

import ast
import os
import subprocess
import sys

import mcp_sync.testing

pytest_plugins = "pytester"

PACKAGE = os.path.dirname(mcp_sync.testing.__file__)


def test_the_fixture_is_a_started_server_that_is_stopped_afterwards(pytester):
    pytester.makepyfile("""
        import socket
        import pytest

        ports = []

        def test_started(mcp_server):
            ports.append(mcp_server.port)
            socket.create_connection(("127.0.0.1", mcp_server.port), 5).close()
            assert mcp_server.url.startswith("http://127.0.0.1:")

        def test_stopped():
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", ports[0]), 5)
    """)
    # The installed package brings the plugin under its own name; this test takes it from here.
    result = pytester.runpytest_inprocess("-p", "no:mcp_sync", "-p", "mcp_sync.testing.pytest_plugin")
    result.assert_outcomes(passed=2)


STANDARD = {
    "abc", "argparse", "base64", "binascii", "collections", "dataclasses", "hashlib", "http.client", "inspect", "itertools",
    "json", "logging", "os", "queue", "re", "selectors", "signal", "socket", "struct", "sys", "threading", "time", "typing",
    "urllib.parse", "uuid", "weakref", "zlib",
}


def _imports(path):
    with open(path, encoding="utf-8") as source:
        tree = ast.parse(source.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield 0, name.name
        elif isinstance(node, ast.ImportFrom):
            for name in [node.module] if node.module else [name.name for name in node.names]:
                yield node.level, name


def test_the_package_needs_the_standard_library_only():
    for folder, _, names in os.walk(PACKAGE):
        depth = len(os.path.relpath(folder, PACKAGE).split(os.sep)) if folder != PACKAGE else 0
        for name in names:
            if not name.endswith(".py"):
                continue
            for level, module in _imports(os.path.join(folder, name)):
                if level:
                    assert level <= depth + 1, (name, module)  # nothing of the rest of the library
                else:
                    allowed = STANDARD | ({"pytest"} if name == "pytest_plugin.py" else set())
                    assert module in allowed, (name, module)


def test_modules_import_in_one_direction():
    # The order in which the package's docstring names them.
    order = [
        "settings", "waiting", "protocol", "wire", "request", "streams", "resumption", "questions", "session",
        "sessions", "answer", "outlet", "call", "values", "tasks", "capabilities", "ending", "invocation",
        "functions", "runs", "resources", "skills", "param_headers", "task_methods", "methods", "modern", "legacy",
        "faults", "control", "recorder", "exchange", "probe", "face", "streamable", "connection", "turns", "channel",
        "sse", "relay", "process", "acceptor", "lifecycle", "holdings", "offering", "scripting", "server",
        "stdio_server", "stdio", "pytest_plugin",
    ]
    present = {name[:-3] for name in os.listdir(PACKAGE) if name.endswith(".py")} - {"__init__"} | {"faults"}
    assert present == set(order)
    for name in order:
        if name == "faults":
            continue
        for level, module in _imports(os.path.join(PACKAGE, name + ".py")):
            if level:
                assert order.index(module) < order.index(name), (name, module)


def test_the_process_between_is_a_program_of_its_own():
    # It is started without site-packages, by whatever Python the client's environment has.
    assert all(level == 0 for level, _ in _imports(os.path.join(PACKAGE, "relay.py")))


def test_pytest_is_not_imported_with_the_server():
    code = "import sys, mcp_sync.testing; sys.exit('pytest' in sys.modules)"
    assert subprocess.call([sys.executable, "-c", code]) == 0
