"""Serving one process that a client has started: what comes on its standard input, and what goes to its output.

Pages: basic/transports/stdio; basic/transports of 2025-11-25, "stdio"; basic/lifecycle of 2025-11-25, "Shutdown".
"""

import collections
import threading
import time
from typing import Deque, List, NamedTuple, Optional, Sequence, Tuple, Union

from .answer import Answer
from .channel import Channel, ChannelExchange, said
from .exchange import Core
from .probe import Probe
from .protocol import RESOURCE_UPDATED, Item, encode, notification
from .relay import (
    END_OF_INPUT,
    ERROR_OUTPUT,
    EXIT,
    GO,
    HEAD,
    HELLO,
    IGNORE_SIGTERM,
    INPUT,
    KILL,
    OUTPUT,
    TERMINATE,
    frame,
)
from .request import line_request
from .streams import Stream
from .turns import Turn
from .waiting import Disconnected
from .wire import Wire

# How long the end of a process that was told to exit is waited for, in seconds.
_LINGER = 0.4


class Beginning(NamedTuple):
    """How a process begins its life.

    :param stdout: what it writes to standard output before anything else.
    :param stderr: what it writes to standard error.
    :param exit_code: the status with which it exits then; ``None`` goes on.
    :param ignore_end_of_input: whether it lives on when its input has ended.
    :param ignore_sigterm: whether it lives on when it is asked to terminate.
    """

    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: Optional[int] = None
    ignore_end_of_input: bool = False
    ignore_sigterm: bool = False


class Happenings:
    """What has happened to the processes of a server, in order.

    Threads: any thread may call any method.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        # Guarded by _changed:
        self._log: List[str] = []

    def note(self, what: str) -> None:
        """Something has happened."""
        with self._changed:
            self._log.append(what)
            self._changed.notify_all()

    def all(self) -> Tuple[str, ...]:
        """Everything, the oldest first."""
        with self._changed:
            return tuple(self._log)

    def wait(self, what: str, count: int, timeout: float) -> None:
        """Wait until something has happened that often.

        :raises TimeoutError: it has not.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._log.count(what) >= count, timeout):
                raise TimeoutError("{!r} has not happened {} times within {} s, but {}".format(
                    what, count, timeout, self._log[-20:]))


class _Opening(NamedTuple):
    items: Tuple[Item, ...]
    stream: Stream


