"""What is loaded only when it is first used: names of the package, and parts of a client."""

import os
import pickle
import subprocess
import sys
import threading
from typing import Any, List

import pytest

import mcp_sync
from mcp_sync import Client, TransportError, results
from mcp_sync._deadline import Deadline
from mcp_sync.testing import Server
from mcp_sync.transports.streamable_http import HTTPOptions, StreamableHTTP

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(mcp_sync.__file__)))

BOUND = 30.0

#: Files of which a program that only reads has no need.
RARE = ["calling", "calls", "elicitation", "eras.legacy", "sessions.legacy", "tools", "tasks", "skills", "schema", "upkeep"]
RARE += ["watch", "transports.http_sse", "transports.stdio", "_pending"]


def run(code: str) -> str:
    """Run a program in a process of its own, where nothing is loaded yet; return what it says."""
    paths = os.pathsep.join([ROOT] + [path for path in sys.path if path])
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=dict(os.environ, PYTHONPATH=paths),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=BOUND,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.mark.parametrize("package", [mcp_sync, results])
def test_every_public_name_is_there_and_listed(package: Any) -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)


def test_names_are_there_before_anything_was_used() -> None:
    assert run("import mcp_sync; print('Tool' in dir(mcp_sync), mcp_sync.Tool.__name__)") == "True Tool"
    assert run("from mcp_sync import *; print(Watch.__name__, Command.__name__)") == "Watch Command"


def test_a_name_that_there_is_not_is_told_as_for_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'mcp_sync' has no attribute 'Nothing'"):
        getattr(mcp_sync, "Nothing")
    with pytest.raises(ImportError):
        exec("from mcp_sync import Nothing")


def test_what_was_pickled_is_read_where_nothing_was_loaded() -> None:
    pickled = pickle.dumps([mcp_sync.ResourceUpdated("a:b"), mcp_sync.Progress(1.0), mcp_sync.TextContent("c")])
    assert run("import pickle; print(*pickle.loads(%r), sep='; ')" % pickled) == (
        "ResourceUpdated(uri='a:b'); Progress(progress=1.0, total=None, message=None); TextContent(text='c')"
    )


def test_importing_loads_neither_what_is_rare_nor_what_is_slow() -> None:
    rare = ["dataclasses", "inspect", "subprocess", "asyncio", "jsonschema", "yaml"]
    rare += ["mcp_sync." + name for name in RARE]
    bare = "import requests, sseclient, cachetools, sys; before = set(sys.modules); "
    loaded = run(bare + "import mcp_sync; print([name for name in %r if name in set(sys.modules) - before])" % rare)
    assert loaded == "[]"


def test_nor_does_reading_one_resource() -> None:
    rare = ["asyncio"] + ["mcp_sync." + name for name in RARE]
    with Server() as server:
        server.add("docs://a", "text")
        code = "import sys; from mcp_sync import Client; print(Client(%r).read_resource('docs://a').text); " % server.url
        assert run(code + "print([name for name in %r if name in sys.modules])" % rare) == "text\n[]"
        assert [request.method for request in server.requests] == ["resources/read"]


def test_the_transport_of_2024_is_made_once_and_closed_with_the_other() -> None:
    transport = StreamableHTTP(HTTPOptions("http://127.0.0.1:9/mcp"))
    assert transport.fallback() is transport.fallback()
    assert transport.fallback().where == transport.where
    fallback = transport.fallback()
    transport.close()
    with pytest.raises(TransportError, match="is closed"):
        fallback.connect(Deadline(1.0))
    with pytest.raises(TransportError, match="is closed"):
        transport.fallback()


def test_another_principal_s_transport_of_2024_has_its_own_credentials() -> None:
    transport = StreamableHTTP(HTTPOptions("http://127.0.0.1:9/mcp", headers={"X-Who": "one"}))
    other = transport.with_auth(None, {"X-Who": "other"})
    assert other.fallback() is not transport.fallback()
    assert other.fallback()._options.headers == {"X-Who": "other"}
    transport.close()
    other.close()


def test_two_threads_at_first_use_get_one_and_the_same() -> None:
    with Client("http://127.0.0.1:9/mcp") as client:
        both = threading.Barrier(2)
        got: List[Any] = []

        def use() -> None:
            both.wait(BOUND)
            got.append((client._upkeep, client._tasks, client._skills))

        threads = [threading.Thread(target=use) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(BOUND)
        assert all(one is other for one, other in zip(*got))


def test_what_is_made_while_the_client_is_closed_is_closed_too() -> None:
    client = Client("http://127.0.0.1:9/mcp")
    make = client._make_upkeep

    def make_late() -> Any:
        made = make()
        client.close()
        return made

    client._make_upkeep = make_late  # type: ignore[method-assign]
    with pytest.raises(mcp_sync.ClientClosed):
        client.watch("docs://a")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork()")
def test_a_fork_waits_until_what_is_being_loaded_is_there() -> None:
    # In a process of its own, because it forks while threads run.
    said = run(
        """
import os, sys, threading
from mcp_sync import _fork
inside, leave, forked = threading.Event(), threading.Event(), threading.Event()
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp_sync.tools":
            inside.set()
            leave.wait(30)
sys.meta_path.insert(0, Slow())
def load():
    import mcp_sync
    with mcp_sync.Client("http://127.0.0.1:9/mcp") as client:
        client._tools
thread = threading.Thread(target=load)
thread.start()
assert inside.wait(30)
assert not _fork.held_off().acquire(blocking=False)
os.register_at_fork(before=leave.set)  # called first, as the one that was registered last
child = os.fork()
if not child:
    from mcp_sync.tools import Tools
    got = []
    other = threading.Thread(target=lambda: got.append(_fork.held_off().acquire(blocking=False)))
    other.start()
    other.join(30)
    os._exit(0 if got == [True] else 1)
status = os.waitpid(child, 0)[1]
thread.join(30)
print(status, leave.is_set())
"""
    )
    assert said == "0 True"


def test_no_file_waits_while_it_is_loaded_for_a_thread_that_may_wait_for_that_file() -> None:
    # One thread imports a file, another loads it at first use: there is one order of locks, and a file must not turn it round.
    code = (
        "import importlib, pkgutil, mcp_sync\n"
        "mcp_sync._lazy.held_off = None\n"
        "for found in pkgutil.walk_packages(mcp_sync.__path__, 'mcp_sync.', onerror=str):\n"
        "    if found.name.split('.')[1] not in ('cli', 'contrib', 'demo', 'testing', '__main__'):\n"
        "        importlib.import_module(found.name)\n"
    )
    run(code)
