"""Answers of tools are checked against the schemas that the tools promised, where jsonschema is installed."""

import logging
import subprocess
import sys
import threading
from typing import Any, Dict, List

import pytest

from mcp_sync import CallToolResult, ProtocolError, Tool
from mcp_sync import schema as schema_file
from mcp_sync.schema import check

try:
    import jsonschema  # noqa: F401
except ImportError:
    installed = False
else:
    installed = True

needs_jsonschema = pytest.mark.skipif(not installed, reason="jsonschema is not installed")


def tool(schema: Any) -> Tool:
    made = Tool.from_wire({"name": "sum", "inputSchema": {"type": "object"}, "outputSchema": schema})
    assert made is not None
    return made


def answer(value: Any, **more: Any) -> CallToolResult:
    return CallToolResult.from_wire(dict({"content": [], "structuredContent": value}, **more))


def told(caplog: Any) -> "List[str]":
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


WEATHER = {
    "type": "object",
    "properties": {
        "temperature": {"type": "number"},
        "days": {"type": "array", "items": {"$ref": "#/$defs/day"}},
    },
    "required": ["temperature"],
    "$defs": {"day": {"type": "object", "properties": {"name": {"enum": ["Mo", "Tu"]}}}},
}

# -- without jsonschema ------------------------------------------------------------------------------------------------


