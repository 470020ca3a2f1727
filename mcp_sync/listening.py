"""The raw stream of notices, for programs that keep their own books."""

import logging
import threading
from typing import Any, Iterator, List, Optional

from ._deadline import Deadline
from .connection import Connection
from .eras.base import Ended
from .errors import NotSupported, ProtocolError, RequestTimeout, TransportError
from .jsonrpc import METHOD_NOT_FOUND
from .notices import Acknowledged, Notice, SubscriptionFilter

__all__ = ["Listening"]

_log = logging.getLogger("mcp_sync")


class Listening:
    """One ``subscriptions/listen``: a blocking iterator over what the server says changed. Made by
    :meth:`mcp_sync.Client.listen`, and a context manager.

    It ends when the server ends it gracefully, when ``timeout`` has passed, or when it is closed. It raises
    :class:`~mcp_sync.errors.TransportError` when the stream breaks. In each case changes go unnoticed from then on: whoever
    listens again must read again. Nothing is read, cached or opened again here; :meth:`mcp_sync.Client.watch` does all that.

    One thread iterates; any thread may :meth:`close`. See the specification, basic/patterns/subscriptions.

    :param acknowledged: the part of what was asked for that the server agreed to.
    :param ended_by: ``"result"``, ``"cancelled"``, ``"timeout"`` or ``"closed"`` once it has ended; None before.
    """

    def __init__(
        self, connection: Connection, wanted: SubscriptionFilter, ack_timeout: float, timeout: Optional[float]
    ) -> None:
        self.ended_by: Optional[str] = None
        self._closed = False
        self._iterating = threading.Lock()  # held by the thread that reads, who alone may close the exchange
        self._early: List[Notice] = []
        deadline = Deadline(ack_timeout, "the acknowledgement of subscriptions/listen")
        self._stream = connection.listen(wanted, deadline)
        self._is_acknowledged = False
        self._where = connection.transport.where
        try:
            self.acknowledged = self._wait_for_acknowledgement(deadline)
        except BaseException:
            self._stream.close()
            raise
        self._is_acknowledged = True
        self._stream.exchange.limit(Deadline(timeout))

    def __iter__(self) -> Iterator[Notice]:
        return self

    def __next__(self) -> Notice:
        """Return the next notice, waiting for it.

        :raises TransportError: if the stream broke.
        """
        with self._iterating:
            if self._early:
                return self._early.pop(0)
            while self.ended_by is None:
                if self._closed:
                    self._end("closed")
                    break
                said = self._next()
                if isinstance(said, Notice) and not isinstance(said, Acknowledged):
                    return said
            raise StopIteration

    def close(self) -> None:
        """End it. Any thread, any number of times."""
        self._closed = True
        self._stream.exchange.interrupt()
        # If another thread reads, it closes the exchange when it wakes up.
        if self._iterating.acquire(blocking=False):
            try:
                self._end("closed")
            finally:
                self._iterating.release()

    def __enter__(self) -> "Listening":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _end(self, how: str) -> None:
        if self.ended_by is None:
            self.ended_by = how
        self._stream.close()

    def _wait_for_acknowledgement(self, deadline: Deadline) -> SubscriptionFilter:
        self._stream.exchange.limit(deadline)
        while self.ended_by is None:
            said = self._next()
            if isinstance(said, Acknowledged):
                return said.granted
            if isinstance(said, Notice):
                self._early.append(said)
        raise NotSupported("%s ended the stream of notices before it acknowledged anything" % self._where)

    def _next(self) -> Any:
        """Return what the next message says, after noting it if that is an end."""
        try:
            said = self._stream.next()
        except StopIteration:
            self._end("result")
            return None
        except RequestTimeout:
            if not self._is_acknowledged:
                raise
            self._end("timeout")
            return None
        except TransportError:
            closed = self._closed
            self._end("closed" if closed else "broken")
            if closed:
                return None
            raise
        except ProtocolError:
            self._end("broken")
            raise
        if isinstance(said, ProtocolError):
            self._end("broken")
            raise said
        if isinstance(said, Ended):
            self._end(said.how)
            if said.error is not None and said.error.code == METHOD_NOT_FOUND:
                raise NotSupported("%s does not know subscriptions/listen: poll instead" % self._where) from said.error
            if said.error is not None:
                raise said.error
        return said
