"""stdio: the server is a child process, and every message is a line.

See the specification, basic/transports/stdio (2026-07-28) and basic/transports (earlier revisions). One channel carries
everything: one thread reads the child's output and sorts it, one drains its errors into the log.
"""

import atexit
import collections
import logging
import os
import re
import select
import signal
import subprocess
import threading
import weakref
from typing import Any, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from .. import _fork
from .._deadline import Deadline
from .._gevent import threads_are_greenlets
from .._pending import Pending, Share
from .._worker import Worker
from ..errors import MessageTooLarge, ProtocolError, TransportError, beginning_of
from ..jsonrpc import Request, decode, encode
from .base import ChannelLost, Outgoing, Received, Transport, about_to_send

__all__ = ["Command", "Stdio"]

_log = logging.getLogger("mcp_sync")

#: How long each step of stopping a child may take, in seconds: after the end of its input, after SIGTERM, after SIGKILL.
_LADDER = (0.5, 0.3, 0.5)
#: How much of what a child said last on stderr is kept for error messages, in lines.
_LAST_WORDS = 20
#: So many bytes are written as a whole or not at all.
_ATOMIC = getattr(select, "PIPE_BUF", 512)
#: How long a thread that writes waits before it looks whether the child is being stopped, in seconds.
_SLICE = 0.1
#: How long a silent child is taken for a living one, in seconds.
_LOOK_AFTER = 0.5
#: How much is kept of both ends of a line that is too long, in bytes.
_EDGE = 200

_POSIX = os.name == "posix"
_SIGKILL = getattr(signal, "SIGKILL", signal.SIGTERM)

# Where JSON-RPC libraries put the id of an answer.
_FIRST_ID = re.compile(br'\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*([0-9]{1,18})\s*,')
_LAST_ID = re.compile(br'"id"\s*:\s*([0-9]{1,18})\s*\}\s*$')
# What could not be read, but may have been a message; the rest is talk.
_LIKE_A_MESSAGE = re.compile(br'^[{\[]|"jsonrpc"|"method"')


