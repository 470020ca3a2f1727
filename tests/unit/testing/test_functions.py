"""Tools, prompts and completions of the embedded server: what is listed, and what a function's value becomes."""

import json

import pytest
from embedded_client import LIMIT, META, headers_for, message

from mcp_sync.testing import Refusal, Server, faults

REVIEW = {"type": "ref/prompt", "name": "review"}


@pytest.fixture(params=["modern", "legacy"])
def call(request, peers, legacy):
    """Sends a request to a server of one era and gives the reply."""
    def made(server, method, params=None):
        peer = peers(server) if request.param == "modern" else legacy(server)
        return peer.call(method, params)

    made.era = request.param
    return made


@pytest.fixture
def server(call):
    with Server(eras=[call.era]) as started:
        yield started


def bare(result):
    """A result without what the modern era adds."""
    return {key: member for key, member in result.items()
            if key not in ("_meta", "resultType", "ttlMs", "cacheScope")}


def text(value):
    return {"type": "text", "text": value}


# -- what is listed ----------------------------------------------------------------------------------------------


def test_a_tool_is_listed_with_all_that_is_said_of_it(server, call):
    server.add_tool("one", lambda arguments: "")
    server.add_tool("two", lambda arguments: "", title="Two", description="The second", annotations={"readOnlyHint": True},
                    input_schema={"type": "object", "required": ["n"]}, output_schema={"type": "array"})
    assert bare(call(server, "tools/list").result) == {"tools": [
        {"name": "one", "inputSchema": {"type": "object"}},
        {"name": "two", "title": "Two", "description": "The second", "annotations": {"readOnlyHint": True},
         "inputSchema": {"type": "object", "required": ["n"]}, "outputSchema": {"type": "array"}}]}


def test_a_list_may_hold_what_no_list_should(server, call):
    server.add_tool("a", lambda arguments: "1")
    server.add_tool("b", lambda arguments: "2", raw={"name": "a"})
    server.add_tool("c", lambda arguments: "3", raw=None, input_schema="text")
    server.add_tool("d", lambda arguments: "4", raw=7)
    server.add_prompt("p", lambda arguments: "5", raw=[])
    assert bare(call(server, "tools/list").result)["tools"] == [
        {"name": "a", "inputSchema": {"type": "object"}}, {"name": "a"}, {"name": "c", "inputSchema": "text"}, 7]
    assert bare(call(server, "prompts/list").result)["prompts"] == [[]]
    assert call(server, "tools/call", {"name": "d"}).result["content"] == [text("4")]


def test_lists_have_pages_and_hints(peers):
    with Server(page_size=1, ttl_ms=5000, cache_scope="public") as server:
        peer = peers(server)
        for name in ("one", "two"):
            server.add_tool(name, lambda arguments: "")
            server.add_prompt(name, lambda arguments: "")
        for method, field in (("tools/list", "tools"), ("prompts/list", "prompts")):
            first = peer.call(method).result
            second = peer.call(method, {"cursor": first["nextCursor"]}).result
            assert [first[field][0]["name"], second[field][0]["name"]] == ["one", "two"]
            assert "nextCursor" not in second
            assert (first["ttlMs"], first["cacheScope"]) == (5000, "public")


def test_what_is_removed_is_unknown(server, call):
    server.add_tool("t", lambda arguments: "")
    server.add_prompt("p", lambda arguments: "")
    server.remove_tool("t")
    server.remove_prompt("p")
    assert call(server, "tools/list").result["tools"] == []
    assert call(server, "tools/call", {"name": "t"}).error == {"code": -32602, "message": "Unknown tool: t"}
    assert call(server, "prompts/list").result["prompts"] == []
    assert call(server, "prompts/get", {"name": "p"}).error == {"code": -32602, "message": "Unknown prompt: p"}
    with pytest.raises(KeyError):
        server.remove_tool("t")
    with pytest.raises(KeyError):
        server.remove_prompt("p")


def test_those_who_listen_hear_of_changed_lists(peers):
    with Server() as server:
        tools = peers(server).listen(toolsListChanged=True)
        prompts = peers(server).listen(promptsListChanged=True)
        server.wait_for_streams(2)
        server.add_tool("t", lambda arguments: "")
        server.add_tool("u", lambda arguments: "", notify=False)
        server.add_prompt("p", lambda arguments: "")
        server.add_prompt("q", lambda arguments: "", notify=False)
        server.remove_tool("u", notify=False)
        server.remove_tool("t")
        server.remove_prompt("q", notify=False)
        server.remove_prompt("p")
        server.end_streams("result")
        for listener, kind in ((tools, "tools"), (prompts, "prompts")):
            heard = listener.take(4)
            assert [message["method"] for message in heard[1:3]] == ["notifications/%s/list_changed" % kind] * 2
            assert "result" in heard[3]


