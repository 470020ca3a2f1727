"""The servers by themselves, on plain ``requests``: they do what the tests of the client need, and this is how.

What is observed here and matters to a client:

* Python ends the lines of a stream with CRLF and its comments are ``: ping``; TypeScript uses LF and ``: keepalive``.
  Both send one every 15 s when nothing happens: a read limit must be longer, and a comment is a sign of life.
* JSON answers have a length from Python, and come in chunks from TypeScript; all keep the connection if asked to.
* A resource that does not exist is -32602 everywhere, but under HTTP 400 from Python and under HTTP 200 from
  TypeScript. FastMCP answers -32603 under HTTP 200 if it is the resource's own function that says so.
* FastMCP 4.2 serves no ``subscriptions/listen`` (404, -32601; both capabilities false). Its change notices go onto the
  answer to the request that made the change, without a subscription id.
* Listening without ``text/event-stream`` in ``Accept`` is an empty 406 from Python; TypeScript streams all the same.
* Listening for nothing: TypeScript acknowledges and ends gracefully at once, Python goes on.
* Both acknowledge whatever URI is asked for, whether there is such a resource or not.
* Killed, a server cuts the stream in the middle of the chunked coding: no last chunk, no last event.
"""
import threading

import pytest
import requests

from . import wire
from .real_server import CONFIG, GUIDE, LISTED, LISTENING_KINDS, MISSING, README, SLOW, TEXTS, RealServer

pytestmark = pytest.mark.interop

SUBSCRIPTION = wire.META + "subscriptionId"


@pytest.fixture(scope="module")
def quiet_streams(tmp_path_factory):
    """A stream to a server of its own for each kind, on which nothing is ever announced; opened before all else."""
    servers = {kind: RealServer(kind, tmp_path_factory.mktemp("quiet-" + kind)) for kind in LISTENING_KINDS}
    streams = {}
    try:
        for kind, server in servers.items():
            server.start()
            streams[kind] = wire.Stream(server.url, CONFIG)
        yield streams
    finally:
        for stream in streams.values():
            stream.response.close()
        for server in servers.values():
            server.stop()


@pytest.fixture(autouse=True)
def _quiet_from_the_beginning(quiet_streams):
    """So that most of the 15 s until their first comment have passed when a test waits for it."""


def test_discover_names_the_server_and_what_it_can(real_server):
    found = wire.call(real_server.url, "server/discover")
    assert wire.REVISION in found["supportedVersions"]
    assert found["_meta"][wire.META + "serverInfo"]["name"].startswith("interop-")
    assert found["instructions"] == "Documents that change while you look at them."
    assert found["capabilities"]["resources"] == {"subscribe": real_server.listens, "listChanged": real_server.listens}


def test_the_catalog_and_the_templates_are_listed(real_server):
    resources = wire.call(real_server.url, "resources/list")["resources"]
    assert [resource["uri"] for resource in resources] == LISTED
    assert resources[0]["name"] == "config"
    assert resources[0]["title"] == "Config"
    assert resources[0]["mimeType"] == "text/markdown"
    templates = wire.call(real_server.url, "resources/templates/list")["resourceTemplates"]
    assert [template["uriTemplate"] for template in templates] == ["docs://guides/{name}"]


def test_every_document_can_be_read(real_server):
    assert {uri: wire.read(real_server.url, uri) for uri in TEXTS} == TEXTS


def test_results_are_private_and_never_fresh_by_themselves(real_server):
    result = wire.call(real_server.url, "resources/read", {"uri": CONFIG})
    assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (0, "private", "complete")


def test_json_answers_have_a_length_from_python_and_come_in_chunks_from_typescript(real_server):
    headers = wire.post(real_server.url, "resources/read", {"uri": CONFIG}, Connection="keep-alive").headers
    assert headers["Content-Type"] == "application/json"
    if real_server.kind == "official-typescript":
        assert headers["Transfer-Encoding"] == "chunked"
    else:
        assert int(headers["Content-Length"]) > 0
    assert headers.get("Connection", "keep-alive") == "keep-alive"


