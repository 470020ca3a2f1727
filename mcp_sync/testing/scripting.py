"""What a test demands of a server: to wait, to go wrong, and to tell what it was asked."""

from typing import Optional, Tuple

from .call import Fault
from .control import Control, Gate, Injection
from .recorder import Recorder
from .request import Request


class Scripting:
    """The part of a server that is held back, goes wrong, and remembers.

    :param control: its gates and faults.
    :param recorder: what it was asked.

    Threads: any thread may call any method.
    """

    def __init__(self, control: Control, recorder: Recorder) -> None:
        self._control = control
        self._recorder = recorder

    # -- what goes wrong, and when -------------------------------------------------------------------------------

    def hold(self, method: Optional[str] = None, uri: Optional[str] = None, at: str = "arrival") -> Gate:
        """Hold back the requests that match, from now on until the gate opens.

        ::

            with server.hold("resources/read", at="answer") as gate:
                ...                                # start a read in another thread
                gate.wait_reached()
                server.update(uri, "newer")        # the read that is held will answer what was before

        :param method: JSON-RPC method; ``None`` for any.
        :param uri: URI of a read, name of a tool or a prompt, id of a task, or one of the URIs of a listen; ``None`` for
            any.
        :param at: ``"arrival"``, before anything is looked up, or ``"answer"``, afterwards and before a byte is sent.
        """
        gate = Gate(method, uri, at)
        self._control.add_gate(gate)
        return gate

    def inject(self, *faults: Fault, method: Optional[str] = None, uri: Optional[str] = None,
               times: Optional[int] = 1) -> Injection:
        """Let the next requests that match go wrong.

        Of several injections that match a request, the oldest that has some left applies.

        :param faults: from :mod:`mcp_sync.testing.faults`, or callables of your own (see :mod:`mcp_sync.testing.call`).
            Several apply together, the first around the second and so on.
        :param method: JSON-RPC method; ``None`` for any HTTP request.
        :param uri: URI of a read, name of a tool or a prompt, id of a task, or one of the URIs of a listen; ``None`` for
            any.
        :param times: how many requests; ``None`` for all until :meth:`clear_faults`.
        :returns: a handle that counts the requests that met these faults, and waits for them.
        """
        injection = Injection(faults, method, uri, times)
        self._control.inject(injection)
        return injection

    def clear_faults(self) -> None:
        """Forget all faults; answers that one of them kept silent go out now."""
        self._control.clear_faults()

    # -- what happened -------------------------------------------------------------------------------------------

    @property
    def requests(self) -> Tuple[Request, ...]:
        """Every request that has arrived, in order."""
        return self._recorder.all()

    def forget_requests(self) -> None:
        """Start :attr:`requests` again from nothing."""
        self._recorder.forget()

    def count(self, method: Optional[str] = None, uri: Optional[str] = None) -> int:
        """How many requests with that method about that URI have arrived; ``None`` for any."""
        return self._recorder.count(method, uri)

    def wait_for_requests(self, method: Optional[str] = None, n: int = 1, timeout: float = 5.0, *,
                          uri: Optional[str] = None) -> None:
        """Wait until ``n`` requests with that method, counted from the start, have arrived.

        :param timeout: seconds.
        :raises TimeoutError: they have not.
        """
        self._recorder.wait(method, n, uri, timeout)
