"""What the functions of the user's return, as results of the protocol. Pure functions.

Pages: server/tools, server/prompts, server/utilities/completion.
"""

import json
from typing import Any, List

from .protocol import Message


def tool_result(value: Any) -> Message:
    """The result of ``tools/call`` (server/tools, "Tool Result").

    Text becomes a text block; a list of objects with a ``type`` is the content; a dictionary with ``content`` or
    ``resultType`` is the result; anything else is structured content, and text besides.
    """
    if isinstance(value, dict) and ("content" in value or "resultType" in value):
        return value
    if isinstance(value, str):
        return {"content": [text(value)]}
    if isinstance(value, list) and all(isinstance(block, dict) and "type" in block for block in value):
        return {"content": value}
    return {"content": [text(json.dumps(value))], "structuredContent": value}


def tool_failure(error: Exception) -> Message:
    """A tool's own failure, which is a result and not an error: server/tools, "Error Handling"."""
    return {"content": [text("{}: {}".format(type(error).__name__, error))], "isError": True}


def prompt_result(value: Any, entry: Any) -> Message:
    """The result of ``prompts/get`` (server/prompts, "PromptMessage").

    Text becomes one message of the user's; a list holds messages, or content of the user's; a dictionary with
    ``messages`` or ``resultType`` is the result, any other one message.
    """
    if isinstance(value, dict) and ("messages" in value or "resultType" in value):
        return value
    items = value if isinstance(value, list) else [value]
    result: Message = {"messages": [_prompt_message(item) for item in items]}
    if isinstance(entry, dict) and "description" in entry:
        result["description"] = entry["description"]
    return result


def _prompt_message(item: Any) -> Any:
    if isinstance(item, str):
        item = text(item)
    return {"role": "user", "content": item} if isinstance(item, dict) and "role" not in item else item


def completion_result(value: Any) -> Message:
    """The result of ``completion/complete`` (server/utilities/completion, "Completion Results").

    A list of texts is cut after a hundred; a dictionary with ``values`` is the completion, one with ``completion`` the
    result.
    """
    if isinstance(value, dict):
        return value if "completion" in value else {"completion": value}
    return {"completion": {"values": value[:100], "total": len(value), "hasMore": len(value) > 100}}


def text(value: str) -> Message:
    """A text block."""
    return {"type": "text", "text": value}


def required_arguments(entry: Any) -> List[str]:
    """The names of the arguments that a prompt must be given."""
    arguments = entry.get("arguments") if isinstance(entry, dict) else None
    if not isinstance(arguments, list):
        return []
    return [argument["name"] for argument in arguments
            if isinstance(argument, dict) and argument.get("required") is True and "name" in argument]
