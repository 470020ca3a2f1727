"""What a user answers to a form: defaults filled in, and checked before it is sent, whatever the schema is."""

from typing import Any, Dict

import pytest

from mcp_sync.elicitation import defaults, elicited, problems

NAN, ENDLESS = float("nan"), float("inf")


def asked(required: Any = (), **properties: Any) -> "Dict[str, Any]":
    return {"message": "?", "requestedSchema": {"type": "object", "properties": properties, "required": list(required)}}


def told(field: Any, value: Any) -> str:
    """What is wrong with a value; empty if nothing is."""
    return "; ".join(problems({"properties": {"it": field}}, {"it": value}))


# -- what is returned -----------------------------------------------------------------------------------------------------

FORM = asked(["colour"], colour={"type": "string", "default": "blue"}, size={"type": "integer"})


@pytest.mark.parametrize(
    "answer, result",
    [
        (None, {"action": "decline"}),
        (False, {"action": "decline"}),
        (True, {"action": "accept", "content": {"colour": "blue"}}),
        ({}, {"action": "accept", "content": {"colour": "blue"}}),
        ({"size": 3}, {"action": "accept", "content": {"colour": "blue", "size": 3}}),
        ({"colour": "red"}, {"action": "accept", "content": {"colour": "red"}}),
        ({"action": "accept"}, {"action": "accept", "content": {"colour": "blue"}}),
        ({"action": "accept", "content": {"size": 1}}, {"action": "accept", "content": {"colour": "blue", "size": 1}}),
        ({"action": "decline"}, {"action": "decline"}),
        ({"action": "cancel", "_meta": {"a": 1}}, {"action": "cancel", "_meta": {"a": 1}}),
    ],
)
def test_an_answer_is_the_values_a_word_or_the_protocols_own_result(answer: Any, result: Any) -> None:
    assert elicited(FORM, answer) == result


def test_the_answer_that_was_returned_is_left_as_it_is() -> None:
    answer: Dict[str, Any] = {"action": "accept", "content": {"size": 1}}
    elicited(FORM, answer)
    assert answer == {"action": "accept", "content": {"size": 1}}


def test_a_field_of_the_form_may_be_called_action() -> None:
    form = asked(action={"type": "string"}, why={"type": "string"})
    for values in ({"action": "restart"}, {"action": "accept", "why": "so"}):
        assert elicited(form, values) == {"action": "accept", "content": values}


@pytest.mark.parametrize("answer", ["accept", 1, ["accept"], object(), 0, "", ()])
def test_anything_else_is_a_mistake_of_the_programs(answer: Any) -> None:
    with pytest.raises(TypeError, match="on_elicitation has to return"):
        elicited(FORM, answer)


def test_a_page_to_go_to_has_no_values() -> None:
    page = {"mode": "url", "message": "?", "url": "https://example.com", "elicitationId": "1"}
    assert elicited(page, True) == {"action": "accept"}
    assert elicited(page, None) == {"action": "decline"}


@pytest.mark.parametrize("mode", [None, 1, ["url"], {}])
def test_a_mode_that_makes_no_sense_means_a_form(mode: Any) -> None:
    assert elicited(dict(FORM, mode=mode), True) == {"action": "accept", "content": {"colour": "blue"}}


def test_all_that_is_wrong_is_told_at_once() -> None:
    form = asked(["name"], name={"type": "string"}, size={"type": "integer"}, sure={"type": "boolean"})
    with pytest.raises(ValueError) as caught:
        elicited(form, {"size": "3", "sure": 1})
    for said in ("name is missing", "size has to be a number", "sure has to be true or false"):
        assert said in str(caught.value)


def test_what_is_declined_is_not_checked() -> None:
    assert elicited(asked(["name"], name={"type": "string"}), None) == {"action": "decline"}


# -- each kind of field ---------------------------------------------------------------------------------------------------

TITLED = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}
SOME = {"type": "array", "items": {"type": "string", "enum": ["r", "g"]}, "minItems": 1, "maxItems": 2}
SOME_TITLED = {"type": "array", "items": {"anyOf": TITLED["oneOf"]}}


@pytest.mark.parametrize(
    "field, value",
    [
        ({"type": "string"}, ""),
        ({"type": "string", "minLength": 2, "maxLength": 2}, "\U0001f600x"),
        ({"type": "string", "format": "email"}, "anything: formats are the server's to check"),
        ({"type": "boolean"}, False),
        ({"type": "number"}, 1.5),
        ({"type": "number", "minimum": 0, "maximum": 0}, 0),
        ({"type": "integer"}, 10**30),
        ({"type": "integer"}, 3.0),
        ({"type": "string", "enum": ["a", "b"]}, "b"),
        ({"type": "string", "enum": ["a"], "enumNames": ["A"]}, "a"),
        (TITLED, "g"),
        (SOME, ["r"]),
        (SOME, ("r", "g")),
        (SOME_TITLED, ["g"]),
        (SOME_TITLED, []),
        ({"type": "of the future"}, object()),
        ({}, None),
    ],
)
def test_what_fits_is_sent(field: Any, value: Any) -> None:
    assert told(field, value) == ""


