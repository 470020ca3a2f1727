"""Every fault, once, with what a client sees of it."""

import gzip
import http.client
import json
import re
import socket
import threading

import pytest
from embedded_client import LIMIT, SUBSCRIPTION, drain, events, exchange, request_bytes

from mcp_sync.testing import Answer, Server, faults

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
URI = "a://x"


@pytest.fixture
def server(server):
    server.add(URI, "1")
    return server


# -- which requests ----------------------------------------------------------------------------------------------


def test_a_fault_meets_the_requests_it_is_meant_for_and_no_other(server, peer):
    server.add("a://y", "2")
    injection = server.inject(faults.Status(503), method="resources/read", uri=URI, times=2)
    assert peer.call("server/discover").status == 200
    assert peer.read("a://y").status == 200
    assert [peer.read(URI).status for _ in range(3)] == [503, 503, 200]
    assert injection.used == 2
    assert [request.http_status for request in server.requests] == [200, 200, 503, 503, 200]


def test_faults_apply_in_the_order_of_injection(server, peer):
    server.inject(faults.Status(500))
    server.inject(faults.Status(502), times=None)
    assert [peer.read(URI).status for _ in range(3)] == [500, 502, 502]
    server.clear_faults()
    assert peer.read(URI).status == 200


def test_a_fault_for_a_listen_is_found_by_any_of_its_uris(server, peer):
    server.inject(faults.Status(503), uri="a://z")
    assert peer.read(URI).status == 200
    reply = peer.call("subscriptions/listen", {"notifications": {"resourceSubscriptions": [URI, "a://z"]}})
    assert reply.status == 503


def test_several_faults_apply_together(server, peer):
    server.inject(faults.Bom(), faults.Gzip(), faults.Prelude((b": hello\n\n",)))
    reply = peer.read(URI)
    assert gzip.decompress(reply.body).startswith(b"\xef\xbb\xbf: hello\n\nevent: message\ndata: {")


def test_a_fault_inside_another_may_deal_with_the_connection(server, peer):
    server.inject(faults.Gzip(), faults.Close())
    with pytest.raises(http.client.RemoteDisconnected):
        peer.read(URI)


def test_a_callable_is_a_fault(server, peer):
    def shout(call):
        assert call.request.params["uri"] == URI
        answer = call.proceed()
        content = answer.response["result"]["contents"][0]
        content["text"] = "LOUD " + content["text"]
        return answer

    server.inject(shout)
    assert peer.read(URI).text == "LOUD 1"
    server.inject(lambda call: Answer(status=418, body=b"short and stout"))
    assert (peer.read(URI).status) == 418


# -- other answers -----------------------------------------------------------------------------------------------


def test_statuses(server, peer):
    server.inject(faults.Status(503, headers=(("X-A", "b"),), body=b"<p>", content_type="text/html"))
    reply = peer.read(URI)
    assert (reply.status, reply.headers["X-A"], reply.headers["Content-Type"], reply.body) == (
        503, "b", "text/html", b"<p>")
    server.inject(faults.Status(500))
    reply = peer.read(URI)
    assert (reply.headers["Content-Type"], reply.headers["Content-Length"], reply.body) == (None, "0", b"")
    server.inject(faults.Unauthorized())
    reply = peer.read(URI)
    assert reply.status == 401 and reply.headers["WWW-Authenticate"].startswith("Bearer ")
    server.inject(faults.RateLimited(retry_after="7"))
    reply = peer.read(URI)
    assert (reply.status, reply.headers["Retry-After"]) == (429, "7")
    server.inject(faults.RateLimited(retry_after=None, code=503))
    reply = peer.read(URI)
    assert (reply.status, reply.headers["Retry-After"]) == (503, None)
    server.inject(faults.Redirect(307, "http://elsewhere.example/mcp"))
    reply = peer.read(URI)
    assert (reply.status, reply.headers["Location"]) == (307, "http://elsewhere.example/mcp")


