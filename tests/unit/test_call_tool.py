"""Calling tools, getting prompts, asking for suggestions: what comes back, in every era and over every transport."""

from typing import Any, Iterator

import pytest
from rawserver import BOUND
from serving import KINDS, LEGACY, connected, params_of, serving

from mcp_sync import (
    Client,
    NotSupported,
    PromptReference,
    ProtocolError,
    RequestTimeout,
    ResourceTemplateReference,
    ServerError,
    ToolError,
    TransportError,
)
from mcp_sync.results import ImageContent
from mcp_sync.testing import Refusal, Server, StdioServer, faults


@pytest.fixture(params=KINDS)
def server(request: Any) -> "Iterator[Server]":
    with serving(request.param) as server:
        yield server


# -- results --------------------------------------------------------------------------------------------------------------


def test_a_tool_answers_with_text(server: Server) -> None:
    server.add_tool("greet", lambda arguments: "hello " + arguments["name"])
    with connected(server) as client:
        result = client.call_tool("greet", {"name": "you"})
        assert result.raise_for_error() is result
        assert (result.text, result.is_error, result.tool) == ("hello you", False, "greet")
        assert not result.has_structured_content


def test_a_tool_answers_with_a_value_for_programs(server: Server) -> None:
    server.add_tool("add", lambda arguments: {"sum": arguments["a"] + arguments["b"]})
    with connected(server) as client:
        assert client.call_tool("add", {"a": 1, "b": 2}).structured_content == {"sum": 3}


def test_a_tool_that_fails_is_a_result_and_an_exception_only_for_those_who_want_one(server: Server) -> None:
    def fail(arguments: Any) -> str:
        raise ValueError("no such colour")

    server.add_tool("paint", fail)
    with connected(server) as client:
        result = client.call_tool("paint")
        assert result.is_error and "no such colour" in result.text
        with pytest.raises(ToolError, match="paint failed: .*no such colour") as caught:
            result.raise_for_error()
        assert caught.value.result is result


def test_arguments_that_are_not_given_are_not_sent(server: Server) -> None:
    server.add_tool("now", lambda arguments: "noon")
    with connected(server) as client:
        client.call_tool("now")
        client.call_tool("now", {})
        sent = params_of(server, "tools/call")
        assert "arguments" not in sent[0] and sent[1]["arguments"] == {}


def test_an_image_that_is_not_base64_is_told_to_those_who_look_at_it_and_nobody_else(server: Server) -> None:
    server.add_tool("draw", lambda arguments: [{"type": "image", "data": "%%%", "mimeType": "image/png"}])
    with connected(server) as client:
        (block,) = client.call_tool("draw").content
        assert isinstance(block, ImageContent)
        with pytest.raises(ProtocolError, match="image/png"):
            block.data


def test_an_unknown_tool_is_the_servers_error(server: Server) -> None:
    server.add_tool("greet", lambda arguments: "hello")
    with connected(server) as client:
        with pytest.raises(ServerError, match="gret") as caught:
            client.call_tool("gret")
        assert caught.value.code == -32602 and not isinstance(caught.value, NotSupported)


def test_a_server_without_tools_prompts_or_suggestions_cannot_do_that(server: Server) -> None:
    with connected(server) as client:
        for ask in (
            lambda: client.call_tool("greet"),
            lambda: client.get_prompt("review"),
            lambda: client.complete(PromptReference("review"), {"name": "code", "value": "p"}),
        ):
            with pytest.raises(NotSupported, match=r"discover\(\)"):
                ask()


def test_the_first_of_two_tools_of_one_name_is_the_one_that_is_called(server: Server) -> None:
    server.add_tool("greet", lambda arguments: "hello")
    server.add_tool("other", lambda arguments: "no", raw={"name": "greet", "inputSchema": {"type": "object"}})
    with connected(server) as client:
        assert client.call_tool("greet").text == "hello"
        (left,) = client.list_tools().left_out
        assert left.name == "greet"


def test_a_tool_whose_list_is_broken_is_called_all_the_same(server: Server) -> None:
    server.add_tool("greet", lambda arguments: "hello")
    server.inject(faults.Result({"tools": "none"}), method="tools/list", times=None)
    with connected(server) as client:
        assert client.call_tool("greet").text == "hello"


