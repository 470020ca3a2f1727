"""The server's life, and what it answers when nothing is wrong."""

import base64
import json
import socket
import threading

import pytest
from embedded_client import LIMIT, drain, exchange, request_bytes

from mcp_sync.testing import Server


def test_it_reads_text_and_bytes(server, peer):
    server.add("docs://text", "caf\u00e9\u2028\u0085", mime_type="text/plain")
    server.add("docs://bytes", b"\x00\xff")
    assert peer.read("docs://text").result == {
        "resultType": "complete",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "mcp_sync-testing", "version": "1"}},
        "contents": [{"uri": "docs://text", "mimeType": "text/plain", "text": "caf\u00e9\u2028\u0085"}],
        "ttlMs": 0,
        "cacheScope": "private",
    }
    blob = peer.read("docs://bytes").result["contents"][0]["blob"]
    assert base64.b64decode(blob) == b"\x00\xff"


def test_characters_go_over_the_wire_as_themselves(server, peer):
    server.add("a://x", "\u2028")
    assert "\u2028".encode("utf-8") in peer.read("a://x").body


def test_text_that_utf8_cannot_hold_is_escaped(server, peer):
    server.add("a://x", "\ud800")
    assert b"\\ud800" in peer.read("a://x").body


def test_a_connection_is_kept_for_many_requests(server, peer):
    server.add("a://x", "1")
    for _ in range(3):
        assert peer.read("a://x").text == "1"
    assert server.connections == 1


def test_answers_as_events_equal_answers_as_json(peers):
    results = []
    for how in ("json", "sse"):
        with Server(answer=how, name="same") as server:
            server.add("a://x", "1")
            results.append(peers(server).read("a://x").messages)
    assert results[0] == results[1]


def test_events_without_chunks_end_with_the_connection(peers):
    with Server(answer="sse", chunked=False) as server:
        server.add("a://x", "1")
        reply = peers(server).read("a://x")
    assert reply.headers["Transfer-Encoding"] is None
    assert reply.headers["Connection"] == "close"
    assert reply.text == "1"


def test_discovery_tells_the_two_capabilities_apart(peers):
    for subscribe, list_changed, resources in (
        (True, True, {"subscribe": True, "listChanged": True}),
        (True, False, {"subscribe": True}),
        (False, True, {"listChanged": True}),
        (False, False, {}),
    ):
        with Server(subscribe=subscribe, list_changed=list_changed, instructions="be kind") as server:
            result = peers(server).call("server/discover").result
        assert result["capabilities"]["resources"] == resources
        assert result["supportedVersions"] == ["2026-07-28"]
        assert result["instructions"] == "be kind"
        assert result["ttlMs"] == 0 and result["cacheScope"] == "private"


def test_the_list_describes_every_resource(server, peer):
    server.add("docs://a/b", "12", title="Title", description="About", mime_type="text/plain",
               last_modified="2026-01-12T15:00:58Z")
    assert peer.call("resources/list").result["resources"] == [{
        "uri": "docs://a/b", "name": "b", "title": "Title", "description": "About", "mimeType": "text/plain", "size": 2,
        "annotations": {"lastModified": "2026-01-12T15:00:58Z"},
    }]
    server.update("docs://a/b", "123", last_modified="2026-01-13T00:00:00Z")
    listed = peer.call("resources/list").result["resources"][0]
    assert listed["size"] == 3
    assert listed["annotations"] == {"lastModified": "2026-01-13T00:00:00Z"}


def test_pages_cover_the_list_once(peers):
    with Server(page_size=2) as server:
        for number in range(5):
            server.add("a://{}".format(number), "")
        peer = peers(server)
        found, params = [], {}
        while True:
            result = peer.call("resources/list", params).result
            assert len(result["resources"]) <= 2
            found += [resource["uri"] for resource in result["resources"]]
            if "nextCursor" not in result:
                break
            params = {"cursor": result["nextCursor"]}
        assert found == ["a://{}".format(number) for number in range(5)]
        reply = peer.call("resources/list", {"cursor": "nonsense"})
    assert (reply.status, reply.error["code"]) == (400, -32602)


def test_caching_hints_of_a_resource_take_the_place_of_the_servers(peers):
    with Server(ttl_ms=1000, cache_scope="public") as server:
        server.add("a://1", "")
        server.add("a://2", "", ttl_ms="soon", cache_scope="private")
        peer = peers(server)
        first, second = peer.read("a://1").result, peer.read("a://2").result
    assert (first["ttlMs"], first["cacheScope"]) == (1000, "public")
    assert (second["ttlMs"], second["cacheScope"]) == ("soon", "private")