def test_json_rpc_errors(server, peer):
    server.inject(faults.JsonRpcError(-32002, "gone", {"uri": URI}, http_status=404))
    reply = peer.call("resources/read", {"uri": URI}, id="i")
    assert reply.status == 404
    assert reply.messages == [
        {"jsonrpc": "2.0", "id": "i", "error": {"code": -32002, "message": "gone", "data": {"uri": URI}}}]
    server.inject(faults.JsonRpcError(0))
    reply = peer.read(URI)
    assert (reply.status, reply.error) == (200, {"code": 0, "message": "injected"})


def test_results(server, peer):
    server.inject(faults.Result({"contents": []}))
    assert peer.read(URI).messages == [{"jsonrpc": "2.0", "id": 1, "result": {"contents": []}}]
    server.inject(faults.Edit(lambda result: dict(result, ttlMs=float("nan"))))
    assert b'"ttlMs":NaN' in peer.read(URI).body
    server.inject(faults.Edit(lambda result: {}))
    assert "error" in peer.read("a://none").messages[0]  # nothing to edit


@pytest.mark.parametrize("chunked", [True, False])
def test_raw_bodies(server, peer, chunked):
    server.inject(faults.RawBody(b"Something is wrong.", "text/event-stream", status=200, chunked=chunked))
    reply = peer.read(URI)
    assert (reply.status, reply.headers["Content-Type"], reply.body) == (
        200, "text/event-stream", b"Something is wrong.")
    assert (reply.headers["Transfer-Encoding"] == "chunked") is chunked
    assert reply.headers["Content-Length"] is None


def test_no_response_at_all(server, peer):
    server.inject(faults.NoResponse())
    reply = peer.read(URI)
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/event-stream")
    assert reply.body == b": nothing follows\n\n"
    assert reply.messages == []


def test_accepted_in_answer_to_a_request(server, peer):
    server.inject(faults.Accepted202())
    reply = peer.read(URI)
    assert (reply.status, reply.body) == (202, b"")


@pytest.mark.parametrize("value", ["1", None, 2, 0])
def test_wrong_ids(server, peer, value):
    server.inject(faults.WrongId(value), times=None)
    reply = peer.read(URI)
    assert reply.messages[0]["id"] == value and reply.text == "1"
    listener = peer.listen(URI)
    server.wait_for_streams(1)
    server.update(URI, "2")
    server.end_streams("result")
    acknowledged, updated, response = listener.take(3)
    assert acknowledged["params"]["_meta"] == updated["params"]["_meta"] == {SUBSCRIPTION: value}
    assert response["id"] == value


def test_no_meta(server, peer):
    server.inject(faults.NoMeta(), times=None)
    assert "_meta" not in peer.read(URI).result
    listener = peer.listen(URI)
    server.wait_for_streams(1)
    server.update(URI, "2")
    acknowledged, updated = listener.take(2)
    assert acknowledged["params"] == {"notifications": {"resourceSubscriptions": [URI]}}
    assert updated["params"] == {"uri": URI}
    listener.close()


def test_messages_before_the_answer(server, peer):
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
    server.inject(faults.Prelude((b"id: 1\nretry: 3000\ndata:\n\n", progress)))
    reply = peer.read(URI)
    assert reply.body.startswith(b"id: 1\nretry: 3000\ndata:\n\nevent: message\ndata: {")
    assert reply.messages[0] == progress and reply.text == "1"


# -- delivery ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault, error", [
    (faults.Reset(), ConnectionResetError), (faults.Close(), http.client.RemoteDisconnected)])
def test_no_answer(server, peer, fault, error):
    server.inject(fault)
    with pytest.raises(error):
        peer.read(URI)
    assert server.requests[-1].http_status is None
    server.wait_for_connections(0)