def test_what_json_has_no_form_for_is_refused_before_it_is_sent(server: Server) -> None:
    server.add_tool("greet", lambda arguments: "hello")
    with connected(server) as client:
        with pytest.raises(ProtocolError, match="JSON"):
            client.call_tool("greet", {"name": float("nan")})
        assert client.call_tool("greet").text == "hello"
        assert server.count("tools/call") == 1


def test_meta_of_the_caller_is_sent_along(server: Server) -> None:
    server.add_tool("greet", lambda arguments: "hello")
    with connected(server) as client:
        client.call_tool("greet", meta={"example.com/who": "me"})
        assert params_of(server, "tools/call")[0]["_meta"]["example.com/who"] == "me"


# -- prompts and suggestions ----------------------------------------------------------------------------------------------


def test_a_prompt_is_filled_in(server: Server) -> None:
    server.add_prompt("review", lambda arguments: "Review " + arguments["code"], arguments=["code"])
    with connected(server) as client:
        (message,) = client.get_prompt("review", {"code": "x = 1"}).messages
        assert (message.role, message.content.text) == ("user", "Review x = 1")  # type: ignore[union-attr]


def test_suggestions_know_what_is_known_already(server: Server) -> None:
    def suggest(argument: Any, call: Any) -> Any:
        return [argument["value"] + "ython", call.arguments.get("era", "none")]

    for ref in ({"type": "ref/prompt", "name": "review"}, {"type": "ref/resource", "uri": "docs://{name}"}):
        server.add_completion(ref, suggest)
    with connected(server) as client:
        asked = {"name": "language", "value": "p"}
        assert client.complete(PromptReference("review"), asked).values == ("python", "none")
        assert client.complete(ResourceTemplateReference("docs://{name}"), asked, {"era": "new"}).values == ("python", "new")
        assert client.complete({"type": "ref/prompt", "name": "review"}, asked).values == ("python", "none")


def test_a_ping_is_answered(server: Server) -> None:
    with connected(server) as client:
        client.ping()
        client.ping()


# -- never twice ----------------------------------------------------------------------------------------------------------


def test_a_call_whose_connection_breaks_is_not_made_again(server: Server) -> None:
    server.add_tool("pay", lambda arguments: "paid")
    server.inject(faults.Reset(), method="tools/call")
    with connected(server) as client:
        client.ping()
        with pytest.raises(TransportError) as caught:
            client.call_tool("pay")
        assert caught.value.may_have_run
        assert server.count("tools/call") == 1
        assert client.call_tool("pay").text == "paid"


def test_a_call_that_takes_too_long_is_not_made_again(server: Server) -> None:
    server.add_tool("pay", lambda arguments: "paid")
    with connected(server) as client:
        client.list_tools()
        with server.hold("tools/call"):
            with pytest.raises(RequestTimeout, match=r"tools/call \(pay\)"):
                client.call_tool("pay", timeout=0.1)
        assert client.call_tool("pay").text == "paid"
        assert server.count("tools/call") == 2


def test_a_call_in_a_session_that_is_gone_is_not_made_again() -> None:
    with serving("legacy http") as server, connected(server) as client:
        server.add_tool("pay", lambda arguments: "paid")
        client.list_tools()
        server.expire_sessions()
        with pytest.raises(TransportError, match="session") as caught:
            client.call_tool("pay")
        assert not caught.value.may_have_run
        assert server.count("tools/call") == 1
        assert client.call_tool("pay").text == "paid"


def test_a_process_that_dies_during_a_call_does_not_get_it_again() -> None:
    for kind in ("modern stdio", "legacy stdio"):
        with serving(kind) as server, connected(server) as client:
            assert isinstance(server, StdioServer)
            server.add_tool("pay", lambda arguments: "paid")
            client.list_tools()
            server.inject(faults.Close(), method="tools/call")
            with pytest.raises(TransportError):
                client.call_tool("pay")
            assert server.count("tools/call") == 1
            assert client.call_tool("pay").text == "paid"


