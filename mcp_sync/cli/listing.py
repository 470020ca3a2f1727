"""The command ``list``: one table for each kind of list."""

import argparse
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from ..client import Client
from ..results import ListResult, Prompt, Resource, ResourceTemplate, Tool
from .exits import OK
from .output import Output, clean, complain, iso, table
from .waiting import interruptibly

__all__ = ["list_"]


class _Kind(NamedTuple):
    """How one kind of list is shown.

    :param what: what it lists.
    :param read: reads it.
    :param field: its name in the JSON document.
    :param heading: of the table.
    :param row: one line of the table.
    :param document: the same for JSON.
    :param right: the columns that stand to the right.
    """

    what: str
    read: Callable[[Client], ListResult[Any]]
    field: str
    heading: List[str]
    row: Callable[[Any], List[str]]
    document: Callable[[Any], Dict[str, Any]]
    right: Tuple[int, ...] = ()


def list_(client: Client, arguments: argparse.Namespace, output: Output) -> int:
    """``mcp-sync list``."""
    kind = _KINDS[arguments.kind]
    found = interruptibly(lambda: kind.read(client))
    if arguments.json:
        document: Dict[str, Any] = {"url": client.where, "version": found.version, "read_at": iso(found.read_at)}
        document[kind.field] = [kind.document(item) for item in found]
        output.document(document)
    elif len(found):
        cells = [kind.heading] + [[clean(cell) for cell in kind.row(item)] for item in found]
        output.lines(table(cells, kind.right, output.size[0] if output.is_terminal else None, output.mark))
    else:
        complain("the server lists no %s" % kind.what)
    return OK


def _fields(item: Any, *names: str) -> Dict[str, Any]:
    return {name: getattr(item, name) for name in names}


def _first_line(text: Any) -> str:
    return (text or "").strip().partition("\n")[0].strip()


def _resource_row(item: Resource) -> List[str]:
    return [item.uri, item.title or item.name, item.mime_type or "", "" if item.size is None else str(item.size)]


def _resource(item: Resource) -> Dict[str, Any]:
    document = _fields(item, "uri", "name", "title", "description", "mime_type", "size")
    return dict(document, last_modified=iso(item.last_modified))


def _template_row(item: ResourceTemplate) -> List[str]:
    return [item.uri_template, item.title or item.name, item.mime_type or ""]


def _template(item: ResourceTemplate) -> Dict[str, Any]:
    return _fields(item, "uri_template", "name", "title", "description", "mime_type")


def _arguments(names: List[Tuple[str, bool]]) -> str:
    return " ".join(name if required else "[%s]" % name for name, required in names)


def _tool_row(item: Tool) -> List[str]:
    properties, required = item.input_schema.get("properties"), item.input_schema.get("required")
    needed = required if isinstance(required, list) else []
    names = [(name, name in needed) for name in properties] if isinstance(properties, dict) else []
    return [item.name, _arguments(names), _first_line(item.title or item.description)]


def _tool(item: Tool) -> Dict[str, Any]:
    return _fields(item, "name", "title", "description", "input_schema", "output_schema", "annotations")


def _prompt_row(item: Prompt) -> List[str]:
    names = [(argument.name, argument.required) for argument in item.arguments]
    return [item.name, _arguments(names), _first_line(item.title or item.description)]


def _prompt(item: Prompt) -> Dict[str, Any]:
    document = _fields(item, "name", "title", "description")
    arguments = [_fields(argument, "name", "title", "description", "required") for argument in item.arguments]
    return dict(document, arguments=arguments)


_FUNCTIONS = ["NAME", "ARGUMENTS", "DESCRIPTION"]

_KINDS = {
    "resources": _Kind(
        "resources",
        lambda client: client.list_resources(),
        "resources",
        ["URI", "NAME", "TYPE", "SIZE"],
        _resource_row,
        _resource,
        (3,),
    ),
    "templates": _Kind(
        "templates",
        lambda client: client.list_resource_templates(),
        "resource_templates",
        ["URI TEMPLATE", "NAME", "TYPE"],
        _template_row,
        _template,
    ),
    "tools": _Kind("tools", lambda client: client.list_tools(), "tools", _FUNCTIONS, _tool_row, _tool),
    "prompts": _Kind("prompts", lambda client: client.list_prompts(), "prompts", _FUNCTIONS, _prompt_row, _prompt),
}
