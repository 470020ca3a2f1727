"""Pure rules: which arguments of a tool are repeated in HTTP headers (``x-mcp-header``).

See the specification, server/tools: x-mcp-header, and basic/transports/streamable-http: Custom Headers from Tool Parameters.
"""

import json
import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

from .eras.modern import header_value
from .errors import beginning_of
from .results.tools import Tool

__all__ = ["headers_for", "problem_with"]

_ANNOTATION = "x-mcp-header"
_PREFIX = "Mcp-Param-"
_TYPES = ("integer", "string", "boolean")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_GREATEST = 2**53 - 1

# What is in these is data and no schema, whatever it looks like.
_DATA = frozenset(["const", "enum", "default", "example", "examples"])
# What is in these is named by the server: a name is no keyword.
_NAMED = frozenset(["patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies", "dependentRequired"])


class _Path(NamedTuple):
    """The names of properties that lead to a schema, the last one first."""

    name: str
    before: "Optional[Any]"

    def names(self) -> Tuple[str, ...]:
        names: List[str] = []
        at: Optional[_Path] = self
        while at is not None:
            names.append(at.name)
            at = at.before
        return tuple(reversed(names))


class _Annotated(NamedTuple):
    """A schema with an annotation.

    :param path: where, if it is on a chain of ``properties``; None otherwise, and for the root itself.
    :param schema: the schema.
    """

    path: Optional[_Path]
    schema: Dict[str, Any]


def _annotated(root: Any) -> Iterator[_Annotated]:
    """Yield every schema with an annotation, however deep. Nothing is followed but the nesting itself."""
    # A stack of our own: how deep a schema is, is the server's choice. Each item: a schema or a list of them; whether it is
    # reached by ``properties`` alone; and by which.
    stack: List[Tuple[Any, bool, Optional[_Path]]] = [(root, True, None)]
    # A value from JSON holds nothing twice; one that a program made may hold itself.
    seen: Set[Tuple[int, bool]] = set()
    while stack:
        node, reachable, path = stack.pop()
        if not isinstance(node, (dict, list)) or (id(node), reachable) in seen:
            continue
        seen.add((id(node), reachable))
        if isinstance(node, list):
            stack.extend((item, False, None) for item in reversed(node))
            continue
        if _ANNOTATION in node:
            yield _Annotated(path, node)
        found: List[Tuple[Any, bool, Optional[_Path]]] = []
        for keyword, value in node.items():
            if keyword in _DATA or keyword == _ANNOTATION:
                continue
            if keyword == "properties" and isinstance(value, dict):
                for name, schema in value.items():
                    found.append((schema, reachable, _Path(name, path) if reachable else None))
            elif keyword in _NAMED and isinstance(value, dict):
                found.extend((schema, False, None) for schema in value.values())
            else:
                found.append((value, False, None))
        stack.extend(reversed(found))


def problem_with(tool: Tool) -> Optional[str]:
    """Return why a tool must not be used over streamable HTTP in the modern era; None if it may.

    :returns: the end of a sentence, fit for one line.
    """
    taken: Dict[str, str] = {}
    for path, schema in _annotated(tool.input_schema):
        name = schema[_ANNOTATION]
        if path is None:
            return "it has x-mcp-header where it means nothing: not on a property that is reached by properties alone"
        where = beginning_of(".".join(path.names()), 80)
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            return "the x-mcp-header of its property %s is no name of a header: %s" % (where, beginning_of(name, 80))
        if schema.get("type") not in _TYPES:
            told = beginning_of(schema["type"], 80) if "type" in schema else "none"
            return "its property %s has x-mcp-header, and its type is not one of %s: %s" % (where, ", ".join(_TYPES), told)
        if name.lower() in taken:
            both = (taken[name.lower()], where, beginning_of(name, 80))
            return "its properties %s and %s have the same x-mcp-header: %s" % both
        taken[name.lower()] = where
    return None


def headers_for(tool: Tool, arguments: Optional[Mapping[str, Any]]) -> Dict[str, str]:
    """Return the headers that repeat some of a call's arguments, encoded.

    :param tool: a tool that :func:`problem_with` finds nothing wrong with.
    :param arguments: the call's arguments; what is absent or None has no header.
    :raises ValueError: for an integer that the protocol does not allow in a header.
    """
    headers: Dict[str, str] = {}
    for path, schema in _annotated(tool.input_schema):
        name = schema[_ANNOTATION]
        if path is None or not isinstance(name, str) or not _TOKEN.fullmatch(name):
            continue
        names = path.names()
        text = _text(_at(arguments, names), ".".join(names))
        if text is not None:
            headers[_PREFIX + name] = header_value(text)
    return headers


def _at(arguments: Any, names: Tuple[str, ...]) -> Any:
    for name in names:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(name)
    return arguments


def _text(value: Any, where: str) -> Optional[str]:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        if abs(value) > _GREATEST:
            raise ValueError(
                "the argument %s is repeated in a header and has to be between -2**53+1 and 2**53-1: %s"
                % (where, beginning_of(hex(value), 40))
            )
        return str(value)
    if isinstance(value, float):
        return json.dumps(value)
    # No argument, or one of a type that its schema does not allow: that is for the server to say.
    return None
