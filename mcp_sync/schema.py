"""Checks what a tool answered against the schema that it promised: the extra ``mcp-sync-client[schema]``.

Dialects: JSON Schema 2020-12, which also counts where ``$schema`` is absent, 2019-09, and drafts 7, 6, 4 and 3. Nothing is ever
fetched: a ``$ref`` finds what is in the schema itself, and the dialects' own schemas. ``format`` is not checked. Both schema
and answer are the server's choice, so there are limits: what would take too long to check is not checked, with a warning.

See the specification, server/tools: Output Schema, and basic: JSON Schema Usage.
"""

import importlib.util
import itertools
import logging
import math
import re
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, NamedTuple, Optional, Set, Tuple

from . import _fork
from .errors import ProtocolError, beginning_of
from .results.tools import CallToolResult, Tool

__all__ = ["available", "check"]

_log = logging.getLogger("mcp_sync")

_DEFAULT = "//json-schema.org/draft/2020-12/schema"
#: The dialects by their URIs, without the scheme, and what jsonschema calls them.
_DIALECTS = {
    _DEFAULT: "Draft202012Validator",
    "//json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "//json-schema.org/draft-07/schema": "Draft7Validator",
    "//json-schema.org/draft-06/schema": "Draft6Validator",
    "//json-schema.org/draft-04/schema": "Draft4Validator",
    "//json-schema.org/draft-03/schema": "Draft3Validator",
}
#: Those in which nothing beside a ``$ref`` counts.
_REF_ALONE = frozenset(["Draft7Validator", "Draft6Validator", "Draft4Validator", "Draft3Validator"])

#: How many levels, and how many objects and arrays, a schema may have.
_MAX_DEPTH = 200
_MAX_NODES = 5000
#: How many keywords are applied for one answer, at most.
_MAX_STEPS = 100000
#: How many steps of backtracking a pattern may need at worst for one text.
_MAX_BACKTRACKING = 10**7
#: How many schemas are kept ready.
_MAX_READY = 128


class _Ready(NamedTuple):
    """A schema that is ready for use.

    :param check: yields what is wrong with a value; None if nothing can be checked.
    :param refused: why every answer is to be refused, or None.
    :param told: what was warned of already.
    """

    check: Optional[Callable[[Any], Iterator[Any]]]
    refused: Optional[str]
    told: Set[str]


class _TooMuch(Exception):
    pass


class _Unresolved(Exception):
    pass


#: By the identity of a schema, which is kept with it. A plain dictionary: two threads that make the same do no harm.
_ready: Dict[int, Tuple[Any, _Ready]] = {}


class _Budget(threading.local):
    """What one check may still cost; one for each thread."""

    left = 0

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise _TooMuch("it takes too long to check")


_budget = _Budget()


def available() -> bool:
    """Whether anything can be checked: whether jsonschema is installed."""
    with _fork.held_off():
        return importlib.util.find_spec("jsonschema") is not None


def check(tool: Tool, result: CallToolResult) -> None:
    """Check a result's structured content, if the tool has an output schema and jsonschema is installed.

    A schema that is not valid, or too large, or that would take too long, is not used; a warning says so, once.

    :param tool: the tool that was called.
    :param result: what it answered; an error of the tool is not checked.
    :raises ProtocolError: if the content is not as the schema says (the message has its path and the reason); if there is none;
        if the schema refers to another that is not in it; if its dialect is not known here. The tool has run nevertheless.
    """
    schema = tool.output_schema
    if schema is None or result.is_error:
        return
    try:
        with _fork.held_off():
            import jsonschema
    except ImportError:
        _log.debug("%s: the answer was not checked: pip install mcp-sync-client[schema]", beginning_of(tool.name))
        return
    if not result.has_structured_content:
        raise ProtocolError(
            "the tool %s promises structured content (outputSchema), and answered without" % beginning_of(tool.name)
        )
    ready = _ready_for(tool, schema, jsonschema)
    if ready.refused is not None:
        raise ProtocolError("the outputSchema of the tool %s %s" % (beginning_of(tool.name), ready.refused))
    if ready.check is None:
        return
    _budget.left = _MAX_STEPS
    try:
        wrong = next(ready.check(result.structured_content), None)
    except _Unresolved as error:
        raise ProtocolError(
            "the outputSchema of the tool %s refers to another that is not in it, and nothing is fetched: %s"
            % (beginning_of(tool.name), error)
        ) from error
    except Exception as error:
        # The boundary to a library that works on what the server chose: a schema that refers to itself without end, say.
        kind = type(error).__name__
        if kind not in ready.told:
            ready.told.add(kind)
            _warn(tool, "its outputSchema cannot be used: %s" % (beginning_of(str(error)) or kind))
        return
    if wrong is not None:
        raise ProtocolError(
            "the tool %s answered with structured content that is not as its outputSchema says, at %s: %s"
            % (beginning_of(tool.name), beginning_of(_path(wrong.absolute_path), 100), beginning_of(wrong.message, 300))
        )


