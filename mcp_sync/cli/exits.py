"""The exit codes, and which error gives which."""

from typing import Tuple

from ..errors import (
    AuthorizationError,
    InputRequired,
    MCPSyncError,
    MessageTooLarge,
    NotSupported,
    ProtocolError,
    RequestTimeout,
    ResourceNotFound,
    ServerError,
    TaskNotFound,
    ToolError,
    TransportError,
    UnsupportedVersion,
)

__all__ = [
    "CLOSED_PIPE",
    "EXIT_CODES",
    "FAILED",
    "INPUT_REQUIRED",
    "INTERRUPTED",
    "NOT_FOUND",
    "OK",
    "REFUSED",
    "SERVER_ERROR",
    "TERMINATED",
    "TOOL_FAILED",
    "UNREACHABLE",
    "USAGE",
    "explain",
]

OK = 0
FAILED = 1
USAGE = 2
UNREACHABLE = 3
REFUSED = 4
NOT_FOUND = 5
SERVER_ERROR = 6
TOOL_FAILED = 7
INPUT_REQUIRED = 8
INTERRUPTED = 130
CLOSED_PIPE = 141
TERMINATED = 143

#: For the help.
EXIT_CODES = """\
exit codes:
  0    done
  1    another error
  2    wrong usage
  3    the server cannot be reached, or took too long
  4    the server refused the credentials (HTTP 401 or 403)
  5    there is no such resource, tool, prompt or task
  6    the server answered with an error, or not as the protocol says
  7    the tool was called, and says that it failed
  8    the server asks for input first, and nobody is there to give it
  130  ended by Ctrl-C; 143 by SIGTERM; 141 because nobody reads the output"""


def explain(error: MCPSyncError, credentials: bool) -> Tuple[int, str]:
    """Return the exit code for an error, and what to tell the user.

    :param error: what a command raised.
    :param credentials: whether the user gave any.
    """
    # The library names its own options; here they have other names.
    told = str(error).replace("(timeout=)", "(--timeout)").replace("(max_message_bytes)", "").rstrip()
    told = told.replace("client.task() with its id gives a handle to wait again", "--task with its id waits again")
    told = told.replace("discover().capabilities says what it can do", "'mcp-sync info' shows what it can do")
    code, hint = _judge(error, credentials)
    return code, told + ("; " + hint if hint else "")


def _judge(error: MCPSyncError, credentials: bool) -> Tuple[int, str]:
    if isinstance(error, AuthorizationError):
        if credentials:
            return REFUSED, "these credentials are wrong, expired, or not for this"
        return REFUSED, "give them with --bearer, MCP_SYNC_BEARER or --header"
    if isinstance(error, RequestTimeout):
        return UNREACHABLE, "is it busy, or is the address wrong?"
    if isinstance(error, TransportError):
        return _judge_transport(error)
    if isinstance(error, TaskNotFound):
        return NOT_FOUND, ""
    if isinstance(error, ResourceNotFound):
        return NOT_FOUND, "'mcp-sync list' shows what there is"
    if isinstance(error, UnsupportedVersion):
        return SERVER_ERROR, ""
    if isinstance(error, ProtocolError) and not isinstance(error, MessageTooLarge):
        return SERVER_ERROR, "is that the address of an MCP server?"
    if isinstance(error, ToolError):
        return TOOL_FAILED, ""
    if isinstance(error, InputRequired):
        return INPUT_REQUIRED, ""
    if isinstance(error, (ServerError, MessageTooLarge, NotSupported)):
        return SERVER_ERROR, ""
    return FAILED, ""


def _judge_transport(error: TransportError) -> Tuple[int, str]:
    if error.status is not None and error.status >= 300:
        if error.status in (404, 405):
            return SERVER_ERROR, "is the path right? That of an MCP server is often /mcp"
        return SERVER_ERROR, ""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return UNREACHABLE, "--ca-bundle names a file with the certificates to trust"
    if "cannot be reached" in str(error):
        return UNREACHABLE, "does the server run, and is the address right?"
    return UNREACHABLE, ""
