"""Thread that listens: opens the one stream of notices, reads it, and opens it again for ever.

It tells its *sink* what it learns, at once and in order; the sink must not block. It never reads resources and never runs a
user's code. See the specification, basic/patterns/subscriptions.
"""

import abc
import logging
import random
import threading
from typing import Callable, List, NamedTuple, Optional

from . import _fork
from ._backoff import Backoff
from ._deadline import Clock, Deadline, bounded
from ._worker import Worker
from .connection import Connection
from .eras.base import Ended
from .errors import (
    AuthorizationError,
    MCPSyncError,
    NotSupported,
    ProtocolError,
    RequestTimeout,
    ServerError,
    TransportError,
)
from .notices import Acknowledged, Notice, SubscriptionFilter
from .results.discover import DiscoverResult
from .sessions import Stream
from .uris import canonical

__all__ = ["Ending", "Reader", "Sink"]

_log = logging.getLogger("mcp_sync")

#: A stream that lived as long as this was healthy: the next failure is the first again. In seconds.
_HEALTHY_AFTER = 5.0
#: The longest pause between two attempts to listen, in seconds: where the server cannot be reached, and where it refuses.
_RETRY_CAP = 30.0
_REFUSED_CAP = 300.0
#: A stream that was replaced is ended when it has been silent for so long, and in any case after so much time; in seconds.
_QUIET_BEFORE_END = 0.5
_RETIRED_WITHIN = 3.0
#: How long the clock is not looked at, at most, in seconds.
_LOOK_AGAIN = 30.0
#: How many threads may hang at the same time in attempts that nobody wants any more.
_LEAVING_AT_MOST = 2


class Ending(NamedTuple):
    """How a stream, or the attempt to open one, ended.

    :param how: see :class:`~mcp_sync.status.Status`, ``last_ending``.
    :param error: what was raised, or None.
    :param refused: whether the server can be reached but does not let this client listen, so that only polling is left.
    :param lived: how long the stream was live, in seconds.
    """

    how: str
    error: Optional[MCPSyncError]
    refused: bool = False
    lived: float = 0.0


class Wanted(NamedTuple):
    """What became of what was wanted before.

    :param given_up: if nothing is wanted any more: the number up to which what the sink is told was before this.
    :param goes_on: whether whoever listened, or tried to, goes on doing so.
    """

    given_up: Optional[int]
    goes_on: bool


class Sink(abc.ABC):
    """Who wants to know. Called from the reader's threads, and without any lock of the reader's; must not block."""

    @abc.abstractmethod
    def stream_opened(
        self, order: int, asked: SubscriptionFilter, covered: SubscriptionFilter, gapless: bool
    ) -> None:
        """The server acknowledged.

        :param order: the reader's threads may overtake each other on the way here. What comes with a lower number than
            something that came before is out of date, and to be ignored.
        :param asked: what the stream was opened for.
        :param covered: the part of it that the server notifies about.
        :param gapless: True if this stream took over from one that was still live.
        """

    @abc.abstractmethod
    def noticed(self, notice: Notice) -> None:
        """The server said that something changed."""

    @abc.abstractmethod
    def notice_lost(self) -> None:
        """Something on the stream could not be read: it may have been a notice about anything."""

    @abc.abstractmethod
    def stream_ended(self, order: int, ending: Ending, gap: bool) -> None:
        """There is no stream.

        :param gap: True if there was one: from now on changes go unnoticed. False if one more attempt failed.
        """

    @abc.abstractmethod
    def must_poll(self, order: int) -> None:
        """There will be no stream for some time."""


class _Run:
    """One thread's turn at listening. The reader's lock guards it."""

    def __init__(self) -> None:
        self.asked = SubscriptionFilter()
        self.live = False
        self.over = False  # its thread has decided to end
        self.replaced = False  # by a wider stream that was acknowledged
        self.retired = False  # and has nothing more to say
        self.waiting_since: Optional[float] = None  # since when it waits for the next message; None while it works on one
        self.stream: Optional[Stream] = None
        self.worker: Optional[Worker] = None