class Command:
    """How to start a server. Immutable.

    :param argv: the program and its arguments.
    :param env: variables added to this process's environment; None as a value removes one.
    :param cwd: the directory to start it in; this process's by default.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Optional[Mapping[str, Optional[str]]] = None,
        cwd: "Union[None, str, os.PathLike[str]]" = None
    ) -> None:
        if isinstance(argv, (str, bytes)) or not argv:
            raise ValueError('a command is a list of texts, ["python", "server.py"], not %r' % (argv,))
        self.argv = tuple(str(part) for part in argv)
        self.env = dict(env or {})
        for name, value in self.env.items():
            if not isinstance(name, str) or not (value is None or isinstance(value, str)):
                raise TypeError("variables of the environment are texts, or None to remove one: %r is not" % (name,))
        self.cwd = None if cwd is None else os.fspath(cwd)
        #: The command in one line, for people.
        self.line = beginning_of(" ".join(self.argv), 300)

    def environment(self) -> Dict[str, str]:
        """Return the whole environment of the child."""
        merged: Dict[str, Optional[str]] = dict(os.environ)
        merged.update(self.env)
        return {name: value for name, value in merged.items() if value is not None}

    def __repr__(self) -> str:
        return "Command(%r)" % (list(self.argv),)


class _Child:
    """One running process. The lock is the transport's, but for writing and for its end.

    :param command: how to start it.
    :param number: counts the children of a transport.
    :param max_bytes: the longest line that is held in memory.
    :param unclaimed: called with what belongs to no exchange, by the thread that reads.
    """

    def __init__(self, command: Command, number: int, max_bytes: int, unclaimed: Callable[[Received], None]) -> None:
        self.number = number
        self.name = os.path.basename(command.argv[0])
        self._where = command.line
        self._max_bytes = max_bytes
        # Held while a line is written, so that lines do not mix: the one lock that is held during I/O. The I/O does not block
        # for longer than the deadline of the message, and nothing else is ever waited for under it.
        self._writing = threading.Lock()
        self._ending = threading.Lock()  # held by the thread that asks the system whether the process has ended
        self._last_words: Deque[str] = collections.deque(maxlen=_LAST_WORDS)
        self._stopping = False
        self._broken = False  # half a line is out: no other can follow it
        self._warned = False  # of what is no message; once is enough
        try:
            self.process = subprocess.Popen(
                list(command.argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=command.environment(),
                cwd=command.cwd,
                # Ctrl-C at the terminal is for this program, which then ends the child in the orderly way; and whatever the
                # child starts (npx starts several processes) can be ended with it.
                start_new_session=_POSIX,
                creationflags=0 if _POSIX else getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except (OSError, ValueError) as error:
            raise TransportError("%s cannot be started: %s" % (self._where, error), may_have_run=False) from error
        assert self.process.stdin is not None and self.process.stdout is not None and self.process.stderr is not None
        self._stdin, self._stdout, self._stderr = self.process.stdin, self.process.stdout, self.process.stderr
        if _POSIX:
            os.set_blocking(self._stdin.fileno(), False)
        self.pending = Pending(self._where, unclaimed)
        self.reader = Worker("mcp_sync-stdio-%s" % self.name, self._read)
        self._drainer = Worker("mcp_sync-stderr-%s" % self.name, self._drain)
        self._drainer.start()
        self.reader.start()

    # -- writing ------------------------------------------------------------------------------------------------------

    def write(self, message: bytes, deadline: Deadline) -> None:
        """Write one line.

        :raises TransportError: if the child does not take it in time, or at all.
        """
        left = deadline.remaining()
        if not self._writing.acquire(timeout=-1 if left is None else left):
            raise deadline.error(may_have_run=False)
        try:
            self._write_locked(memoryview(message + b"\n"), deadline)
        finally:
            self._writing.release()

    def _write_locked(self, line: memoryview, deadline: Deadline) -> None:
        whole = len(line)
        try:
            self._write_all(line, deadline)
        except TransportError:
            raise
        except BaseException:
            # Ctrl-C, perhaps in the middle of the line: what comes next would be taken for the rest of it.
            if whole > _ATOMIC:
                self._broken = True
                self.pending.fail(TransportError("%s was sent half a message" % self._where), "reset")
            raise

    def _write_all(self, line: memoryview, deadline: Deadline) -> None:
        begun = False
        while line:
            if self._stopping or self._broken:
                raise TransportError("%s was stopped" % self._where, may_have_run=begun)
            if not self._is_ready(deadline.shorter(_SLICE)):
                if not deadline.expired:
                    continue
                if begun:
                    self._broken = True
                    self.pending.fail(TransportError("%s stopped reading its input" % self._where), "reset")
                raise deadline.error(may_have_run=begun)
            try:
                written = self._stdin.write(line)
            except BlockingIOError:
                continue
            except (OSError, ValueError) as error:
                self._broken = True
                # If it ended, the thread that reads is about to say so, and with more words.
                self.reader.join(1.0)
                raise TransportError(
                    "%s does not read its input (%s)%s%s" % (self._where, error, self._exit(), self._said()),
                    may_have_run=begun,
                ) from error
            if written:
                begun = True
                line = line[written:]

    def _is_ready(self, patience: Optional[float]) -> bool:
        """Wait until the child takes something, or is gone, which the next write finds out."""
        if not _POSIX:
            return True
        if not hasattr(select, "poll"):
            return bool(select.select([], [self._stdin], [], patience)[1])
        # Not select(), which knows no more than 1024 files.
        poll = select.poll()
        poll.register(self._stdin, select.POLLOUT)
        return bool(poll.poll(None if patience is None else patience * 1000.0))

    # -- the threads --------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        lines = _Lines(self._max_bytes)
        try:
            while True:
                chunk = self._stdout.read(65536) if self._has_output() else b""
                if not chunk:
                    break
                for line in lines.feed(chunk):
                    if isinstance(line, bytes):
                        self._deliver(line)
                    else:
                        self._refuse(line)
        except (OSError, ValueError):
            pass  # the same as its end
        finally:
            # Only by the thread that reads: nobody's number is taken away under a system call.
            self._stdout.close()
        self.pending.fail(self.ended_error())

    def _has_output(self) -> bool:
        """Wait until there is something to read, the end included; False if there will be nothing more.

        What the child has started may hold its output open after its death.
        """
        if not _POSIX or not hasattr(select, "poll"):
            return True
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        while not poll.poll(_LOOK_AFTER * 1000.0):
            if self._has_exited():
                return bool(poll.poll(_LOOK_AFTER * 1000.0))
        return True

    def _deliver(self, line: bytes) -> None:
        message = _message_in(line)
        if isinstance(message, ProtocolError):
            # Banners and the like: servers must not, and do; some with every request.
            level, self._warned = logging.DEBUG if self._warned else logging.WARNING, True
            _log.log(level, "%s printed something that is no message: %s", self._where, beginning_of(line))
            if not _LIKE_A_MESSAGE.search(line):
                return
        self.pending.deliver(message)

    def _refuse(self, line: "_TooLong") -> None:
        error = MessageTooLarge(
            "%s sent a message of more than %d bytes (max_message_bytes)" % (self._where, self._max_bytes)
        )
        _log.warning("%s", error)
        if not any(self.pending.refuse(request_id, error) for request_id in line.ids()):
            self.pending.deliver(error)

    def _drain(self) -> None:
        rest = b""
        try:
            while True:
                chunk = self._stderr.read(65536)
                if not chunk:
                    break
                lines = (rest + chunk).split(b"\n")
                rest = lines.pop()[-4096:]  # a line that never ends is not kept for ever
                for line in lines:
                    text = beginning_of(line, 500)
                    if text:
                        self._last_words.append(text)
                        _log.debug("%s: %s", self.name, text)
        except (OSError, ValueError):
            pass  # the same as its end
        finally:
            self._stderr.close()
        if rest:
            self._last_words.append(beginning_of(rest, 500))

    def ended_error(self) -> TransportError:
        """Return how it ended, with its last words; waits a moment for both."""
        self._drainer.join(0.5)
        self._wait_for_exit(0.5)
        return TransportError("%s%s%s" % (self._where, self._exit() or " closed its output", self._said()))

    def _exit(self) -> str:
        code = self.process.returncode if self._has_exited() else None
        if code is None:
            return ""
        return " was killed by signal %d" % -code if code < 0 else " ended with exit code %d" % code

    def _said(self) -> str:
        # A copy: the thread that drains may be adding to it.
        words = list(self._last_words.copy())
        return "; its last words: %s" % " / ".join(words[-5:]) if words else ""

    # -- its end ------------------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        """Whether it can be spoken with."""
        return self.reader.alive and not self._broken and not self._has_exited()

    def _has_exited(self) -> bool:
        """Return whether the process has ended; whatever it started and left behind is ended then as well."""
        with self._ending:
            if self.process.returncode is not None:
                return True
            if _POSIX and hasattr(os, "waitid"):
                try:
                    # Looked at, and left as it is: its group's number is nobody else's until it is taken away.
                    if os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                        return False
                    self._signal(_SIGKILL)
                except OSError:
                    pass  # taken away by somebody else
            return self.process.poll() is not None

    def _wait_for_exit(self, patience: float) -> bool:
        deadline, pause = Deadline(patience), 0.001
        idle = threading.Event()
        while not self._has_exited():
            if deadline.expired:
                return False
            idle.wait(deadline.shorter(pause))
            pause = min(2 * pause, 0.05)
        return True

    def _signal(self, number: int) -> None:
        """Send a signal to the child and to whatever it started. Only while it has not been waited for."""
        try:
            if _POSIX:
                os.killpg(self.process.pid, number)
            else:
                self.process.terminate()
        except OSError:
            pass  # gone already

    def stop(self) -> None:
        """End it: close its input, wait, SIGTERM, wait, SIGKILL."""
        self._stopping = True
        self.pending.interrupt()
        # A thread that writes looks at the flag above within a moment. The file is not closed under its hands: its
        # number could be another file's by the time of the next write.
        if self._writing.acquire(timeout=2 * _SLICE):
            try:
                self._stdin.close()
            except OSError:
                pass
            finally:
                self._writing.release()
        for patience, number in zip(_LADDER, (signal.SIGTERM, _SIGKILL, None)):
            if self._wait_for_exit(patience):
                break
            if number is not None:
                with self._ending:
                    if self.process.returncode is None:
                        self._signal(number)
        # A process that left the group of its own accord may still hold the other ends. Then the threads are let be.
        goodbye = Deadline(0.5)
        for worker in (self.reader, self._drainer):
            worker.join(goodbye.remaining() or 0.0)

    def drop(self) -> None:
        """In a forked child of ours: close the inherited ends without a word, and never wait for what is not our child."""
        streams = (self._stdin, self._stdout, self._stderr)
        if threads_are_greenlets():
            # They wait for these descriptors here too; gevent's loop aborts the process if one is gone. They see an end instead.
            null = os.open(os.devnull, os.O_RDWR)
            for stream in streams:
                try:
                    os.dup2(null, stream.fileno(), inheritable=False)
                except (OSError, ValueError):
                    pass  # it was closed already
            os.close(null)
        else:
            for stream in streams:
                try:
                    stream.close()
                except OSError:
                    pass
        self.process.returncode = 0  # or its finaliser would ask after a process that is the parent's


class _TooLong:
    """What is kept of a line that is not."""

    def __init__(self, head: bytearray) -> None:
        self.head = bytes(head[:_EDGE])
        self.tail = bytes(head[-_EDGE:])

    def add(self, data: bytes) -> None:
        self.tail = (self.tail + data)[-_EDGE:]

    def ids(self) -> List[Any]:
        """Return what may be the id of the answer that it was: servers write it first or last."""
        found = [_FIRST_ID.match(self.head), _LAST_ID.search(self.tail)]
        return [int(match.group(1)) for match in found if match is not None]


class _Lines:
    """Cuts what comes into lines, and holds no more of one than ``max_bytes``. One thread."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._too_long: Optional[_TooLong] = None

    def feed(self, chunk: bytes) -> "Iterator[Union[bytes, _TooLong]]":
        """Yield the lines that end in this chunk, without blank ones."""
        pieces = chunk.split(b"\n")
        for number, piece in enumerate(pieces):
            self._add(piece)
            if number == len(pieces) - 1:
                return  # the line that has no end yet
            if self._too_long is not None:
                yield self._too_long
                self._too_long = None
            else:
                line = bytes(self._buffer).strip()
                self._buffer = bytearray()
                if line:
                    yield line

    def _add(self, piece: bytes) -> None:
        if self._too_long is not None:
            self._too_long.add(piece)
            return
        self._buffer += piece
        if len(self._buffer) > self._max_bytes + 2:
            self._too_long = _TooLong(self._buffer)
            self._buffer = bytearray()


