"""What an HTTP answer says: in each form that it comes in, and when it is none."""

import gzip
import json
import zlib
from typing import Any, Callable, List

import pytest
from posting import URI, calling, listening, messages, reading, result_from, transport
from rawserver import (
    CHUNKED_EVENTS_HEAD,
    EVENTS_HEAD,
    JSON_HEAD,
    Outcome,
    Peer,
    RawServer,
    Request,
    chunk,
    head,
    json_answer,
)

from mcp_sync import Client
from mcp_sync._deadline import Deadline
from mcp_sync.errors import (
    AuthorizationError,
    MCPSyncError,
    MessageTooLarge,
    ProtocolError,
    TransportError,
)
from mcp_sync.jsonrpc import Notification, Response
from mcp_sync.testing import Server, faults
from mcp_sync.transports._body import _Decompressor

Script = Callable[[Peer], None]
CONTENTS = [{"uri": URI, "text": 'blå 世界 "a\u2028b\u0085c"'}]
RESULT = {"contents": CONTENTS}


def serving(answer: "Callable[[Request], bytes]", stay: bool = False) -> Script:
    """A script that answers one request, and then closes the connection or stays silent."""

    def script(peer: Peer) -> None:
        peer.send(answer(peer.request()))
        if stay:
            peer.wait_gone()

    return script


def contents(answer: "Callable[[Request], bytes]", **options: Any) -> Any:
    """What the client makes of an answer."""
    with RawServer(serving(answer)) as server:
        return Outcome(lambda: result_from(server.url, **options)).value()["contents"]


def error(answer: "Callable[[Request], bytes]", outgoing: Any = None, stay: bool = False, **options: Any) -> Any:
    """What the client raises over an answer."""
    with RawServer(serving(answer, stay)) as server:
        return Outcome(lambda: result_from(server.url, outgoing, **options)).error()


# -- the forms of an answer --------------------------------------------------------------------------------------------


def as_json(request: Request) -> bytes:
    return json_answer(request.answer(RESULT))


def as_json_to_the_end(request: Request) -> bytes:
    return JSON_HEAD + request.answer(RESULT)


def as_json_in_chunks(request: Request) -> bytes:
    body = request.answer(RESULT)
    parts = b"".join(chunk(body[at : at + 7]) for at in range(0, len(body), 7))
    return head("Content-Type: application/json", "Transfer-Encoding: chunked") + parts + b"0\r\n\r\n"


def as_json_with_trailers(request: Request) -> bytes:
    start = head("Content-Type: application/json", "Transfer-Encoding: Chunked")
    body = request.answer(RESULT)
    return start + b"%x;extension=1\r\n%s\r\n0\r\nX: y\r\n\r\n" % (len(body), body)


def as_pretty_json(request: Request) -> bytes:
    return json_answer(json.dumps(json.loads(request.answer(RESULT).decode("utf-8")), indent=2).encode("utf-8"))


def as_json_with_a_mark(request: Request) -> bytes:
    return json_answer(b"\xef\xbb\xbf" + request.answer(RESULT))


def as_an_event(request: Request) -> bytes:
    return EVENTS_HEAD + request.event(RESULT)


def as_an_event_in_chunks(request: Request) -> bytes:
    return CHUNKED_EVENTS_HEAD + chunk(b"event: message\r\n" + request.event(RESULT)) + b"0\r\n\r\n"


def as_an_event_with_a_length(request: Request) -> bytes:
    body = request.event(RESULT)
    return head("Content-Type: text/event-stream", "Content-Length: %d" % len(body)) + body


def as_an_event_behind_others(request: Request) -> bytes:
    before = (
        b"\xef\xbb\xbf: hello\n\nid: 1\nretry: 3000\ndata:\n\n"
        b'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n'
        b'event: other\ndata: {"not": "ours"}\n\n'
        b'data: {"jsonrpc":"2.0","id":7,"method":"sampling/createMessage"}\n\n'
        b"data: [1, 2]\n\ndata: {broken\n\ndata: \xff\n\n"
    )
    return EVENTS_HEAD + before + request.event(RESULT) + b"data: {}\n\n"


def as_gzip(request: Request) -> bytes:
    return json_answer(gzip.compress(request.answer(RESULT)), "Content-Encoding: gzip")


