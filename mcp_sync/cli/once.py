"""The commands ``info`` and ``read``."""

import argparse
import base64
import functools
from typing import Any, Dict, List

from ..client import Client
from ..results import BlobResourceContents, Contents, DiscoverResult, ReadResourceResult
from .exits import OK, USAGE
from .output import Output, clean, complain, iso, table
from .waiting import interruptibly

__all__ = ["info", "read"]


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
