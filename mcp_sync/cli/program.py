"""``main``: from the arguments to the exit code."""

import argparse
import contextlib
import logging
import signal
import sys
import traceback
from typing import Iterator, Optional, Sequence, Union

from .._version import __version__
from ..client import Client
from ..errors import MCPSyncError
from ..transports.stdio import Command
from . import exits
from .arguments import complain_of_usage, credentials_of, parse
from .calling import call, prompt
from .conversation import Conversation
from .listing import list_
from .once import info, read
from .output import Log, Output, complain
from .telling import demo
from .waiting import Terminated, terminable
from .watching import watch

__all__ = ["main"]

#: The longest that one attempt to connect may take, in seconds.
_CONNECT_TIMEOUT = 10.0


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run one command.

    :param argv: the arguments; None for those of the process, which ends afterwards.
    :returns: the exit code; see :mod:`mcp_sync.cli.exits`.
    """
    output = Output(sys.stdout)
    code = _quietly(argv, output)
    if argv is None:
        # An impatient second Ctrl-C would only add a traceback from the interpreter's end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if code in (exits.INTERRUPTED, exits.TERMINATED):
            output.give_up()  # half a write may be left, and whoever should read it may be stuck
    return code


def _quietly(argv: Optional[Sequence[str]], output: Output) -> int:
    try:
        with terminable():
            return _parsed(argv, output)
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except Terminated:
        return exits.TERMINATED
    except BrokenPipeError:
        return exits.CLOSED_PIPE
    except OSError as error:
        complain(str(error))
        return exits.FAILED
    finally:
        if output.broken:
            output.give_up()


def _parsed(argv: Optional[Sequence[str]], output: Output) -> int:
    try:
        arguments = parse(argv)
    except SystemExit as end:
        output.flush()  # of the help; if it cannot be written, that is to be heard of here
        return int(end.code or 0)
    with _logging(arguments.verbose) as log:
        try:
            return _run(arguments, output, log)
        except SystemExit as end:
            return int(end.code or 0)
        except MCPSyncError as error:
            code, told = exits.explain(error, bool(arguments.credentials))
            complain(told)
            return code
        except OSError:
            raise
        except Exception as error:
            # The boundary of the program: a defect of ours is told in a line, and in full to whoever asks for it.
            complain("an error of its own, %s: %s" % (type(error).__name__, error))
            if log.traces:
                traceback.print_exc()
            return exits.FAILED


def _run(arguments: argparse.Namespace, output: Output, log: Log) -> int:
    if arguments.command == "demo":
        return demo(arguments, output)
    try:
        target: Union[str, Command]
        target, auth, headers = credentials_of(arguments)
        arguments.credentials = auth is not None or bool(headers)
        if arguments.server_command is not None:
            target = Command(arguments.server_command)
            # A token in the environment is meant for whoever can use it; the child can take it from there.
            headers = {name: value for name, value in headers.items() if arguments.bearer or arguments.headers}
        conversation = Conversation(log.traces) if arguments.command in ("call", "prompt") else None
        client = Client(
            target,
            auth=auth,
            headers=headers,
            timeout=arguments.timeout,
            connect_timeout=min(_CONNECT_TIMEOUT, arguments.timeout),
            verify=arguments.ca_bundle or True,
            era=arguments.era,
            listen=not getattr(arguments, "no_listen", False),
            poll_interval=getattr(arguments, "poll_interval", 30.0),
            on_elicitation=None if conversation is None else conversation.elicit,
            elicitation_modes=("form", "url"),
            client_info={"name": "mcp-sync", "version": __version__},
        )
    except ValueError as error:
        complain_of_usage(str(error), arguments.command)
        return exits.USAGE
    with client:
        if arguments.command == "watch":
            return watch(client, arguments, output, log)
        if conversation is not None:
            return {"call": call, "prompt": prompt}[arguments.command](client, arguments, output, log, conversation)
        return {"info": info, "list": list_, "read": read}[arguments.command](client, arguments, output)


@contextlib.contextmanager
def _logging(verbosity: int) -> Iterator[Log]:
    logger = logging.getLogger("mcp_sync")
    log = Log(verbosity)
    level = logger.level
    logger.addHandler(log)
    logger.setLevel(log.threshold)
    try:
        yield log
    finally:
        logger.setLevel(level)
        logger.removeHandler(log)