def as_deflate(request: Request) -> bytes:
    return json_answer(zlib.compress(request.answer(RESULT)), "Content-Encoding: Deflate")


def as_gzip_of_several_members(request: Request) -> bytes:
    body = request.answer(RESULT)
    parts = [gzip.compress(body[at : at + 10]) for at in range(0, len(body), 10)]
    return json_answer(b"".join(parts), "Content-Encoding: x-gzip")


def as_compressed_events(request: Request) -> bytes:
    start = head("Content-Type: text/event-stream", "Content-Encoding: gzip", "Transfer-Encoding: chunked")
    compressor = zlib.compressobj(wbits=31)
    parts = []
    for piece in (b": hello\n\n", request.event(RESULT)):
        parts.append(chunk(compressor.compress(piece) + compressor.flush(zlib.Z_SYNC_FLUSH)))
    return start + b"".join(parts) + chunk(compressor.flush()) + b"0\r\n\r\n"


def behind_interim_answers(request: Request) -> bytes:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
    return b"HTTP/1.1 100 Continue\r\n\r\n" + early + as_json(request)


def with_http_1_0(request: Request) -> bytes:
    return as_json(request).replace(b"HTTP/1.1", b"HTTP/1.0", 1)


def with_a_terse_status_line(request: Request) -> bytes:
    return as_json(request).replace(b"HTTP/1.1 200 OK", b"HTTP/1.1 200", 1)


def with_bare_line_feeds(request: Request) -> bytes:
    return as_json(request).replace(b"\r\n", b"\n")


def with_status_201(request: Request) -> bytes:
    return as_json(request).replace(b"200 OK", b"201 Created", 1)


FORMS: "List[Callable[[Request], bytes]]" = [
    as_json,
    as_json_to_the_end,
    as_json_in_chunks,
    as_json_with_trailers,
    as_pretty_json,
    as_json_with_a_mark,
    as_an_event,
    as_an_event_in_chunks,
    as_an_event_with_a_length,
    as_an_event_behind_others,
    as_gzip,
    as_deflate,
    as_gzip_of_several_members,
    as_compressed_events,
    behind_interim_answers,
    with_http_1_0,
    with_a_terse_status_line,
    with_bare_line_feeds,
    with_status_201,
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_the_same_answer_in_each_form_is_the_same(form: "Callable[[Request], bytes]") -> None:
    assert contents(form) == CONTENTS


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_the_same_answer_one_byte_at_a_time_is_the_same(form: "Callable[[Request], bytes]") -> None:
    def script(peer: Peer) -> None:
        for byte in form(peer.request()):
            peer.send(bytes([byte]))

    with RawServer(script) as server:
        assert Outcome(lambda: result_from(server.url)).value()["contents"] == CONTENTS


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json;charset=utf-8",
        "application/json; charset=iso-8859-1",
        "APPLICATION/JSON",
        " application/json ; x=y",
    ],
)
def test_json_is_json_and_utf_8_however_it_is_labelled(content_type: str) -> None:
    def answer(request: Request) -> bytes:
        return head("Content-Type:" + content_type, "Connection: close") + request.answer(RESULT)

    assert contents(answer) == CONTENTS


@pytest.mark.parametrize(
    "content_type",
    [
        "text/event-stream",
        'Text/Event-Stream ; charset="UTF-8"',
        "text/event-stream;charset=iso-8859-1",
        "TEXT/EVENT-STREAM",
    ],
)
def test_events_are_events_and_utf_8_however_they_are_labelled(content_type: str) -> None:
    def answer(request: Request) -> bytes:
        return head("Content-Type: " + content_type, "Connection: close") + request.event(RESULT)

    assert contents(answer) == CONTENTS


def test_what_comes_before_the_answer_on_a_stream_is_handed_out_in_order() -> None:
    with RawServer(serving(as_an_event_behind_others)) as server:
        door = transport(server.url)
        got = Outcome(lambda: messages(door)).value()
        door.close()
    assert [type(message).__name__ for message in got] == [
        "Notification",
        "Request",
        "ProtocolError",
        "ProtocolError",
        "ProtocolError",
        "Response",
    ]
    assert "a batch of messages" in str(got[2])
    assert "not JSON" in str(got[3]) and "not UTF-8" in str(got[4])


