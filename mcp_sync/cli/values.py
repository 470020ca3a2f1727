"""Arguments of tools and prompts, from what was typed: ``name=value``, or JSON.

A schema comes from the server: it may be anything, refer to itself, or be very large.
"""

import difflib
import json
import math
import sys
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, Optional, Set

from ..errors import beginning_of
from .output import clean, shorten, table

__all__ = ["WrongArguments", "arguments_of", "choices", "json_object", "prompt_schema", "suggestion", "taken"]

#: How much of a schema is looked at, and how much of it is shown.
_MAX_PARTS = 1000
_MAX_ROWS = 100
_MAX_TEXT = 300
_MAX_PROBLEMS = 20

_NONE = object()

_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list in JSON",
    "object": "an object in JSON",
}


class WrongArguments(Exception):
    """What was typed is not what is taken.

    :param problems: what is wrong, each a part of a sentence.
    """

    def __init__(self, problems: List[str]) -> None:
        super().__init__("; ".join(problems[:_MAX_PROBLEMS]))


def json_object(text: str, option: str) -> Dict[str, Any]:
    """Return the object that an option gives: as JSON, or as ``@FILE`` (``@-`` for standard input).

    :raises WrongArguments: if it is none.
    """
    if text.startswith("@"):
        try:
            text = _read(text[1:])
        except (OSError, UnicodeDecodeError) as error:
            raise WrongArguments(["%s: %s" % (option, error)]) from None
    try:
        value = _strictly(text)
    except (ValueError, RecursionError) as error:
        hint = "" if text[:1] in "{[" else " (a file is given as @FILE)"
        raise WrongArguments(["%s: that is no JSON, %s%s" % (option, error, hint)]) from None
    if not isinstance(value, dict):
        raise WrongArguments(["%s has to be an object, {...}" % option])
    return value


def _read(name: str) -> str:
    if name == "-":
        return "" if sys.stdin is None else sys.stdin.read()
    with open(name, encoding="utf-8-sig") as file:
        return file.read()


def _strictly(text: str) -> Any:
    def refuse(constant: str) -> Any:
        raise ValueError("%s is not part of it" % constant)

    return json.loads(text, parse_constant=refuse)


