"""HTTP+SSE of revision 2024-11-05: messages go out as POSTs, and everything comes back on one stream of events.

See the specification, 2024-11-05: basic/transports. The stream's first event names the address for the POSTs. One thread reads
the stream and sorts what comes; when it ends, so does the session, and the next request opens another.
"""

import threading
from typing import Mapping, Optional
from urllib.parse import urljoin

from .. import _fork
from .._deadline import Deadline
from .._eventstream import Event, EventStream
from .._pending import Pending, Share
from .._worker import Worker
from ..errors import MCPSyncError, ProtocolError, TransportError, beginning_of
from ..jsonrpc import decode, encode
from ._answer import Answer
from ._body import Body
from ._failures import failure
from ._guard import Guard
from ._headers import media_type
from ._options import Auth, HTTPOptions, origin
from ._pool import Pool
from .base import ChannelLost, Outgoing, Received, Transport

__all__ = ["HTTPSSE"]


class _Channel:
    """One open stream, and the address that it named."""

    def __init__(self, transport: "HTTPSSE", pool: Pool, number: int) -> None:
        self.number = number
        self.pool = pool
        self.where = transport.where
        self.endpoint = ""
        self.pending = Pending(transport.where, transport.unclaimed)
        self.guard = Guard(Deadline(None))
        self._max_bytes = pool.options.max_message_bytes
        self._named = threading.Event()  # the address is known, or will not be
        self._error: Optional[MCPSyncError] = None
        self.worker = Worker("mcp_sync-sse-%s" % transport.name, self._run)

    def open(self, deadline: Deadline) -> None:
        """Open the stream and wait for the address.

        :raises TransportError: if there is no such stream.
        """
        self.guard.deadline = deadline
        self.worker.start()
        if not self._named.wait(deadline.remaining()):
            self.guard.interrupt()
            raise deadline.error(may_have_run=False)
        if self._error is not None:
            raise self._error

    @property
    def alive(self) -> bool:
        return self.worker.alive and self._error is None

    def close(self) -> None:
        self.guard.interrupt()
        self.pending.interrupt()

    # -- the thread that reads -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        body: Optional[Body] = None
        ending = "end of stream"
        error: MCPSyncError = TransportError("%s ended the stream of events" % self.where)
        try:
            raw = self.pool.request("GET", None, {"Accept": "text/event-stream"}, self.guard, None)
            body = Body(raw, self.guard, self.where)
            if not 200 <= raw.status < 300 or media_type(raw.headers.get("Content-Type")) != "text/event-stream":
                raise _refusal(body, self.where, "a GET")
            events = EventStream(body.chunks(), self._max_bytes)
            body.signs_of_life = lambda: events.comments
            for event in events:
                self._take(event)
        except MCPSyncError as caught:
            error = caught
        except Exception as caught:
            error, ending = failure(caught, self.guard, self.where, "GET", self.pool.options.connect_timeout, True)
        finally:
            if body is not None:
                body.close()
            self.guard.detach()
        self._error = error
        self._named.set()
        self.pending.fail(error, ending)

    def _take(self, event: "object") -> None:
        if not isinstance(event, Event):
            assert isinstance(event, ProtocolError)
            self.pending.deliver(event)
        elif event.name == "endpoint":
            self._name(event.data)
        elif event.name == "message" and event.data:
            try:
                message: Received = decode(event.data)
            except ProtocolError as error:
                message = error
            self.pending.deliver(message)

    def _name(self, told: str) -> None:
        if self._named.is_set():
            return
        endpoint = urljoin(self.where, told.strip())
        try:
            elsewhere = origin(endpoint) != origin(self.where)
        except ValueError:
            elsewhere = True
        if elsewhere:
            # Messages, and credentials with them, would go to somebody else.
            raise ProtocolError(
                "%s names an address on another origin for its messages: %s" % (self.where, beginning_of(told))
            )
        self.endpoint = endpoint
        # From here on nothing is late: the stream lasts as long as the session.
        self.guard.deadline = Deadline(None)
        self._named.set()


