"""Arguments that are repeated in headers: which tools may be used at all, and what is sent."""

import logging
from typing import Any, Dict, List, Optional

import pytest
from rawserver import BOUND, Outcome, Peer, RawServer, json_answer

from mcp_sync import Client, Tool
from mcp_sync.tool_headers import headers_for, problem_with

HEADER = "x-mcp-header"


def tool(schema: Any, name: str = "sql") -> Tool:
    made = Tool.from_wire({"name": name, "inputSchema": schema})
    assert made is not None
    return made


def having(**properties: Any) -> Tool:
    return tool({"type": "object", "properties": properties})


def marked(name: Any = "Region", **more: Any) -> "Dict[str, Any]":
    return dict({"type": "string", HEADER: name}, **more)


# -- which tools may be used -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["string", "integer", "boolean"])
def test_properties_of_three_types_may_have_a_header(kind: str) -> None:
    assert problem_with(having(region=marked(type=kind), query={"type": "string"})) is None


def test_a_property_may_be_as_deep_as_it_likes_on_a_chain_of_properties() -> None:
    deep = {"type": "object", "properties": {"b": {"type": "object", "properties": {"c": marked()}}}}
    assert problem_with(having(a=deep, d=marked("Other"))) is None


@pytest.mark.parametrize("name", ["a", "Region", "X-1", "!#$%&'*+-.^_`|~09azAZ"])
def test_every_token_is_a_name(name: str) -> None:
    assert problem_with(having(region=marked(name))) is None


@pytest.mark.parametrize(
    "name",
    ["", " ", "a b", "a:b", "a\r\nb", "a\n", "a\x00", "\x7f", "naïve", "世界", "a/b", "(a)", '"a"', "a,b", "a\t", "a{b}", "Ａ"]
    + [None, 0, 7, True, [], ["a"], {}, {"a": 1}],
)
def test_what_is_no_token_is_no_name(name: Any) -> None:
    told = problem_with(having(region=marked(name)))
    assert told is not None and told.startswith("the x-mcp-header of its property region is no name of a header: ")
    assert told.isprintable()


@pytest.mark.parametrize("kind", ["number", "object", "array", "null", None, 7, "", "String", ["string", "null"], ["string"], {}])
def test_properties_of_other_types_may_not(kind: Any) -> None:
    told = problem_with(having(region=marked(type=kind)))
    assert told is not None
    assert told.startswith("its property region has x-mcp-header, and its type is not one of integer, string, boolean: ")


def test_a_property_without_a_type_may_not() -> None:
    told = problem_with(having(region={HEADER: "Region", "enum": ["a"]}))
    assert told is not None and told.endswith("boolean: none")


@pytest.mark.parametrize("other", ["Region", "region", "REGION"])
def test_a_name_is_used_once_whatever_its_case(other: str) -> None:
    told = problem_with(having(a=marked("Region"), b={"type": "object", "properties": {"c": marked(other)}}))
    assert told == "its properties a and b.c have the same x-mcp-header: %s" % other


NOWHERE = "it has x-mcp-header where it means nothing: not on a property that is reached by properties alone"

BESIDE: "List[Any]" = [
    {"items": marked()},
    {"items": [marked()]},
    {"prefixItems": [{}, marked()]},
    {"contains": marked()},
    {"unevaluatedItems": marked()},
    {"additionalItems": marked()},
    {"oneOf": [marked()]},
    {"anyOf": [{}, {"properties": {"a": marked()}}]},
    {"allOf": [{"properties": {"a": marked()}}]},
    {"not": marked()},
    {"if": {"properties": {"a": marked()}}},
    {"then": {"properties": {"a": marked()}}},
    {"else": {"properties": {"a": marked()}}},
    {"$defs": {"a": marked()}},
    {"definitions": {"a": marked()}},
    {"$defs": {"default": marked()}},
    {"patternProperties": {"^a": marked()}},
    {"patternProperties": {"const": marked()}},
    {"additionalProperties": marked()},
    {"unevaluatedProperties": marked()},
    {"propertyNames": marked()},
    {"dependentSchemas": {"a": {"properties": {"b": marked()}}}},
    {"dependencies": {"a": marked()}},
    {"contentSchema": marked()},
    {"$ref": marked()},
    {"x-of-the-vendor": {"a": [[{"b": marked()}]]}},
    {"properties": [marked()]},
]


@pytest.mark.parametrize("schema", BESIDE, ids=lambda schema: next(iter(schema)))
@pytest.mark.parametrize("within", [False, True])
def test_a_header_anywhere_else_makes_the_tool_unfit(schema: Any, within: bool) -> None:
    whole = dict(schema, type="object")
    assert problem_with(having(ok=marked("Ok"), a=whole) if within else tool(whole)) == NOWHERE


def test_the_schema_itself_has_no_header() -> None:
    assert problem_with(tool(dict(marked(), type="object"))) == NOWHERE


@pytest.mark.parametrize("keyword", ["const", "enum", "default", "examples"])
def test_what_is_data_and_no_schema_may_look_as_it_likes(keyword: str) -> None:
    assert problem_with(having(a={"type": "object", keyword: [{HEADER: "x"}]})) is None


def test_a_property_may_have_the_name_of_a_keyword() -> None:
    names = ["const", "enum", "default", "items", "oneOf", "properties", HEADER]
    assert problem_with(having(**{name: {"type": "string"} for name in names})) is None
    made = having(default=marked("A"), items=marked("B"), properties=marked("C"), **{HEADER: marked("D")})
    assert problem_with(made) is None
    assert headers_for(made, dict.fromkeys(["default", "items", "properties", HEADER], "v")) == {
        "Mcp-Param-A": "v",
        "Mcp-Param-B": "v",
        "Mcp-Param-C": "v",
        "Mcp-Param-D": "v",
    }