@pytest.mark.parametrize(
    "field, value, why",
    [
        ({"type": "string"}, 1, "has to be a text: 1"),
        ({"type": "string"}, None, "has to be a text"),
        ({"type": "string", "minLength": 2}, "x", "at least 2 characters, not 1"),
        ({"type": "string", "maxLength": 2}, "xyz", "at most 2 characters, not 3"),
        ({"type": "boolean"}, 1, "has to be true or false: 1"),
        ({"type": "boolean"}, "true", "has to be true or false"),
        ({"type": "number"}, "1", "has to be a number"),
        ({"type": "number"}, True, "has to be a number: True"),
        ({"type": "number"}, NAN, "has to be a number"),
        ({"type": "number"}, ENDLESS, "has to be a number"),
        ({"type": "integer"}, True, "has to be a number: True"),
        ({"type": "integer"}, 1.5, "has to be a whole number: 1.5"),
        ({"type": "integer"}, NAN, "has to be a number"),
        ({"type": "integer"}, ENDLESS, "has to be a number"),
        ({"type": "integer"}, -ENDLESS, "has to be a number"),
        ({"type": "number", "minimum": 1}, 0.5, "at least 1: 0.5"),
        ({"type": "number", "maximum": 1}, 1.5, "at most 1: 1.5"),
        ({"type": "string", "enum": ["a", "b"]}, "c", "is none of a, b: 'c'"),
        ({"type": "string", "enum": []}, "c", "is none of"),
        (TITLED, "Red", "is none of r, g"),
        (SOME, "r", "has to be a list"),
        (SOME, ["r", "b"], "none of r, g: 'b'"),
        (SOME, [["r"]], "none of r, g"),
        (SOME, [], "at least 1 choices, not 0"),
        (SOME, ["r", "g", "r"], "at most 2 choices, not 3"),
        (SOME_TITLED, ["Green"], "none of r, g"),
    ],
)
def test_what_does_not_fit_is_told(field: Any, value: Any, why: str) -> None:
    assert told(field, value).startswith("it ") and why in told(field, value)


def test_a_value_that_the_form_does_not_name_is_the_servers_to_judge() -> None:
    assert problems({"properties": {}}, {"more": object()}) == []


def test_a_long_list_of_choices_is_not_repeated_at_length() -> None:
    assert len(told({"type": "string", "enum": ["x" * 100] * 1000}, "y" * 10000)) < 1000


# -- defaults -------------------------------------------------------------------------------------------------------------


def test_a_form_begins_with_its_defaults_of_every_kind() -> None:
    form = {
        "a": {"type": "string", "default": ""},
        "b": {"type": "boolean", "default": False},
        "c": {"type": "integer", "default": 0},
        "d": {"type": "number", "default": 0.5},
        "e": dict(SOME, default=["r"]),
        "f": dict(TITLED, default="r"),
        "g": {"type": "string"},
    }
    assert defaults({"properties": form}) == {"a": "", "b": False, "c": 0, "d": 0.5, "e": ["r"], "f": "r"}


def test_a_default_that_its_own_field_does_not_take_is_none() -> None:
    form = asked(["size"], size={"type": "integer", "default": "3"}, colour={"type": "string", "default": None})
    assert defaults(form["requestedSchema"]) == {}
    assert elicited(form, {"size": 3}) == {"action": "accept", "content": {"size": 3}}
    with pytest.raises(ValueError, match="size is missing"):
        elicited(form, True)


# -- schemas that make no sense -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [None, "object", 7, [], [{"type": "string"}]])
def test_a_schema_that_is_no_object_asks_for_nothing(schema: Any) -> None:
    for params in ({"message": "?", "requestedSchema": schema}, {}):  # type: Dict[str, Any]
        assert elicited(params, True) == {"action": "accept"}
        assert elicited(params, {"a": 1}) == {"action": "accept", "content": {"a": 1}}


@pytest.mark.parametrize("properties", [None, [], ["name"], "name", 3, {"name": None, "it": "string", "x": [1]}])
def test_properties_that_make_no_sense_ask_for_nothing(properties: Any) -> None:
    form = {"requestedSchema": {"properties": properties}}
    assert elicited(form, {"name": 1}) == {"action": "accept", "content": {"name": 1}}


@pytest.mark.parametrize("required", [None, "name", {"name": True}, [["name"]], [{}], [None, 3]])
def test_what_is_required_counts_only_where_it_is_a_list_of_names(required: Any) -> None:
    form = {"requestedSchema": {"properties": {}, "required": required}}
    assert elicited(form, True) == {"action": "accept", "content": {}}


@pytest.mark.parametrize(
    "field",
    [
        {"type": "integer", "minimum": "1"},
        {"type": "integer", "minimum": True, "maximum": False},
        {"type": "integer", "minimum": NAN, "maximum": NAN},
        {"type": "integer", "minimum": None, "maximum": [5]},
        {"type": "integer", "minimum": -(10**400), "maximum": 10**400},
        {"type": "integer", "oneOf": "many", "enum": {"3": 3}},
        {"type": "integer", "oneOf": ["3"], "anyOf": [{"title": "three"}]},
        {"type": "integer", "enum": [[], {}, None, 3]},
        {"type": ["integer"]},
        {"type": {"of": "integer"}},
        {"type": None},
    ],
)
def test_rules_that_make_no_sense_are_no_rules(field: Any) -> None:
    assert told(field, 3) == ""


@pytest.mark.parametrize("items", [None, "string", [], {"enum": "rg"}, {"anyOf": [1]}])
def test_choices_that_make_no_sense_are_no_choices(items: Any) -> None:
    assert told({"type": "array", "items": items, "minItems": "1"}, ["r", {}]) == ""