@pytest.mark.parametrize("fault", [faults.Reset, faults.Close])
@pytest.mark.parametrize("executed", [True, False])
def test_a_request_whose_answer_is_lost_may_have_been_carried_out(server, peer, fault, executed):
    calls = []
    server.add_tool("count", lambda arguments: str(calls.append(1)))
    server.inject(fault(executed=executed), method="tools/call")
    with pytest.raises(ConnectionError):
        peer.call("tools/call", {"name": "count"})
    assert len(calls) == executed


def test_silence_lasts_until_the_faults_are_cleared(server, peer):
    injection = server.inject(faults.Silence())
    peer.send("resources/read", {"uri": URI})
    injection.wait_used()
    server.update(URI, "2")
    server.clear_faults()
    assert peer.receive().text == "2"
    with pytest.raises(TimeoutError, match="1 of 2 requests met"):
        injection.wait_used(2, timeout=0.01)


def test_silence_ends_when_the_client_leaves_or_the_server_stops(server, peers):
    injection = server.inject(faults.Silence(), times=None)
    leaving, staying = peers(server), peers(server)
    leaving.send("resources/read", {"uri": URI})
    staying.send("resources/read", {"uri": URI})
    injection.wait_used(2)
    leaving.close()
    server.wait_for_connections(1)
    server.kill()
    assert server.connections == 0


def test_half_of_the_headers(server):
    server.inject(faults.HalfHeaders())
    with socket.create_connection((server.host, server.port), LIMIT) as sock:
        sock.sendall(request_bytes("resources/read", {"uri": URI}))
        received = b""
        while not received.endswith(b"Ty"):
            received += sock.recv(100)
        assert received == b"HTTP/1.1 200 OK\r\nContent-Ty"
        server.clear_faults()
        assert sock.recv(100) == b""


@pytest.mark.parametrize("chunk", [1, 7])
@pytest.mark.parametrize("how", ["json", "sse"])
def test_dripping_changes_nothing_but_the_pieces(peers, how, chunk):
    with Server(answer=how) as server:
        server.add(URI, "caf\u00e9" * 500)
        peer = peers(server)
        whole = peer.read(URI)
        server.inject(faults.Drip(chunk), times=None)
        dripped = peer.read(URI)
        assert dripped.body == whole.body
        if how == "sse":
            raw = exchange(server, request_bytes("resources/read", {"uri": URI}, Connection="close"))
            sizes = re.findall(rb"(?:^|\r\n)([0-9a-f]+)\r\n", raw.partition(b"\r\n\r\n")[2])
            assert {int(size, 16) for size in sizes[:-2]} == {chunk}


def test_a_dripping_stream(server, peer):
    server.inject(faults.Drip(1))
    listener = peer.listen(URI)
    server.wait_for_streams(1)
    server.notify_updated(URI, 100)
    server.end_streams("result", timeout=0)
    assert len(events(listener.rest())) == 102


def test_a_large_answer_may_drip(server, peer):
    server.update(URI, "x" * 200000)
    server.inject(faults.Drip(1))
    assert len(peer.read(URI).text) == 200000


@pytest.mark.parametrize("how", ["json", "sse"])
def test_an_answer_can_be_cut_at_every_byte(how):
    with Server(answer=how) as server:
        server.add(URI, "1")
        request = request_bytes("resources/read", {"uri": URI}, Connection="close")
        whole = exchange(server, request)
        for offset in range(len(whole) + 2):
            server.inject(faults.CutAt(offset))
            assert exchange(server, request) == whole[:offset]


@pytest.mark.parametrize("options", [{}, {"answer": "sse"}, {"answer": "sse", "chunked": False}])
def test_a_body_can_be_cut(peers, options):
    with Server(**options) as server:
        server.add(URI, "1")
        whole = peers(server).read(URI).body
        server.inject(faults.CutAt(20, of="body"), times=None)
        if "chunked" in options:
            assert peers(server).read(URI).body == whole[:20]
        else:
            with pytest.raises(http.client.IncompleteRead) as caught:
                peers(server).read(URI)
            assert caught.value.partial == whole[:20]


