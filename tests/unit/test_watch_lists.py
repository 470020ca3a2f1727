"""The lists of tools and prompts are kept current as the catalog is: by notices, or by polling."""

from typing import Any, Callable, Dict, Iterator

import pytest

from mcp_sync import Change, Client, ListPromptsResult, ListToolsResult, RequestTimeout, State
from mcp_sync.testing import Server, faults

CONFIG = "docs://service/config"
BOTH: "Dict[str, bool]" = {"tools": True, "prompts": True}


def function(*_: Any) -> str:
    return "done"


def filled(**options: Any) -> Server:
    server = Server(**options)
    server.add(CONFIG, "colour = blue")
    server.add_tool("a", function)
    server.add_prompt("a", function)
    return server


@pytest.fixture(params=["modern", "legacy"])
def server(request: Any) -> "Iterator[Server]":
    with filled(eras=(request.param,)) as server:
        yield server


def quick(server: Server, **options: Any) -> Client:
    return Client(server.url, **{"throttle": 0.01, "poll_interval": 0.05, "ack_timeout": 5.0, **options})


def add(server: Server, kind: str, name: str, **more: Any) -> None:
    (server.add_tool if kind == "tools" else server.add_prompt)(name, function, **more)


def listing(client: Client, kind: str) -> "Callable[[], Any]":
    return client.list_tools if kind == "tools" else client.list_prompts


def next_change(watch: Any, kind: str) -> Change:
    for change in watch.changes(timeout=10):
        if change.kind == kind:
            return change  # type: ignore[no-any-return]
    raise AssertionError("no change came: %s" % watch.status)


@pytest.mark.parametrize("kind, cls", [("tools", ListToolsResult), ("prompts", ListPromptsResult)])
def test_a_watched_list_is_read_once_and_again_when_the_server_says_that_it_changed(
    server: Server, kind: str, cls: Any
) -> None:
    with quick(server, poll_interval=60.0) as client, client.watch(**{kind: True}) as watch:
        watch.wait_until_current(timeout=10)
        held = listing(client, kind)()
        assert held.names == ("a",) and all(listing(client, kind)() is held for _ in range(10))
        assert server.count(kind + "/list") == 1
        status = watch.status
        assert status.state is State.LIVE and status.is_live
        assert getattr(status, kind) == "listen" and status.to_json()[kind] == "listen" and kind in str(status)
        add(server, kind, "b")
        change = next_change(watch, kind)
        assert (change.uri, change.added, change.removed) == (None, {"b"}, set())
        assert isinstance(change.current, cls) and change.previous is held
        assert listing(client, kind)() is change.current
        (server.remove_tool if kind == "tools" else server.remove_prompt)("a")
        assert next_change(watch, kind).removed == {"a"}


def test_only_what_is_watched_is_read_and_told_of(server: Server) -> None:
    with quick(server, poll_interval=60.0) as client, client.watch(tools=True) as watch:
        watch.wait_until_current(timeout=10)
        assert (watch.lists, watch.catalog) == (("tools",), False)
        assert (watch.status.tools, watch.status.prompts, watch.status.catalog) == ("listen", None, None)
        add(server, "prompts", "b")
        add(server, "tools", "b")
        assert next(iter(watch.changes(timeout=10))).kind == "tools"
        assert server.count("prompts/list") == server.count("resources/list") == 0


def test_a_notice_of_a_list_that_is_not_watched_makes_its_kept_copy_old() -> None:
    # A legacy server tells of all lists, whoever asks.
    with filled(eras=("legacy",)) as server, quick(server, default_ttl=3600.0) as client, client.watch(tools=True) as watch:
        watch.wait_until_current(timeout=10)
        assert client.list_prompts().names == ("a",)
        add(server, "prompts", "b")
        add(server, "tools", "b")
        next_change(watch, "tools")  # which was told of after it
        assert client.list_prompts().names == ("a", "b")


def test_several_lists_and_resources_share_one_stream(server: Server) -> None:
    with quick(server, poll_interval=60.0) as client, client.watch(CONFIG, catalog=True, **BOTH) as watch:
        watch.wait_until_current(timeout=10)
        assert watch.status.is_live and watch.status.covered == {CONFIG}
        assert "catalog, tools, prompts" in repr(watch)
        for kind in ("tools", "prompts"):
            add(server, kind, "b")
            assert next_change(watch, kind).added == {"b"}
        server.add("docs://new", "new")
        assert next_change(watch, "catalog").added == {"docs://new"}
        assert server.count("subscriptions/listen") + server.count("initialize") == 1