def test_of_updates_that_come_together_one_is_handed_out_and_of_all_else_each() -> None:
    def notice(method: str, **params: Any) -> bytes:
        message = {"jsonrpc": "2.0", "method": "notifications/" + method, "params": params}
        return b"data: " + json.dumps(message).encode("ascii") + b"\n\n"

    updated, other = (notice("resources/updated", uri=uri) for uri in ("docs://a", "docs://b"))
    log, progress = notice("message", level="info", data="x"), notice("progress", progressToken=1, progress=1)

    def answer(request: Request) -> bytes:
        pieces = [updated + other, log + updated + progress + updated + log + other + progress + updated]
        pieces.append(request.event(RESULT))
        return CHUNKED_EVENTS_HEAD + b"".join(chunk(piece) for piece in pieces) + chunk(b"")

    with RawServer(serving(answer)) as server:
        door = transport(server.url)
        got = Outcome(lambda: messages(door)).value()
        door.close()
    words = [(message.params or {}).get("uri", message.method[14:]) for message in got[:-1]]
    assert words == ["docs://a", "docs://b", "message", "docs://a", "progress", "message", "docs://b", "progress"]


@pytest.mark.parametrize("size", [1, 1400, 65536])
def test_a_large_message_in_pieces_is_whole(size: int) -> None:
    text = "世" * 70000

    def script(peer: Peer) -> None:
        request = peer.request()
        body = request.event({"contents": [{"uri": URI, "text": text}]})
        peer.send(CHUNKED_EVENTS_HEAD)
        if size == 1:
            # One chunk for each byte, but not one packet: that would be the network's time and not ours.
            body = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
            peer.send(body)
        else:
            for at in range(0, len(body), size):
                peer.send(chunk(body[at : at + size]))
        peer.send(b"0\r\n\r\n")

    with RawServer(script) as server:
        result = Outcome(lambda: result_from(server.url)).value()
    assert result["contents"][0]["text"] == text


@pytest.mark.parametrize("start", [EVENTS_HEAD, CHUNKED_EVENTS_HEAD])
def test_a_small_event_followed_by_silence_is_delivered_at_once(start: bytes) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        event = b'data: {"method":"x"}\n\n'
        peer.send(start + (event if start is EVENTS_HEAD else chunk(event)))
        peer.wait_gone()

    with RawServer(script) as server:
        door = transport(server.url)
        exchange = door.exchange(listening(), Deadline(None))
        assert Outcome(lambda: next(exchange)).value() == Notification("x", {})
        assert exchange.heard_at is not None
        exchange.close()
        server.wait_gone()
        door.close()


def test_a_compressed_event_followed_by_silence_is_delivered_at_once() -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(head("Content-Type: text/event-stream", "Content-Encoding: gzip", "Connection: close"))
        compressor = zlib.compressobj(wbits=31)
        # So regular that it is all but nothing when compressed, and more than a buffer when it is not.
        event = b'data: {"method":"%s"}\n\n' % (b"x" * 300000)
        peer.send(compressor.compress(event) + compressor.flush(zlib.Z_SYNC_FLUSH))
        peer.wait_gone()

    with RawServer(script) as server:
        door = transport(server.url)
        exchange = door.exchange(listening(), Deadline(None))
        assert Outcome(lambda: next(exchange)).value() == Notification("x" * 300000, {})
        exchange.close()
        door.close()


@pytest.mark.parametrize(
    "retry, seconds",
    [("3000", 3.0), ("0", 0.0), ("999999999", 999999.999), ("²", None), ("-1", None), ("1e3", None), ("9" * 99, None)],
)
def test_what_a_stream_says_of_its_resumption_is_kept(retry: str, seconds: Any) -> None:
    def answer(request: Request) -> bytes:
        return EVENTS_HEAD + b"id: 7\nretry: " + retry.encode("utf-8") + b"\ndata:\n\n" + request.event(RESULT)

    with RawServer(serving(answer)) as server:
        door = transport(server.url)
        with door.exchange(reading(), Deadline(20.0)) as exchange:
            assert [message.result["contents"] for message in exchange] == [CONTENTS]
            assert (exchange.last_event_id, exchange.retry) == ("7", seconds)
        door.close()