def test_a_cut_can_be_followed_by_a_reset_or_by_silence(server):
    request = request_bytes("resources/read", {"uri": URI})
    server.inject(faults.CutAt(10, then="reset"))
    with pytest.raises(ConnectionResetError):
        exchange(server, request)
    server.inject(faults.CutAt(10, then="silence"))
    with socket.create_connection((server.host, server.port), LIMIT) as sock:
        sock.sendall(request)
        assert sock.recv(100) == b"HTTP/1.1 2"
        server.clear_faults()
        assert drain(sock) == b""


def test_a_stream_can_be_cut_in_its_second_event(server, peer):
    first = len(peer.listen(URI).until(b"\n\n"))
    server.end_streams()
    server.inject(faults.CutAt(first + 10, of="body"))
    listener = peer.listen(URI)
    server.wait_for_streams(1)
    server.update(URI, "2")
    with pytest.raises(http.client.IncompleteRead):
        listener.rest()
    server.wait_for_no_streams()


def test_compression_of_answers_and_streams(server, peer):
    server.inject(faults.Gzip(), times=None)
    reply = peer.read(URI)
    assert reply.headers["Content-Encoding"] == "gzip"
    assert b'"text":"1"' in gzip.decompress(reply.body)
    listener = peer.listen(URI)
    server.wait_for_streams(1)
    server.update(URI, "2")
    server.end_streams("eof")
    assert [found["method"] for found in events(gzip.decompress(listener.rest()))] == [ACKNOWLEDGED, UPDATED]


def test_a_byte_order_mark(server, peer):
    server.inject(faults.Bom(), times=None)
    assert peer.read(URI).body.startswith(b'\xef\xbb\xbf{"jsonrpc"')
    listener = peer.listen(URI)
    server.wait_for_streams(1)
    server.update(URI, "2")
    server.end_streams("eof")
    received = listener.rest()
    assert received.startswith(b"\xef\xbb\xbfevent: message")
    assert received.count(b"\xef\xbb\xbf") == 1


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "mixed"])
def test_line_ends(server, peer, end):
    server.inject(faults.LineEnds(end))
    listener = peer.listen(URI)
    server.wait_for_streams(1)
    server.notify_updated(URI, 50)
    server.end_streams("eof")
    received = listener.rest()
    used = set(re.findall(rb"\r\n|\r|\n", received))
    assert used == ({b"\n", b"\r", b"\r\n"} if end == "mixed" else {end.encode("ascii")})
    # By the rule of event streams: CRLF, CR and LF each end one line, and an empty line ends an event.
    lines = re.split(rb"\r\n|\r|\n", received)
    assert len(lines) == 51 * 3 + 1
    assert all(line == b"" for line in lines[2::3])
    assert all(line.startswith(b"data: {") for line in lines[1::3])


def test_content_types_and_framings(server, peer):
    server.inject(faults.ContentType("application/json;charset=utf-8"))
    assert peer.read(URI).headers["Content-Type"] == "application/json;charset=utf-8"
    server.inject(faults.ContentType(""))
    assert peer.send("resources/read", {"uri": URI}) is None
    reply = peer.receive()
    assert reply.headers["Content-Type"] is None
    server.inject(faults.Framing("close"))
    reply = peer.read(URI)
    assert (reply.headers["Content-Length"], reply.headers["Connection"], reply.text) == (None, "close", "1")
    server.inject(faults.Framing("chunked"))
    assert peer.read(URI).headers["Transfer-Encoding"] == "chunked"


# -- acknowledgements --------------------------------------------------------------------------------------------


def _heard(server, peer, *given, uris=(URI, "a://y"), **wanted):
    server.inject(*given)
    listener = peer.listen(resourceSubscriptions=list(uris), **wanted)
    server.wait_for_streams(1)
    for uri in (URI, "a://y"):
        server.notify_updated(uri)
    server.end_streams("result")
    found = events(listener.rest())
    assert "result" in found[-1]
    return [(one["method"], one["params"].get("uri", one["params"].get("notifications"))) for one in found[:-1]]