def test_a_legacy_client_hears_of_a_changed_list_of_prompts(legacy):
    with Server(eras=["legacy"]) as server:
        listener = legacy(server).listen()
        server.wait_for_streams(1)
        server.add_prompt("p", lambda arguments: "")
        assert listener.next() == {"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}


# -- what the server says that it can do -------------------------------------------------------------------------


def _capabilities(server, call):
    if call.era == "modern":
        return call(server, "server/discover").result["capabilities"]
    version = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    return call(server, "initialize", version).result["capabilities"]


def test_a_capability_is_told_when_there_is_something_of_it(server, call):
    assert sorted(_capabilities(server, call)) == ["resources"]
    for method in ("tools/list", "tools/call", "prompts/list", "prompts/get", "completion/complete"):
        assert call(server, method, {"name": "n"}).error["code"] == -32601
    server.add_tool("t", lambda arguments: "")
    server.add_completion(REVIEW, lambda argument: [])
    assert sorted(_capabilities(server, call)) == ["completions", "logging", "resources", "tools"]
    server.add_prompt("p", lambda arguments: "")
    server.remove_tool("t")
    found = _capabilities(server, call)
    assert found["tools"] == found["prompts"] == {"listChanged": True}
    assert found["completions"] == found["logging"] == {}


def test_a_capability_is_told_when_it_is_asked_for(call):
    with Server(eras=[call.era], capabilities=["tools", "prompts"], list_changed=False) as server:
        found = _capabilities(server, call)
        assert found["tools"] == found["prompts"] == {}
        assert "logging" not in found
        assert call(server, "tools/list").result["tools"] == []
    with pytest.raises(ValueError, match="capabilities must be of tools"):
        Server(capabilities=["toools"])


# -- what a value becomes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value, result", [
    ("hello", {"content": [text("hello")]}),
    ({"n": 1}, {"content": [text('{"n": 1}')], "structuredContent": {"n": 1}}),
    ([1, 2], {"content": [text("[1, 2]")], "structuredContent": [1, 2]}),
    (None, {"content": [text("null")], "structuredContent": None}),
    ([{"type": "image", "data": "AA==", "mimeType": "image/png"}],
     {"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]}),
    ([], {"content": []}),
    ({"content": "odd", "isError": True}, {"content": "odd", "isError": True}),
])
def test_what_a_tool_returns_becomes_its_result(server, call, value, result):
    server.add_tool("t", lambda arguments: value)
    assert bare(call(server, "tools/call", {"name": "t", "arguments": {}}).result) == result


def test_a_result_type_of_its_own_is_kept(peers):
    with Server() as server:
        server.add_tool("t", lambda arguments: {"resultType": "of/the/future", "x": 1})
        result = peers(server).call("tools/call", {"name": "t"}).result
        assert (result["resultType"], result["x"]) == ("of/the/future", 1)


def test_what_a_function_raises_is_a_result_of_a_tool_and_an_error_of_a_prompt(server, call):
    def fail(arguments):
        raise ValueError("no such city")

    def refuse(arguments):
        raise Refusal(-32000, "never", {"why": "so"}, http_status=200)

    server.add_tool("fail", fail)
    server.add_tool("refuse", refuse)
    server.add_prompt("fail", fail)
    failed = call(server, "tools/call", {"name": "fail"}).result
    assert failed["isError"] is True and failed["content"] == [text("ValueError: no such city")]
    refused = call(server, "tools/call", {"name": "refuse"})
    assert (refused.status, refused.error) == (200, {"code": -32000, "message": "never", "data": {"why": "so"}})
    assert call(server, "prompts/get", {"name": "fail"}).error["code"] == -32603
    assert call(server, "tools/call", {"name": "fail", "arguments": []}).error["code"] == -32602


@pytest.mark.parametrize("value, messages", [
    ("hi", [{"role": "user", "content": text("hi")}]),
    (["hi", {"type": "image"}, {"role": "assistant", "content": text("ho")}],
     [{"role": "user", "content": text("hi")}, {"role": "user", "content": {"type": "image"}},
      {"role": "assistant", "content": text("ho")}]),
    ({"role": "assistant", "content": text("ho")}, [{"role": "assistant", "content": text("ho")}]),
    ({"messages": [7], "description": "mine"}, [7]),
])
def test_what_a_prompt_returns_becomes_messages(server, call, value, messages):
    server.add_prompt("p", lambda arguments: value, description="theirs", title="P")
    result = bare(call(server, "prompts/get", {"name": "p"}).result)
    assert result == {"messages": messages, "description": "mine" if messages == [7] else "theirs"}


def test_a_prompt_lists_its_arguments_and_insists_on_those_that_are_required(server, call):
    server.add_prompt("p", lambda arguments: arguments["code"], arguments=["style", {"name": "code", "required": True}])
    assert call(server, "prompts/list").result["prompts"] == [
        {"name": "p", "arguments": [{"name": "style"}, {"name": "code", "required": True}]}]
    given = call(server, "prompts/get", {"name": "p", "arguments": {"code": "x = 1"}}).result
    assert given["messages"][0]["content"] == text("x = 1")
    assert call(server, "prompts/get", {"name": "p"}).error == {
        "code": -32602, "message": "Missing required arguments: code"}


def test_completions_are_found_by_their_reference(server, call):
    known = []

    def complete(argument, call):
        known.append((argument, call.arguments))
        return ["python", "perl"]

    template = {"type": "ref/resource", "uri": "a://{n}"}
    server.add_completion(REVIEW, complete)
    server.add_completion(template, lambda argument: {"values": ["x"], "hasMore": True})
    argument = {"name": "language", "value": "p"}
    params = {"ref": dict(REVIEW, title="Review"), "argument": argument, "context": {"arguments": {"a": "b"}}}
    assert bare(call(server, "completion/complete", params).result) == {
        "completion": {"values": ["python", "perl"], "total": 2, "hasMore": False}}
    assert known == [(argument, {"a": "b"})]
    params = {"ref": template, "argument": argument}
    assert call(server, "completion/complete", params).result["completion"] == {"values": ["x"], "hasMore": True}
    for wrong in ({"ref": {"type": "ref/prompt", "name": "other"}, "argument": argument}, {"ref": REVIEW}, {}):
        assert call(server, "completion/complete", wrong).error["code"] == -32602
    assert server.count("completion/complete", uri="a://{n}") == 1
    assert server.count("completion/complete", uri="review") == 2


def test_no_more_than_a_hundred_completions_are_sent(server, call):
    server.add_completion(REVIEW, lambda argument: [str(number) for number in range(101)])
    params = {"ref": REVIEW, "argument": {"name": "a", "value": ""}}
    found = call(server, "completion/complete", params).result["completion"]
    assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 101, True)


