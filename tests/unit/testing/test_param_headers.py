"""The headers that repeat a tool's parameters (basic/transports/streamable-http, "Custom Headers from Tool
Parameters")."""

import base64

import pytest
from stdio_client import StdioPeer

from mcp_sync.testing import Server, StdioServer

SCHEMA = {"type": "object", "properties": {
    "region": {"type": "string", "x-mcp-header": "Region"},
    "query": {"type": "string"},
    "deep": {"type": "object", "properties": {
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "sure": {"type": "boolean", "x-mcp-header": "Sure"}}}}}


def encoded(text):
    return "=?base64?" + base64.b64encode(text.encode("utf-8")).decode("ascii") + "?="


@pytest.fixture
def call(server, peer):
    server.add_tool("sql", lambda arguments: "done", input_schema=SCHEMA)

    def made(arguments, **headers):
        return peer.call("tools/call", {"name": "sql", "arguments": arguments},
                         **{"Mcp_Param_" + name: value for name, value in headers.items()})

    return made


@pytest.mark.parametrize("arguments, headers", [
    ({}, {}),
    ({"region": None, "deep": None}, {}),
    ({"region": "us-west1", "query": "x"}, {"Region": "us-west1"}),
    ({"region": "us-west1"}, {"REGION": "us-west1", "Unknown": "x"}),
    ({"region": "Hello, \u4e16\u754c"}, {"Region": encoded("Hello, \u4e16\u754c")}),
    ({"region": "plain"}, {"Region": encoded("plain")}),
    ({"region": "=?base64?literal?="}, {"Region": encoded("=?base64?literal?=")}),
    ({"region": ""}, {"Region": ""}),
    ({"deep": {"count": 42}}, {"Count": "42"}),
    ({"deep": {"count": 42}}, {"Count": "42.0"}),
    ({"deep": {"count": -7, "sure": True}}, {"Count": "-7", "Sure": "true"}),
    ({"deep": {"sure": False}}, {"Sure": "false"}),
])
def test_headers_that_repeat_the_arguments_are_accepted(call, arguments, headers):
    reply = call(arguments, **headers)
    assert (reply.status, reply.result["content"][0]["text"]) == (200, "done")


@pytest.mark.parametrize("arguments, headers, said", [
    ({"region": "us-west1"}, {}, "Mcp-Param-Region is missing"),
    ({"region": "us-west1"}, {"Region": "us-east1"}, "does not match body value 'us-west1'"),
    ({"region": "us-west1"}, {"Region": "US-WEST1"}, "does not match"),
    ({"region": " padded "}, {"Region": " padded "}, "does not match"),
    ({"region": "=?base64?bGl0?="}, {"Region": "=?base64?bGl0?="}, "does not match"),
    ({"region": "x"}, {"Region": "=?base64?!?="}, "is not Base64 of UTF-8"),
    ({"region": "caf\u00e9"}, {"Region": "caf\u00e9"}, "characters that no header may have"),
    ({}, {"Region": "us-west1"}, "region has no value"),
    ({"deep": {"count": None}}, {"Count": "null"}, "deep/count has no value"),
    ({"deep": {"count": 42}}, {"Count": "4.2e1"}, "does not match"),
    ({"deep": {"count": 42}}, {"Count": "43"}, "does not match"),
    ({"deep": {"sure": True}}, {"Sure": "True"}, "does not match"),
    ({"deep": {"sure": True}}, {"Sure": "1"}, "does not match"),
    ({"deep": {"sure": True, "count": 1}}, {"Sure": "true"}, "Mcp-Param-Count is missing"),
])
def test_headers_that_differ_from_the_arguments_are_refused(server, call, arguments, headers, said):
    reply = call(arguments, **headers)
    assert (reply.status, reply.error["code"]) == (400, -32020)
    assert reply.error["message"].startswith("Header mismatch: ") and said in reply.error["message"]


def test_the_definition_of_now_counts_and_not_the_one_that_was_listed(server, peer):
    server.add_tool("t", lambda arguments: "done", input_schema={"type": "object"})
    assert peer.call("tools/call", {"name": "t", "arguments": {"region": "x"}}).status == 200
    server.add_tool("t", lambda arguments: "done", input_schema=SCHEMA, notify=False)
    assert peer.call("tools/call", {"name": "t", "arguments": {"region": "x"}}).error["code"] == -32020
    assert peer.call("tools/call", {"name": "t", "arguments": {"region": "x"}}, Mcp_Param_Region="x").status == 200


def test_a_schema_that_is_none_asks_for_no_headers(server, peer):
    for schema in (7, {"properties": []}, {"properties": {"a": 7}}, {"properties": {"a": {"x-mcp-header": 7}}}):
        server.add_tool("t", lambda arguments: "done", input_schema=schema)
        assert peer.call("tools/call", {"name": "t", "arguments": {"a": "x"}}).status == 200
    server.add_tool("t", lambda arguments: "done", raw=[])
    assert peer.call("tools/call", {"name": "t", "arguments": {"a": "x"}}).status == 200


def test_nobody_asks_for_them_if_the_server_does_not_insist_or_has_no_headers(peers, legacy):
    arguments = {"name": "t", "arguments": {"region": "x"}}
    with Server(check_param_headers=False) as server:
        server.add_tool("t", lambda arguments: "done", input_schema=SCHEMA)
        assert peers(server).call("tools/call", arguments).status == 200
    with Server(eras=["legacy"]) as server:
        server.add_tool("t", lambda arguments: "done", input_schema=SCHEMA)
        assert "result" in legacy(server).call("tools/call", arguments).messages[0]


def test_over_stdio_there_are_none():
    with StdioServer() as server:
        server.add_tool("t", lambda arguments: "done", input_schema=SCHEMA)
        peer = StdioPeer(server.command)
        try:
            assert "result" in peer.new("tools/call", {"name": "t", "arguments": {"region": "x"}})
        finally:
            peer.close()