def test_a_missing_resource_is_invalid_parameters(real_server):
    with pytest.raises(wire.Refused) as refused:
        wire.read(real_server.url, MISSING)
    assert refused.value.code == -32602
    assert refused.value.status == (200 if real_server.kind == "official-typescript" else 400)


def test_a_missing_resource_of_a_template_is_an_internal_error_of_fastmcp(real_server):
    with pytest.raises(wire.Refused) as refused:
        wire.read(real_server.url, "docs://guides/missing")
    assert refused.value.code == (-32603 if "fastmcp" in real_server.kind else -32602)
    assert refused.value.status == (400 if real_server.kind == "official-python" else 200)


def test_an_unknown_method_is_404_with_a_json_rpc_error(real_server):
    with pytest.raises(wire.Refused) as refused:
        wire.call(real_server.url, "nonsense/nothing")
    assert (refused.value.status, refused.value.code) == (404, -32601)


def test_a_request_whose_headers_contradict_its_body_is_refused(real_server):
    answer = wire.post(real_server.url, "resources/read", {"uri": CONFIG}, Mcp_Name=README)
    assert answer.status == 400
    assert answer.messages()[0]["error"]["code"] == -32020


def test_a_document_changes_by_the_tool_and_behind_the_servers_back(real_server):
    real_server.set_text(CONFIG, "retries = 4")
    assert wire.read(real_server.url, CONFIG) == "retries = 4"
    real_server.write_state(CONFIG, "retries = 5")
    assert wire.read(real_server.url, CONFIG) == "retries = 5"


def test_the_server_counts_the_reads_that_reach_it(real_server):
    before = real_server.count_reads(GUIDE)
    wire.read(real_server.url, GUIDE)
    wire.read(real_server.url, GUIDE)
    assert real_server.count_reads(GUIDE) == before + 2


def test_a_stream_is_acknowledged_and_tells_of_a_change(listening_server):
    with wire.Stream(listening_server.url, CONFIG, catalog=True) as stream:
        assert stream.response.status_code == 200
        assert stream.response.headers["Content-Type"] == "text/event-stream"
        acknowledged = stream.next_message()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        granted = {"resourcesListChanged": True, "resourceSubscriptions": [CONFIG]}
        assert acknowledged["params"]["notifications"] == granted
        assert acknowledged["params"]["_meta"][SUBSCRIPTION] == stream.request_id
        listening_server.set_text(CONFIG, "retries = 4")
        updated = stream.next_message()
        assert updated["method"] == "notifications/resources/updated"
        assert updated["params"]["uri"] == CONFIG
        assert updated["params"]["_meta"][SUBSCRIPTION] == stream.request_id
        listening_server.touch(CONFIG)
        assert stream.next_message()["params"]["uri"] == CONFIG


def test_a_stream_tells_only_of_what_was_asked_for(listening_server):
    with wire.Stream(listening_server.url, CONFIG) as stream:
        stream.next_message()
        listening_server.set_text(README, "# Another service")
        listening_server.add_document("docs://service/added", "new")
        listening_server.touch(CONFIG)
        assert stream.next_message()["params"]["uri"] == CONFIG


def test_a_stream_tells_of_an_addition_to_the_catalog(listening_server):
    with wire.Stream(listening_server.url, catalog=True) as stream:
        stream.next_message()
        listening_server.add_document("docs://service/added", "new")
        assert stream.next_message()["method"] == "notifications/resources/list_changed"
    listed = wire.call(listening_server.url, "resources/list")["resources"]
    assert [resource["uri"] for resource in listed] == LISTED + ["docs://service/added"]
    assert wire.read(listening_server.url, "docs://service/added") == "new"


def test_a_resource_that_does_not_exist_is_acknowledged_too(listening_server):
    with wire.Stream(listening_server.url, MISSING) as stream:
        assert stream.next_message()["params"]["notifications"] == {"resourceSubscriptions": [MISSING]}


def test_python_ends_lines_with_crlf_and_typescript_with_lf(listening_server):
    with wire.Stream(listening_server.url, CONFIG) as stream:
        stream.next_message()
    line_end = b"\n" if listening_server.kind == "official-typescript" else b"\r\n"
    assert [line for line in stream.lines if line.strip()] and all(
        line.endswith(line_end) and (line_end == b"\r\n" or b"\r" not in line) for line in stream.lines
    )


