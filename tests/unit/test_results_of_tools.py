"""Tools, prompts and suggestions as users receive them: right values from right answers, no exception from wrong ones."""

import base64
import copy
import pickle
from typing import Any, Dict, List

import pytest

from mcp_sync.errors import ProtocolError, ToolError
from mcp_sync.results import (
    AudioContent,
    CallToolResult,
    CompleteResult,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    LeftOut,
    ListPromptsResult,
    ListToolsResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    PromptReference,
    ResourceLink,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
    Tool,
    UnknownContent,
    list_from_pages,
)

ODD: "List[Any]" = [None, True, False, 0, -1, 1.5, float("nan"), "", "text", [], [1], {}, {"a": 1}, 10**30]


def called(*blocks: Any, **more: Any) -> CallToolResult:
    return CallToolResult.from_wire(dict(more, content=list(blocks)), "sum")


def block(raw: Any) -> Any:
    (one,) = called(raw).content
    return one


# -- blocks ------------------------------------------------------------------------------------------------------------


def test_each_type_of_block_is_read() -> None:
    audience = {"audience": ["user"], "priority": 0.9, "lastModified": "2025-05-03T14:30:00Z"}
    blocks = called(
        {"type": "text", "text": "blå", "annotations": audience},
        {"type": "image", "data": "AQI=", "mimeType": "image/png"},
        {"type": "audio", "data": "AwQ", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "docs://x", "name": "x", "mimeType": "text/x-rust", "size": 7},
        {"type": "resource", "resource": {"uri": "docs://y", "text": "y"}, "annotations": audience},
        {"type": "resource", "resource": {"uri": "docs://z", "blob": "/w=="}},
        {"type": "hologram", "data": 1},
    ).content
    assert blocks == (
        TextContent("blå"),
        ImageContent("AQI=", "image/png"),
        AudioContent("AwQ", "audio/wav"),
        ResourceLink("docs://x", "x", mime_type="text/x-rust", size=7),
        EmbeddedResource(TextResourceContents("docs://y", "y")),
        blocks[5],
        UnknownContent("hologram", {"type": "hologram", "data": 1}),
    )
    text, image, audio, link, embedded, blob, _ = blocks
    assert isinstance(image, ImageContent) and image.data == b"\x01\x02"
    assert isinstance(audio, AudioContent) and audio.data == b"\x03\x04"
    assert isinstance(embedded, EmbeddedResource) and (embedded.uri, embedded.data) == ("docs://y", b"y")
    assert isinstance(blob, EmbeddedResource) and (blob.uri, blob.data) == ("docs://z", b"\xff")
    assert isinstance(text, TextContent) and text.annotations == audience and text.last_modified is not None
    assert isinstance(link, ResourceLink) and link.annotations == {} and link.raw["type"] == "resource_link"
    assert embedded.last_modified == text.last_modified


@pytest.mark.parametrize("kind", ["image", "audio"])
def test_what_is_not_base64_is_an_error_on_access_and_not_before(kind: str) -> None:
    one = block({"type": kind, "data": "not base64!", "mimeType": "image/png"})
    with pytest.raises(ProtocolError, match="the content of type image/png is not base64: not base64!"):
        one.data
    with pytest.raises(ProtocolError, match="the content of type .none given. is not base64"):
        block({"type": kind, "data": "%"}).data
    assert base64.b64encode(block({"type": kind, "data": "-_8\n"}).data) == b"+/8="
    assert "AAAA" not in repr(block({"type": kind, "data": "A" * 1000}))


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", ["text", "image", "audio", "resource_link", "resource", "other"])
def test_a_block_that_lacks_what_makes_it_one_is_kept_as_it_came(kind: str, odd: Any) -> None:
    names = ["text", "data", "uri", "resource", "annotations", "mimeType"]
    raw: "Dict[str, Any]" = dict(dict.fromkeys(names, odd), type=kind)
    one = block(raw)
    if not isinstance(odd, str) or kind in ("resource", "other"):
        assert isinstance(one, UnknownContent) and one.type == kind and one.raw is raw
    else:
        assert one.raw is raw and one.annotations == {} and one.last_modified is None
    assert block(odd) == UnknownContent("", odd) or odd != odd
    assert isinstance(block({"type": odd, "text": "x"}), TextContent if odd == "text" else UnknownContent)
    assert block({"type": "text", "text": "x", "annotations": odd}) == TextContent("x")


def test_no_block_is_lost() -> None:
    assert len(called({"type": "text"}, None, {}, {"type": "text", "text": "x"}, []).content) == 5


# -- what a tool answered ----------------------------------------------------------------------------------------------