def test_the_history_holds_every_value_in_order(server, peer):
    server.add("a://x", "1")
    server.update("a://x", "2")
    assert server.get("a://x") == "2"
    server.remove("a://x")
    server.add("a://x", "3")
    assert server.history("a://x") == ("1", "2", "3")
    assert server.history("a://never") == ()


def test_wrong_use_is_said_at_once(server):
    server.add("a://x", "1")
    with pytest.raises(ValueError, match="exists already"):
        server.add("a://x", "2")
    for call in (lambda: server.update("a://y", "1"), lambda: server.remove("a://y"), lambda: server.get("a://y")):
        with pytest.raises(KeyError):
            call()
    with pytest.raises(ValueError, match="how must be one of"):
        server.end_streams("gently")
    with pytest.raises(ValueError, match="at must be one of"):
        server.hold(at="noon")
    with pytest.raises(ValueError, match="answer must be"):
        Server(answer="xml")


def test_templates_are_listed_and_read(server, peer):
    def read(uri):
        return "user " + uri[8:] if uri.startswith("users://") else None

    server.add_template("users://{id}", "User", read=read)
    assert peer.call("resources/templates/list").result["resourceTemplates"] == [
        {"uriTemplate": "users://{id}", "name": "User"}]
    assert peer.read("users://7").text == "user 7"
    assert peer.read("other://7").error["code"] == -32602


def test_tools_are_listed_and_called(server, peer):
    def fail(arguments):
        raise ValueError("no such city")

    server.add_tool("text", lambda arguments: "hello " + arguments["name"])
    server.add_tool("data", lambda arguments: [1, 2], input_schema={"type": "object", "properties": {}})
    server.add_tool("whole", lambda arguments: {"content": [], "isError": True})
    server.add_tool("fail", fail)
    tools = peer.call("tools/list").result["tools"]
    assert tools[0] == {"name": "text", "inputSchema": {"type": "object"}}

    def call(name, arguments=None):
        arguments = arguments or {}
        return peer.call("tools/call", {"name": name, "arguments": arguments}).result

    assert call("text", {"name": "you"})["content"] == [{"type": "text", "text": "hello you"}]
    assert call("data")["structuredContent"] == [1, 2]
    assert call("whole")["isError"] is True
    assert call("fail")["isError"] is True and "no such city" in call("fail")["content"][0]["text"]
    assert peer.call("tools/call", {"name": "none"}).error == {"code": -32602, "message": "Unknown tool: none"}


# -- principals --------------------------------------------------------------------------------------------------


def _by_token(headers):
    return {"Bearer a": "alice", "Bearer b": "bob"}.get(headers.get("authorization", ""))


def test_each_principal_sees_what_is_its_own(peers):
    with Server(authenticate=_by_token) as server:
        server.add("a://all", lambda principal: "for " + principal)
        server.add("a://alice", "secret", principals={"alice"})
        alice, bob = peers(server, Authorization="Bearer a"), peers(server, Authorization="Bearer b")
        assert alice.read("a://all").text == "for alice"
        assert bob.read("a://all").text == "for bob"
        assert alice.read("a://alice").text == "secret"
        assert bob.read("a://alice").status == 403
        assert [len(one.call("resources/list").result["resources"]) for one in (alice, bob)] == [2, 1]
        assert [request.principal for request in server.requests[:2]] == ["alice", "bob"]
        server.restrict("a://alice", {"bob"})
        assert alice.read("a://alice").status == 403
        assert bob.read("a://alice").text == "secret"


def test_a_stranger_is_asked_for_credentials(peers):
    with Server(authenticate=_by_token) as server:
        reply = peers(server).call("server/discover")
    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"].startswith("Bearer ")


def test_what_a_users_callable_raises_is_shown_to_the_client(server, peer, caplog):
    def broken(principal):
        raise RuntimeError("the database is away")

    server.add("a://x", broken)
    reply = peer.read("a://x")
    assert (reply.status, reply.error["code"]) == (500, -32603)
    assert "the database is away" in reply.error["message"]
    assert "RuntimeError" in caplog.text


# -- life --------------------------------------------------------------------------------------------------------


def _refuses(server):
    try:
        socket.create_connection((server.host, server.port), LIMIT).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_stopped_server_refuses_and_comes_back_on_the_same_port(server, peers):
    server.add("a://x", "1")
    port = server.port
    for end in (server.stop, server.kill):
        assert peers(server).read("a://x").text == "1"
        end()
        assert _refuses(server)
        assert server.connections == 0
        server.restart()
        assert server.port == port
        server.start()  # runs already
    assert peers(server).read("a://x").text == "1"
    server.restart()  # while it runs
    assert peers(server).read("a://x").text == "1"


