"""Fixtures for the tests of what frameworks use: each runs in the frameworks' own environments, or in a browser."""

import os
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

collect_ignore_glob: "List[str]" = []
if sys.version_info < (3, 11):
    # The whole of it is run once, where all other servers and programs are; what is run in it is older.
    collect_ignore_glob.append("test_*.py")
else:
    from interop.environments import clean_environ

    from .frameworks import Framework, Together, chosen, environment, pythons

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent

#: Only a failure takes so long.
LIMIT = 180.0


class Ready:
    """A framework in its environment, with this package in sight.

    :param python: of that environment.
    :param package: a directory with nothing in it but this package.
    """

    def __init__(self, python: Path, package: Path) -> None:
        self.python = python
        self.environ: "Dict[str, str]" = dict(
            clean_environ(), PYTHONPATH=str(package), PYTHONDONTWRITEBYTECODE="1", PYTHONIOENCODING="utf-8"
        )

    def run_suite(self, name: str, *options: str) -> None:
        """Run one of the suites of this folder in it, with warnings as errors."""
        command = [str(self.python), "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(HERE.parent), "-W", "error"]
        command += ["-p", "no:cacheprovider", *options, str(HERE / name)]
        done = subprocess.run(
            command,
            cwd=str(HERE.parent),
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
            timeout=LIMIT,
        )
        assert done.returncode == 0, done.stdout
        print(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="session")
def interpreters() -> "Dict[str, str]":
    return pythons()


@pytest.fixture(scope="session")
def package(tmp_path_factory: Any) -> Path:
    """A directory that has this package, and not what is installed beside it."""
    import mcp_sync

    folder: Path = tmp_path_factory.mktemp("package")
    (folder / "mcp_sync").symlink_to(Path(mcp_sync.__file__).resolve().parent, target_is_directory=True)
    return folder


@pytest.fixture(scope="session")
def environments(request: Any, interpreters: "Dict[str, str]") -> "Iterator[Dict[Together, Future[Path]]]":
    """The environments of all tests to come, which are made at the same time if they are not there: pip mostly waits."""
    parameters = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = {found.params["framework"].where: None for found in parameters if found and "framework" in found.params}
    with ThreadPoolExecutor(4) as pool:
        made = {}
        for where in wanted:
            interpreter = chosen(where, interpreters)
            if interpreter is not None:
                made[where] = pool.submit(environment, where, interpreter)
        yield made


@pytest.fixture(scope="session")
def ready(interpreters: "Dict[str, str]", environments: "Dict[Together, Future[Path]]", package: Path) -> Any:
    """Return a framework in its environment, which is made if it is not there."""

    def ready(framework: "Framework") -> Ready:
        where = framework.where
        interpreter = chosen(where, interpreters)
        if interpreter is None:
            pytest.skip("%s needs Python %s, and none of them is here" % (framework.name, " or ".join(where.pythons)))
        if where in environments:
            return Ready(environments[where].result(), package)
        return Ready(environment(where, interpreter), package)

    return ready


@pytest.fixture
def server() -> "Iterator[Any]":
    """A server with the document of the examples."""
    from mcp_sync.testing import Server

    with Server() as server:
        server.add("docs://notices/today", "tea at four")
        yield server