def test_a_further_list_is_added_without_a_gap(server: Server) -> None:
    with quick(server, poll_interval=60.0) as client, client.watch(tools=True) as first:
        first.wait_until_current(timeout=10)
        with client.watch(prompts=True) as second:
            second.wait_until_current(timeout=10)
            assert (second.status.prompts, second.status.gaps, first.status.gaps) == ("listen", 0, 0)
            add(server, "prompts", "b")
            assert next_change(second, "prompts").added == {"b"}
            add(server, "tools", "b")
            assert next_change(first, "tools").added == {"b"}


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_lists_that_the_server_does_not_notify_of_are_polled(era: str) -> None:
    with filled(list_changed=False, eras=(era,)) as server, quick(server) as client:
        with client.watch(CONFIG, **BOTH) as watch:
            watch.wait_until_current(timeout=10)
            watch.wait_for_state(State.LIVE, timeout=10)
            status = watch.status
            assert (status.tools, status.prompts, status.covered, status.is_live) == ("poll", "poll", {CONFIG}, False)
            asked = [request.params["notifications"] for request in server.requests if "notifications" in request.params]
            assert asked == ([{"resourceSubscriptions": [CONFIG]}] if era == "modern" else [])
            for kind in ("tools", "prompts"):
                add(server, kind, "b", notify=False)
                assert next_change(watch, kind).added == {"b"}


def test_lists_that_are_not_acknowledged_are_polled() -> None:
    only = faults.AcknowledgeOnly({"toolsListChanged": True})
    with filled() as server, quick(server) as client:
        server.inject(only, method="subscriptions/listen", times=None)
        with client.watch(**BOTH) as watch:
            watch.wait_until_current(timeout=10)
            assert (watch.status.state, watch.status.tools, watch.status.prompts) == (State.LIVE, "listen", "poll")
            add(server, "prompts", "b", notify=False)
            assert next_change(watch, "prompts").added == {"b"}


def test_without_listening_lists_are_polled(server: Server) -> None:
    with quick(server, listen=False) as client, client.watch(**BOTH) as watch:
        watch.wait_until_current(timeout=10)
        assert (watch.status.state, watch.status.tools, watch.status.prompts) == (State.POLLING, "poll", "poll")
        add(server, "tools", "b", notify=False)
        assert next_change(watch, "tools").added == {"b"}


def test_a_change_while_the_stream_was_down_is_seen_when_it_is_back(server: Server) -> None:
    with quick(server, poll_interval=60.0, poll_after=60.0) as client, client.watch(**BOTH) as watch:
        watch.wait_until_current(timeout=10)
        server.kill()
        watch.wait_for_state(State.INTERRUPTED, timeout=10)
        assert (watch.status.tools, watch.status.prompts) == ("none", "none")
        add(server, "tools", "b", notify=False)
        server.restart()
        assert next_change(watch, "tools").added == {"b"}


def test_another_description_is_a_change_too(server: Server) -> None:
    with quick(server) as client, client.watch(tools=True) as watch:
        watch.wait_until_current(timeout=10)
        add(server, "tools", "a", description="other")
        change = next_change(watch, "tools")
        assert (change.added, change.removed) == (set(), set())
        assert isinstance(change.current, ListToolsResult) and [tool.description for tool in change.current] == ["other"]


def test_what_is_held_and_pinned_of_lists(server: Server) -> None:
    with quick(server, poll_interval=60.0) as client, client.watch(CONFIG, **BOTH) as watch:
        watch.wait_until_current(timeout=10)
        pinned = watch.snapshot()
        assert pinned.tools is not None and pinned.tools.names == ("a",)
        assert pinned.prompts is not None and pinned.prompts.names == ("a",)
        assert pinned.catalog is None and list(pinned) == [CONFIG] and pinned.is_current() and not pinned.missing
        held = watch.held(kind="tools")
        assert held.result == pinned.tools and held.current
        with pytest.raises(KeyError):
            watch.held()
        with pytest.raises(KeyError):
            watch.held(kind="templates")
        add(server, "tools", "b")
        next_change(watch, "tools")
        assert [change.kind for change in pinned.moved()] == ["tools"]


def test_a_server_without_tools_is_told_of_as_the_reason_for_waiting() -> None:
    with Server() as server, quick(server, throttle=0.01) as client, client.watch(tools=True) as watch:
        with pytest.raises(RequestTimeout, match="tools/list .*does not know tools/list"):
            watch.wait_until_current(timeout=1.0)


def test_nothing_to_watch_is_said_with_all_that_there_is(server: Server) -> None:
    with quick(server) as client:
        with pytest.raises(ValueError, match="give URIs, catalog=True, tools=True or prompts=True"):
            client.watch()
