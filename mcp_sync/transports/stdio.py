"""stdio: the server is a child process, and every message is a line.

See the specification, basic/transports/stdio (2026-07-28) and basic/transports (earlier revisions). One channel carries
everything: one thread reads the child's output and sorts it, one drains its errors into the log.
"""

import atexit
import collections
import logging
import os
import select
import signal
import subprocess
import threading
import weakref
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional, Sequence, Union

from .. import _fork
from .._deadline import Deadline
from .._pending import Pending, Share
from .._worker import Worker
from ..errors import MessageTooLarge, ProtocolError, TransportError, beginning_of
from ..jsonrpc import decode, encode
from .base import ChannelLost, Outgoing, Received, Transport

__all__ = ["Command", "Stdio"]

_log = logging.getLogger("mcp_sync")

#: How long each step of stopping a child may take, in seconds: after the end of its input, after SIGTERM, after SIGKILL.
_LADDER = (0.5, 0.3, 0.5)
#: How much of what a child said last on stderr is kept for error messages, in lines.
_LAST_WORDS = 20


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
        self.cwd = None if cwd is None else os.fspath(cwd)

    def environment(self) -> Dict[str, str]:
        """Return the whole environment of the child."""
        merged: Dict[str, Optional[str]] = dict(os.environ)
        merged.update(self.env)
        return {name: value for name, value in merged.items() if value is not None}

    def __repr__(self) -> str:
        return "Command(%r)" % (list(self.argv),)


class _Child:
    """One running process. The lock is the transport's, but for writing."""

    def __init__(self, command: Command, number: int, max_bytes: int, unclaimed: Callable[[Received], None]) -> None:
        self.number = number
        self.name = os.path.basename(command.argv[0])
        self._where = " ".join(command.argv)
        self._max_bytes = max_bytes
        # Held while a line is written, so that lines do not mix: the one lock that is held during I/O. The I/O does not block
        # for longer than the deadline of the message, and nothing else is ever waited for under it.
        self._writing = threading.Lock()
        self._last_words: Deque[str] = collections.deque(maxlen=_LAST_WORDS)
        self._stopping = False
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
                start_new_session=os.name == "posix",
            )
        except (OSError, ValueError) as error:
            raise TransportError("%s cannot be started: %s" % (self._where, error), may_have_run=False) from error
        assert self.process.stdin is not None and self.process.stdout is not None and self.process.stderr is not None
        self._stdin, self._stdout, self._stderr = self.process.stdin, self.process.stdout, self.process.stderr
        if os.name == "posix":
            os.set_blocking(self._stdin.fileno(), False)
        self.pending = Pending(self._where, unclaimed)
        self.reader = Worker("mcp_sync-stdio-%s" % self.name, self._read)
        self._drainer = Worker("mcp_sync-stderr-%s" % self.name, self._drain)
        self._drainer.start()
        self.reader.start()

    # -- writing ---------------------------------------------------------------------------------------------------------

    def write(self, message: bytes, deadline: Deadline) -> None:
        """Write one line.

        :raises TransportError: if the child does not take it in time, or at all.
        """
        line = memoryview(message + b"\n")
        left = deadline.remaining()
        if not self._writing.acquire(timeout=-1 if left is None else left):
            raise deadline.error(may_have_run=False)
        try:
            begun = False
            while line:
                if os.name == "posix":
                    try:
                        _, ready, _ = select.select([], [self._stdin], [], deadline.remaining())
                    except ValueError as error:  # closed meanwhile
                        raise TransportError("%s was stopped" % self._where, may_have_run=begun) from error
                    if not ready:
                        if begun:
                            # Half a line is out: no other line can follow it.
                            self.pending.fail(TransportError("%s stopped reading its input" % self._where))
                            self._stdin.close()
                        raise deadline.error(may_have_run=begun)
                try:
                    written = self._stdin.write(line)
                except BlockingIOError:
                    continue
                except (OSError, ValueError) as error:
                    raise TransportError(
                        "%s does not read its input: %s%s" % (self._where, error, self._said()), may_have_run=begun
                    ) from error
                if written:
                    begun = True
                    line = line[written:]
        finally:
            self._writing.release()

    # -- the threads -----------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        buffer = bytearray()
        try:
            while True:
                chunk = self._stdout.read(65536)
                if not chunk:
                    break
                searched = len(buffer)
                buffer += chunk
                begin = 0
                while True:
                    end = buffer.find(b"\n", max(begin, searched))
                    if end < 0:
                        break
                    line = bytes(buffer[begin:end]).strip()
                    begin = searched = end + 1
                    if line:
                        self._deliver(line)
                del buffer[:begin]
                if len(buffer) > self._max_bytes:
                    raise MessageTooLarge(
                        "%s sent a line of more than %d bytes (max_message_bytes)" % (self._where, self._max_bytes)
                    )
        except MessageTooLarge as error:
            self.pending.fail(TransportError(str(error)), "reset")
            self.signal(signal.SIGTERM)
            return
        except (OSError, ValueError):
            pass  # closed under our feet: the same as its end
        self.pending.fail(self._ended_error())

    def _deliver(self, line: bytes) -> None:
        try:
            message: Received = decode(line)
        except ProtocolError as error:
            # Banners and the like: servers must not, and do.
            _log.warning("%s printed something that is no message: %s", self._where, beginning_of(line))
            message = error
        self.pending.deliver(message)

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
            pass  # closed
        if rest:
            self._last_words.append(beginning_of(rest, 500))

    def _ended_error(self) -> TransportError:
        self._drainer.join(0.5)
        try:
            code: Optional[int] = self.process.wait(0.5)
        except subprocess.TimeoutExpired:
            code = None
        how = "closed its output" if code is None else "ended with exit code %d" % code
        return TransportError("%s %s%s" % (self._where, how, self._said()))

    def _said(self) -> str:
        return "; its last words: %s" % " / ".join(list(self._last_words)[-5:]) if self._last_words else ""

    # -- stopping --------------------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        return self.reader.alive and self.process.poll() is None

    def signal(self, number: int) -> None:
        """Send a signal to the child and to whatever it started."""
        try:
            if os.name == "posix":
                os.killpg(self.process.pid, number)
            else:
                self.process.terminate()
        except OSError:
            pass  # gone already

    def stop(self) -> None:
        """End it: close its input, wait, SIGTERM, wait, SIGKILL."""
        self.pending.interrupt()
        try:
            self._stdin.close()
        except OSError:
            pass
        for patience, number in zip(_LADDER, (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM), None)):
            try:
                self.process.wait(patience)
                break
            except subprocess.TimeoutExpired:
                if number is not None:
                    self.signal(number)
        # Its own children may have outlived it.
        self.signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        self.reader.join(0.5)
        self._drainer.join(0.5)
        for stream in (self._stdout, self._stderr):
            try:
                stream.close()
            except OSError:
                pass

    def drop(self) -> None:
        """In a forked child of ours: close the inherited ends without a word, and never wait for what is not our child."""
        for stream in (self._stdin, self._stdout, self._stderr):
            try:
                stream.close()
            except OSError:
                pass
        self.process.returncode = 0  # or its finaliser would ask after a process that is the parent's


