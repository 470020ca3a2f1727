"""Fixtures for the tests against servers that others wrote."""
import sys

import pytest

from .old_server import ALL, OldServer
from .real_server import DEAF_KIND, KINDS, LISTENING_KINDS, RealServer

collect_ignore_glob = []
if sys.version_info < (3, 11):
    # The servers' environments are made with the Python that runs the tests. mcp 2.3 needs 3.10, fastmcp 4.2 3.11.
    collect_ignore_glob.append("test_*.py")


def pytest_configure(config):
    config.addinivalue_line("markers", "interop: runs against servers that others wrote, in environments of their own")


class _Servers:
    """The servers that were started so far, by kind. What could not be made once is not tried for every test."""

    def __init__(self, tmp_path_factory):
        self._directories = tmp_path_factory
        self._servers = {}
        self._failures = {}

    def running(self, kind):
        if kind in self._failures:
            raise RuntimeError("as in an earlier test: {}".format(self._failures[kind]))
        if kind not in self._servers:
            try:
                made = RealServer if kind in KINDS else OldServer
                self._servers[kind] = made(kind, self._directories.mktemp(kind))
            except Exception as error:
                self._failures[kind] = error
                raise
        self._servers[kind].ready_for_next_test()
        return self._servers[kind]

    def broke(self):
        """Which kinds have broken by themselves."""
        return [kind for kind, server in self._servers.items() if server.broke]

    def stop(self):
        for server in self._servers.values():
            server.stop()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """A test that fails because the server has broken by itself says nothing about the client."""
    try:
        return (yield)
    except Exception:
        servers = pyfuncitem.session.stash.get(_STARTED, None)
        broke = [kind for kind in ([] if servers is None else servers.broke()) if kind in pyfuncitem.nodeid]
        if broke:
            pytest.skip("the server has broken by itself: {}".format(", ".join(broke)))
        raise


_STARTED = pytest.StashKey()


@pytest.fixture(scope="session")
def _servers(tmp_path_factory, request):
    servers = request.session.stash[_STARTED] = _Servers(tmp_path_factory)
    try:
        yield servers
    finally:
        servers.stop()


def _for_one_test(servers, kind):
    server = servers.running(kind)
    printed_before = server.log_size()
    yield server
    # Shown by pytest if the test fails.
    print(server.logged(since=printed_before))


@pytest.fixture(params=KINDS)
def real_server(request, _servers):
    """A running server with the documents of ``real_server.TEXTS``; one test for each kind of server."""
    yield from _for_one_test(_servers, request.param)


@pytest.fixture(params=LISTENING_KINDS)
def listening_server(request, _servers):
    """Like ``real_server``, without the kind that cannot listen."""
    yield from _for_one_test(_servers, request.param)


@pytest.fixture
def deaf_server(_servers):
    """The kind of server that cannot listen, and so has to be polled."""
    yield from _for_one_test(_servers, DEAF_KIND)


def _until_nothing_is_left(servers, kind):
    for server in _for_one_test(servers, kind):
        yield server
        if server.stdio:
            # Every test closes its clients, and so leaves nothing of the children that they started.
            assert server.pids() == []


@pytest.fixture(params=ALL)
def old_server(request, _servers):
    """A server of a legacy era, or one that the client starts; one test for each kind."""
    yield from _until_nothing_is_left(_servers, request.param)


@pytest.fixture
def of_kind(_servers):
    """Return a running server of a kind that the test names."""
    started = []

    def of_kind(kind):
        started.append(_until_nothing_is_left(_servers, kind))
        return next(started[-1])

    yield of_kind
    for server in started:
        next(server, None)