def _warn(tool: Tool, reason: str) -> None:
    _log.warning("the structured content of the tool %s was not checked: %s", beginning_of(tool.name), reason)


def _path(steps: Iterable[Any]) -> str:
    taken = list(itertools.islice(steps, 50))
    return "$" + "".join("[%d]" % step if isinstance(step, int) else ".%s" % step for step in taken)


# -- schemas -----------------------------------------------------------------------------------------------------------


def _ready_for(tool: Tool, schema: Dict[str, Any], jsonschema: Any) -> _Ready:
    kept = _ready.get(id(schema))
    if kept is not None and kept[0] is schema:
        return kept[1]
    try:
        ready = _made_ready(schema, jsonschema)
    except Exception as error:
        # The same boundary.
        _warn(tool, "its outputSchema is not valid: %s" % (beginning_of(str(error)) or type(error).__name__))
        ready = _Ready(None, None, set())
    if len(_ready) >= _MAX_READY:
        _ready.clear()
    _ready[id(schema)] = (schema, ready)
    return ready


def _made_ready(schema: Dict[str, Any], jsonschema: Any) -> _Ready:
    _look_through(schema)
    named = schema.get("$schema", _DEFAULT)
    if not isinstance(named, str):
        raise ValueError("its $schema is no text")
    dialect = _DIALECTS.get(re.sub(r"^https?:|#$", "", named.strip()))
    if dialect is None:
        return _Ready(None, "is in a dialect that is not supported: %s" % beginning_of(named), set())
    stock = getattr(jsonschema, dialect)
    try:
        stock.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError("at %s: %s" % (_path(error.absolute_path), beginning_of(error.message))) from error
    # Without $schema, which would have jsonschema take its own class again, without our limits, at every turn.
    bare = {name: value for name, value in schema.items() if name != "$schema"}
    return _Ready(_checker(_limited(stock, dialect, jsonschema), bare), None, set())


def _look_through(schema: Any) -> None:
    """See that a schema is of a size that can be dealt with.

    :raises ValueError: if it is not.
    """
    stack = [(schema, 1)]
    nodes = 0
    while stack:
        node, depth = stack.pop()
        nodes += 1
        if depth > _MAX_DEPTH or nodes > _MAX_NODES:
            raise ValueError("it is too deep or too large (%d levels, %d parts)" % (_MAX_DEPTH, _MAX_NODES))
        if isinstance(node, dict) and node is not schema and isinstance(node.get("$schema"), str):
            raise ValueError("a part of it has a $schema of its own")
        inner = node.values() if isinstance(node, dict) else node
        stack.extend((item, depth + 1) for item in inner if isinstance(item, (dict, list)))


def _checker(limited: Any, schema: Dict[str, Any]) -> Callable[[Any], Iterator[Any]]:
    """Return what yields the errors of a value. References are found in the schema, or not at all."""
    try:
        with _fork.held_off():
            from referencing import Registry
            from referencing.exceptions import Unresolvable
    except ImportError:
        return _checker_of_old(limited, schema)

    def wrong(value: Any) -> Iterator[Any]:
        try:
            yield from limited(schema, registry=Registry()).iter_errors(value)
        except Unresolvable as error:
            raise _Unresolved(beginning_of(getattr(error, "ref", None) or str(error))) from error

    return wrong