def test_stopping_ends_idle_connections_gracefully(server):
    with socket.create_connection((server.host, server.port), LIMIT) as sock:
        server.wait_for_connections(1)
        server.stop()
        assert sock.recv(1) == b""


def test_killing_resets_every_connection(server):
    with socket.create_connection((server.host, server.port), LIMIT) as sock:
        server.wait_for_connections(1)
        server.kill()
        with pytest.raises(ConnectionResetError):
            sock.recv(1)


def test_stopping_resets_a_client_that_does_not_read(server, peers):
    server.add("a://x", "x" * 20000000)
    peer = peers(server)
    peer.send("resources/read", {"uri": "a://x"})
    server.wait_for_requests("resources/read")
    server.stop()
    assert server.connections == 0


def test_a_tool_may_stop_the_server_that_runs_it(server, peer):
    stopped = threading.Event()

    def stop(arguments):
        server.stop()
        stopped.set()
        return "stopped"

    server.add_tool("stop", stop)
    try:
        peer.call("tools/call", {"name": "stop"})
    except ConnectionError:
        pass  # the connection that runs the tool is reset with the rest
    assert stopped.wait(LIMIT)
    server.wait_for_connections(0)


def test_everything_outlives_a_restart(server, peers):
    server.add("a://x", "1")
    peers(server).read("a://x")
    server.kill()
    server.update("a://x", "2")
    server.restart()
    assert peers(server).read("a://x").text == "2"
    assert server.history("a://x") == ("1", "2")
    assert server.count("resources/read", "a://x") == 2


def test_two_servers_do_not_know_each_other(server, peers):
    with Server(path="/other") as other:
        other.add("a://x", "other")
        server.add("a://x", "this")
        assert peers(other).read("a://x").text == "other"
        assert peers(server).read("a://x").text == "this"
        assert other.url == "http://127.0.0.1:{}/other".format(other.port)


# -- what was asked ----------------------------------------------------------------------------------------------


def test_requests_are_recorded_whole(server, peer):
    server.add("a://x", "1")
    peer.call("resources/read", {"uri": "a://x"}, id="seven")
    request, = server.requests
    assert (request.http_method, request.path) == ("POST", "/mcp")
    assert (request.method, request.id) == ("resources/read", "seven")
    assert request.params["uri"] == "a://x"
    assert request.headers["mcp-NAME"] == "a://x"
    assert "Mcp-Name" in list(request.headers)
    assert json.loads(request.body.decode("utf-8")) == request.message
    assert request.http_status == 200
    assert server.count("resources/read") == server.count(uri="a://x") == server.count() == 1
    assert server.count("resources/list") == server.count("resources/read", "a://y") == 0
    server.forget_requests()
    assert server.requests == ()


def test_waiting_for_requests_is_bounded_and_tells_what_came(server, peer):
    peer.call("server/discover")
    server.wait_for_requests("server/discover")
    with pytest.raises(TimeoutError, match="1 of 2 requests for server/discover"):
        server.wait_for_requests("server/discover", 2, timeout=0.01)
    with pytest.raises(TimeoutError):
        server.wait_for_streams(1, timeout=0.01)
    with pytest.raises(TimeoutError):
        server.wait_for_connections(9, timeout=0.01)


# -- gates -------------------------------------------------------------------------------------------------------


def _in_thread(call):
    results = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()

    def join():
        thread.join(LIMIT)
        assert not thread.is_alive()
        return results[0]

    return join


def test_a_read_held_at_arrival_answers_what_is_true_when_it_is_let_through(server, peer):
    server.add("a://x", "old")
    with server.hold("resources/read", "a://x") as gate:
        answer = _in_thread(lambda: peer.read("a://x"))
        gate.wait_reached()
        server.update("a://x", "new")
    assert answer().text == "new"


def test_a_read_held_at_its_answer_answers_what_was_true_before(server, peer, peers):
    server.add("a://x", "old")
    with server.hold("resources/read", "a://x", at="answer") as gate:
        late = _in_thread(lambda: peer.read("a://x"))
        gate.wait_reached()
        server.update("a://x", "new")
        prompt = _in_thread(lambda: peers(server).read("a://x"))
        gate.wait_reached(2)
        assert gate.reached == 2
    assert late().text == "old"
    assert prompt().text == "new"


