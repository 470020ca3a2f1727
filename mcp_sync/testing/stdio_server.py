"""The twin of :class:`~mcp_sync.testing.Server` for clients that start their server as a process."""

import sys
import threading
import uuid
from typing import Any, List, Optional, Set, Tuple, Union

from . import relay
from .call import Fault
from .process import Beginning, Happenings, Process, read_hello
from .server import Server
from .waiting import Disconnected
from .wire import Wire

_WORDS = ("started", "end of input", "SIGTERM", "ended")


class StdioServer(Server):
    """A server on standard input and output, in the hands of the test.

    ::

        with StdioServer(eras=["legacy"]) as server:
            server.add("docs://config", "colour = blue")
            ...                                         # point the client at server.command and let it watch
            server.update("docs://config", "colour = red")
            server.die()                                # and see whether the client starts it again
            server.at_start(stderr=b"no licence\\n", exit_code=3)

    The client starts :attr:`command`, as often as it likes. That process only carries bytes to and from this object,
    over a connection on the loopback interface; so everything that :class:`~mcp_sync.testing.Server` can do is here as
    well: hold, inject, update, ask, and so on, for processes of before and after. What belongs to HTTP means this here:

    * a connection is a process: the faults ``Close`` and ``CutAt`` make it exit with status 1, ``Reset`` kills it;
      :meth:`kill` kills every process, and one that is started while the server is down says so on standard error and
      exits with status 1;
    * :meth:`end_streams`: ``"result"``, ``"error"`` and ``"cancelled"`` end every listen; ``"eof"`` (status 0),
      ``"half_event"`` (half a line), ``"cut"`` and ``"reset"`` end the process;
    * an answer that is a mere status (``Status``, ``Unauthorized``, ``Accepted202``) is no answer: nothing is written.

    :param eras: as for ``Server``.
    :param modern_probe: what a server of the legacy era alone answers to a modern request; as for ``Server``, but
        ``"-32601"`` if nothing else is asked for.
    :param ignore_end_of_input: whether a process lives on when its input has ended.
    :param ignore_sigterm: whether a process lives on when it is asked to terminate.
    :param python: what starts the process.
    :param options: as for ``Server``, as far as they do not concern HTTP.

    Threads: any thread may call any method. The server's own threads are daemons.
    """

    def __init__(self, *, modern_probe: Union[str, Fault] = "-32601", ignore_end_of_input: bool = False,
                 ignore_sigterm: bool = False, python: str = sys.executable, **options: Any) -> None:
        super().__init__(modern_probe=modern_probe, **options)
        self._python = python
        self._token = uuid.uuid4().hex
        self._happenings = Happenings()
        self._always = Beginning(ignore_end_of_input=ignore_end_of_input, ignore_sigterm=ignore_sigterm)
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._beginnings: List[Tuple[Beginning, Optional[int]]] = []
        self._processes: Set[Process] = set()

    @property
    def command(self) -> List[str]:
        """What the client starts: a program and its arguments."""
        # Without the user's environment and without site-packages it starts in a few milliseconds, and everywhere.
        return [self._python, "-I", "-S", relay.__file__, "--control", str(self.port), "--token", self._token]

    @property
    def url(self) -> str:
        """There is none.

        :raises AttributeError: always.
        """
        raise AttributeError("a server on standard input and output has no address: the client starts its command")

    def _serve(self, wire: Wire) -> None:
        pid = None
        try:
            pid = read_hello(wire, self._token)
        except Disconnected:
            pass
        if pid is None:
            wire.close()
            return
        process = Process(self._core, self._probe, wire, pid, self._next_beginning(), self._happenings)
        with self._lock:
            self._processes.add(process)
        try:
            process.serve()
        finally:
            with self._lock:
                self._processes.discard(process)

    def _next_beginning(self) -> Beginning:
        with self._lock:
            for number, (beginning, left) in enumerate(self._beginnings):
                if left != 0:
                    self._beginnings[number] = (beginning, None if left is None else left - 1)
                    return beginning
            return self._always

    # -- what processes do besides answering ---------------------------------------------------------------------

    def at_start(self, *, stdout: bytes = b"", stderr: bytes = b"", exit_code: Optional[int] = None,
                 times: Optional[int] = None) -> None:
        """Let processes begin in another way, from the next start on.

        :param stdout: what they write to standard output before anything else: a banner, or half a line.
        :param stderr: what they write to standard error.
        :param exit_code: the status with which they exit then, without having read anything; ``None`` goes on.
        :param times: how many processes; ``None`` for all.
        """
        beginning = self._always._replace(stdout=stdout, stderr=stderr, exit_code=exit_code)
        with self._lock:
            self._beginnings = [(beginning, times)]

    def write(self, data: bytes) -> None:
        """Let every process write these bytes to standard output, between two lines or not."""
        for process in self._all():
            process.order(relay.OUTPUT, data)

    def write_error(self, data: bytes, times: int = 1) -> None:
        """Let every process write these bytes to standard error.

        :param times: how often.
        """
        for process in self._all():
            for _ in range(times):
                process.order(relay.ERROR_OUTPUT, data)

    def die(self, code: Optional[int] = None, *, after: bytes = b"") -> None:
        """End every process, after all that it was told before; the client may start another at once.

        :param code: the status with which it exits; ``None`` kills it.
        :param after: what it still writes to standard output, such as half a line.
        """
        for process in self._all():
            process.order(relay.OUTPUT, after)
            process.exit(code)

    def _all(self) -> List[Process]:
        with self._lock:
            return list(self._processes)

    @property
    def pids(self) -> Tuple[int, ...]:
        """The numbers of the processes that live."""
        return tuple(process.pid for process in self._all())

    @property
    def happened(self) -> Tuple[str, ...]:
        """What has happened to processes, in order: ``"started"``, ``"end of input"``, ``"SIGTERM"`` (only where it is
        ignored), ``"ended"``."""
        return self._happenings.all()

    def wait_for_happening(self, what: str, n: int = 1, timeout: float = 5.0) -> None:
        """Wait until something has happened ``n`` times, counted from the start.

        :param what: one of the words of :attr:`happened`.
        :param timeout: seconds.
        :raises TimeoutError: it has not.
        """
        if what not in _WORDS:
            raise ValueError("what must be one of {}, not {!r}".format(", ".join(_WORDS), what))
        self._happenings.wait(what, n, timeout)

    def __repr__(self) -> str:
        return "<mcp_sync.testing.StdioServer {}>".format(self.port)
