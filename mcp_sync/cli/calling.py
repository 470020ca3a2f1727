"""The commands ``call`` and ``prompt``."""

import argparse
import json
from typing import Any, Callable, Dict, Iterable

from ..client import Client
from ..errors import InputRequired, NotSupported, ServerError
from ..results import CallToolResult, GetPromptResult
from .arguments import complain_of_usage
from .conversation import Conversation
from .exits import INPUT_REQUIRED, NOT_FOUND, OK, TOOL_FAILED, USAGE
from .leaving import document_of, told
from .output import Log, Output, clean, complain
from .shown import messages, shown, text_for
from .values import WrongArguments, arguments_of, json_object, prompt_schema, suggestion, taken
from .waiting import interruptibly

__all__ = ["call", "prompt"]


class _NotThere(Exception):
    """There is no such tool, or no such prompt."""


def call(client: Client, arguments: argparse.Namespace, output: Output, log: Log, conversation: Conversation) -> int:
    """``mcp-sync call``."""

    def made(values: Dict[str, Any], more: Dict[str, Any]) -> CallToolResult:
        if arguments.task is None:
            return client.call_tool(arguments.name, values, **more)
        task = client.task({"task_id": arguments.task, "name": arguments.name})
        if more["input_responses"]:
            task.update(more["input_responses"])
        return task.wait(more["max_timeout"], on_progress=more["on_progress"], cancellation=more["cancellation"])

    def tell(result: CallToolResult) -> int:
        texts, others = shown(result.content)
        if result.is_error:
            lines = "\n".join(texts).strip().splitlines()[:1000] or ["it does not say why"]
            complain("the tool %s failed: %s" % (arguments.name, lines[0]))
            for line in lines[1:]:
                conversation.say(clean(line))
            return TOOL_FAILED
        if not texts and not others and result.has_structured_content:
            texts = [json.dumps(result.structured_content, indent=2)]
        output.write(text_for(output, texts))
        for other in others:
            complain(other)
        return OK

    schema_of = _tool_schema if arguments.task is None else _nothing_asked
    return _ask(client, arguments, output, log, conversation, schema_of, made, tell)


def prompt(client: Client, arguments: argparse.Namespace, output: Output, log: Log, conversation: Conversation) -> int:
    """``mcp-sync prompt``."""

    def made(values: Dict[str, Any], more: Dict[str, Any]) -> GetPromptResult:
        return client.get_prompt(arguments.name, values, **more)

    def tell(result: GetPromptResult) -> int:
        texts, others = messages(result)
        output.write(text_for(output, texts, "\n\n"))
        for other in others:
            complain(other)
        return OK

    return _ask(client, arguments, output, log, conversation, _prompt_schema, made, tell)


def _ask(
    client: Client,
    arguments: argparse.Namespace,
    output: Output,
    log: Log,
    conversation: Conversation,
    schema_of: Callable[[Client, str], Dict[str, Any]],
    made: Callable[[Dict[str, Any], Dict[str, Any]], Any],
    tell: Callable[[Any], int],
) -> int:
    schema: Dict[str, Any] = {}
    try:
        # What can be said without the server is said first.
        given = {} if arguments.arguments is None else json_object(arguments.arguments, "--arguments")
        responses = None
        if arguments.input_responses is not None:
            responses = json_object(arguments.input_responses, "--input-responses")
        schema = interruptibly(lambda: schema_of(client, arguments.name))
        values = arguments_of(schema, arguments.values, given)
    except _NotThere as error:
        complain(str(error))
        return NOT_FOUND
    except WrongArguments as error:
        return _wrong(error, schema, arguments, conversation)
    more: Dict[str, Any] = {
        "max_timeout": arguments.max_timeout,
        "on_progress": conversation.on_progress,
        "on_log": conversation.on_log,
        "log_level": arguments.log_level,
        "cancellation": conversation.cancellation,
        "input_responses": responses,
        "request_state": arguments.request_state,
    }
    conversation.asker.where = client.where
    if conversation.bar.works:
        log.hold_back()  # its lines would break the one that is redrawn
    try:
        result = conversation.hold(lambda: made(values, more))
    except InputRequired as asked:
        return _asked(asked, arguments, output, conversation)
    finally:
        log.let_go()
    if conversation.in_vain:
        complain("the server asked for input, and nobody was here to answer: run this on a terminal")
    if arguments.json:
        output.document(result.raw)
        return TOOL_FAILED if isinstance(result, CallToolResult) and result.is_error else OK
    return tell(result)


def _tool_schema(client: Client, name: str) -> Dict[str, Any]:
    try:
        listed = client.list_tools()
    except (NotSupported, ServerError):
        return {}  # it may be called all the same
    tool = listed.find(name)
    if tool is not None:
        return tool.input_schema
    if any(item.name == name for item in listed.left_out):
        return {}  # the call says why it cannot be made
    raise _NotThere("there is no tool %s" % _named(name, listed.names, "--tools"))


def _nothing_asked(client: Client, name: str) -> Dict[str, Any]:
    return {}  # the arguments of a task are those that it was begun with


def _prompt_schema(client: Client, name: str) -> Dict[str, Any]:
    try:
        listed = client.list_prompts()
    except (NotSupported, ServerError):
        return {}
    found = listed.find(name)
    if found is None:
        raise _NotThere("there is no prompt %s" % _named(name, listed.names, "--prompts"))
    return prompt_schema(found.arguments)


def _named(name: str, names: Iterable[str], option: str) -> str:
    names = list(names)
    if not names:
        return "%s; the server lists none" % clean(name)
    return "%s%s ('mcp-sync list %s' shows what there is)" % (clean(name), suggestion(name, names), option)


def _wrong(error: WrongArguments, schema: Dict[str, Any], arguments: argparse.Namespace, conversation: Conversation) -> int:
    if not schema:
        complain_of_usage(str(error), arguments.command)
        return USAGE
    lines = taken(schema, conversation.columns, conversation.mark)
    complain("%s: %s%s" % (arguments.name, error, "" if lines else "; it takes none"))
    if lines:
        conversation.say("It takes:")
        for line in lines:
            conversation.say(line)
    return USAGE


def _asked(asked: InputRequired, arguments: argparse.Namespace, output: Output, conversation: Conversation) -> int:
    """Tell what the server asks for, and how to go on."""
    if arguments.json:
        output.document(document_of(asked))
    what = "it answers %s" % asked.method if asked.task is None else "the task goes on"
    complain("the server asks for input before %s, and %s:" % (what, _why_not(asked, conversation)))
    for line in told(asked):
        conversation.say(line)
    return INPUT_REQUIRED


def _why_not(asked: InputRequired, conversation: Conversation) -> str:
    if not conversation.interactive:
        return "nobody is at a terminal to answer"
    methods = {request.get("method") for request in asked.input_requests.values() if isinstance(request, dict)}
    return "it never stops" if methods <= {"elicitation/create"} else "this program has no answer to that"
