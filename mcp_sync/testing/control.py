"""What a test uses to order things: gates that hold requests back, and faults that wait for a request."""

import threading
from typing import List, Optional, Set, Tuple

from .call import Fault
from .request import Request
from .waiting import Waiting

#: Where a gate holds a request.
PLACES = ("arrival", "answer")


class Gate:
    """Holds back the requests that match it, so that a test decides what happens first.

    As a context manager it opens for good at the end of the block; without one, it lasts until :meth:`release`. A held
    request whose client goes away is dropped.

    Threads: a test calls the public methods from any thread; they never wait without a limit.
    """

    def __init__(self, method: Optional[str], uri: Optional[str], at: str) -> None:
        if at not in PLACES:
            raise ValueError("at must be one of {}, not {!r}".format(", ".join(PLACES), at))
        self.method = method
        self.uri = uri
        self.at = at
        self._changed = threading.Condition(threading.Lock())
        # Guarded by _changed:
        self._reached = 0
        self._let = 0
        self._opened = False
        self._held: Set[Waiting] = set()

    @property
    def reached(self) -> int:
        """How many requests have come to this gate so far, those that it let through included."""
        with self._changed:
            return self._reached

    def wait_reached(self, n: int = 1, timeout: float = 5.0) -> None:
        """Wait until ``n`` requests, counted from the start, have come to this gate.

        :param timeout: seconds.
        :raises TimeoutError: they have not.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._reached >= n, timeout):
                raise TimeoutError("{} of {} requests reached the gate for {} within {} s".format(
                    self._reached, n, self.method or "any method", timeout))

    def release(self, n: Optional[int] = None) -> None:
        """Let ``n`` requests through, in the order in which they came; ``None`` opens the gate for good."""
        with self._changed:
            if n is None:
                self._opened = True
            else:
                self._let += n
            held = list(self._held)
        for wire in held:
            wire.wake()

    def hold(self, wire: Waiting) -> None:
        """Hold the calling thread, which serves that wire.

        :raises Disconnected: the client is gone.
        """
        with self._changed:
            turn = self._reached
            self._reached += 1
            self._held.add(wire)
            self._changed.notify_all()
        try:
            wire.wait_until(lambda: self._passes(turn))
        finally:
            with self._changed:
                self._held.discard(wire)

    def _passes(self, turn: int) -> bool:
        with self._changed:
            return self._opened or turn < self._let

    @property
    def opened(self) -> bool:
        """Whether it holds nothing any more."""
        with self._changed:
            return self._opened

    def __enter__(self) -> "Gate":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()


class Injection:
    """Faults that wait for the requests they are meant for.

    Threads: any thread may call any method.
    """

    def __init__(self, faults: Tuple[Fault, ...], method: Optional[str], uri: Optional[str],
                 times: Optional[int]) -> None:
        self.faults = faults
        self.method = method
        self.uri = uri
        self._changed = threading.Condition(threading.Lock())
        # Guarded by _changed:
        self._left = times
        self._used = 0

    @property
    def used(self) -> int:
        """How many requests have met these faults so far."""
        with self._changed:
            return self._used

    def wait_used(self, n: int = 1, timeout: float = 5.0) -> None:
        """Wait until ``n`` requests, counted from the start, have met these faults.

        :param timeout: seconds.
        :raises TimeoutError: they have not.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._used >= n, timeout):
                raise TimeoutError("{} of {} requests met {} within {} s".format(self._used, n, self.faults, timeout))

    def cancel(self) -> None:
        """Use it no more."""
        with self._changed:
            self._left = 0

    def take(self) -> bool:
        """Use it for one request, if it is not used up."""
        with self._changed:
            if self._left == 0:
                return False
            if self._left is not None:
                self._left -= 1
            self._used += 1
            self._changed.notify_all()
            return True


class Control:
    """All gates and faults of one server.

    Threads: any thread may call any method.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._gates: List[Gate] = []
        self._injections: List[Injection] = []
        self._paused: Set[Waiting] = set()
        self._epoch = 0

    def add_gate(self, gate: Gate) -> None:
        """Hold what matches that gate from now on."""
        with self._lock:
            self._gates = [old for old in self._gates if not old.opened] + [gate]

    def hold(self, request: Request, at: str, wire: Waiting) -> None:
        """Stand at every closed gate at this place that the request matches.

        :raises Disconnected: the client went away meanwhile.
        """
        with self._lock:
            gates = [gate for gate in self._gates if gate.at == at and request.concerns(gate.method, gate.uri)]
        for gate in gates:
            if not gate.opened:
                gate.hold(wire)

    def inject(self, injection: Injection) -> None:
        """Keep faults for the requests that match."""
        with self._lock:
            self._injections.append(injection)

    def faults(self, request: Request) -> Tuple[Tuple[Fault, ...], int]:
        """The faults for this request, from the oldest matching injection that has some left, and their epoch.

        The epoch tells :meth:`pause` which :meth:`clear_faults` ends it. Were it asked for only when the pause begins,
        a test that clears the faults just before would leave that pause without an end.
        """
        with self._lock:
            epoch, injections = self._epoch, list(self._injections)
        for injection in injections:
            if request.concerns(injection.method, injection.uri) and injection.take():
                return injection.faults, epoch
        return (), epoch

    def clear_faults(self) -> None:
        """Forget all faults and end every pause."""
        with self._lock:
            self._injections = []
            self._epoch += 1
            paused = list(self._paused)
        for wire in paused:
            wire.wake()

    def pause(self, wire: Waiting, epoch: int) -> None:
        """Hold the calling thread, which serves that wire, until the faults of that epoch are cleared.

        :raises Disconnected: the client is gone.
        """
        with self._lock:
            self._paused.add(wire)
        try:
            wire.wait_until(lambda: self._current_epoch() != epoch)
        finally:
            with self._lock:
                self._paused.discard(wire)

    def _current_epoch(self) -> int:
        with self._lock:
            return self._epoch