def test_listening_without_accepting_a_stream_is_refused_by_python_only(listening_server):
    filter_ = {"notifications": {"resourceSubscriptions": [CONFIG]}}
    with wire.open_post(listening_server.url, wire.LISTEN, filter_, Accept="application/json") as response:
        assert response.status_code == (200 if listening_server.kind == "official-typescript" else 406)


def test_listening_for_nothing_ends_at_once_on_typescript_only(listening_server):
    with wire.Stream(listening_server.url) as stream:
        assert stream.next_message()["params"]["notifications"] == {}
        if listening_server.kind == "official-typescript":
            last = stream.next_message()
            assert last["id"] == stream.request_id
            assert last["result"]["resultType"] == "complete"
            with pytest.raises(EOFError):
                stream.next_line()


def test_fastmcp_as_it_comes_cannot_listen_and_says_so(deaf_server):
    with pytest.raises(wire.Refused) as refused:
        wire.call(deaf_server.url, wire.LISTEN, {"notifications": {"resourceSubscriptions": [CONFIG]}})
    assert (refused.value.status, refused.value.code) == (404, -32601)


def test_fastmcp_as_it_comes_tells_of_a_change_only_whoever_made_it(deaf_server):
    answer = wire.post(deaf_server.url, "tools/call", {"name": "touch", "arguments": {"uri": CONFIG}})
    assert answer.headers["Content-Type"] == "text/event-stream"
    notice, result = answer.messages()
    assert notice["method"] == "notifications/resources/updated"
    assert notice["params"] == {"uri": CONFIG}
    assert result["result"]["content"][0]["text"] == "announced"


def test_a_killed_server_cuts_its_stream_and_returns_on_the_same_port_with_the_changed_text(listening_server):
    with wire.Stream(listening_server.url, CONFIG) as stream:
        stream.next_message()
        listening_server.kill()
        with pytest.raises((EOFError, requests.RequestException)):
            stream.next_line()
    with pytest.raises(requests.ConnectionError):
        wire.read(listening_server.url, CONFIG)
    listening_server.write_state(CONFIG, "retries = 9")
    listening_server.restart()
    assert wire.read(listening_server.url, CONFIG) == "retries = 9"


def test_a_document_removed_while_the_server_was_dead_is_missing_when_it_returns(real_server):
    real_server.kill()
    real_server.write_state(README, None)
    real_server.restart()
    with pytest.raises(wire.Refused) as refused:
        wire.read(real_server.url, README)
    assert refused.value.code == -32602


def test_a_held_read_returns_the_old_text_after_the_change_while_others_are_answered(real_server):
    real_server.hold_slow()
    texts = []
    late = threading.Thread(target=lambda: texts.append(wire.read(real_server.url, SLOW)), daemon=True)
    late.start()
    real_server.wait_slow_reached()
    real_server.set_text(SLOW, "slow, second edition")
    assert wire.read(real_server.url, SLOW) == "slow, second edition"
    assert wire.read(real_server.url, CONFIG) == TEXTS[CONFIG]
    assert texts == []
    real_server.release_slow()
    late.join(timeout=15)
    assert texts == ["slow, first edition"]


def test_the_change_is_announced_while_the_read_is_held(listening_server):
    with wire.Stream(listening_server.url, SLOW) as stream:
        stream.next_message()
        listening_server.hold_slow()
        texts = []
        late = threading.Thread(target=lambda: texts.append(wire.read(listening_server.url, SLOW)), daemon=True)
        late.start()
        listening_server.wait_slow_reached()
        listening_server.set_text(SLOW, "slow, second edition")
        assert stream.next_message()["params"]["uri"] == SLOW
        assert texts == []
        listening_server.release_slow()
        late.join(timeout=15)
        assert texts == ["slow, first edition"]


@pytest.mark.parametrize("kind", LISTENING_KINDS)
def test_a_quiet_stream_carries_comments(quiet_streams, kind):
    comment = b": keepalive\n" if kind == "official-typescript" else b": ping\r\n"
    assert quiet_streams[kind].next_comment() == comment
