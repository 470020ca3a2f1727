"""What the server refuses, and how it says so (basic/transports/streamable-http, "Server Validation")."""

import base64
import json

import pytest
from embedded_client import META, headers_for, message

from mcp_sync.testing.protocol import Refusal, decode, decode_header

URI = "a://x"


def _send(peer, body, **headers):
    peer.send_raw(json.dumps(body).encode("utf-8"), headers_for(body, **headers))
    return peer.receive()


@pytest.mark.parametrize("headers", [
    {"MCP_Protocol_Version": None},
    {"MCP_Protocol_Version": "2025-11-25"},
    {"Mcp_Method": None},
    {"Mcp_Method": "resources/list"},
    {"Mcp_Method": "Resources/Read"},
    {"Mcp_Name": None},
    {"Mcp_Name": "a://y"},
    {"Mcp_Name": "=?base64?YTovL3k=?="},
    {"Mcp_Name": "=?base64?!?="},
    {"Mcp_Name": "=?base64?/w==?="},
])
def test_headers_that_do_not_match_the_body_are_refused(server, peer, headers):
    server.add(URI, "1")
    reply = _send(peer, message("resources/read", {"uri": URI}, id=9), **headers)
    assert (reply.status, reply.error["code"], reply.messages[0]["id"]) == (400, -32020, 9)
    assert server.requests[-1].http_status == 400


@pytest.mark.parametrize("uri", ["\u6587\u4ef6://x", " a", "a\r\nb", "=?base64?x?=", "plain"])
def test_names_may_come_in_base64(server, peer, uri):
    server.add(uri, "1")
    encoded = "=?base64?{}?=".format(base64.b64encode(uri.encode("utf-8")).decode("ascii"))
    assert _send(peer, message("resources/read", {"uri": uri}), Mcp_Name=encoded).text == "1"


def test_names_are_decoded_strictly():
    assert decode_header("=?BASE64?eA==?=") == "=?BASE64?eA==?="
    assert decode_header("=?base64?eA==?=") == "x"
    with pytest.raises(Refusal):
        decode_header("=?base64?eA==?= ?=")


def test_an_unknown_version_is_refused_with_those_that_are_known(server, peer):
    meta = dict(META, **{"io.modelcontextprotocol/protocolVersion": "1900-01-01"})
    reply = _send(peer, message("server/discover", meta=meta), MCP_Protocol_Version="1900-01-01")
    assert reply.status == 400
    assert reply.error["code"] == -32022
    assert reply.error["data"] == {"supported": ["2026-07-28"], "requested": "1900-01-01"}


@pytest.mark.parametrize("meta", [None, {}, "text", {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28"}, dict(META, **{
        "io.modelcontextprotocol/clientCapabilities": None})])
def test_a_request_without_its_metadata_is_malformed(server, peer, meta):
    reply = _send(peer, message("server/discover", meta=meta))
    assert (reply.status, reply.error["code"]) == (400, -32602)


def test_an_old_client_learns_which_versions_there_are(server, peer):
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    reply = _send(peer, body, MCP_Protocol_Version=None, Mcp_Method=None)
    assert (reply.status, reply.error["code"]) == (400, -32020)
    assert "2026-07-28" in reply.error["message"]


def test_an_unknown_method_is_not_found(server, peer):
    reply = peer.call("prompts/list")
    assert (reply.status, reply.error["code"]) == (404, -32601)


def test_an_unknown_resource_is_an_invalid_parameter(server, peer):
    reply = peer.read("a://none")
    assert (reply.status, reply.error["code"], reply.error["data"]) == (400, -32602, {"uri": "a://none"})


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
def test_only_post_is_taken(server, peer, verb):
    peer.send_raw(b"", {}, verb)
    reply = peer.receive()
    assert (reply.status, reply.headers["Allow"]) == (405, "POST")
    assert server.requests[-1].http_method == verb


def test_a_notification_is_accepted_without_a_body(server, peer):
    reply = _send(peer, {"jsonrpc": "2.0", "method": "notifications/whatever"})
    assert (reply.status, reply.body, reply.headers["Content-Type"]) == (202, b"", None)


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "text/event-stream"])
def test_both_media_types_must_be_acceptable(server, peer, accept):
    assert peer.call("server/discover", Accept=accept).status == 406


def test_media_types_may_carry_parameters(server, peer):
    assert peer.call("server/discover", Accept="Application/JSON;q=0.9,text/event-stream; q=1").status == 200


@pytest.mark.parametrize("origin, status", [
    ("http://localhost:8000", 200), ("http://127.0.0.1", 200), ("https://evil.example", 403), ("null", 403)])
def test_a_foreign_origin_is_refused(server, peer, origin, status):
    assert peer.call("server/discover", Origin=origin).status == status


@pytest.mark.parametrize("path, status", [("/mcp", 200), ("/mcp?a=b", 200), ("/mcp/", 404), ("/", 404)])
def test_another_path_is_not_the_endpoint(server, peer, path, status):
    body = message("server/discover")
    peer.send_raw(json.dumps(body).encode("utf-8"), headers_for(body), path=path)
    assert peer.receive().status == status


@pytest.mark.parametrize("body, code", [
    (b"", -32700), (b"{", -32700), (b"\xff", -32700), (b"[]", -32600), (b"1", -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"x"}]', -32600), (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
    (b'{"id":1,"method":"x"}', -32600), (b'{"jsonrpc":"2.0","id":null,"method":"x"}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"x","params":[]}', -32602)])
def test_what_is_not_one_request_is_refused(server, peer, body, code):
    peer.send_raw(body, headers_for(message("x")))
    reply = peer.receive()
    assert (reply.status, reply.error["code"]) == (400, code)
    with pytest.raises(Refusal):
        decode(body)


@pytest.mark.parametrize("params", [{}, {"uri": 1}])
def test_a_read_without_a_uri_is_refused(server, peer, params):
    body = message("resources/read", params)
    reply = _send(peer, body, Mcp_Name="1")
    assert (reply.status, reply.error["code"]) == (400, -32020)


@pytest.mark.parametrize("wanted", [[], None, {"resourceSubscriptions": "a://x"}, {"resourceSubscriptions": [1]}])
def test_a_listen_without_a_filter_is_refused(server, peer, wanted):
    reply = peer.call("subscriptions/listen", {"notifications": wanted})
    assert (reply.status, reply.error["code"]) == (400, -32602)


def test_session_headers_are_ignored(server, peer):
    reply = peer.call("server/discover", Mcp_Session_Id="1", Last_Event_ID="2")
    assert reply.status == 200
    assert reply.headers["Mcp-Session-Id"] is None