def test_a_gate_lets_requests_through_in_the_order_of_arrival(server, peers):
    server.add("a://x", "1")
    gate = server.hold("resources/read", at="answer")
    first = _in_thread(lambda: peers(server).read("a://x"))
    gate.wait_reached(1)
    server.update("a://x", "2")
    second = _in_thread(lambda: peers(server).read("a://x"))
    gate.wait_reached(2)
    gate.release(1)
    assert first().text == "1"
    gate.release()
    assert second().text == "2"
    assert peers(server).read("a://x").text == "2"  # open for good


def test_a_gate_holds_only_what_matches(server, peer):
    server.add("a://x", "1")
    server.add("a://y", "2")
    with server.hold("resources/read", "a://x") as gate:
        assert peer.read("a://y").text == "2"
        with pytest.raises(TimeoutError, match="0 of 1 requests reached the gate"):
            gate.wait_reached(timeout=0.01)


def test_a_held_request_whose_client_leaves_is_dropped(server, peer):
    server.add("a://x", "1")
    with server.hold("resources/read") as gate:
        peer.send("resources/read", {"uri": "a://x"})
        gate.wait_reached()
        peer.close()
        server.wait_for_connections(0)


def test_the_end_of_the_server_opens_no_gate_and_waits_for_none(server, peer):
    server.add("a://x", "1")
    with server.hold("resources/read") as gate:
        answer = _in_thread(lambda: peer.read("a://x"))
        gate.wait_reached()
        server.stop()
        assert answer().text == "1"
        assert server.connections == 0


def test_a_listen_request_can_be_held_before_its_acknowledgement(server, peer):
    server.add("a://x", "1")
    with server.hold("subscriptions/listen", "a://x", at="answer") as gate:
        opened = _in_thread(lambda: peer.listen("a://x"))
        gate.wait_reached()
        assert server.streams == 0
        server.update("a://x", "2")  # between look-up and acknowledgement: must not be lost
    listener = opened()
    assert [found["method"] for found in listener.take(2)] == [
        "notifications/subscriptions/acknowledged", "notifications/resources/updated"]
    listener.close()


# -- bytes -------------------------------------------------------------------------------------------------------


def test_a_request_may_come_in_pieces_and_in_chunks(server):
    server.add("a://x", "1")
    whole = request_bytes("resources/read", {"uri": "a://x"}, Connection="close")
    with socket.create_connection((server.host, server.port), LIMIT) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(len(whole)):
            sock.sendall(whole[start:start + 1])
        assert b'"text":"1"' in drain(sock)
    head, _, body = whole.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Content-Length")]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:10], body[10:]))
    head = b"\r\n".join(lines + [b"Transfer-Encoding: chunked", b"Expect: 100-continue", b"", b""])
    answer = exchange(server, head + chunks + b"0\r\nTrailer: 1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
    assert b'"text":"1"' in answer


def test_two_requests_may_be_sent_at_once(server):
    server.add("a://x", "1")
    answers = exchange(server, request_bytes("resources/read", {"uri": "a://x"}, id=1)
                       + request_bytes("resources/read", {"uri": "a://x"}, id=2, Connection="close"))
    assert answers.count(b"HTTP/1.1 200 OK") == 2


def test_an_old_http_client_gets_no_chunks(peers):
    with Server(answer="sse") as server:
        answer = exchange(server, request_bytes("server/discover", version="HTTP/1.0"))
    assert b"chunked" not in answer
    assert answer.endswith(b"\n\n")


@pytest.mark.parametrize("data", [b"nonsense\r\n\r\n", b"POST /mcp HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                                  b"POST /mcp HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"x" * 100000])
def test_what_is_not_http_ends_the_connection(server, data, caplog):
    try:
        assert exchange(server, data) == b""
    except ConnectionResetError:
        pass  # there were bytes left that nobody read
    server.wait_for_connections(0)
    assert "a connection was dropped" in caplog.text


def test_many_clients_at_once_each_get_their_own_answer(server, peers):
    for number in range(20):
        server.add("a://{}".format(number), str(number))

    def reads(number):
        peer = peers(server)
        return [peer.read("a://{}".format(number)).text for _ in range(20)]

    joins = [_in_thread(lambda number=number: reads(number)) for number in range(20)]
    for number, join in enumerate(joins):
        assert join() == [str(number)] * 20


def test_a_restart_waits_for_a_port_that_is_taken_for_a_moment(server):
    server.stop()
    taker = socket.socket()
    taker.bind((server.host, server.port))
    taker.listen(1)
    timer = threading.Timer(0.05, taker.close)
    timer.start()
    server.start()
    timer.join(LIMIT)
    assert not _refuses(server)
