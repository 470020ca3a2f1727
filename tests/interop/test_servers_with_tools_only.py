"""Programs that people have on their machines, and that offer tools and no resources.

``server-filesystem`` has no resources at all: what it holds is read by its tools, and no watch can see a file change.
``mcp-server-time`` was a legacy server without resources until 2025; since it is built on the SDK 2.x it speaks both
eras, and has a catalog with nothing in it. What a client can do with them is to start them, to find out what they are,
to say clearly that they have no resources, to call their tools, and to leave nothing of them.
"""
import json
import os
import signal

import pytest

from mcp_sync import Client, NotSupported, RequestTimeout, ResourceNotFound

from .following import LIMIT, eventually
from .old_server import call_tool
from .served import exists
from .tool_server import PROGRAMS, ToolServer

pytestmark = pytest.mark.interop

NOTHING = "docs://service/config"


@pytest.fixture
def time_of_today(tmp_path):
    return ToolServer("time of today", tmp_path)


@pytest.fixture
def filesystem(tmp_path):
    return ToolServer("filesystem", tmp_path)


@pytest.fixture(params=[name for name in PROGRAMS if not PROGRAMS[name].has_resources])
def without_resources(request, tmp_path):
    return ToolServer(request.param, tmp_path)


@pytest.fixture(params=list(PROGRAMS))
def any_of_them(request, tmp_path):
    return ToolServer(request.param, tmp_path)


def test_what_is_asked_of_a_server_without_resources_is_an_error_that_names_it(without_resources):
    with Client(without_resources.command) as client:
        assert "resources" not in client.discover().capabilities
        assert "tools" in client.discover().capabilities
        assert client.protocol_version == without_resources.program.revision
        with pytest.raises(NotSupported, match="does not know resources/list"):
            client.list_resources()
        with pytest.raises(NotSupported, match="does not know resources/templates/list"):
            client.list_resource_templates()
        with pytest.raises(NotSupported, match="does not know resources/read"):
            client.read_resource(NOTHING)


def test_a_watch_of_a_server_without_resources_says_why_it_is_not_current(without_resources):
    with Client(without_resources.command, poll_interval=0.2) as client, client.watch(NOTHING) as watch:

        def it_says_why():
            with pytest.raises(RequestTimeout) as raised:
                watch.wait_until_current(timeout=0.1)
            return "does not know resources/read" in str(raised.value)

        eventually(it_says_why)  # a server may take seconds to start
        assert not watch.is_current


def test_the_time_server_of_today_has_a_catalog_with_nothing_in_it(time_of_today):
    with Client(time_of_today.command, poll_interval=0.2) as client, client.watch(NOTHING, catalog=True) as watch:
        assert client.discover().server_info.name == "mcp-time"
        assert client.protocol_version == time_of_today.program.revision
        assert list(client.list_resources()) == list(client.list_resource_templates()) == []
        with pytest.raises(ResourceNotFound):
            client.read_resource(NOTHING)
        watch.wait_until_current(timeout=LIMIT)
        assert (watch.snapshot().missing, watch.status.catalog) == ({NOTHING}, "poll")


def test_the_tools_of_the_time_server_answer_in_both_eras(time_of_today):
    for era in ("modern", "legacy"):
        with Client(time_of_today.command, era=era) as client:
            assert json.loads(call_tool(client, "get_current_time", timezone="UTC"))["timezone"] == "UTC"


def test_a_file_that_changes_is_read_by_the_tool_of_the_filesystem_server(filesystem, tmp_path):
    path = tmp_path / "config.txt"
    with Client(filesystem.command) as client:
        for text in ("retries = 3", "retries = 4"):
            path.write_text(text)
            assert call_tool(client, "read_text_file", path=str(path)) == text


def test_the_filesystem_server_takes_its_directories_from_the_roots_of_the_client(filesystem, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "config.txt").write_text("retries = 3")
    with Client(filesystem.command, roots=[elsewhere.as_uri()]) as client:
        assert call_tool(client, "read_text_file", path=str(elsewhere / "config.txt")) == "retries = 3"
        assert str(elsewhere) in call_tool(client, "list_allowed_directories")


def test_one_that_was_killed_is_started_again(any_of_them):
    with Client(any_of_them.command) as client:
        tools = [tool.name for tool in client.list_tools()]
        before = any_of_them.pids()
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        assert [tool.name for tool in client.list_tools(cache_mode="refresh")] == tools
        after = any_of_them.pids()
        assert after and not set(before) & set(after)
    assert any_of_them.pids() == []


def test_nothing_of_it_is_left(any_of_them):
    with Client(any_of_them.command) as client:
        client.discover()
        pids = any_of_them.pids()
        assert pids
    assert not any(exists(pid) for pid in pids)
