"""The commands that ask once: ``info``, ``list`` and ``read``."""

import argparse
import base64
import datetime
import functools
from typing import Any, Dict, List, Optional

from ..client import Client
from ..results import BlobResourceContents, Contents, DiscoverResult, ReadResourceResult
from .exits import OK, USAGE
from .output import Output, clean, complain, table
from .waiting import interruptibly

__all__ = ["info", "list_", "read"]


def iso(moment: Optional[datetime.datetime]) -> Optional[str]:
    """Return a moment as JSON has it."""
    return None if moment is None else moment.isoformat()


# -- info --------------------------------------------------------------------------------------------------------------


def info(client: Client, arguments: argparse.Namespace, output: Output) -> int:
    """``mcp-sync info``."""
    found = interruptibly(client.discover)
    if arguments.json:
        output.document(_info_document(client, found))
    else:
        output.lines(_info_lines(client, found))
    return OK


def _info_document(client: Client, found: DiscoverResult) -> Dict[str, Any]:
    return {
        "url": client.where,
        "name": found.server_info.name,
        "title": found.server_info.title,
        "version": found.server_info.version,
        "protocol_version": client.protocol_version,
        "supported_versions": list(found.supported_versions),
        "capabilities": found.capabilities,
        "notifies": {"resources": found.can_subscribe, "catalog": found.can_list_changed},
        "instructions": found.instructions,
    }


def _info_lines(client: Client, found: DiscoverResult) -> List[str]:
    server = found.server_info
    name = " ".join(part for part in (server.title or server.name or "(it gives no name)", server.version) if part)
    spoken = ", ".join(found.supported_versions)
    rows = [
        ("Server", name if not server.title or server.title == server.name else "%s (%s)" % (name, server.name)),
        ("Address", client.where),
        ("Protocol", client.protocol_version + (" (the server speaks %s)" % spoken if spoken else "")),
        ("Capabilities", ", ".join(_capability(*item) for item in sorted(found.capabilities.items())) or "none"),
        ("Tells of changes", _notifies(found)),
    ]
    lines = table([[label, clean(text)] for label, text in rows])
    if found.instructions:
        lines.append("Instructions")
        lines.extend("  " + clean(line) for line in found.instructions.splitlines())
    return lines


def _capability(name: str, details: Any) -> str:
    features = sorted(key for key, value in details.items() if value is True) if isinstance(details, dict) else []
    return name + (" (%s)" % ", ".join(features) if features else "")


def _notifies(found: DiscoverResult) -> str:
    if found.can_subscribe and found.can_list_changed:
        return "yes, of resources and of the catalog: a watch listens"
    if found.can_subscribe:
        return "of resources, not of the catalog: a watch polls that"
    if found.can_list_changed:
        return "of the catalog, not of resources: a watch polls those"
    return "no: a watch polls"


# -- list --------------------------------------------------------------------------------------------------------------


def list_(client: Client, arguments: argparse.Namespace, output: Output) -> int:
    """``mcp-sync list``."""
    document: Dict[str, Any] = {"url": client.where}
    if arguments.templates:
        templates = interruptibly(client.list_resource_templates)
        what, heading = "templates", ["URI TEMPLATE", "NAME", "TYPE"]
        document.update(version=templates.version, read_at=iso(templates.read_at))
        document["resource_templates"] = [
            {
                "uri_template": item.uri_template,
                "name": item.name,
                "title": item.title,
                "description": item.description,
                "mime_type": item.mime_type,
            }
            for item in templates
        ]
        rows = [[item.uri_template, item.title or item.name, item.mime_type or ""] for item in templates]
    else:
        catalog = interruptibly(client.list_resources)
        what, heading = "resources", ["URI", "NAME", "TYPE", "SIZE"]
        document.update(version=catalog.version, read_at=iso(catalog.read_at))
        document["resources"] = [
            {
                "uri": item.uri,
                "name": item.name,
                "title": item.title,
                "description": item.description,
                "mime_type": item.mime_type,
                "size": item.size,
                "last_modified": iso(item.last_modified),
            }
            for item in catalog
        ]
        rows = [
            [item.uri, item.title or item.name, item.mime_type or "", "" if item.size is None else str(item.size)]
            for item in catalog
        ]
    if arguments.json:
        output.document(document)
    elif rows:
        cells = [heading] + [[clean(cell) for cell in row] for row in rows]
        output.lines(table(cells, [3], output.size[0] if output.is_terminal else None, output.mark))
    else:
        complain("the server lists no %s" % what)
    return OK


# -- read --------------------------------------------------------------------------------------------------------------


def read(client: Client, arguments: argparse.Namespace, output: Output) -> int:
    """``mcp-sync read``."""
    results = [interruptibly(functools.partial(client.read_resource, uri)) for uri in arguments.uris]
    if arguments.json:
        documents = [_read_document(result) for result in results]
        whole: Any = documents[0] if len(documents) == 1 else documents
        if arguments.output is None:
            output.document(whole)
        else:
            with open(arguments.output, "w", encoding="ascii") as file:
                Output(file).document(whole)
        return OK
    parts = [part for result in results for part in result.contents]
    if arguments.output is not None:
        data = b"".join(part.data for part in parts)
        with open(arguments.output, "wb") as binary:
            binary.write(data)
    elif not output.is_terminal:
        output.data(b"".join(part.data for part in parts))
    elif any(isinstance(part, BlobResourceContents) for part in parts):
        complain("that is binary and would garble the terminal: use --output FILE, --json, or a pipe")
        return USAGE
    else:
        text = b"".join(part.data for part in parts).decode("utf-8", "replace")
        output.write(text if text.endswith("\n") or not text else text + "\n")
    return OK


def _read_document(result: ReadResourceResult) -> Dict[str, Any]:
    contents: List[Dict[str, Any]] = [_content(part) for part in result.contents]
    document = dict(contents[0] if contents else {"text": None, "mime_type": None}, uri=result.uri)
    document.update(
        version=result.version,
        read_at=iso(result.read_at),
        age=round(result.age, 3),
        last_modified=iso(result.last_modified),
        stale=result.stale,
    )
    if len(contents) > 1:
        document["more_contents"] = contents[1:]
    return document


def _content(part: Contents) -> Dict[str, Any]:
    document: Dict[str, Any] = {"uri": part.uri}
    if isinstance(part, BlobResourceContents):
        document["blob"] = base64.b64encode(part.data).decode("ascii")
    else:
        document["text"] = part.text
    document["mime_type"] = part.mime_type
    return document
