"""What a transport offers: exchanges, and no more."""

from __future__ import annotations

import abc
import threading
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple, Union

from .._deadline import Deadline
from ..errors import ProtocolError, TransportError
from ..jsonrpc import Message

__all__ = [
    "ChannelLost",
    "Exchange",
    "Interrupted",
    "Outgoing",
    "Received",
    "Transport",
    "about_to_send",
    "of_this_thread",
]

#: A message, or the error that stands in the place of one that could not be read.
Received = Union[Message, ProtocolError]


class ChannelLost(TransportError):
    """The channel that a message was meant for is no more, and another has taken its place. Never reaches a user."""

    #: Whether the message was sent all the same, to a server that did not know what to do with it.
    sent = False


class Interrupted(TransportError):
    """An exchange was interrupted from this side, which says nothing about the server."""


class Outgoing:
    """A message on its way out. Nobody changes it; see :meth:`but`.

    :param message: the JSON-RPC message.
    :param headers: fields of it that a transport with headers repeats there.
    :param repeatable: whether it may be sent a second time if the first time failed on the way (reads may, calls may not).
    :param streaming: whether the answer is expected to last.
    :param channel: where transports have channels that can be lost (a child process, an event stream): the one that it is
        meant for (see :meth:`Transport.connect`); None for whichever there is.
    :param begun: called with the exchange before the message is sent, so that another thread can interrupt it even then.
    :param result_types: the kinds of result that are wanted (modern: ``resultType``).
    """

    # Written out, as the messages are.
    __slots__ = ("message", "headers", "repeatable", "streaming", "channel", "begun", "result_types")

    def __init__(
        self,
        message: Dict[str, Any],
        headers: Mapping[str, str],
        repeatable: bool = False,
        streaming: bool = False,
        channel: Optional[int] = None,
        begun: "Optional[Callable[[Exchange], None]]" = None,
        result_types: Tuple[str, ...] = ("complete",),
    ) -> None:
        self.message = message
        self.headers = headers
        self.repeatable = repeatable
        self.streaming = streaming
        self.channel = channel
        self.begun = begun
        self.result_types = result_types

    def but(self, **changes: Any) -> "Outgoing":
        """Return the same message with other values for some of the parameters."""
        return Outgoing(**{**{name: getattr(self, name) for name in self.__slots__}, **changes})


class Exchange(abc.ABC):
    """Iterates over the messages that answer one request, ending with its response.

    One thread iterates and closes; any thread may interrupt. **Interrupting is not closing**: an interrupted reader wakes up
    with a :class:`~mcp_sync.errors.TransportError` and closes for itself, because two threads in one socket's close are one
    too many.
    """

    #: Whether somebody interrupted it.
    interrupted = False
    #: How the answer came, for error messages and for what depends on it; None where the transport has no such thing.
    status: Optional[int] = None
    headers: Mapping[str, str] = {}
    retry_after: Optional[float] = None
    #: How it broke off, if it did: ``"end of stream"``, ``"reset"`` or ``"silence"``.
    ending: str = "end of stream"
    #: When the last byte of it came, in seconds since 1970; None if none did.
    heard_at: Optional[float] = None
    #: What a broken exchange can be resumed by, and how long to wait before, in seconds; None where that cannot be done.
    last_event_id: Optional[str] = None
    retry: Optional[float] = None

    def __iter__(self) -> Iterator[Received]:
        return self

    @abc.abstractmethod
    def __next__(self) -> Received:
        """Return the next message.

        :raises TransportError: if the exchange breaks off, is interrupted, or outlasts its limits.
        """

    @abc.abstractmethod
    def interrupt(self) -> None:
        """Wake the thread that reads, now or when it next reads. Any thread, any number of times; never blocks."""

    @abc.abstractmethod
    def close(self) -> None:
        """Give the connection back, or end it if the answer was not read to its end. Only the thread that reads."""

    @abc.abstractmethod
    def limit(self, deadline: Deadline, silence: Optional[float] = None, lively: Optional[float] = None) -> None:
        """Set new limits for what is still to be read.

        :param deadline: for all of it.
        :param silence: the longest pause between two pieces, in seconds; None for none but the deadline.
        :param lively: the same, once a sign of life that was no message has shown that the server sends such.
        """

    def put_off(self, deadline: Deadline) -> None:
        """Move the end of the time for all of it, also for a thread that waits already. Any thread."""
        self.limit(deadline)

    def __enter__(self) -> "Exchange":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class _OfThisThread(threading.local):
    begun: Optional[Callable[[Exchange], None]] = None


#: ``begun`` is called as that of :class:`Outgoing`, for the messages of this thread that have none.
of_this_thread = _OfThisThread()


def about_to_send(outgoing: Outgoing, exchange: Exchange) -> None:
    """Show the exchange of a message that is about to be sent to whoever may want to interrupt it."""
    begun = outgoing.begun or of_this_thread.begun
    if begun is not None:
        begun(exchange)


class Transport(abc.ABC):
    """One server's door. Any thread."""

    #: Where the server is, for people.
    where: str = ""
    #: Whether all messages share one channel, which can be lost.
    shared_channel = False
    #: Whether an exchange that is closed before its response has come is cancelled by a message.
    cancels = False
    #: Called with what comes on a shared channel and belongs to no exchange, by the thread that reads it; must not block.
    on_unclaimed: Optional[Callable[[Received], None]] = None

    def connect(self, deadline: Deadline) -> Optional[int]:
        """Make sure that there is a channel; return its number, or None where transports have none.

        :raises TransportError: if there cannot be one.
        """
        return None

    @abc.abstractmethod
    def exchange(self, outgoing: Outgoing, deadline: Deadline) -> Exchange:
        """Send a request and return the exchange that answers it.

        :raises TransportError: if the server cannot be reached or refuses.
        """

    @abc.abstractmethod
    def unsolicited(
        self, headers: Mapping[str, str], deadline: Deadline, channel: Optional[int] = None, after: Optional[str] = None
    ) -> Exchange:
        """Return an exchange of all that a legacy server sends without being asked. It has no response and does not end.

        :param headers: the session's.
        :param channel: as in :class:`Outgoing`.
        :param after: the id of the last event of an exchange that broke off, to resume that one where it can be done.
        :raises TransportError: if the server has no such thing.
        """

    @abc.abstractmethod
    def send(self, outgoing: Outgoing, deadline: Deadline) -> None:
        """Send a message that has no answer: a notification, or the reply to a request of the server's.

        :raises TransportError: if the server does not take it.
        """

    def end_session(self, headers: Mapping[str, str], deadline: Deadline) -> None:
        """Tell the server that a session is over, where there is a way to say so."""

    def fallback(self) -> "Optional[Transport]":
        """Return the transport to try if a legacy server has nothing at its address; None for none. It is closed with this one.

        :raises TransportError: if this one is closed.
        """
        return None

    @abc.abstractmethod
    def close(self) -> None:
        """Close all idle connections, and interrupt the exchanges that are open."""