# -- headers that repeat arguments ----------------------------------------------------------------------------------------

MIRRORED = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


@pytest.fixture
def modern() -> "Iterator[Server]":
    with serving("modern http") as server:
        yield server


def test_arguments_are_repeated_in_headers_as_the_definition_says(modern: Server) -> None:
    modern.add_tool("place", lambda arguments, call: call.headers.get("Mcp-Param-Region", "none"), input_schema=MIRRORED)
    with connected(modern) as client:
        assert client.call_tool("place", {"region": "north"}).text == "north"
        assert client.call_tool("place", {}).text == "none"
        assert modern.count("tools/list") == 1


@pytest.mark.parametrize("kind", LEGACY + ("modern stdio",))
def test_elsewhere_there_are_no_such_headers(kind: str) -> None:
    with serving(kind) as server, connected(server) as client:
        server.add_tool("place", lambda arguments, call: call.headers.get("Mcp-Param-Region", "none"), input_schema=MIRRORED)
        assert client.call_tool("place", {"region": "north"}).text == "none"


def refuse_the_region(arguments: Any, call: Any) -> str:
    if call.headers.get("Mcp-Param-Region") != arguments["region"]:
        raise Refusal(-32020, "the header and the body differ", http_status=400)
    return "placed"


def test_a_tool_that_was_changed_is_listed_again_and_called_once_more(modern: Server) -> None:
    modern.add_tool("place", refuse_the_region)
    with connected(modern) as client:
        client.list_tools()
        modern.add_tool("place", refuse_the_region, input_schema=MIRRORED)
        assert client.call_tool("place", {"region": "north"}).text == "placed"
        assert (modern.count("tools/list"), modern.count("tools/call")) == (2, 2)


def test_a_server_that_refuses_headers_for_ever_is_asked_twice_and_not_more(modern: Server) -> None:
    modern.add_tool("place", refuse_the_region)
    with connected(modern) as client:
        with pytest.raises(ServerError) as caught:
            client.call_tool("place", {"region": "north"})
        assert caught.value.code == -32020
        assert (modern.count("tools/list"), modern.count("tools/call")) == (2, 2)


def test_a_refusal_of_headers_stands_if_the_list_cannot_be_had_again(modern: Server) -> None:
    modern.add_tool("place", refuse_the_region)
    with connected(modern) as client:
        client.list_tools()
        modern.inject(faults.Status(503), method="tools/list", times=None)
        with pytest.raises(ServerError) as caught:
            client.call_tool("place", {"region": "north"})
        assert caught.value.code == -32020 and modern.count("tools/call") == 1


BROKEN = {"type": "object", "properties": {"region": {"type": "object", "x-mcp-header": "Region"}}}


def test_a_tool_that_cannot_be_called_as_its_definition_demands_is_not_called(modern: Server) -> None:
    modern.add_tool("place", lambda arguments: "placed", input_schema=BROKEN)
    with connected(modern) as client:
        with pytest.raises(NotSupported, match="place cannot be called: .*x-mcp-header"):
            client.call_tool("place", {"region": "north"})
        assert modern.count("tools/call") == 0


def test_a_tool_that_became_one_that_cannot_be_called_says_so(modern: Server) -> None:
    modern.add_tool("place", refuse_the_region)
    with connected(modern) as client:
        client.list_tools()
        modern.add_tool("place", refuse_the_region, input_schema=BROKEN)
        with pytest.raises(NotSupported, match="place cannot be called"):
            client.call_tool("place", {"region": "north"})


def test_the_list_counts_against_the_absolute_limit_of_a_call(modern: Server) -> None:
    modern.add_tool("place", lambda arguments: "placed")
    with connected(modern) as client, modern.hold("tools/list"):
        with pytest.raises(RequestTimeout, match="0.2 s .max_timeout="):
            client.call_tool("place", timeout=BOUND, max_timeout=0.2)


def test_over_http_the_same_holds_where_the_answer_is_one_message() -> None:
    with Server(answer="json") as server, Client(server.url, timeout=BOUND) as client:
        server.add_tool("greet", lambda arguments: "hello")
        assert client.call_tool("greet").text == "hello"
