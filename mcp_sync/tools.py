"""Calling tools, getting prompts, asking for suggestions.

See the specification, server/tools, server/prompts, server/utilities/completion.
"""

import logging
from typing import Any, Dict, Mapping, Optional, Union, cast

from . import schema
from ._deadline import Deadline
from .calling import CallOptions
from .calls import Calls, limit_of
from .errors import Cancelled, InputRequired, MCPSyncError, NotSupported, ProtocolError, ServerError, beginning_of
from .jsonrpc import HEADER_MISMATCH, METHOD_NOT_FOUND
from .reads import TOOLS, Reads
from .results.completion import CompleteResult, PromptReference, ResourceTemplateReference
from .results.prompts import GetPromptResult
from .results.tools import CallToolResult, ListToolsResult, Tool
from .tool_headers import headers_for

__all__ = ["Reference", "Tools"]

_log = logging.getLogger("mcp_sync")

#: What has suggestions: a prompt, a template, or the protocol's object for one of them.
Reference = Union[PromptReference, ResourceTemplateReference, Mapping[str, Any]]


class Tools:
    """The requests about tools and prompts. Any thread.

    :param calls: how requests are made.
    :param reads: where the list of tools is kept.
    """

    def __init__(self, calls: Calls, reads: Reads) -> None:
        self._calls = calls
        self._reads = reads

    def call(
        self, name: str, arguments: Optional[Mapping[str, Any]], options: CallOptions, validate: bool
    ) -> Dict[str, Any]:
        """Call a tool; return the ``result`` as the server sent it.

        :param validate: whether structured content has to be as the tool's ``outputSchema`` says, if that can be found out.
        """
        params: Dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = dict(arguments)
        limit = limit_of("tools/call", params, options)
        with options.covering(limit.what):
            tool = self._tool(name, options, limit, validate and schema.available())
        try:
            raw = self._request(params, tool, options, limit)
        except ServerError as error:
            if error.code != HEADER_MISMATCH or not self._mirrors:
                raise
            # Refused before anything was done. The tool is not what it was when the list was read, or was not in it.
            _log.info("%s; listing the tools again", error)
            try:
                with options.covering(limit.what):
                    listed = self._listed(options, limit, refresh=True)
            except Cancelled:
                raise
            except MCPSyncError as failed:
                raise error from failed
            raw = self._request(params, _found(listed, name), options, limit)
        return raw

    def result(self, name: str, raw: Dict[str, Any], validate: bool) -> CallToolResult:
        """Return what a user receives of the answer to a call.

        :raises ProtocolError: if it makes no sense, or is not as the tool's ``outputSchema`` says.
        """
        result = CallToolResult.from_wire(raw, name)
        if validate and not result.is_error:
            tool = self._known(name)
            if tool is not None:
                schema.check(tool, result)
        return result

    def prompt(self, name: str, arguments: Optional[Mapping[str, str]], options: CallOptions) -> GetPromptResult:
        params: Dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = dict(arguments)
        return GetPromptResult.from_wire(self._known_method("prompts/get", params, options))

    def complete(
        self,
        ref: Reference,
        argument: Mapping[str, str],
        context_arguments: Optional[Mapping[str, str]],
        options: CallOptions,
    ) -> CompleteResult:
        params: Dict[str, Any] = {
            "ref": dict(ref) if isinstance(ref, Mapping) else ref.to_wire(),
            "argument": {"name": argument["name"], "value": argument["value"]},
        }
        if context_arguments:
            params["context"] = {"arguments": dict(context_arguments)}
        return CompleteResult.from_wire(self._known_method("completion/complete", params, options))

    # -- within ----------------------------------------------------------------------------------------------------------

    @property
    def _mirrors(self) -> bool:
        """Whether arguments are repeated in headers: in the modern era, over HTTP."""
        connection = self._calls.connection
        return not connection.is_legacy and not connection.transport.shared_channel

    def _request(
        self, params: Dict[str, Any], tool: Optional[Tool], options: CallOptions, limit: Deadline
    ) -> Dict[str, Any]:
        headers = headers_for(tool, params.get("arguments")) if tool is not None and self._mirrors else {}
        return self._known_method("tools/call", params, options.with_headers(headers) if headers else options, limit)

    def _known_method(
        self, method: str, params: Dict[str, Any], options: CallOptions, limit: Optional[Deadline] = None
    ) -> Dict[str, Any]:
        try:
            return self._calls.request(method, params, options, limit)
        except ServerError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            raise NotSupported(
                "%s does not know %s; discover().capabilities says what it can do"
                % (self._calls.connection.transport.where, method)
            ) from error

    def _tool(self, name: str, options: CallOptions, limit: Deadline, needed: bool) -> Optional[Tool]:
        """Return what is known of a tool. Its definition says which headers a call needs, so that it has to be known; but not
        to be new: the server refuses a call whose headers are those of another day.

        :param needed: whether it has to be known in any case.
        """
        known = self._reads.peek(TOOLS)
        if known is not None:
            found = _found(cast(ListToolsResult, known.value), name)
            if found is not None:
                return found
        connection = self._calls.connection
        if not connection.transport.shared_channel:
            connection.settle(_sooner(options, limit))
        if known is not None or not (needed or self._mirrors):
            return None
        try:
            listed = self._listed(options, limit)
        except (ServerError, ProtocolError, NotSupported, InputRequired) as error:
            _log.debug("%s is called without its definition: %s", beginning_of(name), error)
            return None
        return _found(listed, name)

    def _known(self, name: str) -> Optional[Tool]:
        known = self._reads.peek(TOOLS)
        return None if known is None else cast(ListToolsResult, known.value).find(name)

    def _listed(self, options: CallOptions, limit: Deadline, refresh: bool = False) -> ListToolsResult:
        return cast(ListToolsResult, self._reads.get(TOOLS, _sooner(options, limit), refresh).result)


def _sooner(options: CallOptions, limit: Deadline) -> Deadline:
    left = limit.remaining()
    if left is not None and (options.timeout is None or left < options.timeout):
        return limit
    return Deadline(options.timeout, "the list of tools")


def _found(listed: ListToolsResult, name: str) -> Optional[Tool]:
    """Return a tool of the list.

    :raises NotSupported: if it was left out of it: a call could not be made as its definition demands.
    """
    tool = listed.find(name)
    for item in listed.left_out if tool is None else ():
        if item.name == name:
            raise NotSupported("the tool %s cannot be called: %s" % (beginning_of(name), item.reason))
    return tool
