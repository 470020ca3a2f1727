"""What goes along with one request: who is told of its progress, who may cancel it, how long it may take.

See the specification, basic/patterns/progress, basic/patterns/cancellation, server/utilities/logging.
"""

import contextlib
import copy
import logging
import math
import threading
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Mapping, NamedTuple, Optional

from . import _fork
from ._deadline import Deadline
from .errors import Cancelled, MCPSyncError, Raised, beginning_of
from .jsonrpc import Notification
from .transports.base import Exchange, of_this_thread

__all__ = ["Attempt", "CallOptions", "Cancellation", "LOG_LEVELS", "LogMessage", "Progress", "pause"]

_log = logging.getLogger("mcp_sync")

#: The levels of log messages, from the least to the most important.
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_LOG_LEVEL = "io.modelcontextprotocol/logLevel"

#: How long nobody looks whether a pause is still to be made, in seconds.
_GLANCE = 0.1


class Progress(NamedTuple):
    """How far a request has come. See the specification, basic/patterns/progress. Immutable; any thread.

    :param progress: grows with every notice of one request.
    :param total: what it will be in the end; None if the server does not know.
    :param message: what is being done, for people; None if the server does not say.
    """

    progress: float
    total: Optional[float] = None
    message: Optional[str] = None

    @property
    def fraction(self) -> Optional[float]:
        """The part that is done, from 0.0 to 1.0; None if the server does not know."""
        if self.total is None or self.total <= 0.0:
            return None
        return min(1.0, max(0.0, self.progress / self.total))

    @classmethod
    def from_wire(cls, params: Mapping[str, Any]) -> Optional["Progress"]:
        progress, message = _number(params.get("progress")), params.get("message")
        if progress is None:
            return None
        return cls(progress, _number(params.get("total")), message if isinstance(message, str) else None)


class LogMessage(NamedTuple):
    """What a server logs while it works on a request. See the specification, server/utilities/logging. Immutable; any thread.

    :param level: one of the names of syslog: ``"debug"``, ``"info"``, ``"notice"``, ``"warning"``, ``"error"``, ``"critical"``,
        ``"alert"``, ``"emergency"``; or whatever else the server says.
    :param data: what it logs: a text, or any other JSON value.
    :param logger: the part of the server that does, or None.
    """

    level: str
    data: Any = None
    logger: Optional[str] = None

    @classmethod
    def from_wire(cls, params: Mapping[str, Any]) -> "LogMessage":
        level, logger = params.get("level"), params.get("logger")
        return cls(
            level if isinstance(level, str) else "info", params.get("data"), logger if isinstance(logger, str) else None
        )


def _number(value: Any) -> Optional[float]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


class Cancellation:
    """A way to cancel calls from another thread.

    ::

        cancellation = Cancellation()
        threading.Timer(5.0, cancellation.cancel).start()
        client.call_tool("slow", cancellation=cancellation)      # raises Cancelled after five seconds, if it still runs

    One may be given to several calls; all of them are cancelled, and all to which it is given later. The server is told: over
    HTTP by the end of the exchange, otherwise by ``notifications/cancelled``. Whether it stops is its own affair.
    See the specification, basic/patterns/cancellation. Any thread; also a handler of a signal.
    """

    def __init__(self) -> None:
        self.reason: Optional[str] = None
        self._made_anew(False)
        _fork.register(self)

    def _made_anew(self, cancelled: bool) -> None:
        # Guards the list of exchanges. One that a thread may take twice: a handler of a signal may cancel.
        self._lock = threading.RLock()
        self._exchanges: List[Exchange] = []
        self._cancelled = threading.Event()
        if cancelled:
            self._cancelled.set()

    def after_fork_in_child(self) -> None:
        # The calls that it could cancel are the parent's.
        self._made_anew(self._cancelled.is_set())

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self, reason: Optional[str] = None) -> None:
        """Cancel the calls. Never blocks; again and again does no harm.

        :param reason: why, for people.
        """
        if self.reason is None:
            self.reason = reason
        self._cancelled.set()
        with self._lock:
            exchanges = list(self._exchanges)
        for exchange in exchanges:
            exchange.interrupt()

    def wait(self, timeout: Optional[float]) -> bool:
        """Wait until it is cancelled; return whether it is.

        :param timeout: seconds at most, or None for no limit.
        """
        return self._cancelled.wait(timeout)

    def raise_if_cancelled(self, what: str) -> None:
        """Raise :class:`~mcp_sync.errors.Cancelled` if it is cancelled.

        :param what: the request, for the message of the error.
        """
        if self.cancelled:
            raise Cancelled("%s was cancelled%s" % (what, "" if self.reason is None else ": %s" % self.reason))

    @contextlib.contextmanager
    def covering(self, what: str) -> Iterator[None]:
        """Cancel also what this thread has to ask for before the request itself, in the block.

        :param what: the request, for the message of the error.
        :raises Cancelled: if it is cancelled.
        """
        self.raise_if_cancelled(what)
        begun: List[Exchange] = []

        def attach(exchange: Exchange) -> None:
            begun.append(exchange)
            self.attach(exchange)

        outer, of_this_thread.begun = of_this_thread.begun, attach
        try:
            yield
        except MCPSyncError as error:
            if not self.cancelled:
                raise
            try:
                self.raise_if_cancelled(what)
            except Cancelled as cancelled:
                raise cancelled from error
        finally:
            of_this_thread.begun = outer
            for exchange in begun:
                self.detach(exchange)

    def attach(self, exchange: Exchange) -> None:
        with self._lock:
            self._exchanges.append(exchange)
        # Afterwards, so that a cancel() which came before is not lost: it has seen the exchange, or it is seen here.
        if self.cancelled:
            exchange.interrupt()

    def detach(self, exchange: Exchange) -> None:
        with self._lock:
            if exchange in self._exchanges:
                self._exchanges.remove(exchange)


