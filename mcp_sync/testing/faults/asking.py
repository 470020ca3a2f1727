"""Requests that the server sends ahead of an answer, in the legacy era (basic/transports of 2025-11-25)."""

import threading
from typing import Optional

from ..answer import Answer
from ..call import Call
from ..protocol import Message


class Ask:
    """The right answer, as an event stream, after a request to the client that the client has to answer first.

    In the modern era it changes nothing: a server does not ask there.

    :param method: the method of the request.
    :param params: its params.
    :param timeout: seconds to wait for the client's response; without one, the answer goes out all the same.

    Threads: any thread may call any method. One such object is for one request.
    """

    def __init__(self, method: str, params: Optional[Message] = None, timeout: float = 5.0) -> None:
        self.method = method
        self.params = params
        self.timeout = timeout
        self._changed = threading.Condition(threading.Lock())
        # Guarded by _changed:
        self._response: Optional[Message] = None

    def __call__(self, call: Call) -> Answer:
        try:
            response = call.ask(self.method, self.params, self.timeout)
        except (TimeoutError, ValueError):
            return call.proceed()
        with self._changed:
            self._response = response
            self._changed.notify_all()
        return call.proceed()

    def wait(self, timeout: float = 5.0) -> Message:
        """Wait for the client's response.

        :param timeout: seconds.
        :raises TimeoutError: there was none.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._response is not None, timeout)
            if self._response is None:
                raise TimeoutError("the client has not answered {} within {} s".format(self.method, timeout))
            return self._response