def test_the_text_is_all_texts_one_below_the_other() -> None:
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    assert called({"type": "text", "text": "a\n"}, image, {"type": "text", "text": "b"}).text == "a\n\nb"
    assert called(image).text == called().text == ""


@pytest.mark.parametrize("value", [None, 0, False, "", [], {}, {"a": [1, None]}, [1], 7, 1.5, "x", True])
def test_any_value_can_be_structured_content_null_too(value: Any) -> None:
    result = called(structuredContent=value)
    assert result.has_structured_content and result.structured_content == value
    assert not called().has_structured_content and called().structured_content is None
    assert CallToolResult.from_wire({"structuredContent": value}).content == ()


@pytest.mark.parametrize("odd", ODD)
def test_only_true_is_an_error(odd: Any) -> None:
    result = called({"type": "text", "text": "no"}, isError=odd)
    assert result.is_error == (odd is True)
    if odd is not True:
        assert result.raise_for_error() is result


def test_a_failed_tool_raises_when_it_is_asked_to_with_what_it_said() -> None:
    result = called({"type": "text", "text": "the date is in\nthe past"}, isError=True, structuredContent={"a": 1})
    with pytest.raises(ToolError, match="^the tool sum failed: the date is in the past$") as caught:
        result.raise_for_error()
    assert caught.value.result is result
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.result == result and again.result.raw == result.raw and str(again) == str(caught.value)
    with pytest.raises(ToolError, match="^the tool failed: it does not say why$"):
        CallToolResult.from_wire({"isError": True}).raise_for_error()
    with pytest.raises(ToolError) as caught:
        called({"type": "text", "text": "\x1b[31m" + "x" * 10**6}, isError=True).raise_for_error()
    assert len(str(caught.value)) < 1100 and str(caught.value).isprintable()


@pytest.mark.parametrize("raw", [None, [], "x", 1, {}, {"content": None}, {"content": {}}, {"isError": False}])
def test_an_answer_with_nothing_useful_in_it_is_refused(raw: Any) -> None:
    with pytest.raises(ProtocolError):
        CallToolResult.from_wire(raw)


def test_an_answer_can_be_copied_and_sent_to_another_process() -> None:
    result = called({"type": "text", "text": "x"}, {"type": "x"}, structuredContent=[1])
    for again in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert again == result and again.raw == result.raw and again.content[0].raw == {"type": "text", "text": "x"}


# -- tools and prompts -------------------------------------------------------------------------------------------------


def test_a_tool_is_read() -> None:
    raw = {
        "name": "sum",
        "title": "The Sum",
        "description": "d",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "array"},
        "annotations": {"readOnlyHint": True},
        "icons": [],
    }
    tool = Tool.from_wire(raw)
    assert tool == Tool("sum", "The Sum", "d", {"type": "object"}, {"type": "array"}, {"readOnlyHint": True})
    assert tool is not None and tool.raw is raw and isinstance(hash(tool), int)


@pytest.mark.parametrize("raw", [None, [], "x", 1, {}, {"title": "x"}, {"name": None}, {"name": 7}])
def test_what_has_no_name_is_no_tool_and_no_prompt(raw: Any) -> None:
    assert Tool.from_wire(raw) is None
    assert Prompt.from_wire(raw) is None
    assert PromptArgument.from_wire(raw) is None


@pytest.mark.parametrize("odd", ODD)
def test_a_tool_s_or_prompt_s_field_of_the_wrong_type_is_absent(odd: Any) -> None:
    names = ["title", "description", "inputSchema", "outputSchema", "annotations", "arguments", "required"]
    raw: "Dict[str, Any]" = dict(dict.fromkeys(names, odd), name="x")
    text = odd if isinstance(odd, str) else None
    thing = odd if isinstance(odd, dict) else None
    assert Tool.from_wire(raw) == Tool("x", text, text, thing or {}, thing, thing or {})
    assert Prompt.from_wire(raw) == Prompt("x", text, text, ())
    assert PromptArgument.from_wire(raw) == PromptArgument("x", text, text, odd is True)


def test_a_prompt_is_read() -> None:
    arguments = [{"name": "code", "title": "Code", "description": "d", "required": True}, {"name": "style"}, "junk", {}]
    prompt = Prompt.from_wire({"name": "review", "title": "R", "description": "d", "arguments": arguments})
    expected = (PromptArgument("code", "Code", "d", True), PromptArgument("style"))
    assert prompt == Prompt("review", "R", "d", expected)


