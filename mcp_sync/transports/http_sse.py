"""HTTP+SSE of revision 2024-11-05: messages go out as POSTs, and everything comes back on one stream of events.

See the specification, 2024-11-05: basic/transports. The stream's first event names the address for the POSTs. One thread reads
the stream and sorts what comes; when it ends, so does the session, and the next request opens another.
"""

import copy
import re
import threading
from typing import Any, Mapping, Optional, Set, Tuple
from urllib.parse import urljoin

from .. import _fork
from .._deadline import Deadline
from .._eventstream import Event, EventStream
from .._pending import Pending, Share
from .._worker import Worker
from ..errors import MCPSyncError, MessageTooLarge, ProtocolError, RequestTimeout, TransportError, beginning_of
from ..jsonrpc import Response, decode, encode
from ._answer import Answer
from ._body import Body
from ._failures import failure, is_from_outside
from ._guard import Guard
from ._headers import media_type
from ._options import HTTPOptions, origin
from ._pool import Pool
from .base import ChannelLost, Outgoing, Received, Transport, about_to_send

__all__ = ["HTTPSSE"]

#: How long a stream may take to name the address for messages, in seconds: it is the first thing on it.
_ENDPOINT_PATIENCE = 10.0
_MAX_REDIRECTS = 5
# What can stand in a request as it is.
_PRINTABLE = re.compile("[\x21-\x7e]+")


