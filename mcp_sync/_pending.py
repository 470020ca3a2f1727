"""Request ids to waiting callers: how the exchanges of one shared channel each get their own messages.

Over stdio, and over the two addresses of the 2024 HTTP transport, all messages arrive on one channel that one thread reads. It
sorts them into *shares*: one for each request in progress, and one for what belongs to no request.
"""

import collections
import threading
import time
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from ._deadline import Deadline
from .errors import MCPSyncError, ProtocolError, RequestTimeout, TransportError
from .jsonrpc import Notification, Request, Response
from .transports.base import Exchange, Received

__all__ = ["Pending", "Share"]

#: A share whose owner does not fetch its messages holds so many, and then fails: memory is bounded.
_MAX_WAITING = 100000

_SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"


class Share(Exchange):
    """One request's part of a channel, or the part that belongs to none.

    :param where: the server, for error messages.
    :param what: the request, for error messages.
    :param deadline: for all of it.
    :param closed: called once, without a lock, when the owner closes it; told whether the response had come.
    """

    def __init__(self, where: str, what: str, deadline: Deadline, closed: Callable[["Share", bool], None]) -> None:
        self._where = where
        self._what = what
        self._deadline = deadline
        self._silence: Optional[float] = None
        self._on_closed = closed
        # One lock, with a condition on it; it guards everything below and the two limits above.
        self._changed = threading.Condition(threading.Lock())
        self._messages: Deque[Received] = collections.deque()
        self._error: Optional[MCPSyncError] = None
        self._answered = False
        self._closed = False
        self.interrupted = False

    def __next__(self) -> Received:
        with self._changed:
            while True:
                if self.interrupted:
                    self.ending = "reset"
                    raise TransportError("the exchange with %s (%s) was interrupted" % (self._where, self._what))
                if self._messages:
                    return self._messages.popleft()
                if self._answered:
                    raise StopIteration
                if self._error is not None:
                    raise self._error
                limit = self._deadline.shorter(self._silence)
                if not self._changed.wait(limit) and not self._messages and self._error is None:
                    if self._deadline.expired:
                        raise self._deadline.error()
                    if self._silence is not None and limit is not None and limit >= self._silence:
                        self.ending = "silence"
                        raise RequestTimeout("%s sent nothing for %g s" % (self._where, self._silence))

    def interrupt(self) -> None:
        with self._changed:
            self.interrupted = True
            self._changed.notify_all()

    def limit(self, deadline: Deadline, silence: Optional[float] = None, lively: Optional[float] = None) -> None:
        with self._changed:
            self._deadline = deadline
            # A pipe does not go silent without closing, and has no comments to show that it lives.
            self._silence = None
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            if self._closed:
                return
            self._closed = True
            answered = self._answered
        self._on_closed(self, answered)

    # -- for the channel -------------------------------------------------------------------------------------------------

    def put(self, message: Received) -> None:
        """Hand over a message."""
        with self._changed:
            self.heard_at = time.time()
            if len(self._messages) >= _MAX_WAITING:
                self._messages.clear()
                self._error = TransportError("more than %d messages of %s waited to be fetched" % (_MAX_WAITING, self._where))
            else:
                self._messages.append(message)
                self._answered = self._answered or isinstance(message, Response)
            self._changed.notify_all()

    def fail(self, error: MCPSyncError, ending: str) -> None:
        """Hand over the end of the channel."""
        with self._changed:
            if self._error is None and not self._answered:
                self._error = error
                self.ending = ending
            self._changed.notify_all()


def _key(request_id: Any) -> Tuple[str, Any]:
    """Return what tells ids apart: ``1`` and ``"1"`` are two, ``1`` and ``1.0`` are one, ``True`` is none of them."""
    if isinstance(request_id, bool) or request_id is None:
        return ("other", repr(request_id))
    if isinstance(request_id, (int, float)):
        return ("number", request_id)
    return ("text", request_id) if isinstance(request_id, str) else ("other", repr(request_id))


class Pending:
    """The shares of one channel. Any thread.

    :param where: the server, for error messages.
    :param unclaimed: called, without a lock, by the thread that reads the channel, with what belongs to no share.
    """

    def __init__(self, where: str, unclaimed: Callable[[Received], None]) -> None:
        self._where = where
        self._unclaimed = unclaimed
        self._lock = threading.Lock()  # guards the four below
        self._shares: Dict[Tuple[str, Any], Share] = {}
        self._rest: Optional[Share] = None
        self._error: Optional[MCPSyncError] = None
        self._ending = ""

    def open(self, request_id: Any, what: str, deadline: Deadline, closed: Callable[[Share, bool], None]) -> Share:
        """Return the share of a request that is about to be sent."""
        key = _key(request_id)

        def on_closed(share: Share, answered: bool) -> None:
            with self._lock:
                self._shares.pop(key, None)
            closed(share, answered)

        share = Share(self._where, what, deadline, on_closed)
        with self._lock:
            error, ending = self._error, self._ending
            if error is None:
                self._shares[key] = share
        if error is not None:
            share.fail(error, ending)
        return share

    def open_rest(self, deadline: Deadline) -> Share:
        """Return the share of all that belongs to no request; the newest such share gets it."""

        def on_closed(share: Share, answered: bool) -> None:
            with self._lock:
                if self._rest is share:
                    self._rest = None

        share = Share(self._where, "the rest of its messages", deadline, on_closed)
        with self._lock:
            self._rest = share
            error, ending = self._error, self._ending
        if error is not None:
            share.fail(error, ending)
        return share

    def deliver(self, message: Received) -> None:
        """Sort one message. Only the thread that reads the channel."""
        with self._lock:
            share = self._share_locked(message)
        if share is None:
            self._unclaimed(message)
        else:
            share.put(message)

    def fail(self, error: MCPSyncError, ending: str = "end of stream") -> None:
        """The channel is over: everybody who waits is told, and everybody who comes later."""
        with self._lock:
            if self._error is None:
                self._error, self._ending = error, ending
            shares: List[Share] = list(self._shares.values())
            if self._rest is not None:
                shares.append(self._rest)
        for share in shares:
            share.fail(error, ending)

    def interrupt(self) -> None:
        """Wake everybody who waits."""
        with self._lock:
            shares = list(self._shares.values()) + ([self._rest] if self._rest is not None else [])
        for share in shares:
            share.interrupt()

    def _share_locked(self, message: Received) -> Optional[Share]:
        if isinstance(message, Response):
            return self._shares.get(_key(message.id))
        if isinstance(message, Notification):
            share = self._named_locked(message)
            return share if share is not None else self._rest
        if isinstance(message, Request):
            return None  # answered by whoever looks after the session
        return self._rest if isinstance(message, ProtocolError) else None

    def _named_locked(self, message: Notification) -> Optional[Share]:
        params = message.params
        meta = params.get("_meta")
        names: List[Any] = []
        if isinstance(meta, dict) and _SUBSCRIPTION_ID in meta:
            names.append(meta[_SUBSCRIPTION_ID])
        if message.method == "notifications/cancelled":
            names.append(params.get("requestId"))
        elif message.method == "notifications/progress":
            names.append(params.get("progressToken"))
        for name in names:
            share = self._shares.get(_key(name))
            if share is not None:
                return share
        return None
