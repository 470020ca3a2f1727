"""One request and its answer: sent, sent again where that is right, redirected where that is safe, and read."""

from __future__ import annotations

from typing import Any, Callable, Iterator, NoReturn, Optional
from urllib.parse import urljoin

import requests.utils

from .._deadline import Deadline
from ..errors import MCPSyncError, TransportError
from ._answer import Answer
from ._body import Body
from ._failures import failure, is_from_outside, lost_connection
from ._guard import Guard
from ._headers import retry_after_seconds
from ._options import origin
from ._pool import Pool
from .base import Exchange, Outgoing, Received

__all__ = ["HTTPExchange"]

_MAX_REDIRECTS = 5


class HTTPExchange(Exchange):
    """The exchange of streamable HTTP.

    :param pool: the connections.
    :param outgoing: what to ask.
    :param deadline: for all of it, unless :meth:`limit` says otherwise.
    :param ended: called once, when it is closed.
    :param verb: ``POST``, or ``GET`` for the stream of what a legacy server sends unasked.
    """

    def __init__(
        self,
        pool: Pool,
        outgoing: Outgoing,
        deadline: Deadline,
        ended: "Callable[[HTTPExchange], None]",
        verb: str = "POST",
    ) -> None:
        self._verb = verb
        self._answer: Optional[Answer] = None
        self._pool = pool
        self._outgoing = outgoing
        self._method = str(outgoing.message.get("method", verb))
        self._where = pool.options.url
        self._ended = ended
        self._guard = Guard(deadline)
        self._body: Optional[Body] = None
        self._closed = False
        self._messages: Iterator[Received] = iter(())

    # -- any thread ----------------------------------------------------------------------------------------------------

    @property
    def interrupted(self) -> bool:  # type: ignore[override]
        return self._guard.interrupted

    def interrupt(self) -> None:
        self._guard.interrupt()

    def put_off(self, deadline: Deadline) -> None:
        self._guard.put_off(deadline)

    @property
    def heard_at(self) -> Optional[float]:  # type: ignore[override]
        body = self._body
        return None if body is None else body.heard_at

    @property
    def last_event_id(self) -> Optional[str]:  # type: ignore[override]
        answer = self._answer
        return None if answer is None else answer.last_event_id

    @property
    def retry(self) -> Optional[float]:  # type: ignore[override]
        answer = self._answer
        return None if answer is None else answer.retry

    # -- only the thread that reads ------------------------------------------------------------------------------------

    def limit(self, deadline: Deadline, silence: Optional[float] = None, lively: Optional[float] = None) -> None:
        self._guard.deadline = deadline
        self._guard.silence = silence
        self._guard.lively = lively

    def __next__(self) -> Received:
        try:
            return next(self._messages)
        except StopIteration:
            raise
        except Exception as error:
            self._fail(error, answering=True)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._body is not None:
            self._body.close()
        self._guard.detach()
        self._ended(self)

    def send(self, message: Optional[bytes]) -> None:
        """Send the request, read the answer's headers (and body, if it is one message), and get ready to iterate.

        :raises TransportError: if there is no answer, or one that says so.
        :raises ProtocolError: if there is one that makes no sense.
        """
        self._request(message)
        assert self._body is not None
        self._answer = Answer(self._body, self._where, self._outgoing, self._pool.options.max_message_bytes)
        try:
            self._messages = self._answer.messages()
        except Exception as error:
            self._fail(error, answering=True)

    def send_only(self, message: Optional[bytes]) -> None:
        """Send what has no answer, and look only whether the server took it.

        :raises TransportError: if it did not.
        """
        self._request(message)
        assert self._body is not None and self.status is not None
        if self.status >= 300:
            self._fail(
                TransportError(
                    "%s answered %s with HTTP status %d" % (self._where, self._method, self.status), status=self.status
                ),
                answering=True,
            )
        # "Accepted", usually; if there is more of it than fits into one piece, the connection is not used again.
        self._body.farewell()

    def _request(self, message: Optional[bytes]) -> None:
        """Send the request, and read the answer's headers."""
        url: Optional[str] = None
        again = self._outgoing.repeatable
        redirects = 0
        while True:
            try:
                raw = self._pool.request(self._verb, message, self._outgoing.headers, self._guard, url)
            except Exception as error:
                if again and not self._guard.interrupted and lost_connection(error):
                    # Most likely the connection had been closed while it was idle. Once more, on another one.
                    again = False
                    self._guard.detach()
                    continue
                self._fail(error, answering=False)
            self._body = Body(raw, self._guard, self._where)
            if raw.status not in (301, 302, 303, 307, 308):
                break
            redirects += 1
            url = self._redirected(raw, url or self._where, redirects)
        self.status = raw.status
        self.headers = raw.headers
        self.retry_after = retry_after_seconds(raw.headers.get("Retry-After"))

    def _redirected(self, raw: Any, url: str, redirects: int) -> str:
        """Return where to go instead, after giving up the connection; refuse to go elsewhere than the same origin."""
        status = raw.status
        location = raw.headers.get("Location") or ""
        try:
            # Headers come as Latin-1; what servers put there is UTF-8, if it is not escaped.
            target = requests.utils.requote_uri(urljoin(url, location.encode("latin-1").decode("utf-8", "replace")))
            elsewhere = origin(target) != origin(self._where)
        except ValueError:
            target, elsewhere = location, True
        told = None
        if not location or status in (301, 302, 303):
            told = (
                "%s answered %d and names another address: %s. A POST is not repeated there; use that address for the "
                "client if it is right" % (url, status, target if location else "none")
            )
        elif elsewhere:
            told = (
                "%s answered %d and sends the client to another origin: %s. Credentials are not carried there; "
                "use that address for the client if it is right" % (url, status, target)
            )
        elif redirects > _MAX_REDIRECTS:
            told = "%s redirects in circles (%d times, last to %s)" % (self._where, redirects, target)
        if told is not None:
            self._fail(
                TransportError(told, status=status, headers=dict(raw.headers), may_have_run=False), answering=True
            )
        assert self._body is not None
        self._body.close()
        return target

    def _fail(self, error: Exception, answering: bool) -> NoReturn:
        """Raise this package's error for any error.

        :param answering: whether the answer had begun.
        """
        if isinstance(error, MCPSyncError):
            raise self._told(error)
        if is_from_outside(error):
            raise error
        raised, self.ending = failure(
            error, self._guard, self._where, self._method, self._pool.options.connect_timeout, answering
        )
        raised.status, raised.headers = self.status, dict(self.headers)
        raise self._told(raised) from error

    def _told(self, error: MCPSyncError) -> MCPSyncError:
        """Return the error, and have it say whether the request may have run, if it is one that is not to run twice."""
        if not self._outgoing.repeatable:
            ran = getattr(error, "may_have_run", True)
            error.message += "; the request may have been executed" if ran else "; the request was not executed"
            error.args = (error.message,)
        return error