def _checker_of_old(limited: Any, schema: Dict[str, Any]) -> Callable[[Any], Iterator[Any]]:
    """The same for jsonschema before 4.18."""
    from jsonschema import RefResolutionError, RefResolver

    class Local(RefResolver):  # type: ignore[misc, unused-ignore]
        def resolve_remote(self, uri: str) -> Any:
            raise LookupError(uri)

    def wrong(value: Any) -> Iterator[Any]:
        resolver = Local.from_schema(schema, id_of=limited.ID_OF)
        try:
            yield from limited(schema, resolver=resolver).iter_errors(value)
        except RefResolutionError as error:
            raise _Unresolved(beginning_of(str(error))) from error

    return wrong


# -- limits ------------------------------------------------------------------------------------------------------------

_Keyword = Callable[[Any, Any, Any, Any], Optional[Iterable[Any]]]

_limited_classes: Dict[str, Any] = {}


def _limited(stock: Any, dialect: str, jsonschema: Any) -> Any:
    """Return a dialect whose keywords come to an end."""
    made = _limited_classes.get(dialect)
    if made is None:
        keywords = {name: _counted(name, keyword) for name, keyword in stock.VALIDATORS.items()}
        made = _limited_classes[dialect] = jsonschema.validators.create(
            meta_schema=stock.META_SCHEMA,
            validators=keywords,
            type_checker=stock.TYPE_CHECKER,
            id_of=stock.ID_OF,
            applicable_validators=_ref_alone if dialect in _REF_ALONE else _all_items,
        )
    return made


def _all_items(schema: Dict[str, Any]) -> Iterable[Tuple[str, Any]]:
    return schema.items()


def _ref_alone(schema: Dict[str, Any]) -> Iterable[Tuple[str, Any]]:
    return [("$ref", schema["$ref"])] if "$ref" in schema else schema.items()


def _counted(name: str, keyword: _Keyword) -> _Keyword:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _budget.spend(1 + _cost(name, value, instance, schema))
        for error in keyword(validator, value, instance, schema) or ():
            # It tells of the whole instance, and takes as long for it.
            _budget.spend(len(error.message) // 100)
            yield error

    return counted


def _cost(name: str, value: Any, instance: Any, schema: Any) -> int:
    if name == "enum" and isinstance(value, list):
        return len(value)
    if name == "uniqueItems" and value and isinstance(instance, list):
        return len(instance) ** 2 // 100  # each is compared with each, unless they can be sorted
    if name == "pattern" and isinstance(instance, str):
        _see_that_it_ends([value], len(instance))
    if name in ("patternProperties", "additionalProperties", "unevaluatedProperties") and isinstance(instance, dict):
        patterns = schema.get("patternProperties")
        if isinstance(patterns, dict) and patterns:
            _see_that_it_ends(patterns, max((len(key) for key in instance), default=0))
            return len(instance) * len(patterns)
    return 0


def _see_that_it_ends(patterns: Iterable[Any], length: int) -> None:
    """Refuse patterns that could keep Python's matcher busy for ever: it cannot be stopped, and stops all other threads.

    :param length: of the text.
    :raises _TooMuch: if one of them may take too long.
    """
    for pattern in patterns:
        if _worst(pattern, length) > math.log(_MAX_BACKTRACKING):
            raise _TooMuch("its pattern may take too long for a text of %d characters: %s" % (length, beginning_of(pattern, 80)))


def _worst(pattern: str, length: int) -> float:
    """Return the logarithm of how often a pattern may have to be tried at worst. Simple, and on the safe side."""
    bare = re.sub(r"\\.", "e", pattern, flags=re.DOTALL)
    if re.search(r"\(\?(?![:=!]|<[=!]|P?<\w)", bare):
        return math.inf  # comments and flags, which change what all the rest means
    bare = re.sub(r"\(\?(?:[:=!]|<[=!])", "(", re.sub(r"\[\^?\]?[^\]]*\]", "c", bare))
    again = re.search(r"\)[*+?{]", bare) is not None
    # Whatever repeats by choice may take any part of the text, and each branch may have to be tried.
    loops = len(re.findall(r"[*+?{]", re.sub(r"\{\d+\}", "", bare)))
    branches = bare.count("|")
    once = (loops + 1) * math.log(length + 1) + branches * math.log(2)
    # In a group that is repeated, all of them at each character.
    return max(once, length * math.log(1 + loops + branches)) if again else once