class CallOptions:
    """What goes along with one request. Immutable; any thread.

    :param timeout: seconds to wait for the answer; where ``on_progress`` is given, each progress notice begins them anew.
        None for no limit but ``max_timeout``.
    :param max_timeout: seconds for all of it, whatever progress is made; None for no limit.
    :param on_progress: told of progress, in the thread of the call.
    :param on_log: told what the server logs meanwhile, in the thread of the call.
    :param log_level: the least level of that; ``"info"`` by default.
    :param cancellation: by what other threads cancel it.
    :param headers: further HTTP headers, as they are to be sent.
    :param meta: further fields of ``_meta``.
    :param input_responses: answers to the input requests of an earlier try.
    :param request_state: the state that came with them.
    :param accept_task: whether the answer may be a task, which is then returned as it is.
    """

    def __init__(
        self,
        *,
        timeout: Optional[float] = None,
        max_timeout: Optional[float] = None,
        on_progress: Optional[Callable[[Progress], Any]] = None,
        on_log: Optional[Callable[[LogMessage], Any]] = None,
        log_level: Optional[str] = None,
        cancellation: Optional[Cancellation] = None,
        headers: Optional[Mapping[str, str]] = None,
        meta: Optional[Mapping[str, Any]] = None,
        input_responses: Optional[Mapping[str, Any]] = None,
        request_state: Optional[str] = None,
        accept_task: bool = False
    ) -> None:
        if log_level is not None and log_level not in LOG_LEVELS:
            raise ValueError("log_level is one of %s, not %r" % (", ".join(LOG_LEVELS), log_level))
        self.timeout = timeout
        self.max_timeout = max_timeout
        self.on_progress = on_progress
        self.on_log = on_log
        self.log_level = "info" if log_level is None and on_log is not None else log_level
        self.cancellation = cancellation
        self.headers: Dict[str, str] = dict(headers or {})
        self.meta: Dict[str, Any] = dict(meta or {})
        self.input_responses = input_responses
        self.request_state = request_state
        self.accept_task = accept_task

    def covering(self, what: str) -> "ContextManager[None]":
        """Return :meth:`Cancellation.covering`, or what does nothing."""
        return contextlib.nullcontext() if self.cancellation is None else self.cancellation.covering(what)

    def with_headers(self, headers: Mapping[str, str]) -> "CallOptions":
        """Return the same with further HTTP headers."""
        other = copy.copy(self)
        other.headers = dict(self.headers, **headers)
        return other