def arguments_of(schema: Mapping[str, Any], pairs: Iterable[str], given: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the arguments that were typed.

    :param schema: what is taken, as ``inputSchema`` says it; empty if that is not known.
    :param pairs: ``name=value``, each value to be of the type that the schema says.
    :param given: those that were given as JSON; pairs count more.
    :raises WrongArguments: if something is missing, unknown, or of another type.
    """
    arguments = dict(given)
    fields = _fields(schema)
    problems = []
    seen: Set[str] = set()
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            problems.append("'%s' is not of the form name=value" % clean(shorten(pair, 60)))
        elif name in seen:
            problems.append("%s is given twice" % clean(name))
        elif name not in fields and not _is_open(schema):
            close = difflib.get_close_matches(name, list(fields)[:_MAX_PARTS], 1)
            problems.append("there is no argument %s%s" % (clean(name), " (%s?)" % clean(close[0]) if close else ""))
        else:
            seen.add(name)
            try:
                arguments[name] = _typed(text, fields.get(name, schema.get("additionalProperties")), schema)
            except ValueError as error:
                problems.append("%s %s" % (clean(name), error))
    required = schema.get("required")
    for name in required if isinstance(required, list) else []:
        if isinstance(name, str) and name not in arguments and name not in seen:
            problems.append("%s is missing" % clean(name))
    if problems:
        raise WrongArguments(problems)
    return arguments


def _fields(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    fields = schema.get("properties")
    return fields if isinstance(fields, dict) else {}


def _is_open(schema: Mapping[str, Any]) -> bool:
    """Whether other names than those listed are taken. By the letter they are unless the schema says no; but where names
    are listed, another is a slip of the finger."""
    if not isinstance(schema.get("properties"), dict) or "patternProperties" in schema:
        return True
    return schema.get("additionalProperties") is True or isinstance(schema.get("additionalProperties"), dict)


def _typed(text: str, field: Any, schema: Mapping[str, Any]) -> Any:
    """Return the value that a text stands for.

    :raises ValueError: if it is not of a type that is taken; the end of a sentence.
    """
    kinds = _kinds(field, schema)
    value: Any = text
    if kinds and "string" not in kinds:
        value = _read_as(text, kinds)
        if value is _NONE:
            wanted = " or ".join(_WORDS.get(kind, kind) for kind in sorted(kinds))
            raise ValueError("has to be %s, not %s" % (wanted, clean(shorten(text, 60)) or "empty"))
    options = choices(field)
    if options is not None and value not in options:
        raise ValueError("has to be one of %s" % _list(options))
    return value


def _read_as(text: str, kinds: FrozenSet[str]) -> Any:
    text = text.strip()
    try:
        value = _strictly(text.lower() if text.lower() in ("true", "false", "null") else text)
    except (ValueError, RecursionError):
        return _NONE
    kind = _kind(value)
    if kind == "number":
        if not math.isfinite(value):
            return _NONE
        if "number" not in kinds and value.is_integer():
            return int(value) if "integer" in kinds else _NONE
    if kind in kinds or (kind == "integer" and "number" in kinds):
        return value
    return _NONE


def _kind(value: Any) -> str:
    for kind, types in (("boolean", bool), ("integer", int), ("number", float), ("string", str), ("array", list)):
        if isinstance(value, types):
            return kind
    return "null" if value is None else "object"


def _kinds(field: Any, schema: Mapping[str, Any]) -> FrozenSet[str]:
    """Return the types that a value may have; none if it may have any, or that cannot be told."""
    found: Set[str] = set()
    seen: Set[int] = set()
    parts = [field]
    while parts and len(seen) < _MAX_PARTS:
        part = parts.pop()
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        kind = part.get("type")
        if isinstance(kind, str):
            found.add(kind)
        elif isinstance(kind, list):
            found.update(each for each in kind if isinstance(each, str))
        else:
            found.update(_kind(option) for option in choices(part) or ())
            for word in ("anyOf", "oneOf", "allOf"):
                if isinstance(part.get(word), list):
                    parts.extend(part[word])
            parts.append(_pointed_at(part.get("$ref"), schema))
    return frozenset(found)


def _pointed_at(reference: Any, schema: Mapping[str, Any]) -> Any:
    """Return the part of the schema that a reference means, or None. Nothing outside of it is ever looked for."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    part: Any = schema
    for name in reference[2:].split("/")[:20]:
        part = part.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(part, dict) else None
    return part


def choices(field: Any) -> Optional[List[Any]]:
    """Return the values among which there is a choice; None if there is none."""
    if not isinstance(field, dict):
        return None
    if isinstance(field.get("enum"), list):
        return list(field["enum"])
    return [field["const"]] if "const" in field else None


def _list(values: Iterable[Any]) -> str:
    texts = [value if isinstance(value, str) else beginning_of(value) for value in list(values)[:_MAX_ROWS]]
    return shorten(clean(", ".join(texts)), _MAX_TEXT)


def taken(schema: Mapping[str, Any], columns: Optional[int] = None, mark: str = "…") -> List[str]:
    """Return lines that tell what is taken.

    :param schema: as ``inputSchema`` says it.
    :param columns: how wide they may be.
    """
    fields = _fields(schema)
    required = schema.get("required")
    needed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    rows = []
    for name, field in list(fields.items())[:_MAX_ROWS]:
        field = field if isinstance(field, dict) else {}
        options = choices(field)
        kinds = " or ".join(sorted(_kinds(field, schema))) or "any"
        how = "required" if name in needed else ""
        if "default" in field:
            how = "default: %s" % _list([field["default"]])
        description = field.get("description")
        about = " ".join(description.split()) if isinstance(description, str) else ""
        row = (name, kinds if options is None else "one of %s" % _list(options), how, about[:_MAX_TEXT])
        rows.append([clean(cell) for cell in row])
    if not rows:
        return []
    lines = table(rows, columns=None if columns is None else max(20, columns - 2), mark=mark)
    if len(fields) > len(rows):
        lines.append("and %d more" % (len(fields) - len(rows)))
    return ["  " + line for line in lines]


def prompt_schema(arguments: Iterable[Any]) -> Dict[str, Any]:
    """Return the schema of a prompt's arguments (:class:`mcp_sync.PromptArgument`)."""
    fields = {}
    required = []
    for argument in arguments:
        fields[argument.name] = {"type": "string", "description": argument.description or argument.title}
        if argument.required:
            required.append(argument.name)
    return {"properties": fields, "required": required}


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return what may have been meant, as the end of a sentence; empty if nothing comes near."""
    close = difflib.get_close_matches(name, list(names)[:_MAX_PARTS], 1)
    return "; is it %s?" % clean(close[0]) if close else ""