def test_a_reference_that_is_none_cannot_be_added(server):
    with pytest.raises(Refusal):
        server.add_completion({"type": "ref/tool", "name": "t"}, lambda argument: [])


# -- what a function is given ------------------------------------------------------------------------------------


def test_a_function_that_takes_one_thing_gets_the_arguments_alone(server, call):
    def rest(*everything):
        return str(len(everything))

    def default(arguments, bound="mine"):
        return bound

    def invoked(arguments, call=None):
        return call.request.method

    for function, said in ((rest, "2"), (default, "mine"), (invoked, "tools/call")):
        server.add_tool("t", function)
        assert call(server, "tools/call", {"name": "t"}).result["content"] == [text(said)]


def test_a_function_knows_its_request(peers):
    found = []

    def look(arguments, call):
        found.append((arguments, call.arguments, call.meta["extra"], call.headers["X-Trace"], call.principal))
        return ""

    with Server(authenticate=lambda headers: "alice") as server:
        server.add_tool("look", look)
        body = {"name": "look", "arguments": {"n": 1}}
        peer = peers(server, X_Trace="t1")
        whole = message("tools/call", body, meta=dict(META, extra=[1]))
        peer.send_raw(json.dumps(whole).encode("utf-8"), headers_for(whole, X_Trace="t1"))
        assert "result" in peer.receive().messages[0]
    assert found == [({"n": 1}, {"n": 1}, [1], "t1", "alice")]


def test_calls_are_held_and_counted_by_the_name_of_their_tool(server, call, in_thread):
    server.add_tool("held", lambda arguments: "1")
    server.add_tool("free", lambda arguments: "2")
    with server.hold("tools/call", "held", at="answer") as gate:
        finish = in_thread(lambda: call(server, "tools/call", {"name": "held"}).result["content"])
        gate.wait_reached(timeout=LIMIT)
        assert call(server, "tools/call", {"name": "free"}).result["content"] == [text("2")]
    assert finish() == [text("1")]
    assert (server.count("tools/call", "held"), server.count("tools/call")) == (1, 2)


def test_a_result_may_be_deeper_than_any_program_can_hold(server, call):
    server.add_tool("deep", lambda arguments: "")
    deep = '{"a":' * 10000 + "1" + "}" * 10000
    server.inject(faults.RawResult(deep), method="tools/list")
    reply = call(server, "tools/list")
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.body == ('{"jsonrpc":"2.0","id":1,"result":' + deep + "}\n").encode("ascii")