def _message_in(line: bytes) -> Received:
    """Return the message that a line is, or ends with: some servers print half a line before their first message."""
    try:
        return decode(line)
    except ProtocolError as error:
        begin = -1 if line[:1] == b"{" else line.find(b'{"')
        if begin > 0:
            try:
                return decode(line[begin:])
            except ProtocolError:
                pass
        return error


class Stdio(Transport):
    """A server that this client starts, and starts again if it ends. Any thread.

    :param command: how to start it.
    :param max_message_bytes: the longest line that is held in memory.
    """

    def __init__(self, command: Command, max_message_bytes: int = 64 * 1024 * 1024) -> None:
        self.where = command.line
        self.shared_channel = True
        self.cancels = True
        self._command = command
        self._max_bytes = max_message_bytes
        self._lock = threading.Lock()  # guards the five below
        self._child: Optional[_Child] = None
        self._started = 0
        self._last_ending = "the one before it ended"
        self._starting: Optional[threading.Event] = None
        self._closed = False
        _fork.register(self)
        _running.add(self)

    def connect(self, deadline: Deadline) -> int:
        return self._running_child(deadline).number

    def exchange(self, outgoing: Outgoing, deadline: Deadline) -> Share:
        message = encode(outgoing.message)
        child = self._running_child(deadline)
        if outgoing.channel is not None and outgoing.channel != child.number:
            raise self._lost()
        request_id = outgoing.message["id"]
        method = str(outgoing.message.get("method"))
        sent = False

        def closed(share: Share, answered: bool) -> None:
            # "initialize" must not be cancelled (2025-11-25, basic/utilities/cancellation).
            if sent and not answered and method != "initialize":
                self._cancel(child, request_id)

        share = child.pending.open(request_id, method, deadline, closed, outgoing.streaming)
        try:
            about_to_send(outgoing, share)
            sent = True  # before it is: Ctrl-C may come in between
            child.write(message, deadline)
        except TransportError as error:
            sent = error.may_have_run
            share.close()
            raise
        except BaseException:
            share.close()
            raise
        return share

    def unsolicited(
        self, headers: Mapping[str, str], deadline: Deadline, channel: Optional[int] = None, after: Optional[str] = None
    ) -> Share:
        child = self._running_child(deadline)
        if channel is not None and channel != child.number:
            raise self._lost()
        return child.pending.open_rest(deadline)

    def send(self, outgoing: Outgoing, deadline: Deadline) -> None:
        child = self._running_child(deadline)
        if outgoing.channel is not None and outgoing.channel != child.number:
            raise self._lost()
        child.write(encode(outgoing.message), deadline)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            child, self._child = self._child, None
            starting = self._starting
        _running.discard(self)
        if child is not None:
            child.stop()
        if starting is not None:
            starting.wait(1.0)  # that thread finds that its child is not wanted, and stops it

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()
        self._starting = None
        child, self._child = self._child, None
        if child is not None:
            child.drop()
            _fork.keep_for_ever(child)

    def _running_child(self, deadline: Deadline) -> _Child:
        """Return the child, started if it does not run. Only one thread starts it; the others wait."""
        while True:
            with self._lock:
                if self._closed:
                    raise TransportError("the connection to %s is closed" % self.where, may_have_run=False)
                child = self._child
                if child is not None and child.alive:
                    return child
                starting = self._starting
                if starting is None:
                    starting = self._starting = threading.Event()
                    break
            if not starting.wait(deadline.remaining()):
                raise deadline.error(may_have_run=False)
        new: Optional[_Child] = None
        try:
            if child is not None:
                self._last_ending = child.ended_error().message
                child.stop()  # what is left of it
            self._started += 1
            new = _Child(self._command, self._started, self._max_bytes, self._unclaimed)
            return new
        finally:
            with self._lock:
                self._child = None if self._closed else new
                self._starting = None
                unwanted = self._child is not new
            if unwanted and new is not None:
                new.stop()
            starting.set()

    def _lost(self) -> ChannelLost:
        return ChannelLost("%s was started anew, after this: %s" % (self.where, self._last_ending), may_have_run=False)

    def _unclaimed(self, message: Received) -> None:
        handler = self.on_unclaimed
        if handler is not None:
            handler(message)
        elif isinstance(message, Request):
            _log.warning("ignored a request of the server's (%s): this revision has none", beginning_of(message.method))

    def _cancel(self, child: _Child, request_id: Any) -> None:
        """Tell the server that nobody waits for an answer any more."""
        if not child.alive or self._closed:
            return
        notification = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
        try:
            child.write(encode(notification), Deadline(0.5))
        except TransportError:
            pass  # it will find out


_running: "weakref.WeakSet[Stdio]" = weakref.WeakSet()


def _stop_all() -> None:
    """At the end of the program: some servers do not end when their input does."""
    children: List[Stdio] = list(_running)
    for transport in children:
        transport.close()


atexit.register(_stop_all)
