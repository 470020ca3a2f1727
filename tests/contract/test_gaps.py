"""Whatever may have hidden a change makes what is held stale until it has been read again: the fourth point of the
contract.

In each of these tests the server changes without telling anybody, so that only the gap can be the reason why the change
is seen; the streams are opened again within a moment.
"""

import json
import logging
from typing import Any, Callable, Dict

import pytest
from combinations import BOUND, CONFIG, NOTIFYING, README, Changes, client_of, settled

from mcp_sync import Client, State
from mcp_sync.testing import StdioServer, faults

notifying = pytest.mark.parametrize("combination", NOTIFYING, indirect=True)
over_stdio = pytest.mark.parametrize("combination", ["modern, stdio", "legacy, stdio"], indirect=True)
with_sessions = pytest.mark.parametrize(
    "combination", ["legacy, HTTP, sessions", "legacy, HTTP, sessions, answers as streams"], indirect=True
)


def sees_what_the_gap_hid(server: Any, client: Client, gap: Callable[[], Any], ends: bool = True) -> None:
    """Let a gap happen, and look that the client comes out of it with everything as it is now.

    :param ends: whether the stream ends with it.
    """
    changes = Changes()
    with client.watch(CONFIG, README, on_change=changes) as watch:
        settled(watch, True)
        gaps = watch.status.gaps
        server.update(CONFIG, "colour = red", notify=False)
        assert client.read_resource(CONFIG).text == "colour = blue", "nobody has told the client of it"
        gap()
        change = changes.wait_for_text("colour = red")
        assert (change.kind, change.uri) == ("updated", CONFIG)
        settled(watch, True)
        assert watch.status.gaps > gaps
        assert watch.status.reconnects == ends
        assert client.read_resource(CONFIG).text == "colour = red"
        # And the new stream is as good as the old one.
        server.update(README, "# Behind the gap")
        changes.wait_for_text("# Behind the gap")


@pytest.mark.parametrize("how", ["eof", "reset", "cut", "half_event"])
@notifying
def test_a_stream_that_breaks_is_a_gap(server: Any, client: Client, how: str) -> None:
    sees_what_the_gap_hid(server, client, lambda: server.end_streams(how))


@pytest.mark.parametrize("how", ["result", "error", "cancelled"])
@pytest.mark.parametrize(
    "combination", ["modern, HTTP", "modern, HTTP, answers as streams", "modern, stdio"], indirect=True
)
def test_a_stream_that_ends_with_a_word_is_a_gap(server: Any, client: Client, how: str) -> None:
    sees_what_the_gap_hid(server, client, lambda: server.end_streams(how))


@notifying
def test_a_server_that_stops_and_returns_is_a_gap(server: Any, client: Client) -> None:
    sees_what_the_gap_hid(server, client, server.restart)


BATCH = json.dumps([{"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": CONFIG}}])


@pytest.mark.parametrize("odd", ["{broken", BATCH], ids=["broken", "a batch"])
@notifying
def test_something_on_the_stream_that_cannot_be_read_may_have_been_a_notice(
    server: Any, client: Client, odd: str, caplog: pytest.LogCaptureFixture
) -> None:
    line = odd + "\n" if isinstance(server, StdioServer) else "event: message\ndata: %s\n\n" % odd
    send = server.write if isinstance(server, StdioServer) else server.send
    sees_what_the_gap_hid(server, client, lambda: send(line.encode("ascii")), ends=False)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING], "nobody is told of it"


@notifying
def test_what_can_be_read_and_means_nothing_here_is_no_gap_and_the_stream_lives(
    server: Any, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mcp_sync")
    changes = Changes()
    with client.watch(CONFIG, on_change=changes) as watch:
        settled(watch, True)
        gaps = watch.status.gaps
        for method in ("notifications/of/the/future", "notifications/message", "method/of/the/future"):
            message: Dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": {}}
            if not method.startswith("notifications/"):
                message["id"] = "theirs"
            server.send(message)
        server.update(CONFIG, "colour = red")
        changes.wait_for_text("colour = red")
        assert (watch.status.gaps, watch.status.reconnects) == (gaps, 0)
        if client.protocol_version >= "2026":  # before, requests are answered
            assert "ignored a request of the server's (method/of/the/future)" in caplog.text
    assert "ignored notifications/of/the/future" in caplog.text


@pytest.mark.parametrize("status", [404, 400])
@pytest.mark.parametrize("end_streams", [True, False])
@with_sessions
def test_a_session_that_expires_is_a_gap(server: Any, client: Client, status: int, end_streams: bool) -> None:
    def expire() -> None:
        server.expire_sessions(status, end_streams=end_streams)
        # Where the stream stays open, only a request can meet the end of the session; it does not get to see it.
        assert client.read_resource(README, cache_mode="refresh").text == "# Read me"

    sees_what_the_gap_hid(server, client, expire)
    assert server.count("initialize") == 2
    assert len(server.sessions) == 1


@pytest.mark.parametrize("after", [b"", b'{"jsonrpc":"2.0","method":"notifications/reso', b"a last word\n"])
@over_stdio
def test_a_child_that_dies_is_a_gap(server: Any, client: Client, after: bytes) -> None:
    sees_what_the_gap_hid(server, client, lambda: server.die(after=after))
    assert server.happened.count("started") == 2


@over_stdio
def test_a_child_that_ends_by_itself_is_a_gap(server: Any, client: Client) -> None:
    sees_what_the_gap_hid(server, client, lambda: server.die(0))


@notifying
def test_one_gap_after_another_is_survived(server: Any, client: Client) -> None:
    changes = Changes()
    with client.watch(CONFIG, on_change=changes) as watch:
        for number in range(3):
            settled(watch, True)
            server.update(CONFIG, "colour = %d" % number, notify=False)
            server.end_streams("reset")
            changes.wait_for_text("colour = %d" % number)
        settled(watch, True)
        assert watch.status.reconnects >= 3


@notifying
def test_every_watch_of_a_client_has_the_gap(server: Any, client: Client) -> None:
    of_first, of_second = Changes(), Changes()
    with client.watch(CONFIG, on_change=of_first) as first, client.watch(README, on_change=of_second) as second:
        settled(first, True)
        settled(second, True)
        server.update(CONFIG, "colour = red", notify=False)
        server.update(README, "# Changed", notify=False)
        server.end_streams("eof")
        of_first.wait_for_text("colour = red")
        of_second.wait_for_text("# Changed")


@notifying
def test_in_a_gap_that_lasts_it_is_polled_and_afterwards_it_is_not(server: Any) -> None:
    changes = Changes()
    quick = {"poll_after": 0.1, "ack_timeout": 0.5}
    with client_of(server, **quick) as client, client.watch(CONFIG, on_change=changes) as watch:
        settled(watch, True)
        method = "resources/subscribe" if client.protocol_version < "2026" else "subscriptions/listen"
        server.inject(faults.Silence(), method=method, times=None)
        server.end_streams("eof")
        watch.wait_for_state(State.POLLING, timeout=BOUND)
        server.update(CONFIG, "colour = red", notify=False)
        changes.wait_for_text("colour = red")
        server.clear_faults()
        watch.wait_for_state(State.LIVE, timeout=BOUND)
        server.update(CONFIG, "colour = green")
        changes.wait_for_text("colour = green")