# -- bad schemas -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [None, True, False, 7, "x", [], [marked()], {}, {"properties": None}, {"properties": 7}])
def test_a_schema_that_is_none_has_no_headers(schema: Any) -> None:
    assert problem_with(tool(schema)) is None
    assert headers_for(tool(schema), {"a": "x"}) == {}
    assert problem_with(having(a=True, b=None, c=7)) is None


def nested(levels: int, *, innermost: Any, by: str = "properties") -> Any:
    schema = innermost
    for _ in range(levels):
        schema = {"properties": {"a": schema}} if by == "properties" else {by: schema}
    return schema


def taken_apart(schema: Any) -> None:
    # By hand: Pythons before 3.9 overflow their stack over the end of such a value.
    while isinstance(schema, dict) and schema:
        schema = schema.popitem()[1]


@pytest.mark.parametrize("by", ["properties", "items", "not"])
def test_a_schema_of_ten_thousand_levels_is_looked_through(by: str) -> None:
    schema = nested(10000, innermost=marked(), by=by)
    made = Tool("deep", input_schema=schema)
    assert problem_with(made) == (None if by == "properties" else NOWHERE)
    assert headers_for(made, {"a": {"a": "x"}}) == {}
    innermost = nested(10000, innermost=marked("no name"))
    told = problem_with(Tool("deep", input_schema=innermost))
    assert told is not None and len(told) < 300
    taken_apart(schema)
    taken_apart(innermost)


def test_a_schema_that_refers_to_itself_is_not_followed() -> None:
    made = having(a={"$ref": "#"}, b=marked())
    assert problem_with(made) is None
    assert headers_for(made, {"a": {"b": "no"}, "b": "yes"}) == {"Mcp-Param-Region": "yes"}


def test_a_schema_that_holds_itself_comes_to_an_end() -> None:
    schema: "Dict[str, Any]" = {"type": "object", "properties": {"b": marked()}}
    schema["properties"]["a"] = schema
    assert problem_with(Tool("round", input_schema=schema)) is None
    schema["items"] = schema
    assert problem_with(Tool("round", input_schema=schema)) == NOWHERE


# -- what is sent ------------------------------------------------------------------------------------------------------


def sent(value: Any, kind: str = "string") -> "Optional[str]":
    headers = headers_for(having(a=marked("A", type=kind)), {"a": value})
    assert set(headers) <= {"Mcp-Param-A"}
    return headers.get("Mcp-Param-A")


@pytest.mark.parametrize(
    "value, header",
    [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("", "=?base64??="),
        ("true", "true"),
        ("42", "42"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (42, "42"),
        (-7, "-7"),
        (42.0, "42"),
        (1.5, "1.5"),
        (2**53 - 1, "9007199254740991"),
        (1 - 2**53, "-9007199254740991"),
        (None, None),
        ([], None),
        ({"a": 1}, None),
        (b"x", None),
    ],
)
def test_a_value_is_sent_as_the_protocol_says(value: Any, header: Any) -> None:
    assert sent(value) == header


@pytest.mark.parametrize("value", [2**53, -(2**53), 10**5000, 1e300], ids=["above", "below", "5000 digits", "a float"])
def test_an_integer_that_not_everybody_can_read_is_not_sent(value: Any) -> None:
    with pytest.raises(ValueError, match="the argument a is repeated in a header and has to be between") as caught:
        sent(value, "integer")
    assert len(str(caught.value)) < 200


def test_the_value_is_taken_from_the_very_place_of_its_property() -> None:
    made = having(a={"type": "object", "properties": {"b": marked("B")}}, b={"type": "string"}, c=marked("C"))
    assert headers_for(made, {"a": {"b": "1"}, "b": "2", "c": "3"}) == {"Mcp-Param-B": "1", "Mcp-Param-C": "3"}
    for arguments in (None, {}, {"b": "2"}, {"a": None}, {"a": "b"}, {"a": ["b"]}, {"a": {}}, {"a": {"b": None}}):
        assert headers_for(made, arguments) == {}


# -- listing -----------------------------------------------------------------------------------------------------------

TOOLS = [
    {"name": "good", "inputSchema": {"type": "object", "properties": {"a": marked("A")}}},
    {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": marked("A b")}}},
    {"name": "plain", "inputSchema": None},
]


def serving(era: str) -> Any:
    def script(peer: Peer) -> None:
        while True:
            request = peer.request()
            method = request.message["method"]
            if "id" not in request.message:
                peer.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
                continue
            result: "Dict[str, Any]" = {"tools": TOOLS}
            if method == "initialize":
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x"}}
            peer.send(json_answer(request.answer(result)))

    return script


def warnings_of(caplog: Any) -> "List[str]":
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_an_unfit_tool_is_left_out_of_the_list_and_told_of_once(caplog: Any) -> None:
    with RawServer(serving("modern")) as server, Client(server.url, timeout=BOUND, era="modern") as client:
        for _ in range(3):
            found = Outcome(client.list_tools).value()
            assert found.names == ("good", "plain")
            assert found.content() == [TOOLS[0], TOOLS[2]]
        assert [item.name for item in found.left_out] == ["bad"]
    why = "the x-mcp-header of its property a is no name of a header: A b"
    assert warnings_of(caplog) == ["%s: tools/list: bad was left out: %s" % (server.url, why)]


def test_what_headers_there_would_be_is_all_the_same_to_a_legacy_server(caplog: Any) -> None:
    with RawServer(serving("legacy")) as server, Client(server.url, timeout=BOUND, era="legacy") as client:
        assert Outcome(client.list_tools).value().names == ("good", "bad", "plain")
    assert warnings_of(caplog) == []