class HTTPSSE(Transport):
    """A server of 2024, at the address of its stream of events. Any thread.

    :param options: how to reach it.
    """

    shared_channel = True

    def __init__(self, options: HTTPOptions) -> None:
        self.where = options.url
        self.name = origin(options.url)[1]
        self._options = options
        self._made_anew()
        self._opened = 0
        self._closed = False
        _fork.register(self)

    def _made_anew(self) -> None:
        # One lock, with a condition on it; it guards the two above and all below.
        self._changed = threading.Condition(threading.Lock())
        self._pool: Optional[Pool] = None
        self._channel: Optional[_Channel] = None
        self._opening = False

    def connect(self, deadline: Deadline) -> int:
        return self._open_channel(deadline).number

    def exchange(self, outgoing: Outgoing, deadline: Deadline) -> Share:
        channel = self._the_channel(outgoing.channel, deadline)
        what = str(outgoing.message.get("method"))
        share = channel.pending.open(outgoing.message["id"], what, deadline, lambda share, answered: None)
        try:
            self._post(channel, outgoing, deadline)
        except BaseException:
            share.close()
            raise
        return share

    def unsolicited(
        self, headers: Mapping[str, str], deadline: Deadline, channel: Optional[int] = None, after: Optional[str] = None
    ) -> Share:
        return self._the_channel(channel, deadline).pending.open_rest(deadline)

    def send(self, outgoing: Outgoing, deadline: Deadline) -> None:
        self._post(self._the_channel(outgoing.channel, deadline), outgoing, deadline)

    def with_auth(self, auth: Auth, headers: Optional[Mapping[str, str]]) -> "HTTPSSE":
        """Return a transport to the same server for another principal."""
        return HTTPSSE(self._options.for_principal(auth, headers))

    def close(self) -> None:
        with self._changed:
            self._closed = True
            channel, self._channel = self._channel, None
            pool, self._pool = self._pool, None
            self._changed.notify_all()
        if channel is not None:
            channel.close()
            channel.worker.join(0.5)
        if pool is not None:
            pool.close()

    def after_fork_in_child(self) -> None:
        _fork.keep_for_ever((self._pool, self._channel))
        self._made_anew()

    def unclaimed(self, message: Received) -> None:
        """Hand on what came and belongs to no exchange."""
        handler = self.on_unclaimed
        if handler is not None:
            handler(message)

    def _the_channel(self, number: Optional[int], deadline: Deadline) -> _Channel:
        channel = self._open_channel(deadline)
        if number is not None and channel.number != number:
            raise ChannelLost("the stream of %s was lost" % self.where, may_have_run=False)
        return channel

    def _open_channel(self, deadline: Deadline) -> _Channel:
        """Return the channel, opened if there is none. Only one thread opens it; the others wait."""
        with self._changed:
            while True:
                if self._closed:
                    raise TransportError("the connection to %s is closed" % self.where, may_have_run=False)
                if self._channel is not None and self._channel.alive:
                    return self._channel
                if not self._opening:
                    self._opening = True
                    break
                if not self._changed.wait(deadline.remaining()):
                    raise deadline.error(may_have_run=False)
            if self._pool is None:
                self._pool = Pool(self._options)
            self._opened += 1
            channel = _Channel(self, self._pool, self._opened)
        try:
            channel.open(deadline)
        except BaseException:
            channel.close()
            with self._changed:
                self._opening = False
                self._changed.notify_all()
            raise
        with self._changed:
            self._opening = False
            self._channel = None if self._closed else channel
            unwanted = self._channel is None
            self._changed.notify_all()
        if unwanted:
            channel.close()
        return channel

    def _post(self, channel: _Channel, outgoing: Outgoing, deadline: Deadline) -> None:
        """Send a message to the address that the stream named; its answer, if any, comes on the stream."""
        guard = Guard(deadline)
        body: Optional[Body] = None
        method = str(outgoing.message.get("method", "a reply"))
        try:
            raw = channel.pool.request("POST", encode(outgoing.message), outgoing.headers, guard, channel.endpoint)
            body = Body(raw, guard, self.where)
            if not 200 <= raw.status < 300:
                raise _refusal(body, self.where, method)
        except MCPSyncError:
            raise
        except Exception as error:
            raise failure(error, guard, self.where, method, self._options.connect_timeout, False)[0] from error
        finally:
            if body is not None:
                # "Accepted", usually; if there is more of it than fits into one piece, the connection is not used again.
                body.farewell()
                body.close()
            guard.detach()


def _refusal(body: Body, where: str, method: str) -> MCPSyncError:
    """Return the error that an answer is which should have been another."""
    try:
        message = next(Answer(body, where, Outgoing({"method": method}, {}), 1024 * 1024).messages(), None)
    except MCPSyncError as error:
        return error
    return TransportError(
        "%s answered %s with HTTP status %d, which is not what a server of revision 2024-11-05 does: %s"
        % (where, method, body.status, beginning_of(message)),
        status=body.status,
    )
