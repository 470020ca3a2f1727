"""URI templates (RFC 6570): the extra ``mcp-sync-client[templates]``."""

from typing import Any, Mapping, Tuple

from . import _fork
from .errors import NotSupported, beginning_of

__all__ = ["expand", "variables"]


def expand(template: str, values: Mapping[str, Any]) -> str:
    """Put values into a template.

    :param template: the template, of any level of RFC 6570.
    :param values: its variables: texts, numbers, True and False, lists of these, or mappings. What is None, or not given, is
        left out, as the RFC says.
    :raises NotSupported: if the package ``uritemplate`` is not installed.
    :raises ValueError: if the template makes no sense, or has no variable of that name.
    """
    parsed = _parsed(template)
    names = _names(parsed)
    unknown = sorted(set(values) - set(names))
    if unknown:
        raise ValueError(
            "the template %s has no variable %s; it has: %s"
            % (beginning_of(template), ", ".join(unknown), beginning_of(", ".join(names)) or "none")
        )
    try:
        return str(parsed.expand({name: _plain(value) for name, value in values.items()}))
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError("the template %s cannot be expanded with that: %s" % (beginning_of(template), error)) from error


def variables(template: str) -> Tuple[str, ...]:
    """Return the names of a template's variables, in its order.

    :raises NotSupported: if the package ``uritemplate`` is not installed.
    :raises ValueError: if the template makes no sense.
    """
    return _names(_parsed(template))


def _names(parsed: Any) -> Tuple[str, ...]:
    return tuple(str(name) for name in parsed.variable_names)


def _parsed(template: str) -> Any:
    try:
        with _fork.held_off():
            import uritemplate
    except ImportError as error:
        raise NotSupported("expanding URI templates needs a package: pip install mcp-sync-client[templates]") from error
    try:
        return uritemplate.URITemplate(template)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError("the template %s makes no sense: %s" % (beginning_of(template), error)) from error


def _plain(value: Any) -> Any:
    """Return a value with true and false as JSON writes them, not as Python does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return value