class Stdio(Transport):
    """A server that this client starts, and starts again if it ends. Any thread.

    :param command: how to start it.
    :param max_message_bytes: the longest line that is held in memory.
    """

    def __init__(self, command: Command, max_message_bytes: int = 64 * 1024 * 1024) -> None:
        self.where = " ".join(command.argv)
        self.shared_channel = True
        self._command = command
        self._max_bytes = max_message_bytes
        self._lock = threading.Lock()  # guards the four below
        self._child: Optional[_Child] = None
        self._started = 0
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
            raise ChannelLost("%s was started anew" % self.where, may_have_run=False)
        request_id = outgoing.message["id"]

        def closed(share: Share, answered: bool) -> None:
            if not answered:
                self._cancel(child, request_id)

        share = child.pending.open(request_id, str(outgoing.message.get("method")), deadline, closed)
        try:
            child.write(message, deadline)
        except BaseException:
            share.close()
            raise
        return share

    def unsolicited(
        self, headers: Mapping[str, str], deadline: Deadline, channel: Optional[int] = None, after: Optional[str] = None
    ) -> Share:
        child = self._running_child(deadline)
        if channel is not None and channel != child.number:
            raise ChannelLost("%s was started anew" % self.where, may_have_run=False)
        return child.pending.open_rest(deadline)

    def send(self, outgoing: Outgoing, deadline: Deadline) -> None:
        child = self._running_child(deadline)
        if outgoing.channel is not None and outgoing.channel != child.number:
            raise ChannelLost("%s was started anew" % self.where, may_have_run=False)
        child.write(encode(outgoing.message), deadline)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            child, self._child = self._child, None
        _running.discard(self)
        if child is not None:
            child.stop()

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
                child.stop()  # what is left of it
            self._started += 1
            new = _Child(self._command, self._started, self._max_bytes, self._unclaimed)
            return new
        finally:
            with self._lock:
                self._child = None if self._closed else new
                self._starting = None
                unwanted = self._child is not new
            starting.set()
            if unwanted and new is not None:
                new.stop()

    def _unclaimed(self, message: Received) -> None:
        handler = self.on_unclaimed
        if handler is not None:
            handler(message)

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
