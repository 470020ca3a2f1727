"""The frontmatter of a ``SKILL.md``: the YAML between two lines of ``---``, as the JSON that a server made of it.

What most skills have, one line of text for each key (or JSON, which is YAML), is read here. All other YAML takes a whole parser,
which comes with the extra ``mcp-sync-client[skills]``: half of one would now and then read something else than the author wrote,
and what was verified would not be what is used. Either way it is read as YAML 1.2 (core schema), so that ``yes``, ``010`` and
``2026-01-01`` are what they look like: a text, ten, and a text.
"""

import functools
import json
import math
import re
from typing import Any, Dict, List, Optional, Tuple

from . import _fork
from .errors import NotSupported, ProtocolError, beginning_of

__all__ = ["body_of", "frontmatter_of", "same"]

#: Longer frontmatter, in characters, is refused: parsing YAML takes its time.
_LONGEST = 65536

#: Key, colon, text. A key that looks like anything but a word is left to the parser.
_LINE = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):[ \t]+(\S(?:.*\S)?)[ \t]*")
#: The beginnings that mean something in YAML.
_SPECIAL = frozenset("-?:,[]{}#&*!|>'\"%@`")

_NULL, _BOOL = re.compile(r"~|null|Null|NULL|"), re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)


_TAG = "tag:yaml.org,2002:"


class _Unsuitable(Exception):
    """It takes a parser."""


def frontmatter_of(text: str, what: str) -> Dict[str, Any]:
    """Return the frontmatter at the beginning of a file.

    :param text: the whole file.
    :param what: which file, for the message of an error.
    :raises ProtocolError: if there is none, or it makes no sense.
    :raises NotSupported: if reading it takes a YAML parser, and there is none.
    """
    yaml, _ = _parts(text, what)
    if len(yaml) > _LONGEST:
        raise ProtocolError("the frontmatter of %s is longer than %d characters" % (what, _LONGEST))
    try:
        return _plain(yaml)
    except _Unsuitable:
        return _parsed(yaml, what)


def body_of(text: str, what: str) -> str:
    """Return what follows the frontmatter."""
    return _parts(text, what)[1]


def _parts(text: str, what: str) -> Tuple[str, str]:
    text = text[1:] if text.startswith("\ufeff") else text
    # Only these end a line, here as in YAML.
    lines = re.split(r"(\r\n|\r|\n)", text)
    for number in range(2, len(lines), 2):
        if lines[0].rstrip(" \t") != "---":
            break
        if lines[number].rstrip(" \t") == "---":
            return "\n".join(lines[2:number:2]) + "\n", "".join(lines[number + 2 :])
    raise ProtocolError("%s does not begin with frontmatter (YAML between two lines of ---): %s" % (what, beginning_of(text)))


def _plain(yaml: str) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for line in yaml.split("\n"):
        if not line.strip(" ") or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or match.group(1) in found or not line.isprintable():
            raise _Unsuitable
        key, value = match.groups()
        if value[0] in '"[{':
            found[key] = _json(value)
        elif _INT.fullmatch(value) or _FLOAT.fullmatch(value):
            found[key] = _scalar(value)
        elif value[0] in _SPECIAL or ": " in value or " #" in value or value.endswith(":"):
            raise _Unsuitable
        else:
            found[key] = _scalar(value)
    if not found:
        raise _Unsuitable
    return found


def _json(value: str) -> Any:
    def once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key comes twice")
        return dict(pairs)

    def never(constant: str) -> Any:
        raise ValueError(constant)

    try:
        return json.loads(value, object_pairs_hook=once, parse_constant=never)
    except (ValueError, RecursionError):
        raise _Unsuitable from None


def _scalar(value: str) -> Any:
    """Return what a word is: null, true, false, a number, or a text."""
    if _NULL.fullmatch(value):
        return None
    if _BOOL.fullmatch(value):
        return value.lower() == "true"
    if _INT.fullmatch(value):
        return int(value[2:], 8 if value[1] == "o" else 16) if value[:2] in ("0o", "0x") else _integer(value)
    if _FLOAT.fullmatch(value):
        return float(value.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return value


def _integer(digits: str) -> Any:
    # Newer Pythons refuse to read very long ones.
    return int(digits) if len(digits) < 400 else float(digits)


def _parsed(text: str, what: str) -> Dict[str, Any]:
    try:
        with _fork.held_off():
            import yaml
    except ImportError as error:
        raise NotSupported(
            "the frontmatter of %s takes a YAML parser: pip install mcp-sync-client[skills]" % what
        ) from error
    loader = None
    try:
        loader = _loader_of(yaml)(text)
        found = loader.get_single_data()
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        raise ProtocolError("the frontmatter of %s cannot be read: %s" % (what, beginning_of(str(error)))) from error
    finally:
        if loader is not None:
            loader.dispose()
    if not isinstance(found, dict):
        raise ProtocolError("the frontmatter of %s has no keys: %s" % (what, beginning_of(text)))
    return found


@functools.lru_cache(maxsize=1)
def _loader_of(yaml: Any) -> Any:
    """Return a parser of YAML 1.2, core schema: the library's own follows YAML 1.1."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc, unused-ignore]
        yaml_implicit_resolvers: Dict[Any, Any] = {}
        yaml_constructors = {
            _TAG + "null": lambda loader, node: None,
            _TAG + "bool": lambda loader, node: loader.scalar(node),
            _TAG + "int": lambda loader, node: loader.scalar(node),
            _TAG + "float": lambda loader, node: loader.scalar(node),
            _TAG + "str": lambda loader, node: loader.construct_scalar(node),
            _TAG + "seq": lambda loader, node: loader.sequence(node),
            _TAG + "map": lambda loader, node: loader.mapping(node),
            None: yaml.SafeLoader.construct_undefined,
        }

        def compose_node(self, parent: Any, index: Any) -> Any:
            # A few lines of aliases make gigabytes.
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("it has aliases")
            return super().compose_node(parent, index)

        def scalar(self, node: Any) -> Any:
            return _scalar(self.construct_scalar(node))

        def sequence(self, node: Any) -> List[Any]:
            if not isinstance(node, yaml.SequenceNode):
                raise yaml.YAMLError("it has a sequence that is none")
            return [self.construct_object(item, True) for item in node.value]

        def mapping(self, node: Any) -> Dict[str, Any]:
            if not isinstance(node, yaml.MappingNode):
                raise yaml.YAMLError("it has a mapping that is none")
            found: Dict[str, Any] = {}
            for key_node, value_node in node.value:
                key = self.construct_object(key_node, True)
                if isinstance(key, (dict, list)):
                    raise yaml.YAMLError("it has a key that is no word")
                # As JSON writes it.
                name = key if isinstance(key, str) else json.dumps(key)
                if name in found:
                    raise yaml.YAMLError("it has the key %s twice" % beginning_of(name))
                found[name] = self.construct_object(value_node, True)
            return found

    for name, pattern in (("null", _NULL), ("bool", _BOOL), ("int", _INT), ("float", _FLOAT)):
        Loader.add_implicit_resolver(_TAG + name, re.compile(r"(?:%s)\Z" % pattern.pattern), None)
    return Loader


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal: true is not 1, and 1.0 is 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return _as_double(one) == _as_double(other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def _as_double(number: Any) -> Optional[float]:
    # Many servers have no other numbers.
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