def test_without_jsonschema_nothing_is_checked_and_nobody_is_bothered(monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with caplog.at_level(logging.DEBUG, "mcp_sync"):
        check(tool(WEATHER), answer("wrong"))
        check(tool(WEATHER), CallToolResult())
    assert [record.levelno for record in caplog.records] == [logging.DEBUG] * 2
    assert "pip install mcp-sync-client[schema]" in caplog.text


def test_nothing_of_it_is_imported_before_there_is_something_to_check() -> None:
    code = (
        "import sys; from mcp_sync import CallToolResult, Tool, schema;"
        "schema.check(Tool('a'), CallToolResult(structured_content=1, has_structured_content=True));"
        "print(sorted({'jsonschema', 'referencing', 'uritemplate'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, universal_newlines=True, timeout=60)
    assert ended.stdout.strip() == "[]"


# -- right and wrong answers -------------------------------------------------------------------------------------------


@needs_jsonschema
def test_what_is_as_the_schema_says_passes(caplog: Any) -> None:
    check(tool(WEATHER), answer({"temperature": 22.5, "days": [{"name": "Mo"}, {}]}))
    check(tool({"type": "null"}), answer(None))
    check(tool({"type": "array", "items": {"type": "string"}}), answer(["a"]))
    check(tool({}), answer(7))
    assert told(caplog) == []


@needs_jsonschema
@pytest.mark.parametrize(
    "value, where, why",
    [
        ({"temperature": "hot"}, "$.temperature", "'hot' is not of type 'number'"),
        ({}, "$", "'temperature' is a required property"),
        ([], "$", "is not of type 'object'"),
        (None, "$", "None is not of type 'object'"),
        ({"temperature": 1, "days": [{}, {"name": "\x1b[31m"}]}, "$.days[1].name", "is not one of"),
    ],
)
def test_what_is_not_is_an_error_that_says_where_and_why(value: Any, where: str, why: str) -> None:
    with pytest.raises(ProtocolError, match=why) as caught:
        check(tool(WEATHER), answer(value))
    assert str(caught.value).startswith(
        "the tool sum answered with structured content that is not as its outputSchema says, at %s: " % where
    )
    assert str(caught.value).isprintable()


@needs_jsonschema
def test_an_error_is_short_however_long_the_answer_is() -> None:
    with pytest.raises(ProtocolError) as caught:
        check(tool({"type": "object"}), answer("x" * 10**6))
    assert len(str(caught.value)) < 600


@needs_jsonschema
def test_an_answer_without_the_promised_content_is_refused() -> None:
    with pytest.raises(ProtocolError, match="the tool sum promises structured content .outputSchema., and answered without"):
        check(tool(WEATHER), CallToolResult.from_wire({"content": []}))


@needs_jsonschema
def test_a_tool_that_failed_need_not_keep_its_promise() -> None:
    check(tool(WEATHER), CallToolResult.from_wire({"content": [], "isError": True}))
    check(tool(WEATHER), answer("wrong", isError=True))


@needs_jsonschema
@pytest.mark.parametrize("odd", [None, True, 7, "x", []])
def test_a_schema_that_is_no_object_promises_nothing(odd: Any, caplog: Any) -> None:
    check(tool(odd), answer("x"))
    check(tool(odd), CallToolResult())
    assert told(caplog) == []


# -- dialects ----------------------------------------------------------------------------------------------------------

D2020 = "https://json-schema.org/draft/2020-12/schema"
D2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT = "http://json-schema.org/draft-0%d/schema#"


@needs_jsonschema
@pytest.mark.parametrize("named", [None, D2020, D2020 + "#", D2019, DRAFT % 7, "http://json-schema.org/draft-07/schema"])
def test_the_dialect_is_the_one_that_the_schema_names_or_the_newest(named: Any) -> None:
    # A tuple is written with prefixItems since 2020-12, which means nothing to those before it.
    schema: "Dict[str, Any]" = {"prefixItems": [{"type": "string"}]}
    if named is not None:
        schema["$schema"] = named
    if named is None or "2020" in named:
        with pytest.raises(ProtocolError, match="7 is not of type 'string'"):
            check(tool(schema), answer([7]))
    else:
        check(tool(schema), answer([7]))


@needs_jsonschema
@pytest.mark.parametrize("number", [3, 4, 6, 7])
def test_beside_a_reference_nothing_counts_in_the_old_drafts(number: int) -> None:
    part = {"$ref": "#/definitions/a", "maxLength": 1}
    schema = {"$schema": DRAFT % number, "definitions": {"a": {"type": "string"}}, "properties": {"a": part}}
    check(tool(schema), answer({"a": "long"}))
    with pytest.raises(ProtocolError, match="7 is not of type 'string'"):
        check(tool(schema), answer({"a": 7}))
    newer = {"$defs": {"a": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/a", "maxLength": 1}}}
    with pytest.raises(ProtocolError, match="too long"):
        check(tool(newer), answer({"a": "long"}))


@needs_jsonschema
@pytest.mark.parametrize("named", ["https://example.com/mine", "", "draft-07", D2020 + "/x", "x" * 1000])
def test_another_dialect_is_said_not_to_be_supported(named: str) -> None:
    for _ in range(2):
        with pytest.raises(ProtocolError, match="the outputSchema of the tool sum is in a dialect that is not supported: "):
            check(tool({"$schema": named}), answer(7))


# -- references --------------------------------------------------------------------------------------------------------


@needs_jsonschema
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
        {"$ref": "#a", "$defs": {"a": {"$anchor": "a", "type": "string"}}},
        {"$ref": "a", "$defs": {"a": {"$id": "a", "type": "string"}}},
        {"$id": "https://example.com/x", "$ref": "/a", "$defs": {"a": {"$id": "/a", "type": "string"}}},
        {"$schema": DRAFT % 7, "$ref": "#/definitions/a", "definitions": {"a": {"type": "string"}}},
    ],
)
def test_references_within_the_schema_are_followed(schema: Any) -> None:
    check(tool(schema), answer("x"))
    with pytest.raises(ProtocolError, match="7 is not of type 'string'"):
        check(tool(schema), answer(7))


@needs_jsonschema
def test_the_schema_of_schemas_is_at_hand() -> None:
    check(tool({"$ref": D2020}), answer({"type": "string"}))
    with pytest.raises(ProtocolError, match="not as its outputSchema says"):
        check(tool({"$ref": D2020}), answer({"type": 7}))


@needs_jsonschema
@pytest.mark.parametrize(
    "reference",
    ["https://example.com/s", "http://127.0.0.1:9/s", "file:///etc/passwd", "ftp://example.com/x", "other", "#/nowhere"],
)
@pytest.mark.parametrize("named", [D2020, DRAFT % 7])
def test_what_is_not_in_the_schema_is_never_fetched_and_the_answer_refused(
    reference: str, named: str, monkeypatch: Any
) -> None:
    fetched: "List[Any]" = []

    def refuse(*arguments: Any, **_: Any) -> Any:
        fetched.append(arguments)  # what is raised here, others may catch
        raise OSError("nothing is to be fetched")

    for name in ("socket.socket.connect", "socket.create_connection", "urllib.request.urlopen", "requests.get", "builtins.open"):
        monkeypatch.setattr(name, refuse)
    schema = {"$schema": named, "properties": {"a": {"$ref": reference}}}
    try:
        check(tool(schema), answer({"b": 1}))  # which does not come to it
        with pytest.raises(ProtocolError, match="sum refers to another that is not in it, and nothing is fetched: ") as caught:
            check(tool(schema), answer({"a": 1}))
    finally:
        monkeypatch.undo()
    assert fetched == []
    assert reference.strip("#/") in str(caught.value)


# -- bad schemas -------------------------------------------------------------------------------------------------------


@needs_jsonschema
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"type": 7},
        {"properties": []},
        {"items": 7},
        {"$schema": 7},
        {"$schema": None},
        {"required": "a"},
        {"properties": {"a": {"$schema": DRAFT % 7}}},
    ],
)
def test_a_schema_that_is_not_valid_is_told_of_once_and_not_used(schema: Any, caplog: Any) -> None:
    made = tool(schema)
    for _ in range(3):
        check(made, answer({"a": 7}))
    assert len(told(caplog)) == 1
    assert told(caplog)[0].startswith(
        "the structured content of the tool sum was not checked: its outputSchema is not valid: "
    )


