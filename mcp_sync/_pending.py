"""Request ids to waiting callers: how the exchanges of one shared channel each get their own messages.

Over stdio, and over the two addresses of the 2024 HTTP transport, all messages arrive on one channel that one thread reads. It
sorts them into *shares*: one for each request in progress, and one for what belongs to no request.
"""

import collections
import copy
import logging
import re
import threading
import time
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from . import _fork
from ._deadline import Deadline
from .errors import MCPSyncError, ProtocolError, TransportError, beginning_of
from .jsonrpc import Notification, Request, Response
from .transports.base import Exchange, Interrupted, Received

__all__ = ["Pending", "Share"]

_log = logging.getLogger("mcp_sync")

#: A share whose owner does not fetch its messages holds so many, and then fails: memory is bounded.
_MAX_WAITING = 100000

#: Progress and log messages are no answer to anything: of those that are not fetched, so many are kept.
_MAX_CHATTER = 1000
_CHATTER = frozenset(["notifications/progress", "notifications/message"])

_SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"

#: Told by a stream of notices: what says so without naming the stream may have been meant for any of them.
_NOTICES = frozenset(
    [
        "notifications/resources/updated",
        "notifications/resources/list_changed",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
    ]
)

_DECIMAL = re.compile("[0-9]{1,18}")

Limited = Callable[[Optional[float], Optional[float]], None]