class Attempt:
    """One request under way, with what goes along with it. Only the thread that makes it, but for the cancellation, and for
    :meth:`hold` and :meth:`let_go`, which any thread may call, one at a time.

    :param options: what goes along.
    :param limit: for all attempts together.
    """

    def __init__(self, options: CallOptions, limit: Deadline) -> None:
        self.options = options
        self._limit = limit
        self._what = limit.what
        self._exchange: Optional[Exchange] = None
        self._token: Optional[int] = None
        self._reached = -math.inf
        self._held = 0
        self.deadline = self._from_now()

    def _from_now(self) -> Deadline:
        left = self._limit.remaining()
        timeout = self.options.timeout
        if left is not None and (timeout is None or left < timeout):
            return self._limit
        return Deadline(timeout, self._what)

    def meta(self, request_id: int, era_has_log_level: bool) -> Dict[str, Any]:
        """Return what goes into ``_meta`` of the request with this id."""
        meta = dict(self.options.meta)
        if self.options.on_progress is not None:
            # Progress is told by the request's own id: unique by itself, and known to whoever sorts a shared channel.
            meta["progressToken"] = self._token = request_id
            self._reached = -math.inf
        if era_has_log_level and self.options.log_level is not None:
            meta[_LOG_LEVEL] = self.options.log_level
        return meta

    def begun(self, exchange: Exchange) -> None:
        """The exchange is about to be sent: from here on it can be interrupted."""
        self.over()
        self._exchange = exchange
        self._put_off(exchange)
        if self.options.cancellation is not None:
            self.options.cancellation.attach(exchange)

    def over(self) -> None:
        """It is not to be interrupted any more."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            if self.options.cancellation is not None:
                self.options.cancellation.detach(exchange)
            # Again: Ctrl-C may have come before anybody held it who would close it.
            exchange.close()

    def covering(self) -> "ContextManager[None]":
        """Have the cancellation end also what this thread has to ask for before the request itself, in the block."""
        return self.options.covering(self._what)

    @property
    def cancelled(self) -> bool:
        cancellation = self.options.cancellation
        return cancellation is not None and cancellation.cancelled

    def renew(self, exchange: Exchange) -> None:
        """Begin the time for the answer anew: somebody was busy with it."""
        self.deadline = self._from_now()
        self._put_off(exchange)

    def hold(self) -> None:
        """Let the time for the answer stand still, but for the absolute limit, until :meth:`let_go` was called as often."""
        self._held += 1
        self._put_off(self._exchange)

    def let_go(self) -> None:
        self._held -= 1
        self.deadline = self._from_now()
        self._put_off(self._exchange)

    def _put_off(self, exchange: Optional[Exchange]) -> None:
        if exchange is not None:
            exchange.put_off(self.deadline)
        # Looked at last, since another thread may have come between.
        if self._held:
            self.deadline = self._limit
            if exchange is not None:
                exchange.put_off(self.deadline)

    def notified(self, message: Notification, exchange: Exchange) -> None:
        """Tell whom it concerns what came before the answer.

        :raises Raised: if the user's function fails.
        """
        if message.method == "notifications/progress":
            self._progressed(message, exchange)
        elif message.method == "notifications/message":
            if self.options.on_log is not None:
                self._tell(self.options.on_log, LogMessage.from_wire(message.params))
        else:
            _log.debug("skipped %s before the answer to %s", beginning_of(message.method), self._what)

    def _progressed(self, message: Notification, exchange: Exchange) -> None:
        token = message.params.get("progressToken")
        if self.options.on_progress is None or self._token is None or str(token) != str(self._token):
            return
        progress = Progress.from_wire(message.params)
        # What goes back, or does not go on, is no sign of work (basic/patterns/progress: it must increase).
        if progress is None or progress.progress <= self._reached:
            _log.debug("skipped a progress notice of %s: %s", self._what, beginning_of(message.params))
            return
        self._reached = progress.progress
        self._tell(self.options.on_progress, progress)
        self.renew(exchange)

    @staticmethod
    def _tell(function: Callable[[Any], Any], what: Any) -> None:
        try:
            function(what)
        except Exception as error:
            # The boundary to a user's code: what it raises is not taken for an error of the server's.
            raise Raised(error) from error


def pause(seconds: Optional[float], cancellation: Optional[Cancellation], over: Callable[[], bool]) -> None:
    """Wait, but no longer than until the call is cancelled or its connection is over.

    :param seconds: how long at most; None for no limit.
    :param over: whether there is nothing to wait for any more.
    """
    deadline = Deadline(seconds)
    idle = threading.Event()
    while not deadline.expired and not over():
        wait = idle.wait if cancellation is None else cancellation.wait
        if wait(deadline.shorter(_GLANCE)):
            return