@needs_jsonschema
@pytest.mark.parametrize(
    "schema", [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#"}}}]
)
def test_a_schema_that_refers_to_itself_without_end_is_not_used(schema: Any, caplog: Any) -> None:
    check(tool(schema), answer({"a": 7}))
    assert len(told(caplog)) == 1 and "cannot be used" in told(caplog)[0]


@needs_jsonschema
def test_a_schema_may_refer_to_itself_where_the_answer_comes_to_an_end() -> None:
    schema = {"properties": {"next": {"$ref": "#"}, "value": {"type": "integer"}}}
    check(tool(schema), answer({"next": {"next": {"value": 1}}}))
    with pytest.raises(ProtocolError, match=r"at \$.next.next.value: 'x' is not of type 'integer'"):
        check(tool(schema), answer({"next": {"next": {"value": "x"}}}))


def nested(levels: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


@needs_jsonschema
def test_a_schema_of_ten_thousand_levels_is_not_used(caplog: Any) -> None:
    schema = nested(10000)
    check(Tool("sum", output_schema=schema), answer({"a": 7}))
    assert len(told(caplog)) == 1 and "too deep or too large" in told(caplog)[0]
    schema_file._ready.clear()
    while isinstance(schema, dict) and schema:  # by hand: Pythons before 3.9 overflow their stack over the end of it
        schema = schema.popitem()[1]


@needs_jsonschema
def test_a_schema_of_very_many_parts_is_not_used(caplog: Any) -> None:
    check(tool({"properties": {str(number): {} for number in range(10000)}}), answer({}))
    assert len(told(caplog)) == 1 and "too deep or too large" in told(caplog)[0]


@needs_jsonschema
def test_a_schema_that_doubles_at_each_step_is_given_up(caplog: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(schema_file, "_MAX_STEPS", 2000)
    parts: "Dict[str, Any]" = {"d0": {"type": "integer"}}
    for number in range(40):
        below = {"$ref": "#/$defs/d%d" % number}
        parts["d%d" % (number + 1)] = {"allOf": [below, below]}
    check(tool({"$ref": "#/$defs/d40", "$defs": parts}), answer(7))
    assert len(told(caplog)) == 1 and told(caplog)[0].endswith("cannot be used: it takes too long to check")
    # The limit is for each check.
    check(tool({"type": "integer"}), answer(7))
    assert len(told(caplog)) == 1


@needs_jsonschema
@pytest.mark.parametrize("named", [D2020, DRAFT % 7])
def test_a_dialect_that_is_named_does_not_take_the_limits_away(named: str, caplog: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(schema_file, "_MAX_STEPS", 2000)
    again = {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}
    value: "Dict[str, Any]" = {}
    for _ in range(40):
        value = {"a": value}
    check(tool({"$schema": named, "properties": {"a": again}}), answer(value))
    assert len(told(caplog)) == 1 and told(caplog)[0].endswith("cannot be used: it takes too long to check")


@needs_jsonschema
@pytest.mark.parametrize(
    "schema, value",
    [
        ({"items": {"type": "integer"}}, list(range(120000))),
        ({"uniqueItems": True}, [{"a": number} for number in range(6000)]),
        ({"anyOf": [{"type": "integer", "maximum": number} for number in range(2000)]}, "x" * 10**6),
        ({"items": {"enum": list(range(2000))}}, [1999] * 1000),
        ({"pattern": "(a+)+$"}, "a" * 50 + "b"),
        ({"pattern": "(a|a)+$"}, "a" * 50 + "b"),
        ({"pattern": "(a?a?)+$"}, "a" * 50 + "b"),
        ({"pattern": "(a+){25}$"}, "a" * 50 + "b"),
        ({"pattern": "(?x)(a +)+ $"}, "a" * 50 + "b"),
        ({"pattern": "(?#[)(a+)+$|]"}, "a" * 50 + "b"),
        ({"pattern": "[]](a+)+[^]b]"}, "]" + "a" * 50),
        ({"pattern": "a*a*a*a*a*a*$"}, "a" * 200 + "b"),
        ({"pattern": "a?" * 40 + "a" * 40}, "a" * 39),
        ({"pattern": "(a|a)" * 40 + "b"}, "a" * 40),
        ({"patternProperties": {"(a+)+$": {}}}, {"a" * 50 + "b": 1}),
        ({"patternProperties": {"(a+)+$": {}}, "additionalProperties": False}, {"a" * 50 + "b": 1}),
    ],
    ids=range(16),
)
def test_what_would_take_too_long_is_not_checked(schema: Any, value: Any, caplog: Any) -> None:
    made = tool(schema)
    for _ in range(2):
        check(made, answer(value))
    assert len(told(caplog)) == 1 and "cannot be used: " in told(caplog)[0]


@needs_jsonschema
@pytest.mark.parametrize(
    "pattern, right, wrong",
    [
        (r"^\d{4}-\d{2}-\d{2}$", "2026-07-28", "28 July 2026"),
        (r"^[^@]+@[^@]+\.[^@]+$", "somebody@example.com", "somebody at example.com"),
        (r"^[a-z0-9-]+$", "a-slug-of-the-usual-length-" * 10, "No Slug"),
        (r"^(red|green|blue)$", "red", "pink"),
        (r"^[0-9a-f]{8}-([0-9a-f]{4}-)", "00000000-1111-", "x"),
        (r"^https?://", "https://" + "x" * 1000, "gopher://" + "x" * 100),
        (r"^(?:a|b)\.\*$", "a.*", "a.b"),
    ],
)
def test_the_usual_patterns_are_checked(pattern: str, right: str, wrong: str, caplog: Any) -> None:
    check(tool({"pattern": pattern}), answer(right))
    with pytest.raises(ProtocolError, match="does not match"):
        check(tool({"pattern": pattern}), answer(wrong))
    assert told(caplog) == []


@needs_jsonschema
def test_many_schemas_take_bounded_memory() -> None:
    for number in range(300):
        check(tool({"minimum": number}), answer(1000))
    assert len(schema_file._ready) <= 128


@needs_jsonschema
def test_a_schema_is_made_ready_once(monkeypatch: Any) -> None:
    made = tool(WEATHER)
    check(made, answer({"temperature": 1}))
    monkeypatch.setattr(schema_file, "_made_ready", None)
    check(made, answer({"temperature": 2}))
    with pytest.raises(ProtocolError):
        check(made, answer({}))


@needs_jsonschema
def test_threads_do_not_spend_each_other_s_time(caplog: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(schema_file, "_MAX_STEPS", 20000)
    made = tool({"items": {"type": "integer"}})
    value = answer(list(range(15000)))
    failures: "List[BaseException]" = []
    ready = threading.Barrier(4)

    def run() -> None:
        try:
            ready.wait(20)
            check(made, value)
            with pytest.raises(ProtocolError):
                check(made, answer([1, "x"]))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == [] and told(caplog) == []