# -- no answer ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body, told",
    [
        (b": keep-alive\n\n", "ended the stream without an answer to resources/read; it began: : keep-alive"),
        (b"", "ended the stream without an answer to resources/read"),
        (b"Service unavailable\n", "it began: Service unavailable"),
        (b'data: {"jsonrpc":"2.0","method":"x"}\n\n', "ended the stream without an answer"),
        (b'data: {"jsonrpc":"2.0","id":1,"resu', "ended the stream without an answer"),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', 'it began: {"jsonrpc"'),
    ],
)
def test_a_stream_that_ends_without_an_answer_fails_at_once_and_shows_its_start(body: bytes, told: str) -> None:
    for answer in (EVENTS_HEAD + body, CHUNKED_EVENTS_HEAD + (chunk(body) if body else b"") + b"0\r\n\r\n"):
        caught = error(lambda request: answer)
        assert type(caught) is TransportError and told in str(caught), caught
        assert (caught.status, caught.headers["Content-Type"]) == (200, "text/event-stream")


def test_the_answer_to_another_request_does_not_end_a_stream() -> None:
    def answer(request: Request) -> bytes:
        return EVENTS_HEAD + b'data: {"id":77,"result":{}}\n\n' + request.event(RESULT)

    with RawServer(serving(answer)) as server:
        door = transport(server.url)
        got = Outcome(lambda: messages(door)).value()
        door.close()
    assert [message.id == 77 for message in got] == [True, False]


@pytest.mark.parametrize("status", ["202 Accepted", "204 No Content"])
@pytest.mark.parametrize("lines", [("Content-Length: 0",), (), ("Content-Type: application/json", "Content-Length: 0")])
def test_nothing_in_answer_to_a_request_is_an_error_at_once(status: str, lines: "Any") -> None:
    lines = lines or ("Connection: close",)
    caught = error(lambda request: head(*lines, status=status), stay=True, timeout=5.0)
    assert type(caught) is ProtocolError
    assert "answered a request (resources/read) with %s and nothing else" % status[:3] in str(caught)


def test_an_empty_document_is_an_error() -> None:
    caught = error(lambda request: json_answer(b""))
    assert type(caught) is ProtocolError and "nothing else, which is no answer" in str(caught)


@pytest.mark.parametrize(
    "answer, told",
    [
        (json_answer(b"Hello!"), "not JSON: Hello!"),
        (json_answer(b"[]"), "a batch of messages: []"),
        (json_answer(b'[{"jsonrpc":"2.0","id":1,"result":{}}]'), "a batch of messages: "),
        (json_answer(b'{"error":"invalid_token"}'), "not a JSON-RPC message: "),
        (json_answer(b"event: message\ndata: {}\n\n"), "not JSON: event: message data: {}"),
        (json_answer(b"[" * 20000), "not JSON: [[["),
        (head("Content-Type: text/html", "Connection: close") + b"<html>Log in</html>", ": <html>Log in</html>"),
        (head("Content-Type: text/html", "Connection: close"), "with text/html, neither application/json nor"),
        (head("Connection: close") + b"hello", "with no content type, neither application/json nor"),
        (head("Content-Type: application/problem+json", "Connection: close") + b"{}", "application/problem+json"),
        (head("Content-Type: ,", "Connection: close") + b"x", "with ,, neither"),
    ],
)
def test_a_body_that_is_no_answer_is_shown(answer: bytes, told: str) -> None:
    caught = error(lambda request: answer)
    assert type(caught) is ProtocolError and told in str(caught), caught


def test_of_an_endless_page_only_the_start_is_read() -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(head("Content-Type: text/html", "Connection: close"))
        while True:
            peer.send(b"<p>page</p>" * 1000)

    with RawServer(script) as server:
        caught = Outcome(lambda: result_from(server.url)).error()
    assert type(caught) is ProtocolError and "<p>page</p><p>page</p>" in str(caught)


def test_a_page_whose_rest_never_comes_is_not_waited_for(monkeypatch: Any) -> None:
    monkeypatch.setattr("mcp_sync.transports._answer._ERROR_PATIENCE", 0.05)

    def script(peer: Peer) -> None:
        peer.request()
        peer.send(head("Content-Type: text/html", "Content-Length: 1000", status="503 Away") + b"half a page")
        peer.wait_gone()

    with RawServer(script) as server:
        caught = Outcome(lambda: result_from(server.url, timeout=3600.0)).error()
    assert isinstance(caught, TransportError)
    assert (caught.status, caught.body_start) == (503, "half a page")


