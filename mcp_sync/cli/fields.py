"""One field of a form: what may be typed, what it stands for, and how that is told. See the specification, client/elicitation."""

import datetime
import json
import re
from typing import Any, List, Mapping, Optional, Tuple

from .output import shorten

__all__ = ["Option", "hint_for", "options_of", "shown_value", "value_of", "yes_or_no"]

#: What may be chosen, and its name for people.
Option = Tuple[Any, str]

_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$")

_HELP = {
    ("string", "email"): "an e-mail address",
    ("string", "uri"): "a URI",
    ("string", "date"): "a date, 2026-12-31",
    ("string", "date-time"): "a moment, 2026-12-31T23:59:59Z",
    ("integer", ""): "a whole number",
    ("number", ""): "a number",
    ("boolean", ""): "yes or no",
}


def options_of(field: Mapping[str, Any]) -> List[Option]:
    """Return what may be chosen, with its names for people; nothing if there is no choice."""
    items = field.get("items")
    if field.get("type") == "array" and isinstance(items, dict):
        field = items
    plain = field.get("enum")
    if isinstance(plain, list):
        names = field.get("enumNames")  # the way of older revisions
        titles = names if isinstance(names, list) and len(names) == len(plain) else plain
        return [(value, _text(title)) for value, title in zip(plain, titles)]
    for word in ("oneOf", "anyOf"):
        titled = field.get(word)
        if isinstance(titled, list):
            found = [option for option in titled if isinstance(option, dict) and "const" in option]
            return [(option["const"], _text(option.get("title", option["const"]))) for option in found]
    return []


def hint_for(field: Mapping[str, Any], options: List[Option], needed: bool) -> str:
    """Return what may be typed, in a few words."""
    kind, form = str(field.get("type", "")), field.get("format")
    parts = []
    if kind == "array":
        parts.append("one or more, with commas" if options else "a list in JSON")
    elif options:
        parts.append("one of them")
    else:
        known = _HELP.get((kind, str(form or "")))
        if known is not None:
            parts.append(known)
    low, high, unit = _limits(field, kind)
    if low is not None and high is not None:
        parts.append("%g to %g%s" % (low, high, unit))
    elif low is not None or high is not None:
        parts.append("at %s %g%s" % ("most" if low is None else "least", high if low is None else low, unit))
    if not needed:
        parts.append("may be left empty")
    return ", ".join(parts)


def _limits(field: Mapping[str, Any], kind: str) -> Tuple[Any, Any, str]:
    least, most, unit = {
        "string": ("minLength", "maxLength", " characters"),
        "array": ("minItems", "maxItems", " of them"),
    }.get(kind, ("minimum", "maximum", ""))
    low, high = [it if _can_be_shown(it) else None for it in (field.get(least), field.get(most))]
    return low, high, unit


def _can_be_shown(limit: Any) -> bool:
    return isinstance(limit, (int, float)) and not isinstance(limit, bool) and abs(limit) < 1e15


def shown_value(value: Any, options: List[Option]) -> str:
    """Return a value as a user would type it."""
    if isinstance(value, list) and not any(isinstance(each, list) for each in value):
        return ", ".join(shown_value(each, options) for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    for option, title in options:
        if option == value:
            return title
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return "[...]" if isinstance(value, list) else "{...}"  # there should be none, and it may be of any size
    return value if isinstance(value, str) else json.dumps(value)


def value_of(text: str, field: Mapping[str, Any], options: List[Option]) -> Any:
    """Return the value that was typed.

    :raises ValueError: if it cannot be one; says why.
    """
    kind = field.get("type")
    if kind == "array" and options:
        return [_chosen(part.strip(), options) for part in text.split(",") if part.strip()]
    if options:
        return _chosen(text, options)
    if kind == "boolean":
        answer = yes_or_no(text)
        if answer is None:
            raise ValueError("yes or no?")
        return answer
    if kind in ("integer", "number", "array", "object"):
        return _from_json(text, kind)
    _check_format(text, field.get("format"))
    return text


def _from_json(text: str, kind: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    fits = isinstance(value, {"array": list, "object": dict}.get(kind, (int, float)))
    if not fits or isinstance(value, bool) or value in (float("inf"), float("-inf")) or value != value:
        raise ValueError("That is no %s." % {"integer": "whole number", "array": "list in JSON"}.get(kind, kind))
    return int(value) if kind == "integer" and isinstance(value, float) and value.is_integer() else value


def _chosen(text: str, options: List[Option]) -> Any:
    for value, _ in options:
        if text == value:
            return value
    for value, title in options:
        if text.lower() in (title.lower(), _text(value).lower()):
            return value
    if re.match(r"[0-9]{1,4}$", text, re.ASCII) and 1 <= int(text) <= len(options):
        return options[int(text) - 1][0]
    raise ValueError("That is none of them: %s" % shorten(text, 60))


def yes_or_no(text: str) -> Optional[bool]:
    """Return what was answered to a question; None if it is no answer to that."""
    word = text.strip().lower()
    if word in ("y", "yes", "true"):
        return True
    return False if word in ("n", "no", "false") else None


def _check_format(text: str, form: Any) -> None:
    fits = True
    if form == "email":
        fits = re.match(r"[^@\s]+@[^@\s]+$", text) is not None
    elif form == "uri":
        fits = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:\S+$", text) is not None
    elif form == "date-time":
        fits = _DATE_TIME.match(text) is not None
    elif form == "date":
        try:
            datetime.datetime.strptime(text, "%Y-%m-%d")
        except ValueError:
            fits = False
    if not fits:
        raise ValueError("That is not %s." % _HELP["string", form])