class _Channel:
    """One open stream, and the address that it named."""

    def __init__(self, transport: "HTTPSSE", pool: Pool, number: int) -> None:
        self.number = number
        self.pool = pool
        self.where = transport.where
        self.endpoint = ""
        self._url = transport.where  # where the stream came from, redirects followed
        self.pending = Pending(transport.where, transport.unclaimed)
        self.guard = Guard(Deadline(None))
        self._max_bytes = pool.options.max_message_bytes
        self._named = threading.Event()  # the address is known, or will not be
        self._error: Optional[MCPSyncError] = None
        self._lost = False
        self.worker = Worker("mcp_sync-sse-%s" % transport.name, self._run)

    def open(self, deadline: Deadline) -> None:
        """Open the stream and wait for the address.

        :raises TransportError: if there is no such stream.
        """
        patience = Deadline(deadline.shorter(_ENDPOINT_PATIENCE), "the address for messages on %s" % self.where)
        self.guard.deadline = patience
        self.worker.start()
        if not self._named.wait(patience.remaining()):
            self.guard.interrupt()
            raise (deadline if deadline.expired else patience).error(may_have_run=False)
        if not self.endpoint:
            if deadline.expired and isinstance(self._error, RequestTimeout):
                raise deadline.error(may_have_run=False)
            error = copy.copy(self._error or TransportError("%s was closed" % self.where))
            if isinstance(error, TransportError):
                error.may_have_run = False  # without an address nothing was sent
            raise error

    @property
    def alive(self) -> bool:
        return self.worker.alive and self._error is None and not self._lost

    def close(self) -> None:
        """End it, and wake everybody who waits for something on it."""
        self.guard.interrupt()
        self.pending.interrupt()

    def lose(self) -> None:
        """The server does not know it any more: whoever waits for something on it learns that it is lost."""
        self._lost = True
        self.guard.interrupt()

    def limit(self, silence: Optional[float], lively: Optional[float]) -> None:
        """Take the stream for dead after so much silence, in seconds; less after signs of life."""
        if silence is not None:
            self.guard.silence, self.guard.lively = silence, lively

    # -- the thread that reads ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        body: Optional[Body] = None
        ending = "end of stream"
        error: MCPSyncError = TransportError("%s ended the stream of events" % self.where)
        try:
            body, url = _request(self.pool, "GET", None, {"Accept": "text/event-stream"}, self.guard, None)
            self._url = url
            if not 200 <= body.status < 300 or media_type(body.headers.get("Content-Type")) != "text/event-stream":
                raise _refusal(body, self.where, "a GET")
            events = EventStream(body.chunks(), self._max_bytes)
            body.signs_of_life = lambda: events.comments
            for event in events:
                self._take(event)
        except MCPSyncError as caught:
            error = caught
        except Exception as caught:
            # Whatever the libraries raise; it is told to all who wait for an answer.
            error, ending = failure(caught, self.guard, self.where, "GET", self.pool.options.connect_timeout, True)
            if self._lost:
                error = TransportError("%s does not know this client's stream any more" % self.where)
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
        try:
            endpoint = urljoin(self._url, told.strip())
            elsewhere = origin(endpoint) != origin(self.where) or not _PRINTABLE.fullmatch(endpoint)
        except ValueError:
            elsewhere = True
        if elsewhere:
            # Messages, and credentials with them, would go to somebody else.
            raise ProtocolError(
                "%s names an address for its messages that is none, or is on another origin: %s"
                % (self.where, beginning_of(told))
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
        self._opening: Optional[_Channel] = None
        self._posting: "Set[Guard]" = set()

    def connect(self, deadline: Deadline) -> int:
        return self._open_channel(deadline).number

    def exchange(self, outgoing: Outgoing, deadline: Deadline) -> Share:
        channel = self._the_channel(outgoing.channel, deadline)
        what = str(outgoing.message.get("method"))
        share = channel.pending.open(outgoing.message["id"], what, deadline, lambda share, answered: None)
        try:
            guard = Guard(deadline)
            share.sending, share.sending_until = guard.interrupt, guard.put_off
            about_to_send(outgoing, share)
            self._post(channel, outgoing, guard)
            share.sending = share.sending_until = None
        except TransportError:
            # The answer may have been quicker than what is wrong with the POST, and is what was wanted.
            if not share.answered:
                share.close()
                raise
        except BaseException:
            share.close()
            raise
        return share

    def unsolicited(
        self, headers: Mapping[str, str], deadline: Deadline, channel: Optional[int] = None, after: Optional[str] = None
    ) -> Share:
        the_channel = self._the_channel(channel, deadline)
        return the_channel.pending.open_rest(deadline, the_channel.limit)

    def send(self, outgoing: Outgoing, deadline: Deadline) -> None:
        self._post(self._the_channel(outgoing.channel, deadline), outgoing, Guard(deadline))

    def close(self) -> None:
        with self._changed:
            self._closed = True
            channels = [channel for channel in (self._channel, self._opening) if channel is not None]
            self._channel = None
            pool, self._pool = self._pool, None
            posting = list(self._posting)
            self._changed.notify_all()
        for guard in posting:
            guard.interrupt()
        for channel in channels:
            channel.close()
        for channel in channels:
            channel.worker.join(0.5)
        if pool is not None:
            pool.close()

    def after_fork_in_child(self) -> None:
        _fork.keep_for_ever((self._pool, self._channel, self._opening, self._posting))
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
                if self._opening is None:
                    break
                if not self._changed.wait(deadline.remaining()):
                    raise deadline.error(may_have_run=False)
            if self._pool is None:
                self._pool = Pool(self._options)
            self._opened += 1
            channel = self._opening = _Channel(self, self._pool, self._opened)
        opened = False
        try:
            channel.open(deadline)
            opened = True
        finally:
            with self._changed:
                self._opening = None
                self._channel = channel if opened and not self._closed else None
                unwanted = self._channel is None
                self._changed.notify_all()
            if unwanted:
                channel.close()
        return channel

    def _post(self, channel: _Channel, outgoing: Outgoing, guard: Guard) -> None:
        """Send a message to the address that the stream named; its answer, if any, comes on the stream."""
        body: Optional[Body] = None
        method = str(outgoing.message.get("method", "a reply"))
        with self._changed:
            if self._closed:
                raise TransportError("the connection to %s is closed" % self.where, may_have_run=False)
            self._posting.add(guard)
        try:
            data = encode(outgoing.message)
            body, _ = _request(channel.pool, "POST", data, outgoing.headers, guard, channel.endpoint)
            if not 200 <= body.status < 300:
                raise self._refused(channel, body, method)
            if media_type(body.headers.get("Content-Type")) == "application/json":
                # "Accepted" has no body. Some servers put the answer there, and nothing on the stream.
                self._take_answer(channel, body)
            else:
                body.farewell()
        except MCPSyncError:
            raise
        except Exception as error:
            if is_from_outside(error):
                raise
            raise failure(error, guard, self.where, method, self._options.connect_timeout, False)[0] from error
        finally:
            if body is not None:
                # If there is more of it than fits into one piece, the connection is not used again.
                body.close()
            guard.detach()
            with self._changed:
                self._posting.discard(guard)

    def _refused(self, channel: _Channel, body: Body, method: str) -> MCPSyncError:
        refusal = _refusal(body, self.where, method)
        told = getattr(refusal, "body_start", "") or str(refusal)
        if body.status in (404, 410) or (body.status == 400 and "session" in told.lower()):
            # The address is the stream's own: if it is unknown, so is the stream.
            channel.lose()
            lost = ChannelLost(
                "%s does not know this client's stream any more: %s" % (self.where, told), may_have_run=False
            )
            lost.sent = True
            return lost
        return refusal

    def _take_answer(self, channel: _Channel, body: Body) -> None:
        whole = bytearray()
        for piece in body.chunks():
            whole += piece
            if len(whole) > self._options.max_message_bytes:
                raise MessageTooLarge(
                    "%s answered a POST with more than %d bytes (max_message_bytes)"
                    % (self.where, self._options.max_message_bytes)
                )
        try:
            message = decode(bytes(whole))
        except ProtocolError:
            return  # a word of thanks
        channel.pending.deliver(message)


def _request(
    pool: Pool, verb: str, data: Optional[bytes], headers: Mapping[str, str], guard: Guard, url: Optional[str]
) -> "Tuple[Body, str]":
    """Send a request, follow redirects as far as that is safe, and return the answer and where it came from."""
    at = url or pool.options.url
    for _ in range(_MAX_REDIRECTS):
        body = Body(pool.request(verb, data, headers, guard, at), guard, pool.options.url)
        if body.status not in (307, 308):
            break
        target = urljoin(at, body.headers.get("Location") or "")
        try:
            elsewhere = origin(target) != origin(at) or not _PRINTABLE.fullmatch(target)
        except ValueError:
            elsewhere = True
        if elsewhere:
            body.close()
            raise TransportError(
                "%s answered %d and sends the client to another origin: %s. Credentials are not carried there; use "
                "that address for the client if it is right" % (at, body.status, beginning_of(target)),
                status=body.status,
                may_have_run=False,
            )
        body.close()
        guard.detach()
        at = target
    return body, at


def _refusal(body: Body, where: str, method: str) -> MCPSyncError:
    """Return the error that an answer is which should have been another."""
    try:
        message: Any = next(Answer(body, where, Outgoing({"method": method}, {}), 1024 * 1024).messages(), None)
    except TransportError as error:
        return error
    except Exception as error:
        if is_from_outside(error):
            raise
        message = str(error)  # it makes no sense, or broke off in the middle; its status is enough
    if isinstance(message, Response) and message.error is not None:
        message = message.error.get("message")
    return TransportError(
        "%s answered %s with HTTP status %d, which is not what a server of revision 2024-11-05 does: %s"
        % (where, method, body.status, beginning_of(message)),
        status=body.status,
        body_start=beginning_of(message),
    )