# -- statuses ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [400, 402, 404, 405, 406, 409, 415, 422, 429, 500, 501, 502, 503, 504, 529, 599, 999])
def test_a_bad_status_is_told_with_its_headers_and_its_words(code: int) -> None:
    def answer(request: Request) -> bytes:
        body = b"<h1>no\r\n way</h1>"
        lines = ("Content-Type: text/html", "X-Request-Id: 7", "Content-Length: %d" % len(body))
        return head(*lines, status="%d Whatever" % code) + body

    caught = error(answer)
    assert type(caught) is TransportError
    assert str(caught).endswith("answered with HTTP status %d: <h1>no way</h1>" % code)
    assert (caught.status, caught.headers["x-request-id".title()], caught.body_start) == (code, "7", "<h1>no way</h1>")
    assert caught.may_have_run is (code >= 500)


@pytest.mark.parametrize("code", [401, 403])
def test_refused_credentials_are_an_error_of_their_own(code: int) -> None:
    lines = ('WWW-Authenticate: Bearer realm="x", error="invalid_token"', "Content-Length: 0", "Retry-After: 3")
    caught = error(lambda request: head(*lines, status="%d No" % code))
    assert type(caught) is AuthorizationError
    assert (caught.status, caught.challenge) == (code, 'Bearer realm="x", error="invalid_token"')
    assert (caught.retry_after, caught.may_have_run) == (3.0, False)


def test_refused_credentials_are_that_even_if_a_json_rpc_error_says_so_too() -> None:
    body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Unauthorized"}}'
    caught = error(lambda request: json_answer(body, status="401 Unauthorized"))
    assert type(caught) is AuthorizationError and "Unauthorized" in caught.body_start


@pytest.mark.parametrize("status", ["200 OK", "400 Bad", "404 Not Found", "409 Conflict", "500 Oops", "503 Away"])
@pytest.mark.parametrize(
    "content_type", ["application/json", "text/plain", "text/html; charset=utf-8", "application/problem+json", ""]
)
def test_a_json_rpc_error_counts_under_any_status_and_any_label(status: str, content_type: str) -> None:
    if status == "200 OK" and content_type != "application/json":
        content_type = "application/json; v=1"

    def answer(request: Request) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", "id": request.id, "error": {"code": -32601, "message": "no"}}).encode()
        lines = ["Content-Length: %d" % len(body)]
        if content_type:
            lines.append("Content-Type: " + content_type)
        return head(*lines, status=status) + body

    with RawServer(serving(answer)) as server:
        door = transport(server.url)
        with door.exchange(reading(), Deadline(20.0)) as exchange:
            [got] = list(exchange)
            assert exchange.status == int(status[:3])
        door.close()
    assert isinstance(got, Response) and got.error == {"code": -32601, "message": "no"}


def test_a_json_rpc_error_counts_as_an_event_under_a_bad_status_as_well() -> None:
    def answer(request: Request) -> bytes:
        event = b'data: {"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"no"}}\n\n' % request.id
        return head("Content-Type: text/event-stream", "Connection: close", status="500 Oops") + event

    with RawServer(serving(answer)) as server:
        door = transport(server.url)
        [got] = Outcome(lambda: messages(door)).value()
        door.close()
    assert isinstance(got, Response) and got.error == {"code": -32603, "message": "no"}


@pytest.mark.parametrize("body", [b'{"id":1,"result":{}}', b'{"error":"x"}', b'{"method":"x"}', b"null"])
def test_what_is_no_json_rpc_error_does_not_hide_the_status(body: bytes) -> None:
    caught = error(lambda request: json_answer(body, status="400 Bad Request"))
    assert type(caught) is TransportError and caught.status == 400


@pytest.mark.parametrize("status", ["300 Choices", "304 Not Modified", "305 Use Proxy", "101 Switching Protocols"])
def test_other_statuses_are_told_too(status: str) -> None:
    caught = error(lambda request: head("Content-Length: 0", "Location: /x", status=status))
    assert type(caught) is TransportError and caught.status == int(status[:3])


