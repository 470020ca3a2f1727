"""What a user answers to ``elicitation/create``: defaults filled in, and checked before it is sent.

See the specification, client/elicitation.
"""

from typing import Any, Dict, List, Mapping, Optional

__all__ = ["defaults", "elicited", "problems"]

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
    form = isinstance(schema, Mapping) and params.get("mode", "form") == "form"
    if whole["action"] == "accept" and (form or isinstance(given, Mapping)):
        whole["content"] = _filled_in(schema if isinstance(schema, Mapping) else {}, given if isinstance(given, Mapping) else {})
    return whole


def _filled_in(schema: Mapping[str, Any], given: Mapping[str, Any]) -> Dict[str, Any]:
    content = {**defaults(schema), **given}
    wrong = problems(schema, content)
    if wrong:
        raise ValueError("on_elicitation returned what the form does not take: %s" % "; ".join(wrong))
    return content


def defaults(schema: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the values that a form begins with.

    :param schema: ``requestedSchema`` of the request.
    """
    return {
        name: field["default"] for name, field in _fields(schema).items() if isinstance(field, Mapping) and "default" in field
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
        if name not in content:
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
        return "is none of %s: %r" % (", ".join(map(str, options)), value)
    if kind == "string":
        if not isinstance(value, str):
            return "has to be a text: %r" % (value,)
        return _limits_problem(field, len(value), "minLength", "maxLength", "characters")
    if kind == "boolean":
        return None if isinstance(value, bool) else "has to be true or false: %r" % (value,)
    if kind in ("number", "integer"):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return "has to be a number: %r" % (value,)
        if kind == "integer" and value != int(value):
            return "has to be a whole number: %r" % (value,)
        return _limits_problem(field, value, "minimum", "maximum", "")
    return None


def _choices_problem(field: Mapping[str, Any], value: Any) -> Optional[str]:
    if not isinstance(value, (list, tuple)):
        return "has to be a list: %r" % (value,)
    items = field.get("items")
    options = _options(items) if isinstance(items, Mapping) else None
    for each in value:
        if options is not None and each not in options:
            return "has one that is none of %s: %r" % (", ".join(map(str, options)), each)
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
    low, high = field.get(least), field.get(most)
    if isinstance(low, (int, float)) and size < low:
        return "has to be at least %s %s, not %s" % (low, of_what, size) if of_what else "has to be at least %s: %s" % (low, size)
    if isinstance(high, (int, float)) and size > high:
        return "has to be at most %s %s, not %s" % (high, of_what, size) if of_what else "has to be at most %s: %s" % (high, size)
    return None
