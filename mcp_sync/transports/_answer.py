"""What one HTTP answer says: from its status, its headers and its bytes to messages, or to the error that it is."""

from __future__ import annotations

import re
from typing import Iterator, NoReturn, Optional

from .._eventstream import Event, EventStream
from ..errors import AuthorizationError, MessageTooLarge, ProtocolError, TransportError, beginning_of
from ..jsonrpc import FOREIGN, Message, Notification, Response, classify_id, decode
from ._body import Body
from ._failures import is_from_outside
from ._headers import media_type, retry_after_seconds
from .base import Outgoing, Received

__all__ = ["Answer"]

# Of answers that are no messages only so much is read, in bytes, and no longer pause is borne, in seconds: the status
# says enough.
_ERROR_BYTES = 1024 * 1024
_ERROR_PATIENCE = 5.0

_MILLISECONDS = re.compile(r"[0-9]{1,9}")

# Says what changed and not how, so the next about the same thing says the same, and two at once say no more than one.
_UPDATED = "notifications/resources/updated"

_JSON = "application/json"
_EVENTS = "text/event-stream"


class Answer:
    """Reads one answer. One thread.

    :param body: its status, headers and bytes.
    :param where: the server, for people.
    :param outgoing: what was asked.
    :param max_bytes: the longest message that is held in memory.
    """

    def __init__(self, body: Body, where: str, outgoing: Outgoing, max_bytes: int) -> None:
        self._body = body
        self._where = where
        #: What the stream can be resumed by, if events have ids, and how long to wait before, in seconds.
        self.last_event_id: Optional[str] = None
        self.retry: Optional[float] = None
        # None for what is no request, and has no response: the stream of what a legacy server sends unasked.
        self._id: Optional[int] = outgoing.message.get("id")
        self._method = outgoing.message.get("method")
        self._streaming = outgoing.streaming
        self._max_bytes = max_bytes
        self._headers = body.headers
        self._status = body.status

    def messages(self) -> Iterator[Received]:
        """Return the messages. A single one was read when this returns; a stream is read as it is iterated.

        :raises TransportError: if it is the answer of an HTTP server that refuses or fails.
        :raises ProtocolError: if it is no answer.
        :raises MessageTooLarge: if it is longer than is held in memory.
        """
        kind = media_type(self._headers.get("Content-Type"))
        if 200 <= self._status < 300:
            if kind == _EVENTS:
                return self._from_events(EventStream(self._body.chunks(), self._max_bytes))
            if kind == _JSON:
                return iter((self._only_message() if self._streaming else self._one_message(),))
            self._no_answer(kind)
        beginning = self._beginning(_ERROR_BYTES)
        if self._status in (401, 403):
            raise AuthorizationError(
                "%s refused the credentials with %d%s" % (self._where, self._status, _saying(beginning)),
                status=self._status,
                headers=dict(self._headers),
                body_start=beginning_of(beginning),
                challenge=self._headers.get("WWW-Authenticate"),
                retry_after=retry_after_seconds(self._headers.get("Retry-After")),
            )
        if self._status >= 400:
            # Servers of the modern era put JSON-RPC errors into 4xx and 5xx, with whatever content type.
            error = _error_in(beginning, kind)
            if error is not None:
                return iter((error,))
        raise TransportError(
            "%s answered with HTTP status %d%s" % (self._where, self._status, _saying(beginning)),
            status=self._status,
            headers=dict(self._headers),
            body_start=beginning_of(beginning),
            may_have_run=self._status < 300 or self._status >= 500,
            retry_after=retry_after_seconds(self._headers.get("Retry-After")),
        )

    # -- a stream ------------------------------------------------------------------------------------------------------

    def _from_events(self, events: EventStream) -> Iterator[Received]:
        self._body.signs_of_life = lambda: events.comments
        for event in events:
            if not isinstance(event, Event):
                # What could not be read, or one that came before.
                yield event
                continue
            if event.id:
                self.last_event_id = event.id
            if event.retry is not None and _MILLISECONDS.fullmatch(event.retry):
                self.retry = int(event.retry) / 1000.0
            if event.name != "message" or not event.data:
                continue  # a priming event, or one of another protocol on the same stream
            try:
                message = decode(event.data)
            except ProtocolError as error:
                yield error
                continue
            if isinstance(message, Notification) and message.method == _UPDATED:
                events.again(message)
            if (
                isinstance(message, Response)
                and self._id is not None
                and classify_id(self._id, message.id) != FOREIGN
            ):
                self._body.farewell()
                yield message
                return
            yield message
            del event, message  # which may be large, and the next may be long in coming
        start = beginning_of(events.beginning)
        raise TransportError(
            "%s ended the stream without an answer to %s%s"
            % (self._where, self._method or "a GET", "; it began: " + start if start else ""),
            status=self._status,
            headers=dict(self._headers),
            body_start=start,
        )

    # -- one message ---------------------------------------------------------------------------------------------------

    def _one_message(self) -> Message:
        length = self._body.length
        if length is not None and length > self._max_bytes:
            self._too_large()
        parts = []
        size = 0
        for chunk in self._body.chunks():
            size += len(chunk)
            if size > self._max_bytes:
                self._too_large()
            parts.append(chunk)
        if not size:
            self._no_answer("nothing")
        return decode(b"".join(parts))

    def _only_message(self) -> Message:
        """Read a JSON body where a stream was asked for, without waiting for the end of one that never ends."""
        body = bytearray()
        first_line_is_open = True
        for chunk in self._body.chunks():
            body += chunk
            if len(body) > self._max_bytes:
                self._too_large()
            if first_line_is_open and b"\n" in chunk:
                first_line_is_open = False
                message = _message_in(bytes(body.partition(b"\n")[0]))
                if isinstance(message, Response):
                    return message
                if message is not None:
                    raise ProtocolError(
                        "%s answered %s with application/json where it takes text/event-stream (newline-delimited "
                        "JSON?): %s" % (self._where, self._method, beginning_of(body))
                    )
                # One message in several lines.
        if not body:
            self._no_answer("nothing")
        return decode(bytes(body))

    def _too_large(self) -> NoReturn:
        raise MessageTooLarge(
            "%s answered %s with more than %d bytes (max_message_bytes)" % (self._where, self._method, self._max_bytes)
        )

    # -- none ----------------------------------------------------------------------------------------------------------

    def _no_answer(self, kind: str) -> NoReturn:
        if self._status in (202, 204) or kind == "nothing":
            raise ProtocolError(
                "%s answered a request (%s) with %d and nothing else, which is no answer"
                % (self._where, self._method, self._status)
            )
        raise ProtocolError(
            "%s answered %s with %s, neither application/json nor text/event-stream%s"
            % (self._where, self._method, kind or "no content type", _saying(self._beginning(4096)))
        )

    def _beginning(self, limit: int) -> bytes:
        self._body.hurry(_ERROR_PATIENCE)
        beginning = bytearray()
        try:
            for chunk in self._body.chunks():
                beginning += chunk
                if len(beginning) >= limit:
                    break
        except Exception as error:
            # What came so far is all there is to show, and the status says the rest.
            if is_from_outside(error):
                raise
        return bytes(beginning[:limit])


def _message_in(data: bytes) -> Optional[Message]:
    try:
        return decode(data)
    except ProtocolError:
        return None


def _error_in(body: bytes, kind: str) -> Optional[Response]:
    texts = [body]
    if kind == _EVENTS:
        events = EventStream(iter((body, b"\n\n")), len(body) + 2)
        texts = [event.data.encode("utf-8") for event in events if isinstance(event, Event)]
    for text in texts:
        message = _message_in(text)
        if isinstance(message, Response) and message.error is not None:
            return message
    return None


def _saying(body: bytes) -> str:
    start = beginning_of(body)
    return ": " + start if start else ""