# -- compression that was not asked for --------------------------------------------------------------------------------


def test_compression_is_not_asked_for() -> None:
    with RawServer(serving(as_json)) as server:
        result_from(server.url)
        assert server.requests[0].header("Accept-Encoding") == "identity"


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, gzip", "aes128gcm"])
def test_a_compression_that_is_not_understood_is_named(coding: str) -> None:
    for start in ("application/json", "text/event-stream"):
        lines = ("Content-Type: " + start, "Content-Encoding: " + coding, "Connection: close")
        caught = error(lambda request: head(*lines) + b"\x1b\x03")
        assert type(caught) is ProtocolError and "compresses its answers (%s)" % coding in str(caught)


@pytest.mark.parametrize(
    "body", [b'{"plain": "text"}', b"\x1f\x8b\x08garbage", gzip.compress(b"x" * 100)[:-20] + b"y" * 20]
)
def test_what_is_labelled_as_compressed_and_is_not_is_no_text(body: bytes) -> None:
    caught = error(lambda request: json_answer(body, "Content-Encoding: gzip"))
    assert type(caught) is ProtocolError and "compresses its answers although asked not to, and wrongly" in str(caught)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_a_compressed_answer_without_its_end_is_broken_off(kind: str) -> None:
    def answer(request: Request) -> bytes:
        body = request.event(RESULT) if kind == "text/event-stream" else request.answer(RESULT)
        cut = gzip.compress(body)[:-12]
        return head("Content-Type: " + kind, "Content-Encoding: gzip", "Content-Length: %d" % len(cut)) + cut

    caught = error(answer)
    assert type(caught) is TransportError and "it ended in the middle" in str(caught)


def test_all_that_a_compressed_piece_holds_is_told_at_once() -> None:
    # So regular that a byte is a kilobyte: a full buffer leaves something behind within the decompressor.
    compressed = gzip.compress(b"x" * 200000)
    for end in range(len(compressed) + 1):
        whole = zlib.decompressobj(31).decompress(compressed[:end])
        assert b"".join(_Decompressor("x").pieces(compressed[:end])) == whole, end


# -- size --------------------------------------------------------------------------------------------------------------

MEGABYTE = 1 << 20


def endless(peer: Peer, start: bytes, piece: bytes) -> None:
    peer.request()
    peer.send(start)
    while True:
        peer.send(piece)


@pytest.mark.parametrize(
    "start, piece",
    [
        (JSON_HEAD, b" " * 10000),
        (head("Content-Type: application/json", "Transfer-Encoding: chunked"), chunk(b"x" * 10000)),
        (head("Content-Type: application/json", "Content-Length: 999999999999"), b"x" * 10000),
        (head("Content-Type: application/json", "Content-Length: 99999999999999999"), b"x" * 10000),
        (EVENTS_HEAD, b"data: x\n" * 1000),
        (EVENTS_HEAD, b"x" * 10000),
        (CHUNKED_EVENTS_HEAD, chunk(b"data: " + b"x" * 10000)),
    ],
    ids=["json", "chunked json", "length", "absurd length", "events", "a line", "chunked events"],
)
def test_an_answer_larger_than_allowed_is_refused_while_it_comes(start: bytes, piece: bytes) -> None:
    for outgoing in (reading(), listening()):
        with RawServer(lambda peer: endless(peer, start, piece)) as server:
            caught = Outcome(lambda: result_from(server.url, outgoing, max_message_bytes=MEGABYTE)).error()
        assert type(caught) is MessageTooLarge and "max_message_bytes" in str(caught), caught


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/html"])
def test_an_answer_that_swells_when_it_is_decompressed_is_refused_while_it_does(kind: str) -> None:
    bomb = gzip.compress(b"x" * (64 * MEGABYTE))
    assert len(bomb) < 100000

    def answer(request: Request) -> bytes:
        return head("Content-Type: " + kind, "Content-Encoding: gzip", "Content-Length: %d" % len(bomb)) + bomb

    caught = error(answer, max_message_bytes=MEGABYTE)
    assert type(caught) is (ProtocolError if kind == "text/html" else MessageTooLarge)