def test_no_acknowledgement(server, peer):
    assert _heard(server, peer, faults.NoAcknowledgement()) == [(UPDATED, URI), (UPDATED, "a://y")]
    assert _heard(server, peer, faults.NoAcknowledgement(events=False)) == []


@pytest.mark.parametrize("only", [[URI], (URI,), URI])
def test_an_acknowledgement_of_some_uris(server, peer, only):
    covers = {"resourcesListChanged": True, "resourceSubscriptions": [URI]}
    assert _heard(server, peer, faults.AcknowledgeOnly(only), resourcesListChanged=True) == [
        (ACKNOWLEDGED, covers), (UPDATED, URI)]


def test_an_acknowledgement_of_another_filter(server, peer):
    assert _heard(server, peer, faults.AcknowledgeOnly({"resourcesListChanged": True})) == [
        (ACKNOWLEDGED, {"resourcesListChanged": True})]
    assert _heard(server, peer, faults.EmptyAcknowledgement()) == [(ACKNOWLEDGED, {})]


def test_an_event_before_the_acknowledgement(server, peer):
    both = {"resourceSubscriptions": [URI, "a://y"]}
    assert _heard(server, peer, faults.AcknowledgeAfterEvent()) == [
        (UPDATED, URI), (ACKNOWLEDGED, both), (UPDATED, URI), (UPDATED, "a://y")]
    assert _heard(server, peer, faults.AcknowledgeAfterEvent(), uris=(), resourcesListChanged=True)[0] == (
        "notifications/resources/list_changed", None)


def test_a_mute_stream(server, peer):
    assert _heard(server, peer, faults.Mute()) == [(ACKNOWLEDGED, {"resourceSubscriptions": [URI, "a://y"]})]


@pytest.mark.parametrize("how", ["eof", "result", "cut", "reset"])
def test_a_stream_that_ends_when_it_has_begun(server, peer, how):
    server.inject(faults.AcknowledgeThenEnd(how))
    listener = peer.listen(URI)
    if how in ("cut", "reset"):
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            listener.rest()
    else:
        assert ACKNOWLEDGED.encode("ascii") in listener.rest()
    server.wait_for_no_streams()


def test_faults_of_listening_change_no_other_answer(server, peer):
    for fault in (faults.NoAcknowledgement(), faults.AcknowledgeOnly([]), faults.EmptyAcknowledgement(),
                  faults.AcknowledgeAfterEvent(), faults.AcknowledgeThenEnd(), faults.Mute()):
        server.inject(fault, method="resources/read")
        assert peer.read(URI).text == "1"


def test_a_listen_that_never_opens_leaves_no_stream(peers):
    with Server(max_streams=1) as server:
        for fault in (faults.Close(executed=True), faults.Reset(executed=True), faults.CutAt(5)):
            server.inject(fault)
            with pytest.raises((ConnectionError, http.client.HTTPException)):
                peers(server).listen(URI)
            server.wait_for_connections(0)
        server.inject(lambda call: call.proceed() and Answer(status=500))
        assert peers(server).call("subscriptions/listen", {"notifications": {}}).status == 500
        listener = peers(server).listen(URI)  # none of those counts any more
        assert listener.next()["method"] == ACKNOWLEDGED
        listener.close()


def test_faults_are_values():
    assert faults.Status(503) == faults.Status(503)
    assert len({faults.Reset(), faults.Reset(), faults.Close()}) == 2
    with pytest.raises(AttributeError):
        faults.Drip(1).chunk = 2
    for name in faults.__all__:
        assert getattr(faults, name).__doc__, name


def test_a_fault_may_block_on_what_a_test_decides(server, peer):
    go = threading.Event()

    def slow(call):
        assert go.wait(LIMIT)
        return call.proceed()

    server.inject(slow)
    peer.send("resources/read", {"uri": URI})
    server.wait_for_requests("resources/read")
    go.set()
    assert json.loads(peer.receive().body.decode("utf-8"))["result"]
