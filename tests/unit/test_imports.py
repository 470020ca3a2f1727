"""The map of the package holds: files import only from rows below their own, and each dependency has one place."""

import ast
import importlib.util
import os
import subprocess
import sys
from typing import Dict, Iterator, List, Set, Tuple

import pytest

import mcp_sync

ROOT = os.path.dirname(os.path.abspath(mcp_sync.__file__))

#: From the bottom up. A name stands for a file, or for all files of a folder that have no row of their own; those of
#: one folder may import each other, as long as there is no circle.
ROWS: List[Set[str]] = [
    {"_gevent"},
    {"_uwsgi", "_value"},
    # Pure rules and values, and the few things that there is one of.
    {"_version", "errors", "_worker", "_fork", "_backoff", "freshness", "notices", "uris", "status"},
    {"_deadline", "_lazy", "jsonrpc", "_eventstream", "tracing", "elicitation", "templates", "frontmatter"},
    # What users receive, and how messages move.
    {"results.base", "transports.base"},
    {"results.kept", "_pending", "calling"},
    {"results.lists"},
    {"results", "transports._headers", "transports._options", "transports._guard"},
    {"transports._sockets", "transports._failures", "transports._body"},
    {"transports._pool", "transports._answer"},
    {"transports._exchange"},
    {"transports"},
    {"cache"},
    # What messages mean, and one server.
    {"eras.base"},
    {"eras"},
    {"sessions", "tool_headers", "schema"},
    {"negotiate"},
    {"connection"},
    {"inputs"},
    {"calls"},
    {"reads"},
    {"tools", "tasks", "skills"},
    # What keeps resources current.
    {"reader", "refresher", "watch", "listening"},
    {"notifier"},
    {"upkeep"},
    {"client"},
    {"__init__"},
    # What stands on the package as a user's program does.
    {"testing", "contrib"},
    {"demo"},
    {"cli"},
    {"__main__"},
]

#: Where a package of others may be imported.
PLACES: Dict[str, Tuple[str, ...]] = {
    "requests": ("transports",),
    "urllib3": ("transports",),
    "sseclient": ("_eventstream",),
    "cachetools": ("cache",),
    "opentelemetry": ("tracing",),
    "jsonschema": ("schema",),
    "referencing": ("schema",),
    "uritemplate": ("templates",),
    "tqdm": ("cli.bar",),
    "yaml": ("frontmatter",),
    "pytest": ("testing.pytest_plugin",),
    "django": ("contrib.django",),
    "flask": ("contrib.flask",),
    "werkzeug": ("contrib.flask",),
    "click": ("contrib.flask",),
}

#: This package is for programs without these.
NEVER = {"asyncio", "anyio", "trio", "pydantic", "httpx", "aiohttp"}


def files() -> "Dict[str, ast.Module]":
    """The syntax trees of all files, by their dotted names below the package."""
    found = {}
    for folder, _, names in os.walk(ROOT):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                dotted = os.path.relpath(path, ROOT)[: -len(".py")].replace(os.sep, ".")
                if dotted.endswith(".__init__"):
                    dotted = dotted[: -len(".__init__")]
                with open(path, encoding="utf-8") as file:
                    found[dotted] = ast.parse(file.read(), path)
    return found


FILES = files()


def imported(dotted: str) -> "Iterator[str]":
    """The absolute names that a file imports, wherever in it: modules, and names that may be modules."""
    parts = ["mcp_sync"] + ([] if dotted == "__init__" else dotted.split("."))
    is_folder = dotted == "__init__" or any(name.startswith(dotted + ".") for name in FILES)
    package = parts if is_folder else parts[:-1]
    for node in ast.walk(FILES[dotted]):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join(start + ([node.module] if node.module else []))
            for alias in node.names:
                yield base + "." + alias.name


def ours(dotted: str) -> "Set[str]":
    """The files of this package that a file imports."""
    found = set()
    for name in imported(dotted):
        if name == "mcp_sync" or name.startswith("mcp_sync."):
            inner = name[len("mcp_sync.") :]
            while inner and inner not in FILES:
                inner = inner.rpartition(".")[0]
            found.add(inner or "__init__")
    return found - {dotted}


def entry(dotted: str) -> str:
    """The name under which a file has a row."""
    name = dotted
    while name:
        if any(name in row for row in ROWS):
            return name
        name = name.rpartition(".")[0]
    raise AssertionError("%s has no row: say in ROWS where it belongs" % dotted)


def row(dotted: str) -> int:
    name = entry(dotted)
    return next(number for number, names in enumerate(ROWS) if name in names)