def test_an_answer_of_the_size_that_is_allowed_passes() -> None:
    def answer(request: Request) -> bytes:
        body = request.answer(RESULT)
        return json_answer(body + b" " * (4096 - len(body)))

    assert contents(answer, max_message_bytes=4096) == CONTENTS
    assert type(error(answer, max_message_bytes=4095)) is MessageTooLarge


# -- bodies that are not what they say ---------------------------------------------------------------------------------


@pytest.mark.parametrize("length", ["-1", "abc", "1_0", "+5", "0x10", "5, 5", "5 5", "¹²", "9" * 5000, "1e3", ""])
def test_a_length_that_is_none_is_an_error_at_once(length: str) -> None:
    for outgoing in (reading(), listening()):
        caught = error(
            lambda request: head("Content-Type: application/json", "Content-Length: " + length) + request.answer(),
            outgoing,
            stay=True,
        )
        assert isinstance(caught, (ProtocolError, TransportError)), caught


def test_two_lengths_that_differ_are_an_error() -> None:
    def answer(request: Request) -> bytes:
        body = request.answer()
        lengths = ("Content-Length: %d" % len(body), "Content-Length: 5")
        return head("Content-Type: application/json", *lengths) + body

    assert isinstance(error(answer), (ProtocolError, TransportError))


@pytest.mark.parametrize("left", [1, 10, 1000000])
def test_an_answer_shorter_than_it_says_is_broken_off(left: int) -> None:
    def answer(request: Request) -> bytes:
        body = request.answer()
        return head("Content-Type: application/json", "Content-Length: %d" % (len(body) + left)) + body

    caught = error(answer)
    assert type(caught) is TransportError and "it ended in the middle" in str(caught)
    assert caught.may_have_run and caught.status == 200


@pytest.mark.parametrize("offset", range(0, 61, 3))
def test_an_answer_in_chunks_that_is_cut_anywhere_is_broken_off(offset: int) -> None:
    def answer(request: Request) -> bytes:
        body = request.answer({"contents": []})
        framed = chunk(body[:5]) + chunk(body[5:])
        return head("Content-Type: application/json", "Transfer-Encoding: chunked") + framed[: len(framed) - offset - 1]

    caught = error(answer)
    assert type(caught) is TransportError and "it ended in the middle" in str(caught), caught


@pytest.mark.parametrize("size", [b"zz", b"-5", b"", b"5 5", b"0x", b"\xff", b"f" * 70000])
@pytest.mark.parametrize("start", ["application/json", "text/event-stream"])
def test_a_chunk_of_a_size_that_is_none_is_an_error_at_once(size: bytes, start: str) -> None:
    answer = head("Content-Type: " + start, "Transfer-Encoding: chunked") + chunk(b": x\n\n") + size + b"\r\nhello\r\n"
    caught = error(lambda request: answer, stay=True)
    assert type(caught) is TransportError, caught


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("answer", ["json", "sse"])
@pytest.mark.parametrize("part", [0.0, 0.3, 0.5, 0.7, 0.95, 0.999])
def test_an_answer_cut_anywhere_is_never_taken_for_a_whole_one(how: str, answer: str, part: float) -> None:
    with Server(answer=answer) as server:
        server.add(URI, "colour = blue")
        with Client(server.url) as client:
            client.read_resource(URI)
            server.inject(faults.Edit(dict), method="resources/read", times=1)
            whole = client.read_resource(URI, cache_mode="refresh")
            assert whole.text == "colour = blue"
            size = 250 if answer == "json" else 330
            server.inject(faults.CutAt(int(size * part), then=how), method="resources/read", times=None)
            with pytest.raises(TransportError):
                client.read_resource(URI, cache_mode="refresh", timeout=20)
            server.clear_faults()
            assert client.read_resource(URI, cache_mode="refresh").text == "colour = blue"


# -- JSON where a stream was asked for ---------------------------------------------------------------------------------


def test_a_json_answer_to_listening_is_the_only_message() -> None:
    for pretty in (False, True):

        def answer(request: Request) -> bytes:
            body = {"jsonrpc": "2.0", "id": request.id, "error": {"code": -32601, "message": "no"}}
            return json_answer(json.dumps(body, indent=2 if pretty else None).encode("utf-8"))

        with RawServer(serving(answer)) as server:
            door = transport(server.url)
            [got] = Outcome(lambda: messages(door, listening())).value()
            door.close()
        assert isinstance(got, Response) and got.error == {"code": -32601, "message": "no"}


