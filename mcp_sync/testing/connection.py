"""Serving one connection: read a request, find its answer, send it, and again.

The order in which a request meets things: it is recorded, held by gates at ``"arrival"``, given to its faults, checked
and looked up, held by gates at ``"answer"``, and sent.
"""

import logging
import time
import urllib.parse
from typing import Optional, Tuple

from .answer import EVENT_STREAM, JSON, Answer
from .call import Call, Fault
from .control import Control
from .methods import Methods, Settings
from .outlet import Cut, Outlet
from .protocol import (
    INTERNAL_ERROR,
    Forbidden,
    Refusal,
    check_request,
    decode,
    error_response,
)
from .recorder import Recorder
from .request import Authenticate, Request, read_request
from .streams import Stream, Streams
from .wire import Disconnected, Wire

_log = logging.getLogger(__name__)

#: What a 401 asks for.
CHALLENGE = 'Bearer realm="mcp_sync-testing"'
# Enough for proxies and clients to see that the stream lives; the empty line keeps readers in step that want one.
_COMMENT = b": keep-alive\n\n"
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


class _Dealt(Exception):
    """A fault has dealt with the connection itself."""


class Connection:
    """The life of one accepted connection.

    :param wire: the connection.
    :param host: the address that the server listens on; an ``Origin`` must name it, or this machine.
    :param path: the path of the endpoint.

    The rest is what all connections of a server share.

    Threads: one thread calls :meth:`serve`, once.
    """

    def __init__(self, wire: Wire, host: str, path: str, settings: Settings, authenticate: Optional[Authenticate],
                 methods: Methods, streams: Streams, control: Control, recorder: Recorder) -> None:
        self._wire = wire
        self._host = host
        self._path = path
        self._settings = settings
        self._authenticate = authenticate
        self._methods = methods
        self._streams = streams
        self._control = control
        self._recorder = recorder
        # Of the exchange under way:
        self._stream: Optional[Stream] = None
        self._epoch = 0

    def serve(self) -> None:
        """Serve requests until one side ends the connection, and close it."""
        try:
            while self._exchange():
                pass
        except (Disconnected, _Dealt):
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
        if self._authenticate is not None:
            request.principal = self._authenticate(request.headers)
        self._recorder.add(request)
        self._control.hold(request, "arrival", self._wire)
        try:
            faults, self._epoch = self._control.faults(request)
            answer = self._through(faults, request)
            if self._stream is not None and answer.stream is not self._stream:
                self._streams.leave(self._stream)  # a fault has put another answer in its place
            self._control.hold(request, "answer", self._wire)
            return self._send(request, answer)
        finally:
            # The stream of this request, whatever a fault has made of the answer.
            if self._stream is not None:
                self._streams.discard(self._stream)
                self._stream = None

    # -- finding the answer --------------------------------------------------------------------------------------

    def _through(self, faults: Tuple[Fault, ...], request: Request) -> Answer:
        if not faults:
            return self._ordinary(request)
        call = Call(request, self._wire, lambda: self._through(faults[1:], request), self._pause)
        answer = faults[0](call)
        if answer is None:
            raise _Dealt()
        return answer

    def _pause(self) -> None:
        self._control.pause(self._wire, self._epoch)

    def _ordinary(self, request: Request) -> Answer:
        try:
            refused = self._refused_by_http(request)
            if refused is not None:
                return refused
            message = decode(request.body)
            if "id" not in message:
                return Answer(status=202)
            check_request(message, request.headers, self._settings.protocol_versions)
            answer = self._methods.answer(request, self._wire)
            self._stream = answer.stream
            return answer
        except Refusal as refusal:
            known = request.id if isinstance(request.id, (str, int, float)) else None
            error = error_response(known, refusal.code, refusal.message, refusal.data)
            return Answer(items=(error,), status=refusal.http_status)
        except Forbidden as forbidden:
            return _plain(403, "{} may not see {}".format(request.principal, forbidden))
        except Exception as error:
            # A callable of the user's: what it raised is shown on both sides.
            _log.exception("%s could not be answered", request)
            return Answer(items=(error_response(request.id, INTERNAL_ERROR, repr(error)),), status=500)

    def _refused_by_http(self, request: Request) -> Optional[Answer]:
        # basic/transports/streamable-http: "Security & Endpoint", "Sending Messages", "Earlier Streamable HTTP
        # Revisions"; basic/authorization, "Error Handling".
        if urllib.parse.urlsplit(request.path).path != self._path:
            return _plain(404, "the endpoint is " + self._path)
        if request.http_method != "POST":
            return _plain(405, "the endpoint takes POST only", ("Allow", "POST"))
        origin = request.headers.get("Origin")
        if origin is not None and urllib.parse.urlsplit(origin).hostname not in _LOCAL_NAMES + (self._host,):
            return _plain(403, "an origin that is not this machine")
        if self._authenticate is not None and request.principal is None:
            return _plain(401, "authorization required", ("WWW-Authenticate", CHALLENGE))
        accepted = [part.split(";")[0].strip().lower() for part in request.headers.get("Accept", "").split(",")]
        if JSON not in accepted or EVENT_STREAM not in accepted:
            return _plain(406, "Accept must list {} and {}".format(JSON, EVENT_STREAM))
        return None

    # -- sending it ----------------------------------------------------------------------------------------------

    def _send(self, request: Request, answer: Answer) -> bool:
        request.http_status = answer.status
        if request.http_version == "HTTP/1.0" and answer.framing == "chunked":
            answer = answer.replace(framing="close")  # chunks are not in that version
        last = (answer.stream is not None or answer.framing == "close" or self._wire.closing
                or request.http_version == "HTTP/1.0" or request.headers.get("Connection", "").lower() == "close")
        outlet = Outlet(self._wire, answer, last)
        try:
            if answer.stream is None:
                outlet.send_whole()
            else:
                self._serve_stream(outlet, answer.stream)
        except Cut:
            last = True
            if answer.after_cut == "reset":
                self._wire.ask_reset()
            elif answer.after_cut == "silence":
                self._pause()
        return not last

    def _serve_stream(self, outlet: Outlet, stream: Stream) -> None:
        outlet.start()
        self._streams.opened(stream)
        period = self._settings.keep_alive
        sent = time.monotonic()
        while True:
            items, ending = stream.take()
            if items:
                outlet.write(items)
                sent = time.monotonic()
                continue
            if ending is None and self._wire.closing:
                ending = "result"  # the server stops: basic/patterns/subscriptions, "Graceful Closure"
            if ending is not None:
                self._streams.leave(stream)
                outlet.write(stream.farewell(ending, self._methods.complete({})))
                if ending not in ("cut", "reset"):
                    outlet.finish()
                return
            left = None if period is None else sent + period - time.monotonic()
            if left is not None and left <= 0:
                outlet.write([_COMMENT])
                sent = time.monotonic()
            else:
                self._wire.wait(left)


def _plain(status: int, text: str, *headers: Tuple[str, str]) -> Answer:
    body = (text + "\n").encode("utf-8")
    return Answer(status=status, headers=headers, body=body, content_type="text/plain; charset=utf-8")