class Process(Channel):
    """One process, from its start to its end.

    :param core: what all requests to the server share.
    :param probe: what is answered to a modern request where there is no modern era.
    :param wire: the connection to the process.
    :param pid: its number.
    :param beginning: how it begins.
    :param happenings: where its life is noted.

    Threads: one thread calls :meth:`serve`, once; any thread may call the rest.
    """

    def __init__(self, core: Core, probe: Probe, wire: Wire, pid: int, beginning: Beginning,
                 happenings: Happenings) -> None:
        super().__init__(core, probe, core.sessions.new(None), wire)
        self.pid = pid
        self._wire = wire  # as it is, with all that a connection has
        self._beginning = beginning
        self._happenings = happenings
        # For the thread that serves only:
        self._head: Optional[Tuple[bytes, int]] = None
        self._input = b""
        self._open: List[Stream] = [self.told]
        self._ending = False
        self._exited = False
        self._out_lock = threading.Lock()
        # Guarded by _out_lock:
        self._out: Deque[Union[bytes, _Opening]] = collections.deque()

    # -- for any thread ------------------------------------------------------------------------------------------

    def order(self, kind: bytes, payload: bytes = b"") -> None:
        """Let the process do something, after all that it was told before."""
        self._put(frame(kind, payload))

    def send(self, items: Sequence[Item]) -> None:
        """Let it write lines, or bytes as they are."""
        self.order(OUTPUT, _lines(items))

    def deliver(self, answer: Answer, exchange: ChannelExchange) -> None:
        """Let it write an answer, or begin one that lasts."""
        if answer.stream is not None:
            self._put(_Opening(answer.items, answer.stream))
            return
        data = (b"\xef\xbb\xbf" if answer.bom else b"") + _lines(said(answer), answer.line_end)
        cut = answer.cut_answer if answer.cut_body is None else answer.cut_body
        whole = cut is None or cut >= len(data)
        data = data[:cut]
        size = answer.piece or len(data) or 1
        for start in range(0, len(data), size):
            self.order(OUTPUT, data[start:start + size])
        if not whole and answer.after_cut == "silence":
            exchange.pause()
        elif not whole:
            self.exit(None if answer.after_cut == "reset" else 1)

    def dealt(self, turn: Turn) -> None:
        """A connection that is closed, or reset, by a fault is a process that exits, or is killed."""
        self.exit(None if turn.reset else 1)

    def exit(self, code: Optional[int]) -> None:
        """Let it exit with that status after all that it was told before; ``None`` kills it."""
        if code is None:
            self.order(KILL)
        else:
            self.order(EXIT, str(code).encode("ascii"))

    def _put(self, entry: Union[bytes, _Opening]) -> None:
        with self._out_lock:
            self._out.append(entry)
        self._wire.wake()

    # -- for the thread that serves ------------------------------------------------------------------------------

    def serve(self) -> None:
        """Serve the process until one side ends, and end the other."""
        try:
            self._happenings.note("started")
            self._begin()
            while not self._exited:
                moved = self._take_in()
                moved = self._give_out() or moved
                if not moved:
                    if self._ending or self._wire.closing:
                        self._wire.wait(0.0)  # which raises after a kill: that has no last words
                        self._say_farewell()
                    else:
                        self._wire.wait()
            self._linger()
        except Disconnected:
            pass
        finally:
            self.end()
            self._wire.close()
            self._happenings.note("ended")

    def _begin(self) -> None:
        beginning = self._beginning
        if beginning.ignore_sigterm:
            self.order(IGNORE_SIGTERM)
        self.order(ERROR_OUTPUT, beginning.stderr)
        self.order(OUTPUT, beginning.stdout)
        if beginning.exit_code is None:
            self.order(GO)
        else:
            self.exit(beginning.exit_code)

    def _take_in(self) -> bool:
        if self._head is None:
            head = self._wire.read_now(HEAD.size)
            if head is None:
                return False
            self._head = HEAD.unpack(head)
        kind, length = self._head
        payload = self._wire.read_now(length)
        if payload is None:
            return False
        self._head = None
        if kind == INPUT:
            lines = (self._input + payload).split(b"\n")
            self._input = lines.pop()
            for line in lines:
                if line.strip():
                    self.submit(line_request(line), Turn())
        elif kind == END_OF_INPUT:
            self._happenings.note("end of input")
            self._ending = not self._beginning.ignore_end_of_input
        elif kind == TERMINATE:
            self._happenings.note("SIGTERM")
        return True

    def _give_out(self) -> bool:
        with self._out_lock:
            entries = list(self._out)
            self._out.clear()
        for entry in entries:
            if isinstance(entry, bytes):
                self._wire.send(entry)
                self._exited = self._exited or entry[:1] in (EXIT, KILL)
            else:
                self._wire.send(frame(OUTPUT, _lines(entry.items)))
                self.core.streams.opened(entry.stream)
                self._open.append(entry.stream)
        moved = bool(entries)
        for stream in list(self._open):
            items, ending = stream.take()
            if items:
                self._wire.send(frame(OUTPUT, _lines(items)))
                moved = True
            elif ending is not None:
                self._end_stream(stream, ending)
                moved = True
        return moved

    def _end_stream(self, stream: Stream, ending: str) -> None:
        self._open.remove(stream)
        self.core.streams.leave(stream)
        # What ends a connection over HTTP ends the process here: there is nothing smaller that could end.
        data = _lines(stream.farewell(ending))
        if ending == "half_event":
            whole = encode(notification(RESOURCE_UPDATED, {"uri": "half://of/a/line"}))
            data = whole[:len(whole) // 2]
        self._wire.send(frame(OUTPUT, data))
        self.core.streams.discard(stream)
        if ending in ("eof", "half_event", "cut"):
            self._wire.send(frame(EXIT, b"0" if ending == "eof" else b"1"))
            self._exited = True

    def _say_farewell(self) -> None:
        self.finish()
        self._give_out()
        for stream in list(self._open):
            stream.end("result")
        while self._give_out():
            pass
        if not self._exited:
            self._wire.send(frame(EXIT, b"0"))
            self._exited = True

    def _linger(self) -> None:
        # Its own end comes first: were this connection closed while it still writes, it would take that for a crash.
        end = time.monotonic() + _LINGER
        while time.monotonic() < end:
            self._wire.wait(end - time.monotonic())


def _lines(items: Sequence[Item], line_end: str = "\n") -> bytes:
    end = b"\r\n" if line_end == "\r\n" else b"\n"
    return b"".join(item if isinstance(item, bytes) else encode(item) + end for item in items)


def read_hello(wire: Wire, token: str) -> Optional[int]:
    """The number of a process that has just connected.

    :returns: ``None`` if that is no process of this server's.
    :raises Disconnected: it is gone again.
    """
    kind, length = HEAD.unpack(wire.read(HEAD.size))
    if kind != HELLO or length > 1000:
        return None
    known, _, pid = wire.read(length).decode("ascii", "replace").partition(" ")
    return int(pid) if known == token and pid.isdigit() else None