def test_lines_of_json_in_answer_to_listening_are_refused_at_once() -> None:
    body = b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}\n'
    caught = error(lambda request: JSON_HEAD + body, listening(), stay=True)
    assert type(caught) is ProtocolError and "newline-delimited JSON?" in str(caught)


def test_an_answer_on_a_line_of_its_own_is_not_waited_behind() -> None:
    def answer(request: Request) -> bytes:
        return JSON_HEAD + request.answer() + b"\n"

    with RawServer(serving(answer, stay=True)) as server:
        door = transport(server.url)
        [got] = Outcome(lambda: messages(door, listening())).value()
        door.close()
    assert isinstance(got, Response) and got.error is None


def test_a_large_json_answer_to_listening_is_read_in_linear_time() -> None:
    text = "x" * (8 * MEGABYTE)

    def script(peer: Peer) -> None:
        request = peer.request()
        body = request.answer({"text": text})
        peer.send(head("Content-Type: application/json", "Transfer-Encoding: chunked"))
        peer.send(b"".join(chunk(body[at : at + 100]) for at in range(0, len(body), 100)) + b"0\r\n\r\n")

    with RawServer(script) as server:
        door = transport(server.url)
        [got] = Outcome(lambda: messages(door, listening())).value()
        door.close()
    assert got.result["text"] == text


# -- and through the embedded server -----------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["json", "sse"])
@pytest.mark.parametrize(
    "fault",
    [
        None,
        faults.Drip(),
        faults.Drip(7),
        faults.Gzip(),
        faults.Bom(),
        faults.LineEnds("mixed"),
        faults.LineEnds("\r"),
        faults.Framing("close"),
        faults.Framing("chunked"),
        faults.Prelude((b"id: 1\nretry: 3000\ndata:\n\n", b": ping\r\n", {"jsonrpc": "2.0", "method": "unheard"})),
    ],
    ids=repr,
)
def test_a_read_is_the_same_in_spite_of_how_it_is_delivered(answer: str, fault: Any) -> None:
    with Server(answer=answer, ttl_ms=60000, cache_scope="public") as server:
        server.add(URI, CONTENTS[0]["text"])
        if fault is not None:
            server.inject(fault, method="resources/read")
        with Client(server.url) as client:
            result = client.read_resource(URI)
    assert (result.text, result.ttl, result.scope) == (CONTENTS[0]["text"], 60.0, "public")


@pytest.mark.parametrize("mangled", [str, float, lambda number: "%d.0" % number, lambda number: None, lambda number: 0])
@pytest.mark.parametrize("answer", ["json", "sse"])
def test_an_answer_whose_id_comes_back_mangled_is_taken(answer: str, mangled: "Callable[[int], Any]") -> None:
    def mangle(call: Any) -> Any:
        right = call.proceed()
        return right.with_response(dict(right.response, id=mangled(call.request.id)))

    with Server(answer=answer) as server:
        server.add(URI, "x")
        server.inject(mangle, method="resources/read")
        with Client(server.url) as client:
            assert client.read_resource(URI).text == "x"


@pytest.mark.parametrize("answer", ["json", "sse"])
def test_the_answer_to_another_request_is_refused_and_its_connection_is_not_used_again(answer: str) -> None:
    with Server(answer=answer) as server:
        server.add(URI, "x")
        server.inject(faults.WrongId(17), method="resources/read", times=1)
        with Client(server.url) as client:
            client.discover()
            with pytest.raises(ProtocolError, match="the answer to another request"):
                client.read_resource(URI)
            server.wait_for_connections(0)
            assert client.read_resource(URI).text == "x"


def test_a_call_that_is_not_answered_is_not_sent_again_and_says_that_it_may_have_run() -> None:
    def answer(request: Request) -> bytes:
        return EVENTS_HEAD + b": nothing follows\n\n"

    with RawServer(serving(answer)) as server:
        caught = Outcome(lambda: result_from(server.url, calling())).error()
        assert len(server.requests) == 1
    assert isinstance(caught, MCPSyncError) and str(caught).endswith("; the request may have been executed")