class Share(Exchange):
    """One request's part of a channel, or the part that belongs to none.

    :param where: the server, for error messages.
    :param what: the request, for error messages.
    :param deadline: for all of it.
    :param closed: called once, without a lock, when the owner closes it; told whether the response had come.
    :param streaming: whether it is one that lasts, for notices.
    :param limited: called with the limits for silence, where the channel can keep to them.
    """

    def __init__(
        self,
        where: str,
        what: str,
        deadline: Deadline,
        closed: Callable[["Share", bool], None],
        streaming: bool = False,
        limited: Optional[Limited] = None,
    ) -> None:
        self._where = where
        self._what = what
        self._deadline = deadline
        self._on_closed = closed
        self._on_limited = limited
        self.streaming = streaming
        # One lock, with a condition on it; it guards everything below and the deadline above. A thread may take it twice: a
        # handler of a signal may interrupt.
        self._changed = threading.Condition(threading.RLock())
        self._messages: Deque[Received] = collections.deque()
        self._error: Optional[MCPSyncError] = None
        self._answered = False
        self._closed = False
        self.interrupted = False
        #: What interrupts the sending of the message, while that lasts; and what puts off its end.
        self.sending: Optional[Callable[[], None]] = None
        self.sending_until: Optional[Callable[[Deadline], None]] = None

    def __next__(self) -> Received:
        with self._changed:
            while True:
                if self.interrupted:
                    self.ending = "reset"
                    raise Interrupted("the exchange with %s (%s) was interrupted" % (self._where, self._what))
                if self._messages:
                    return self._messages.popleft()
                if self._error is not None:
                    # A copy: others who waited on the same channel get the same error, and each adds its own traceback.
                    raise copy.copy(self._error)
                if self._answered:
                    raise StopIteration
                if self._changed.wait(self._deadline.remaining()):
                    continue
                if self._deadline.expired and self._idle_locked():
                    raise self._deadline.error()

    @property
    def answered(self) -> bool:
        """Whether the response has come, fetched or not."""
        with self._changed:
            return self._answered

    def _idle_locked(self) -> bool:
        return not (self._messages or self._answered or self.interrupted or self._error is not None)

    def interrupt(self) -> None:
        with self._changed:
            self.interrupted = True
            self._changed.notify_all()
            sending = self.sending
        if sending is not None:
            sending()

    def put_off(self, deadline: Deadline) -> None:
        with self._changed:
            self._deadline = deadline
            self._changed.notify_all()
            until = self.sending_until
        if until is not None:
            until(deadline)

    def limit(self, deadline: Deadline, silence: Optional[float] = None, lively: Optional[float] = None) -> None:
        with self._changed:
            self._deadline = deadline
            self._changed.notify_all()
        if self._on_limited is not None:
            # Silence is a matter of the whole channel, which shows signs of life that are nobody's.
            self._on_limited(silence, lively)

    def close(self) -> None:
        with self._changed:
            if self._closed:
                return
            self._closed = True
            answered = self._answered
        self._on_closed(self, answered)

    # -- for the channel ----------------------------------------------------------------------------------------------

    def put(self, message: Received) -> None:
        """Hand over a message."""
        with self._changed:
            self.heard_at = time.time()
            if self._error is not None or self._answered:
                return  # behind a loss nothing counts, and behind the response comes nothing
            if len(self._messages) >= _MAX_CHATTER and isinstance(message, Notification) and message.method in _CHATTER:
                return
            if len(self._messages) >= _MAX_WAITING:
                self._messages.clear()
                self._error = TransportError(
                    "more than %d messages of %s waited to be fetched" % (_MAX_WAITING, self._where)
                )
                self.ending = "reset"
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

    def refuse(self, error: MCPSyncError) -> None:
        """Hand over what stands in the place of the response."""
        self.fail(error, "end of stream")
        with self._changed:
            self._answered = True

    def after_fork_in_child(self, error: MCPSyncError) -> None:
        """In a forked child: nothing will come any more, and there is nobody who could be told so."""
        self._changed = threading.Condition(threading.RLock())
        self._error, self.ending = error, "reset"
        self._closed = True


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
        self._made_anew()
        self._error: Optional[MCPSyncError] = None
        self._ending = ""
        _fork.register(self)

    def _made_anew(self) -> None:
        self._lock = threading.Lock()  # guards the two below, _error and _ending
        self._shares: Dict[Tuple[str, Any], Share] = {}
        self._rest: List[Share] = []

    def after_fork_in_child(self) -> None:
        # The channel is the parent's, and its locks may be held by threads that do not exist here.
        shares = list(self._shares.values()) + self._rest
        self._made_anew()
        self._error = TransportError("the channel to %s belongs to the parent process" % self._where)
        self._ending = "reset"
        for share in shares:
            share.after_fork_in_child(self._error)

    def open(
        self,
        request_id: Any,
        what: str,
        deadline: Deadline,
        closed: Callable[[Share, bool], None],
        streaming: bool = False,
        limited: Optional[Limited] = None,
    ) -> Share:
        """Return the share of a request that is about to be sent."""
        key = _key(request_id)

        def on_closed(share: Share, answered: bool) -> None:
            with self._lock:
                if self._shares.get(key) is share:
                    del self._shares[key]
            closed(share, answered)

        share = Share(self._where, what, deadline, on_closed, streaming, limited)
        with self._lock:
            error, ending = self._error, self._ending
            if error is None:
                self._shares[key] = share
        if error is not None:
            share.fail(error, ending)
        return share

    def open_rest(self, deadline: Deadline, limited: Optional[Limited] = None) -> Share:
        """Return a share of all that belongs to no request. Every such share gets all of it."""

        def on_closed(share: Share, answered: bool) -> None:
            with self._lock:
                if share in self._rest:
                    self._rest.remove(share)

        share = Share(self._where, "the rest of its messages", deadline, on_closed, True, limited)
        with self._lock:
            error, ending = self._error, self._ending
            if error is None:
                self._rest.append(share)
        if error is not None:
            share.fail(error, ending)
        return share

    def deliver(self, message: Received) -> None:
        """Sort one message. Only the thread that reads the channel."""
        with self._lock:
            shares = self._shares_locked(message)
        if not shares:
            if isinstance(message, Notification):
                _log.debug("%s: ignored %s", self._where, beginning_of(message.method))
            elif isinstance(message, Response):
                _log.debug("%s: ignored an answer that nobody waits for (id %s)", self._where, beginning_of(message.id))
            self._unclaimed(message)
        for share in shares:
            share.put(message)

    def refuse(self, request_id: Any, error: MCPSyncError) -> bool:
        """Fail the share of one request; return whether somebody waits for it."""
        with self._lock:
            share = self._shares.get(_key(request_id))
        if share is None:
            return False
        share.refuse(error)
        return True

    def fail(self, error: MCPSyncError, ending: str = "end of stream") -> None:
        """The channel is over: everybody who waits is told, and everybody who comes later."""
        with self._lock:
            if self._error is None:
                self._error, self._ending = error, ending
            shares: List[Share] = list(self._shares.values()) + self._rest
        for share in shares:
            share.fail(error, ending)

    def interrupt(self) -> None:
        """Wake everybody who waits."""
        with self._lock:
            shares = list(self._shares.values()) + self._rest
        for share in shares:
            share.interrupt()

    def _shares_locked(self, message: Received) -> List[Share]:
        if isinstance(message, Response):
            share = self._shares.get(_key(message.id))
            return [] if share is None else [share]
        if isinstance(message, Request):
            return []  # answered by whoever looks after the session
        if isinstance(message, ProtocolError):
            # It may have been a notice for any of them.
            return self._rest + [share for share in self._shares.values() if share.streaming]
        named, share = self._named_locked(message)
        if share is not None:
            return [share]
        if message.method == "notifications/message":
            # They do not say for which request they are: for all in progress.
            return self._rest + [share for share in self._shares.values() if not share.streaming]
        if named or message.method not in _NOTICES:
            return list(self._rest)
        # Servers that forget to say for which stream a notice is: for all.
        return self._rest + [share for share in self._shares.values() if share.streaming]

    def _named_locked(self, message: Notification) -> Tuple[bool, Optional[Share]]:
        """Return whether a notification names its request, and that one's share if somebody waits for it."""
        params = message.params
        meta = params.get("_meta")
        names: List[Any] = []
        if isinstance(meta, dict) and _SUBSCRIPTION_ID in meta:
            names.append(meta[_SUBSCRIPTION_ID])
        if message.method == "notifications/cancelled":
            names.append(params.get("requestId"))
        elif message.method == "notifications/progress":
            token = params.get("progressToken")
            # Ours are numbers, and some servers make texts of them. Nobody else's can be meant.
            names.append(int(token) if isinstance(token, str) and _DECIMAL.fullmatch(token) else token)
        for name in names:
            share = self._shares.get(_key(name))
            if share is not None:
                return True, share
        return bool(names), None
