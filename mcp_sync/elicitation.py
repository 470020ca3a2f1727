"""What a user answers to ``elicitation/create``: defaults filled in, and checked before it is sent.

See the specification, client/elicitation.
"""

import math
from typing import Any, Dict, List, Mapping, Optional

from .errors import beginning_of

__all__ = ["defaults", "elicited", "mode_of", "problems"]

_ACTIONS = ("accept", "decline", "cancel")


def elicited(params: Mapping[str, Any], answer: Any) -> Dict[str, Any]:
    """Return the protocol's ``ElicitResult`` for what a user's function returned.

    :param params: of the server's request.
    :param answer: None or False if the user declines; True to accept the form as it is; the whole result, if it is a mapping with
        an ``action``; otherwise the values of the form, of which those that are not there are taken from the form's defaults.
    :raises TypeError: if it is none of these.
    :raises ValueError: if the values are not what the form asks for; says which and why.
    """
    if answer is None or answer is False:
        return {"action": "decline"}
    if answer is True:
        answer = {"action": "accept"}
    if not isinstance(answer, Mapping):
        raise TypeError("on_elicitation has to return the values of the form as a mapping, True or None, and not %r" % (answer,))
    action = answer.get("action")
    if action in _ACTIONS and set(answer) <= {"action", "content", "_meta"}:
        whole = dict(answer)
        given = whole.get("content")
    else:
        whole, given = {"action": "accept"}, answer
    schema = params.get("requestedSchema")
    form = isinstance(schema, Mapping) and mode_of(params) == "form"
    if whole["action"] == "accept" and (form or (isinstance(given, Mapping) and given)):
        whole["content"] = _filled_in(schema if isinstance(schema, Mapping) else {}, given if isinstance(given, Mapping) else {})
    return whole


def mode_of(params: Mapping[str, Any]) -> str:
    """Return in which mode the user is asked; a form if the server does not say.

    :param params: of the server's request.
    """
    mode = params.get("mode")
    return mode if isinstance(mode, str) else "form"


def _filled_in(schema: Mapping[str, Any], given: Mapping[str, Any]) -> Dict[str, Any]:
    content = {**defaults(schema), **given}
    wrong = problems(schema, content)
    if wrong:
        raise ValueError("on_elicitation returned what the form does not take: %s" % "; ".join(wrong))
    return content


def defaults(schema: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the values that a form begins with: those that their own fields take.

    :param schema: ``requestedSchema`` of the request.
    """
    return {
        name: field["default"]
        for name, field in _fields(schema).items()
        if isinstance(field, Mapping) and "default" in field and _problem(field, field["default"]) is None
    }


def problems(schema: Mapping[str, Any], content: Mapping[str, Any]) -> List[str]:
    """Return what is wrong with the values of a form, a line for each; nothing if they can be sent.

    :param schema: ``requestedSchema`` of the request.
    :param content: the values.
    """
    fields = _fields(schema)
    required = schema.get("required")
    wrong = []
    for name in required if isinstance(required, list) else []:
        if isinstance(name, str) and name not in content:
            wrong.append("%s is missing" % name)
    for name, value in content.items():
        field = fields.get(name)
        if isinstance(field, Mapping):
            problem = _problem(field, value)
            if problem is not None:
                wrong.append("%s %s" % (name, problem))
    return wrong


def _fields(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    fields = schema.get("properties")
    return fields if isinstance(fields, Mapping) else {}


def _problem(field: Mapping[str, Any], value: Any) -> Optional[str]:
    kind = field.get("type")
    if kind == "array":
        return _choices_problem(field, value)
    # A choice of texts; other types have none, but a server that sends one means it.
    options = _options(field)
    if options is not None and value not in options:
        return "is none of %s: %s" % (_any_of(options), _shown(value))
    if kind == "string":
        if not isinstance(value, str):
            return "has to be a text: %s" % _shown(value)
        return _limits_problem(field, len(value), "minLength", "maxLength", "characters")
    if kind == "boolean":
        return None if isinstance(value, bool) else "has to be true or false: %s" % _shown(value)
    if kind in ("number", "integer"):
        if not _is_number(value):
            return "has to be a number: %s" % _shown(value)
        if kind == "integer" and value != int(value):
            return "has to be a whole number: %s" % _shown(value)
        return _limits_problem(field, value, "minimum", "maximum", "")
    return None


def _choices_problem(field: Mapping[str, Any], value: Any) -> Optional[str]:
    if not isinstance(value, (list, tuple)):
        return "has to be a list: %s" % _shown(value)
    items = field.get("items")
    options = _options(items) if isinstance(items, Mapping) else None
    for each in value:
        if options is not None and each not in options:
            return "has one that is none of %s: %s" % (_any_of(options), _shown(each))
    return _limits_problem(field, len(value), "minItems", "maxItems", "choices")


def _options(field: Mapping[str, Any]) -> Optional[List[Any]]:
    """Return what may be chosen, in all the ways in which that is written; None if there is no choice."""
    plain = field.get("enum")
    if isinstance(plain, list):
        return plain
    for name in ("oneOf", "anyOf"):
        titled = field.get(name)
        if isinstance(titled, list) and all(isinstance(option, Mapping) and "const" in option for option in titled):
            return [option["const"] for option in titled]
    return None


def _limits_problem(field: Mapping[str, Any], size: float, least: str, most: str, of_what: str) -> Optional[str]:
    low: Any = field.get(least)
    high: Any = field.get(most)
    if _is_number(low) and size < low:
        return "has to be at least %s %s, not %s" % (low, of_what, size) if of_what else "has to be at least %s: %s" % (low, size)
    if _is_number(high) and size > high:
        return "has to be at most %s %s, not %s" % (high, of_what, size) if of_what else "has to be at most %s: %s" % (high, size)
    return None


def _is_number(value: Any) -> bool:
    # What is not finite has no form in JSON.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _any_of(options: List[Any]) -> str:
    return beginning_of(", ".join(map(str, options)))


def _shown(value: Any) -> str:
    return beginning_of(repr(value))