class Reader:
    """Keeps one stream open for everything that is wanted. Any thread; no method but :meth:`join` blocks.

    :param connection: the server.
    :param discover: asks the server what it can do, each time anew.
    :param sink: who is told.
    :param name: a word for the names of the threads.
    :param listen: False to never open a stream.
    :param ack_timeout: how long to wait for the acknowledgement, in seconds.
    :param silence: the longest silence of a server that has sent signs of life, in seconds.
    :param patience: the longest silence of a server that has sent none, in seconds.
    :param poll_after: how long a stream may be gone before polling begins, in seconds.
    :param clock: the clock of the cache.
    :param uniform: where chance comes from.
    """

    def __init__(
        self,
        connection: Connection,
        discover: Callable[[Deadline], DiscoverResult],
        sink: Sink,
        name: str,
        *,
        listen: bool,
        ack_timeout: float,
        silence: float,
        patience: float,
        poll_after: float,
        clock: Clock,
        uniform: Callable[[float, float], float] = random.uniform
    ) -> None:
        self._connection = connection
        self._discover = discover
        self._sink = sink
        self._name = name
        self._listen = listen
        self._ack_timeout = ack_timeout
        self._silence = bounded(silence)
        self._patience = bounded(patience)
        self._poll_after = poll_after
        self._clock = clock
        self._uniform = uniform
        self._made_anew()
        self._wanted = SubscriptionFilter()
        self._registration = 0
        self._last_contact: Optional[float] = None
        self._closed = False
        _fork.register(self)

    def _made_anew(self) -> None:
        # One lock, with a condition on it; it guards everything below, _wanted, _registration, _last_contact, _closed, and
        # every _Run.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._order = 0  # counts what the sink is told
        self._run: Optional[_Run] = None  # whose stream counts
        self._leaving: List[_Run] = []  # given up, and perhaps not ended yet
        self._successor: Optional[_Run] = None  # opens a wider stream while the first still lives

    # -- any thread ------------------------------------------------------------------------------------------------------

    def want(self, wanted: SubscriptionFilter, registration: int = 0) -> "Wanted":
        """Listen for this from now on; for nothing if it is empty.

        :param registration: counts what is wanted. Threads may overtake each other on the way here; an older word than the last
            is ignored.
        """
        streams: List[Stream] = []
        started: Optional[_Run] = None
        order: Optional[int] = None
        with self._lock:
            if self._closed or registration < self._registration:
                return Wanted(None, False)
            goes_on = bool(wanted) and self._run is not None
            self._registration = registration
            self._wanted = wanted
            if not wanted:
                order = self._next_order_locked()
                streams = self._give_up_locked()
            elif self._run is None:
                # Not whether its thread runs: one that has decided to end runs for a while yet.
                self._leaving = [run for run in self._leaving if not run.over]
                if len(self._leaving) >= _LEAVING_AT_MOST:
                    # The server hangs, and with it those who were given up. One of them goes on instead of one more.
                    self._run = self._leaving.pop()
                else:
                    started = self._run = _Run()
            elif self._run.live and self._successor is None and not self._run.asked.contains(wanted):
                started = self._successor = _Run()
            self._changed.notify_all()
        self._start(started)
        for stream in streams:
            stream.exchange.interrupt()
        return Wanted(order, goes_on)

    def close(self) -> None:
        """Stop listening, for good."""
        with self._lock:
            self._closed = True
            self._wanted = SubscriptionFilter()
            streams = [run.stream for run in (self._run, self._successor) if run is not None]
            self._changed.notify_all()
        for stream in streams:
            if stream is not None:
                stream.exchange.interrupt()

    @property
    def last_contact(self) -> Optional[float]:
        """When the server was last heard on a stream, in seconds since 1970; None if never."""
        with self._lock:
            stream = self._run.stream if self._run is not None else None
            last = self._last_contact
        heard = stream.exchange.heard_at if stream is not None else None
        return last if heard is None else heard

    def join(self, timeout: float) -> None:
        """Wait for the threads to end, at most ``timeout`` seconds in all."""
        deadline = Deadline(timeout)
        with self._lock:
            runs = [self._run, self._successor]
        for run in runs:
            if run is not None and run.worker is not None:
                run.worker.join(deadline.remaining() or 0.0)

    def after_fork_in_child(self) -> None:
        self._made_anew()

    # -- runs ------------------------------------------------------------------------------------------------------------

    def _give_up_locked(self) -> List[Stream]:
        runs = (self._run, self._successor)
        self._run = self._successor = None
        self._leaving.extend(run for run in runs if run is not None and not run.live)
        # One that is still opening its stream finds that it is not wanted any more when it has.
        return [run.stream for run in runs if run is not None and run.stream is not None]

    def _start(self, run: Optional[_Run]) -> None:
        if run is not None:
            run.worker = Worker("mcp_sync-reader-%s" % self._name, lambda: self._main(run))
            try:
                run.worker.start()
            except RuntimeError:
                # No thread is to be had at the moment. Whoever wants something next tries again.
                with self._lock:
                    self._run = None if self._run is run else self._run
                    self._successor = None if self._successor is run else self._successor
                raise

    def _is_current_locked(self, run: _Run) -> bool:
        return not self._closed and (run is self._run or run is self._successor)

    def _main(self, run: _Run) -> None:
        try:
            self._listen_for_ever(run)
        except Exception:
            # The boundary of the thread. A defect must not leave copies that look current: it is a gap like any other.
            _log.exception("the reader of %s failed by an error of its own", self._name)
            with self._lock:
                current = self._is_current_locked(run)
                run.over = True
                order = self._next_order_locked()
                self._next_order_locked()  # for what is told second
                if run is self._run:
                    self._run = None
                if run is self._successor:
                    self._successor = None
            if current:
                self._sink.stream_ended(order, Ending("error", ProtocolError("an error of mcp_sync itself")), True)
                self._sink.must_poll(order + 1)

    def _next_order_locked(self) -> int:
        self._order += 1
        return self._order

    def _must_poll(self, run: _Run) -> None:
        with self._lock:
            if not self._is_current_locked(run):
                return
            order = self._next_order_locked()
        self._sink.must_poll(order)

    def _listen_for_ever(self, run: _Run) -> None:
        unreachable = Backoff(0.5, _RETRY_CAP, self._uniform)
        refused = Backoff(2.0, _REFUSED_CAP, self._uniform)
        gap_began = self._clock()
        polling = False
        while True:
            with self._lock:
                if not self._is_current_locked(run):
                    run.over = True
                    return
                run.asked = self._wanted
            if self._widened(run):
                return
            try:
                ending = self._listen_once(run)
            except Exception:
                # A defect of ours costs a stream like any other mishap; without this it would cost all streams to come.
                _log.exception("listening to %s failed by an error of mcp_sync itself", self._name)
                ending = Ending("error", ProtocolError("an error of mcp_sync itself: see the log"))
            with self._lock:
                if not self._is_current_locked(run):
                    run.over = True
                    lost = run.live and run.replaced and not run.retired and not self._closed
                    break
                if run is self._successor and self._run is not None and self._run.live:
                    if self._run.asked.contains(self._wanted):
                        # The wider stream is not to be had, and not wanted any more either.
                        self._successor = None
                        return
                order = self._next_order_locked()
                gap, run.live = run.live, False
                if run.stream is not None:
                    self._last_contact = run.stream.exchange.heard_at or self._last_contact
                run.stream = first = None
                gives_way = False
                if run is self._successor:
                    # The wider stream was not to be had beside the first; perhaps it is instead of it.
                    first, self._run, self._successor = self._run, run, None
                    gap = True
                elif self._successor is not None:
                    # The wider stream is being opened already: it goes on alone.
                    gives_way, self._run, self._successor = True, self._successor, None
            self._sink.stream_ended(order, ending, gap)
            if first is not None and first.stream is not None:
                first.stream.exchange.interrupt()
            if gives_way:
                return
            if gap:
                gap_began = self._clock()
                polling = False
            if ending.refused and not polling:
                polling = True
                self._must_poll(run)
            if ending.lived >= _HEALTHY_AFTER:
                unreachable.reset()
                refused.reset()
            wait = (refused if ending.refused else unreachable).next(getattr(ending.error, "retry_after", None))
            _log.log(
                # Servers and proxies that recycle their streams are normal and not worth a line for every time.
                logging.DEBUG if ending.lived >= _HEALTHY_AFTER else logging.INFO,
                "%s: the stream of notices ended (%s: %s); again in %.1f s",
                self._name,
                ending.how,
                ending.error,
                wait,
            )
            polling = self._pause(run, wait, gap_began, polling)
        if lost:
            # The first stream ended by itself, and nobody knows whether before the wider one covered what it did.
            self._sink.notice_lost()

    def _pause(self, run: _Run, wait: float, gap_began: float, polling: bool) -> bool:
        """Wait before the next attempt; begin to poll on the way if the gap has become long. Return whether polling."""
        end = self._clock() + wait
        poll_at = gap_began + self._poll_after
        while True:
            with self._lock:
                while self._is_current_locked(run):
                    now = self._clock()
                    if now >= end or (not polling and now >= poll_at):
                        break
                    # Not longer: the system's timer stands still while the machine is suspended; this clock does not.
                    self._changed.wait(min(min(end, end if polling else poll_at) - now, _LOOK_AGAIN))
                else:
                    return polling
            if not polling and self._clock() >= poll_at:
                polling = True
                self._must_poll(run)
            if self._clock() >= end:
                return polling

    def _widened(self, run: _Run) -> bool:
        """Where a stream can be made wider as it is (legacy), do that for a successor, which is then not needed any more."""
        with self._lock:
            first = self._run
            if run is not self._successor or first is None or first.stream is None or not first.live:
                return False
            stream, asked = first.stream, run.asked
        try:
            granted = stream.widen(asked, Deadline(self._ack_timeout, "the subscriptions", self._clock))
        except MCPSyncError as error:
            _log.info("%s: the stream of notices could not be made wider: %s", self._name, error)
            return False
        if granted is None:
            return False
        covered = _compared(asked, granted)
        with self._lock:
            if self._run is not first or self._successor is not run:
                return False
            order = self._next_order_locked()
            first.asked = asked
            further = self._successor = _Run() if self._wanted and not asked.contains(self._wanted) else None
        self._sink.stream_opened(order, asked, covered, True)
        self._start(further)
        return True

    # -- one stream ------------------------------------------------------------------------------------------------------

    def _listen_once(self, run: _Run) -> Ending:
        asked = run.asked
        if not self._listen:
            return Ending("refused", None, refused=True)
        deadline = Deadline(self._ack_timeout, "the acknowledgement of subscriptions/listen", self._clock)
        try:
            abilities = self._discover(deadline)
        except MCPSyncError as error:
            return self._failed_to_open(error)
        possible = SubscriptionFilter.of(
            asked.resource_subscriptions if abilities.can_subscribe else (),
            asked.lists & abilities.notified_lists,
        )
        if not possible:
            return Ending("refused", None, refused=True)
        try:
            stream = self._connection.listen(possible, deadline)
        except MCPSyncError as error:
            return self._failed_to_open(error)
        try:
            with self._lock:
                run.stream = stream
                current = self._is_current_locked(run)
            if not current:
                return Ending("end of stream", None)
            return self._read(run, stream, asked, deadline)
        finally:
            stream.close()

    def _failed_to_open(self, error: MCPSyncError) -> Ending:
        status = getattr(error, "status", None)
        refused = isinstance(error, (ServerError, AuthorizationError, ProtocolError, NotSupported)) or (
            # A server or a proxy that is busy with starting is no refusal.
            status is not None and status < 500 and status != 408
        )
        if isinstance(error, RequestTimeout):
            return Ending("no acknowledgement" if error.may_have_run else "unreachable", error)
        return Ending("refused" if refused or status is not None else "unreachable", error, refused)

    def _read(self, run: _Run, stream: Stream, asked: SubscriptionFilter, deadline: Deadline) -> Ending:
        exchange = stream.exchange
        exchange.limit(deadline)
        live_since: Optional[float] = None
        try:
            while True:
                run.waiting_since = self._clock()
                try:
                    notice = stream.next()
                except ProtocolError as error:
                    notice = error
                except StopIteration:
                    break
                run.waiting_since = None
                if isinstance(notice, ProtocolError):
                    _log.warning("%s: something on the stream of notices was refused: %s", self._name, notice)
                    self._sink.notice_lost()
                    continue
                if isinstance(notice, Acknowledged):
                    if live_since is not None:
                        continue
                    if not self._acknowledged(run, asked, notice.granted):
                        return Ending("refused", None, refused=True)
                    live_since = self._clock()
                    # A server that sends signs of life is missed sooner than one that never does.
                    exchange.limit(Deadline(None), self._patience, self._silence)
                    notice = None  # it names all that is watched, and the next may be long in coming
                elif isinstance(notice, Ended):
                    return self._own_word(notice, live_since)
                elif notice is not None:
                    self._sink.noticed(notice)
        except MCPSyncError as error:
            return self._broke(exchange.ending, error, live_since)
        return Ending("end of stream", None, lived=self._lived(live_since))

    def _lived(self, since: Optional[float]) -> float:
        return 0.0 if since is None else self._clock() - since

    def _broke(self, ending: str, error: MCPSyncError, live_since: Optional[float]) -> Ending:
        if live_since is None and isinstance(error, RequestTimeout):
            return Ending("no acknowledgement", error)
        if live_since is None and not isinstance(error, TransportError):
            return Ending("refused", error, refused=True)
        return Ending(ending, error, lived=self._lived(live_since))

    def _own_word(self, ended: Ended, live_since: Optional[float]) -> Ending:
        error = ended.error
        # A server that answers at once with an error, or a result, instead of an acknowledgement does not let us listen.
        refused = live_since is None and ended.how in ("error", "result")
        return Ending(ended.how, error, refused, self._lived(live_since))

    def _acknowledged(self, run: _Run, asked: SubscriptionFilter, granted: SubscriptionFilter) -> bool:
        """Compare, and take over. Return whether the stream is of any use."""
        covered = _compared(asked, granted)
        if not covered:
            return False
        with self._lock:
            if not self._is_current_locked(run):
                return True  # nobody wants it any more; the interruption is under way
            order = self._next_order_locked()
            run.live = True
            replaced: Optional[_Run] = None
            if run is self._successor:
                replaced, self._run, self._successor = self._run, run, None
            gapless = replaced is not None and replaced.live
            if replaced is not None:
                replaced.replaced = True
            # Something more may have been wanted while this stream was being opened.
            further = _Run() if self._wanted and not asked.contains(self._wanted) else None
            if further is not None:
                self._successor = further
        self._sink.stream_opened(order, asked, covered, gapless)
        # Only now: there is no moment at which neither of the two covers what the first did.
        if replaced is not None:
            try:
                Worker("mcp_sync-reader-%s" % self._name, lambda: self._retire(replaced)).start()
            except RuntimeError:
                # No thread is to be had at the moment: it is ended at once, whatever it may still have had to say.
                with self._lock:
                    replaced.retired = True
                if replaced.stream is not None:
                    replaced.stream.exchange.interrupt()
                self._sink.notice_lost()
        self._start(further)
        return True

    def _retire(self, run: _Run) -> None:
        """End a stream that was replaced, after it has said what was still on its way."""
        end = self._clock() + _RETIRED_WITHIN
        with self._lock:
            while not self._closed and run.stream is not None:
                now = self._clock()
                since = run.waiting_since
                if (since is not None and now - since >= _QUIET_BEFORE_END) or now >= end:
                    break
                self._changed.wait(min(end - now, _QUIET_BEFORE_END / 4.0))
            run.retired = True
            stream = run.stream
            waiting = run.waiting_since is not None and self._clock() - run.waiting_since >= _QUIET_BEFORE_END
            lost = stream is not None and not waiting and not self._closed
        if stream is not None:
            stream.exchange.interrupt()
        if lost:
            self._sink.notice_lost()


def _compared(asked: SubscriptionFilter, granted: SubscriptionFilter) -> SubscriptionFilter:
    """Return what of the asked is granted; the URIs as they were asked for, since servers spell them differently."""
    spelled = {canonical(uri) for uri in granted.resource_subscriptions}
    covered = frozenset(uri for uri in asked.resource_subscriptions if canonical(uri) in spelled)
    if len(covered) == len(asked.resource_subscriptions):
        covered = asked.resource_subscriptions  # the same, once: there may be thousands
    return SubscriptionFilter.of(covered, asked.lists & granted.lists)
