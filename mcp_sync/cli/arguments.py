"""The options and the help."""

import argparse
import getpass
import math
import os
import sys
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple
from urllib.parse import unquote

from .._version import __version__
from ..calling import LOG_LEVELS
from ..negotiate import ERAS
from .examples import EXAMPLES
from .exits import EXIT_CODES, USAGE
from .output import complain

__all__ = ["BEARER_VARIABLE", "complain_of_usage", "credentials_of", "parse"]

#: Where a token is taken from if no option gives one, since the arguments of a process can be seen by every user.
BEARER_VARIABLE = "MCP_SYNC_BEARER"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and whose help ends with examples and the exit codes.

    :param prog: ``mcp-sync``, or that and the name of a command.
    :param description: what it does.
    """

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog="%s\n\n%s" % (EXAMPLES[prog.partition(" ")[2]], EXIT_CODES),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            # Options that will be added must not change what a script's abbreviation means. (Python 3.7 knows this only
            # together with a ban on "-vv".)
            allow_abbrev=sys.version_info < (3, 8),
        )

    def error(self, message: str) -> NoReturn:
        complain_of_usage(message, self.prog.partition(" ")[2])
        raise SystemExit(USAGE)


def complain_of_usage(text: str, command: Optional[str]) -> None:
    """Tell the user what is wrong with the arguments, in one line."""
    complain("%s (see 'mcp-sync %s--help')" % (text, command + " " if command else ""))


def parse(argv: Optional[Sequence[str]]) -> argparse.Namespace:
    """Read the command line.

    :param argv: the arguments; None for those of the process.
    :raises SystemExit: after the help was printed, or a complaint.
    """
    texts, server = _without_server_command(sys.argv[1:] if argv is None else list(argv))
    arguments, left = _parser().parse_known_args(texts)
    arguments.server_command = server
    wrong = None
    # argparse takes all URIs, or values, from one place only; they may stand before and after options.
    several = getattr(arguments, "uris", getattr(arguments, "values", None))
    if several is not None and not any(text.startswith("-") for text in left):
        several.extend(left)
        left = []
    if left:
        wrong = "unknown: %s" % " ".join(left)
    elif server is not None and (not server or arguments.command == "demo"):
        wrong = "what follows '--' is the command that starts a server"
    elif arguments.command is None:
        wrong = "which command? %s" % ", ".join(name for name, _, _ in _COMMANDS)
    elif arguments.command == "watch" and not (arguments.uris or arguments.catalog or arguments.all):
        wrong = "nothing to watch: give URIs, --catalog or --all"
    if wrong is not None:
        complain_of_usage(wrong, arguments.command)
        raise SystemExit(USAGE)
    return arguments


#: Stands where the URL would, if a server is started instead.
_STARTED = "stdio:"


def _without_server_command(texts: List[str]) -> Tuple[List[str], Optional[List[str]]]:
    """Take from the arguments what follows ``--``: the command of a server that speaks over stdio."""
    if "--" not in texts:
        return texts, None
    at = texts.index("--")
    texts, server = texts[:at], texts[at + 1 :]
    command = next((index for index, text in enumerate(texts) if not text.startswith("-")), None)
    if command is not None:
        texts.insert(command + 1, _STARTED)
    return texts, server


def _parser() -> Parser:
    top = Parser("mcp-sync", "Reads what a Model Context Protocol server offers, and keeps it current.")
    top.add_argument("--version", action="version", version="mcp-sync %s" % __version__)
    commands = top.add_subparsers(title="commands", metavar="COMMAND", dest="command", parser_class=Parser)
    for name, summary, add in _COMMANDS:
        add(commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + "."))
    return top


def _add_server(command: Parser) -> None:
    command.add_argument(
        "url",
        metavar="URL",
        help="the server's MCP endpoint, http:// or https://; instead of it, '-- COMMAND ...' at the end starts a server "
        "that speaks over stdio",
    )
    server = command.add_argument_group("the server")
    server.add_argument(
        "--header",
        metavar="'NAME: VALUE'",
        dest="headers",
        action="append",
        default=[],
        type=_header,
        help="send this header with every request; may be repeated",
    )
    server.add_argument(
        "--bearer",
        metavar="TOKEN",
        help="send this token (Authorization: Bearer ...); '-' takes it from the first line of standard input. The "
        "environment variable %s does the same without showing it in the list of processes" % BEARER_VARIABLE,
    )
    server.add_argument(
        "--era",
        choices=ERAS,
        default="auto",
        help="speak only revisions from 2026-07-28 on (modern), or only those before (legacy), instead of finding out",
    )
    server.add_argument("--ca-bundle", metavar="FILE", type=_file, help="trust the certificates in this file")
    server.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, default=30.0, help="how long one request may take (default: 30)"
    )


def _add_common(command: Parser, json_help: str) -> None:
    command.add_argument("--json", action="store_true", help=json_help)
    command.add_argument(
        "-v", "--verbose", action="count", default=0, help="tell on standard error what happens; -vv tells all"
    )


def _add_info(command: Parser) -> None:
    _add_server(command)
    _add_common(command, "print one JSON document")


def _add_list(command: Parser) -> None:
    _add_server(command)
    kinds = command.add_mutually_exclusive_group()
    for name, what in (
        ("templates", "the templates of resources"),
        ("tools", "the tools, with their arguments ([optional])"),
        ("prompts", "the prompts, likewise"),
    ):
        kinds.add_argument("--" + name, action="store_const", dest="kind", const=name, help="list %s instead" % what)
    command.set_defaults(kind="resources")
    _add_common(command, "print one JSON document")


def _add_read(command: Parser) -> None:
    _add_server(command)
    command.add_argument("uris", metavar="URI", nargs="+", help="the resources")
    command.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of standard output")
    _add_common(command, "print one JSON document that also says where each resource comes from and how old it is")


def _add_watch(command: Parser) -> None:
    _add_server(command)
    command.add_argument("uris", metavar="URI", nargs="*", help="the resources")
    command.add_argument("--catalog", action="store_true", help="also watch which resources there are")
    command.add_argument("--all", action="store_true", help="watch the catalog, and all that it lists or will list")
    command.add_argument(
        "--poll-interval",
        metavar="SECONDS",
        type=_seconds,
        default=30.0,
        help="how often to read what the server does not tell about (default: 30)",
    )
    command.add_argument("--no-listen", action="store_true", help="poll, even if the server could tell of changes")
    command.add_argument("--initial", action="store_true", help="begin with a line for each resource as it is now")
    command.add_argument("--count", metavar="N", type=_count, help="end after so many changes")
    command.add_argument(
        "--duration",
        metavar="SECONDS",
        type=_seconds,
        help="end after so much time; the exit code is 3 if --count was given and not reached",
    )
    _add_common(command, "print one JSON document in one line for each change, on a terminal too")


def _add_call(command: Parser) -> None:
    _add_server(command)
    command.add_argument("name", metavar="TOOL", help="the tool's name")
    resume = _add_values(command, "the tool")
    resume.add_argument(
        "--task",
        metavar="ID",
        help="wait for this task, which the tool has begun already, instead of calling it; Ctrl-C ends the wait only",
    )
    _add_common(command, "print the result as the server sent it, one JSON document")


def _add_prompt(command: Parser) -> None:
    _add_server(command)
    command.add_argument("name", metavar="NAME", help="the prompt's name")
    _add_values(command, "the prompt")
    _add_common(command, "print the result as the server sent it, one JSON document")


def _add_values(command: Parser, what: str) -> Any:
    command.add_argument("values", metavar="NAME=VALUE", nargs="*", default=[], help="the arguments of " + what)
    command.add_argument(
        "--arguments", metavar="JSON", help="arguments as one object; @FILE takes them from a file, @- from standard input"
    )
    command.add_argument(
        "--max-timeout",
        metavar="SECONDS",
        type=_seconds,
        help="how long all of it may take: --timeout begins anew with each sign of progress (default: 3600)",
    )
    command.add_argument(
        "--log-level",
        choices=LOG_LEVELS,
        metavar="LEVEL",
        help="what to show of the server's log: %s (default: info)" % ", ".join(LOG_LEVELS),
    )
    resume = command.add_argument_group("to go on where another call ended")
    resume.add_argument(
        "--input-responses",
        metavar="JSON",
        help="what answers the server's questions, by its own identifiers: "
        '{"KEY": {"action": "accept", "content": {...}}}, or "decline"; @FILE takes it from a file',
    )
    resume.add_argument("--request-state", metavar="TEXT", help="the state that came with the questions")
    return resume


def _add_demo(command: Parser) -> None:
    _add_common(command, "print one JSON document in one line for each step")


_COMMANDS = (
    ("info", "show what a server says of itself, and whether it tells of changes", _add_info),
    ("list", "list the resources, tools or prompts of a server", _add_list),
    ("read", "print what resources hold", _add_read),
    ("watch", "follow resources while they change", _add_watch),
    ("call", "call a tool, and print what it answers", _add_call),
    ("prompt", "print a prompt, filled in", _add_prompt),
    ("demo", "see it work, against a server that comes with it", _add_demo),
)


# -- values ------------------------------------------------------------------------------------------------------------


def _header(text: str) -> Tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        # Not repeated in the message: it may be a secret.
        raise argparse.ArgumentTypeError("a header looks like 'Name: value'")
    return name.strip(), value.strip()


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not math.isfinite(seconds) or seconds <= 0.0:
        raise argparse.ArgumentTypeError("%r is no number of seconds above zero" % text)
    return seconds


def _count(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise argparse.ArgumentTypeError("%r is no number above zero" % text)
    return count


def _file(text: str) -> str:
    if not os.path.exists(text):
        raise argparse.ArgumentTypeError("there is no file %r" % text)
    return text


def credentials_of(arguments: argparse.Namespace) -> Tuple[str, Optional[Tuple[str, str]], Dict[str, str]]:
    """Return the URL, the user and password that stood in it, and the headers that the options or the environment give.

    :raises ValueError: if they contradict each other.
    """
    url, auth = _without_password(arguments.url)
    headers = dict(arguments.headers)
    token: Optional[str] = arguments.bearer
    given = [auth is not None, token is not None, any(name.lower() == "authorization" for name in headers)]
    if sum(given) > 1:
        raise ValueError(
            "--bearer, --header 'Authorization: ...' and a password in the URL are answers to one question"
        )
    if token == "-":
        token = _read_token()
    elif not any(given):
        token = os.environ.get(BEARER_VARIABLE)
    if token is not None and token.strip():
        headers["Authorization"] = "Bearer " + token.strip()
    elif arguments.bearer is not None:
        raise ValueError("--bearer: the token is empty")
    return url, auth, headers


def _without_password(url: str) -> Tuple[str, Optional[Tuple[str, str]]]:
    """Take a password out of a URL, since URLs are shown in messages and logs."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    userinfo, at, host = host.rpartition("@")
    user, _, password = userinfo.partition(":")
    return scheme + mark + host + slash + path, (unquote(user), unquote(password)) if at else None


def _read_token() -> str:
    if sys.stdin is None:
        return ""
    if not sys.stdin.isatty():
        return sys.stdin.readline()
    try:
        return getpass.getpass("Token: ")
    except EOFError:
        return ""