def listed(cls: Any, *pages: "List[Any]", **more: Any) -> Any:
    wire = cls.SHAPE.wire
    whole = [({wire: page, "ttlMs": 5000}, 110.0) for page in pages]
    return list_from_pages(cls, whole, 100.0, 1700000000.0, lambda: 130.0, **more)


@pytest.mark.parametrize("cls", [ListToolsResult, ListPromptsResult])
def test_tools_and_prompts_are_joined_from_their_pages(cls: Any) -> None:
    result = listed(cls, [{"name": "a"}, {"name": ""}], ["junk", {"name": "b"}])
    assert result.names == ("a", "", "b") and len(result) == 3 and [item.name for item in result] == ["a", "", "b"]
    assert result.find("b").name == "b" and result.find("c") is None
    assert result.content() == [{"name": "a"}, {"name": ""}, {"name": "b"}]
    assert (result.ttl, result.age, result.left_out) == (5.0, 30.0, ())
    assert pickle.loads(pickle.dumps(result)) == result


@pytest.mark.parametrize("cls", [ListToolsResult, ListPromptsResult])
def test_the_first_of_a_name_counts_and_the_second_is_told_of(cls: Any) -> None:
    result = listed(cls, [{"name": "a", "title": "1"}, {"name": "a", "title": "1"}], [{"name": "a", "title": "2"}])
    assert [item.title for item in result] == ["1"]
    assert result.content() == [{"name": "a", "title": "1"}]
    assert result.left_out == (LeftOut("a", "another of this name was listed before it, and counts"),)


def test_what_moved_from_one_page_to_the_next_is_no_second_of_its_name() -> None:
    assert listed(ListToolsResult, [{"name": "a"}], [{"name": "a"}]).left_out == ()


def test_what_has_a_problem_is_left_out_and_its_name_is_free() -> None:
    items = [{"name": "a", "title": "bad"}, {"name": "a", "title": "good"}, {"name": "b"}]
    result = listed(ListToolsResult, items, problem_with=lambda tool: "it is bad" if tool.title == "bad" else None)
    assert [tool.title for tool in result] == ["good", None]
    assert result.left_out == (LeftOut("a", "it is bad"),)
    assert result.content() == items[1:]


# -- a prompt, filled in -----------------------------------------------------------------------------------------------


def test_a_prompt_s_messages_are_read() -> None:
    raw = {
        "description": "d",
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "x"}},
            {"role": "assistant", "content": {"type": "image", "data": "AA==", "mimeType": "image/png"}},
            {"content": None},
            "junk",
        ],
    }
    result = GetPromptResult.from_wire(raw)
    assert result.messages == (
        PromptMessage("user", TextContent("x")),
        PromptMessage("assistant", ImageContent("AA==", "image/png")),
        PromptMessage("", UnknownContent("", None)),
    )
    assert (result.description, result.raw, len(result), list(result)) == ("d", raw, 3, list(result.messages))
    assert pickle.loads(pickle.dumps(result)) == result
    assert GetPromptResult.from_wire({"messages": [], "description": 7}) == GetPromptResult()


@pytest.mark.parametrize("raw", [None, [], {}, {"messages": None}, {"messages": {}}, {"messages": ["junk", 1]}])
def test_a_prompt_without_messages_is_refused(raw: Any) -> None:
    with pytest.raises(ProtocolError):
        GetPromptResult.from_wire(raw)


# -- suggestions -------------------------------------------------------------------------------------------------------


def test_suggestions_are_read() -> None:
    raw = {"completion": {"values": ["python", 7, "pytorch", None], "total": 10, "hasMore": True}}
    result = CompleteResult.from_wire(raw)
    assert result == CompleteResult(("python", "pytorch"), 10, True) and result.raw is raw
    assert list(result) == ["python", "pytorch"] and len(result) == 2


@pytest.mark.parametrize("odd", ODD)
def test_a_field_of_suggestions_of_the_wrong_type_is_absent(odd: Any) -> None:
    result = CompleteResult.from_wire({"completion": {"values": [], "total": odd, "hasMore": odd}})
    total = odd if isinstance(odd, int) and not isinstance(odd, bool) and odd >= 0 else None
    assert result == CompleteResult((), total, odd is True)
    if not isinstance(odd, list):
        for raw in (odd, {"completion": odd}, {"completion": {"values": odd}}):
            with pytest.raises(ProtocolError):
                CompleteResult.from_wire(raw)


def test_what_is_completed_is_named_as_the_protocol_does() -> None:
    assert PromptReference("review").to_wire() == {"type": "ref/prompt", "name": "review"}
    assert ResourceTemplateReference("file:///{path}").to_wire() == {"type": "ref/resource", "uri": "file:///{path}"}
