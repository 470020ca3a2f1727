"""What the server asks a client in the legacy era (client/roots, client/sampling, client/elicitation of 2025-11-25)."""

import threading
from typing import Optional

from .protocol import Message
from .waiting import Waiting


class Question:
    """A request that the server has sent, and the answer that it waits for.

    :param message: the request.

    Threads: any thread may call any method.
    """

    def __init__(self, message: Message) -> None:
        self.message = message
        self._changed = threading.Condition(threading.Lock())
        # Guarded by _changed:
        self._answer: Optional[Message] = None
        self._waiting: Optional[Waiting] = None

    @property
    def answer(self) -> Optional[Message]:
        """The client's response, once there is one."""
        with self._changed:
            return self._answer

    def resolve(self, answer: Message) -> None:
        """The client has answered."""
        with self._changed:
            self._answer = answer
            waiting = self._waiting
            self._changed.notify_all()
        if waiting is not None:
            waiting.wake()

    def wait(self, timeout: float) -> Message:
        """Wait for the answer.

        :param timeout: seconds.
        :raises TimeoutError: there was none.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._answer is not None, timeout)
            if self._answer is None:
                raise TimeoutError("the client has not answered {} within {} s".format(self.message, timeout))
            return self._answer

    def wait_at(self, waiting: Waiting, timeout: float) -> Message:
        """Wait for the answer in a thread that serves a request.

        :param waiting: where that thread waits.
        :param timeout: seconds.
        :raises TimeoutError: there was none.
        :raises Disconnected: the client is gone.
        """
        with self._changed:
            self._waiting = waiting
        waiting.wait_until(lambda: self.answer is not None, timeout)
        return self.wait(0.0)
