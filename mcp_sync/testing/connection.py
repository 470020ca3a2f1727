"""Serving one HTTP connection: read a request, find its answer, send it, and again."""

import logging
import time
from typing import Callable, Iterable, List, Optional

from .answer import Answer
from .exchange import Core, Dealt, Exchange
from .face import Face
from .outlet import Cut, Outlet
from .protocol import Item
from .request import Request, read_request
from .resumption import EventLog
from .streams import Stream
from .waiting import Disconnected
from .wire import Wire

_log = logging.getLogger(__name__)

# Enough for proxies and clients to see that the stream lives; the empty line keeps readers in step that want one.
_COMMENT = b": keep-alive\n\n"


class Connection:
    """The life of one accepted connection.

    :param wire: the connection.
    :param core: what all connections of a server share.
    :param exchange: makes what serves a request.

    Threads: one thread calls :meth:`serve`, once.
    """

    def __init__(self, wire: Wire, core: Core, exchange: Callable[[Request, Wire], "HttpExchange"]) -> None:
        self._wire = wire
        self._core = core
        self._make = exchange

    def serve(self) -> None:
        """Serve requests until one side ends the connection, and close it."""
        try:
            while self._exchange():
                pass
        except (Disconnected, Dealt):
            pass
        finally:
            self._wire.close()

    def _exchange(self) -> bool:
        try:
            request = read_request(self._wire)
        except ValueError as error:
            # Not a request: there is nothing to answer, but a test should be able to find out why.
            _log.warning("a connection was dropped: %s", error)
            return False
        if self._core.authenticate is not None:
            request.principal = self._core.authenticate(request.headers)
        exchange = self._make(request, self._wire)
        exchange.run()
        return not exchange.last


class HttpExchange(Exchange):
    """One HTTP request and its answer, which may last.

    :param face: what answers it.
    """

    def __init__(self, core: Core, face: Face, request: Request, wire: Wire) -> None:
        super().__init__(core, request, wire, face.session(request))
        self._answers = face
        self._socket = wire
        self._outlet: Optional[Outlet] = None
        self._log: Optional[EventLog] = None
        self._interrupted = False
        self._cancelled = False
        #: Whether the connection ends after the answer.
        self.last = request.http_version == "HTTP/1.0" or request.headers.get("Connection", "").lower() == "close"

    def run(self) -> None:
        """Go the whole way.

        :raises Disconnected: the client went away, or the end was asked for.
        :raises Dealt: a fault took it from here.
        """
        request, session = self.request, self.session
        if session is not None and request.method and "id" in request.message:
            session.began(request.id, self.cancel)
        try:
            super().run()
        finally:
            if session is not None:
                session.ended(request.id, self.cancel)
            if self._log is not None:
                self._log.finish()  # also where there is no answer: who resumes is not to wait for ever

    def cancel(self) -> None:
        """The client does not want an answer any more (legacy era): it gets none, and the connection ends."""
        self._cancelled = True
        self.wire.ask_close()

    def ordinary(self) -> Answer:
        """The answer as it is without faults."""
        return self._answers.answer(self)

    def say(self, *items: Item) -> None:
        """Send events ahead of the answer, which becomes an event stream by that.

        :raises Disconnected: the request has been cancelled.
        """
        self._check_cancelled()
        outlet = self._begin_events(self.core.settings.retry_ms)
        logged = self._logged(items)
        if not self._interrupted:
            outlet.write(logged)

    def interrupt(self, retry_ms: Optional[int]) -> None:
        """End the connection before the answer, which is kept for a client that resumes the stream."""
        if self.session is None or self._interrupted or self.request.http_method != "POST":
            return
        self._log = self._log or self.session.new_log()
        self.last = True
        self._begin_events(retry_ms).finish()
        self._socket.hang_up()
        self._interrupted = True

    def _begin_events(self, retry_ms: Optional[int]) -> Outlet:
        if self._outlet is None:
            if self._log is None and self.core.settings.resumable and self.session is not None:
                self._log = self.session.new_log()
            first = () if self._log is None else (self._log.prime(retry_ms),)
            self._outlet = self._open(Answer(items=first, events=True, framing=self.core.settings.stream_framing))
            self._outlet.start()
        return self._outlet

    def _logged(self, items: Iterable[Item]) -> List[Item]:
        log = self._log
        return [item if log is None or isinstance(item, bytes) else log.add(item) for item in items]

    def _open(self, answer: Answer) -> Outlet:
        self.request.http_status = answer.status
        if self.request.http_version == "HTTP/1.0" and answer.framing == "chunked":
            answer = answer.replace(framing="close")  # chunks are not in that version
        self.last = self.last or answer.stream is not None or answer.framing == "close" or self._socket.closing
        return Outlet(self._socket, answer, self.last)

    def _check_cancelled(self) -> None:
        if self._cancelled:
            raise Disconnected("cancelled")

    def deliver(self, answer: Answer) -> None:
        """Send the answer."""
        self._check_cancelled()
        try:
            if self._outlet is not None:
                self._end_events(self._outlet, answer)
                return
            answer = self._with_ids(answer)
            self._outlet = self._open(answer)
            if answer.stream is None:
                self._outlet.send_whole()
            else:
                self._serve_stream(self._outlet, answer.stream)
        except Cut:
            self.last = True
            if answer.after_cut == "reset":
                self.wire.ask_reset()
            elif answer.after_cut == "silence":
                self.pause()

    def _with_ids(self, answer: Answer) -> Answer:
        if not (answer.resumable and answer.events and self.session is not None):
            return answer
        self._log = self.session.new_log()
        items = [self._log.prime(self.core.settings.retry_ms)] + self._logged(answer.items)
        self._log.finish()
        return answer.replace(items=tuple(items))

    def _end_events(self, outlet: Outlet, answer: Answer) -> None:
        items = self._logged(answer.items)
        if self._log is not None:
            self._log.finish()
        if not self._interrupted:
            outlet.write(items)
            outlet.finish()

    def finish(self) -> None:
        """The server stops: a last chance to put something on the stream."""

    def _serve_stream(self, outlet: Outlet, stream: Stream) -> None:
        outlet.start()
        if stream.listens:
            self.core.streams.opened(stream)
        period = self.core.settings.keep_alive
        sent = time.monotonic()
        while True:
            items, ending = stream.take()
            if items:
                outlet.write(stream.logged(items))
                sent = time.monotonic()
                continue
            if ending is None and self.wire.closing:
                self.wire.wait(0.0)  # which raises after a kill: that has no last words
                self.finish()
                stream.end("result")  # the server stops: basic/patterns/subscriptions, "Graceful Closure"
                continue
            if ending is not None:
                self.core.streams.leave(stream)
                outlet.write(stream.farewell(ending))
                if ending not in ("cut", "reset"):
                    outlet.finish()
                return
            left = None if period is None else sent + period - time.monotonic()
            if left is not None and left <= 0:
                outlet.write([_COMMENT])
                sent = time.monotonic()
            else:
                self.wire.wait(left)