@pytest.mark.parametrize("dotted", sorted(FILES))
def test_a_file_imports_only_from_rows_below_its_own(dotted: str) -> None:
    for other in sorted(ours(dotted)):
        if entry(other) == entry(dotted):
            continue  # of one folder: see the test for circles
        # A folder's own file may gather what is in the folder.
        assert row(other) < row(dotted), "%s imports %s, which is not below it" % (dotted, other)


def test_there_is_no_circle() -> None:
    done: Set[str] = set()

    def follow(dotted: str, path: Tuple[str, ...]) -> None:
        assert dotted not in path, "a circle: %s" % " -> ".join(path + (dotted,))
        if dotted not in done:
            for other in sorted(ours(dotted)):
                follow(other, path + (dotted,))
            done.add(dotted)

    for name in sorted(FILES):
        follow(name, ())


def test_each_dependency_is_imported_in_its_one_place() -> None:
    for dotted in sorted(FILES):
        for name in imported(dotted):
            top = name.partition(".")[0]
            assert top not in NEVER, "%s imports %s" % (dotted, top)
            if top in PLACES:
                assert any(dotted == place or dotted.startswith(place + ".") for place in PLACES[top]), (
                    "%s imports %s" % (dotted, top)
                )


def of_python(top: str) -> bool:
    """Whether a module comes with Python."""
    names = getattr(sys, "stdlib_module_names", None)
    if names is not None:
        return top in names
    spec = importlib.util.find_spec(top)
    return spec is not None and "site-packages" not in (spec.origin or "")


def test_there_are_no_other_dependencies() -> None:
    for dotted in sorted(FILES):
        for top in sorted({name.partition(".")[0] for name in imported(dotted)} - set(PLACES) - {"mcp_sync"}):
            assert of_python(top), "%s imports %s" % (dotted, top)


def uses(dotted: str, module: str, names: "Set[str]") -> bool:
    """Whether a file uses one of these names of a module."""
    if {"%s.%s" % (module, name) for name in names} & set(imported(dotted)):
        return True
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in names
        and isinstance(node.value, ast.Name)
        and node.value.id == module
        for node in ast.walk(FILES[dotted])
    )


# The server for tests is another program, which only lives in the same package: it has threads of its own.
CLIENT_FILES = sorted(name for name in FILES if name.partition(".")[0] != "testing")


def test_threads_are_made_in_one_file() -> None:
    makers = {name for name in CLIENT_FILES if uses(name, "threading", {"Thread", "Timer"})}
    assert makers == {"_worker"}
    for dotted in CLIENT_FILES:
        tops = {name.partition(".")[0] for name in imported(dotted)}
        assert not tops & {"_thread", "concurrent", "multiprocessing"}, dotted


def test_there_is_one_hook_for_forks() -> None:
    assert {name for name in CLIENT_FILES if uses(name, "os", {"register_at_fork"})} == {"_fork"}


def test_the_server_for_tests_needs_nothing_of_the_client() -> None:
    for dotted in sorted(set(FILES) - set(CLIENT_FILES)):
        assert {name.partition(".")[0] for name in ours(dotted)} <= {"testing"}, dotted


def run(code: str, *folders: str) -> "subprocess.CompletedProcess[str]":
    paths = list(folders) + [os.path.dirname(ROOT)] + [path for path in sys.path if path]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(paths))
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=60,
    )


def test_a_module_of_another_package_in_the_way_is_named_in_one_sentence(tmp_path: "os.PathLike[str]") -> None:
    with open(os.path.join(str(tmp_path), "sseclient.py"), "w") as file:
        file.write("class SSEClient(object):\n    def __init__(self, url):\n        pass\n")
    ended = run("import mcp_sync", str(tmp_path))
    assert ended.returncode != 0
    told = ended.stderr.strip().splitlines()[-1]
    assert told.startswith("ImportError: another package's module is in the way under the name 'sseclient'")
    assert "sseclient-py" in told


def test_a_missing_dependency_is_named() -> None:
    ended = run("import sys; sys.modules['sseclient'] = None; import mcp_sync")
    assert ended.stderr.strip().splitlines()[-1] == (
        "ImportError: mcp_sync needs the package sseclient-py: pip install sseclient-py"
    )


def test_importing_the_package_starts_nothing_and_warns_of_nothing() -> None:
    ended = run(
        "import threading, warnings; warnings.simplefilter('error'); import mcp_sync;"
        "print(threading.active_count(), 'asyncio' in __import__('sys').modules)"
    )
    assert (ended.returncode, ended.stdout.strip()) == (0, "1 False"), ended.stderr
