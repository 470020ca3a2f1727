"""A server of one era takes the place of one of the other, at the same address or behind the same command: the client
follows without being started anew."""
import json
import sys
from contextlib import contextmanager

import pytest

from mcp_sync import Client, Command, State

from .following import LIMIT, Changes, eventually
from .old_server import KINDS, OFTEN, OldServer
from .real_server import CONFIG, RealServer
from .wire import REVISION as MODERN

pytestmark = pytest.mark.interop

PAIRS = [
    ("official-python", "mcp-1.30-subscribing-http"),
    ("official-typescript", "mcp-1.30-http"),
    ("fastmcp", "mcp-1.8-http"),
]


@pytest.fixture(params=PAIRS, ids="-and-".join)
def pair(request, tmp_path):
    """A modern server and a legacy one that have the same address, if one of them runs."""
    modern, legacy = request.param
    (tmp_path / "modern").mkdir()
    (tmp_path / "legacy").mkdir()
    first = RealServer(modern, tmp_path / "modern")
    second = OldServer(legacy, tmp_path / "legacy", port=first.port)
    assert first.url == second.target
    yield first, second
    for server in (first, second):
        server.stop()
        print(server.logged())


@contextmanager
def followed(target):
    """A client that watches one document, and the changes it sees."""
    with Client(target, poll_interval=OFTEN) as client, client.watch(CONFIG) as watch:
        changes = Changes(watch)
        yield client, watch, changes
    changes.end()


def keeps(watch, told):
    """Wait until the document is kept current in the way that this server allows."""
    watch.wait_for_state(State.LIVE if told else State.POLLING, timeout=LIMIT)
    watch.wait_until_current(timeout=LIMIT)
    assert watch.status.covered == ({CONFIG} if told else set())


def test_a_modern_server_gives_way_to_a_legacy_one(pair):
    modern, legacy = pair
    modern.start()
    with followed(modern.url) as (client, watch, changes):
        keeps(watch, modern.listens)
        assert client.protocol_version == MODERN
        modern.kill()
        legacy.write_state(CONFIG, "retries = 8")
        legacy.start()
        changes.wait_for_text(CONFIG, "retries = 8")
        assert client.protocol_version == legacy.kind.revision
        keeps(watch, legacy.told)
        legacy.change(client, CONFIG, "retries = 9")
        changes.wait_for_text(CONFIG, "retries = 9")
        assert client.read_resource(CONFIG).text == "retries = 9"


def test_a_legacy_server_gives_way_to_a_modern_one(pair):
    modern, legacy = pair
    legacy.start()
    with followed(legacy.target) as (client, watch, changes):
        keeps(watch, legacy.told)
        assert client.protocol_version == legacy.kind.revision
        legacy.kill()
        modern.write_state(CONFIG, "retries = 8")
        modern.start()
        changes.wait_for_text(CONFIG, "retries = 8")
        eventually(lambda: client.protocol_version == MODERN)
        keeps(watch, modern.listens)
        modern.set_text(CONFIG, "retries = 9")
        changes.wait_for_text(CONFIG, "retries = 9")
        assert client.read_resource(CONFIG).text == "retries = 9"


def test_a_call_alone_notices_it_too(pair):
    modern, legacy = pair
    with Client(modern.url) as client:
        for server, text in ((modern, "retries = 4"), (legacy, "retries = 5"), (modern, "retries = 6")):
            server.write_state(CONFIG, text)
            server.start()
            assert client.read_resource(CONFIG).text == text
            server.kill()


# Becomes whatever the file says: a command whose program was replaced by another version.
BECOME = "import json, os, sys; argv = json.load(open(sys.argv[1])); os.execv(argv[0], argv)"


@pytest.mark.parametrize(
    "before, after",
    [
        ("mcp-2.3-stdio", "mcp-1.30-subscribing-stdio"),
        ("mcp-1.30-subscribing-stdio", "mcp-2.3-stdio"),
        ("typescript-stdio", "mcp-1.30-stdio"),
        ("mcp-1.30-stdio", "typescript-stdio"),
    ],
)
def test_a_child_comes_back_in_another_era(tmp_path, before, after):
    servers = []
    for name in (before, after):
        (tmp_path / name).mkdir()
        servers.append(OldServer(name, tmp_path / name))
    first, second = servers
    which = tmp_path / "argv.json"
    which.write_text(json.dumps(first.target.argv))
    command = Command([sys.executable, "-I", "-S", "-c", BECOME, str(which)], env=first.target.env)
    with followed(command) as (client, watch, changes):
        keeps(watch, first.told)
        assert client.protocol_version == KINDS[before].revision
        second.write_state(CONFIG, "retries = 8")
        which.write_text(json.dumps(second.target.argv))
        first.kill()
        changes.wait_for_text(CONFIG, "retries = 8")
        eventually(lambda: client.protocol_version == KINDS[after].revision)
        keeps(watch, second.told)
        second.change(client, CONFIG, "retries = 9")
        changes.wait_for_text(CONFIG, "retries = 9")
    assert first.pids() == []
