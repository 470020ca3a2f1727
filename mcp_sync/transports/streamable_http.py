"""Streamable HTTP: every message is a POST, and its answer is a JSON body or a stream of events.

See the specification, basic/transports/streamable-http. Header values that repeat fields of the message are made by the
eras; this file sends them.
"""

import http.client
import logging
import os
import threading
import time
import zlib
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Callable, Dict, Iterator, Mapping, NoReturn, Optional, Tuple, Union
from urllib.parse import urljoin, urlsplit

import requests
import requests.auth
import requests.utils
import urllib3.exceptions

from .. import _fork
from .._deadline import Deadline
from .._eventstream import Event, EventStream
from .._version import __version__
from ..errors import (
    AuthorizationError,
    MCPSyncError,
    MessageTooLarge,
    ProtocolError,
    RequestTimeout,
    TransportError,
    beginning_of,
)
from ..jsonrpc import Response, decode, encode
from ._answers import media_type, retry_after_seconds
from ._sockets import Guard, GuardedAdapter, pool_for
from .base import Exchange, Outgoing, Received, Transport

__all__ = ["HTTPOptions", "StreamableHTTP"]

_log = logging.getLogger("mcp_sync")

Auth = Union[None, Tuple[str, str], Callable[[Any], Any]]

_CHUNK = 65536
_MAX_REDIRECTS = 5
# After the response has come on a stream, this long is waited for the stream's end, so that the connection can be used again.
_FAREWELL = 0.01

# What a connection's end looks like when the server closed it while it lay idle in the pool.
_GONE = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError, http.client.RemoteDisconnected)


class HTTPOptions:
    """How to reach a server over HTTP. Not changed after construction; any thread.

    :param url: the MCP endpoint.
    :param auth: what ``requests`` takes: ``(user, password)`` or a callable that is asked again for every request.
    :param headers: headers sent with every request.
    :param verify: True, False, or the path of a bundle of certificates.
    :param cert: a client certificate: a path, or ``(certificate, key)``.
    :param proxies: as in ``requests``; None to take them from the environment, once.
    :param connect_timeout: seconds for one attempt to connect.
    :param max_message_bytes: the longest message that is held in memory.
    :param connections: how many idle connections are kept.
    :raises ValueError: for a URL or a header that cannot be sent.
    """

    def __init__(
        self,
        url: str,
        *,
        auth: Auth = None,
        headers: Optional[Mapping[str, str]] = None,
        verify: Union[bool, str] = True,
        cert: Any = None,
        proxies: Optional[Mapping[str, str]] = None,
        connect_timeout: float = 10.0,
        max_message_bytes: int = 64 * 1024 * 1024,
        connections: int = 32
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("%r is not the URL of an MCP server: it has to begin with http:// or https://" % url)
        self.url = url
        self.origin = _origin(url)
        self.auth = auth
        self.headers = _checked(headers or {})
        # The environment is looked at once, here: requests does so for every request, which is half of what a request costs.
        if verify is True:
            verify = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or True
        self.verify = verify
        self.cert = cert
        self.proxies: Dict[str, str] = dict(
            requests.utils.get_environ_proxies(url, no_proxy=None) if proxies is None else proxies
        )
        self.connect_timeout = connect_timeout
        self.max_message_bytes = max_message_bytes
        self.connections = connections


def _origin(url: str) -> Tuple[str, str, Optional[int]]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _checked(headers: Mapping[str, str]) -> Dict[str, str]:
    for name, value in headers.items():
        text = "%s: %s" % (name, value)
        if not isinstance(value, str) or not all(" " <= char <= "~" or char == "\t" for char in text):
            raise ValueError("the header %r cannot be sent: names and values are printable ASCII" % name)
    return dict(headers)


class StreamableHTTP(Transport):
    """One server's MCP endpoint. Any thread.

    :param options: how to reach it.
    """

    def __init__(self, options: HTTPOptions) -> None:
        self.where = options.url
        self._options = options
        # Guards the three below. The session and its pool are made at first use, and anew after a fork.
        self._lock = threading.Lock()
        self._opened: Optional[_Opened] = None
        self._open_exchanges: Dict[int, "_HTTPExchange"] = {}
        self._closed = False
        _fork.register(self)

    def exchange(self, outgoing: Outgoing, deadline: Deadline) -> "_HTTPExchange":
        body = encode(outgoing.message)
        opened = self._open()
        exchange = _HTTPExchange(self, outgoing, deadline, self._options.max_message_bytes)
        with self._lock:
            self._open_exchanges[id(exchange)] = exchange
        try:
            exchange.send(opened, body)
        except BaseException:
            exchange.close()
            raise
        return exchange

    def with_auth(self, auth: Auth, headers: Optional[Mapping[str, str]]) -> "StreamableHTTP":
        """Return a transport to the same server for another principal, over the same pool of connections."""
        return _SharedTransport(self, auth, _checked(headers or {}))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            opened, self._opened = self._opened, None
            exchanges = list(self._open_exchanges.values())
        for exchange in exchanges:
            exchange.interrupt()
        if opened is not None:
            opened.close()

    def after_fork_in_child(self) -> None:
        # The parent's sockets are dropped elsewhere. Its pools are kept alive for ever: their finalisers take locks.
        _fork.keep_for_ever((self._opened, self._open_exchanges))
        self._lock = threading.Lock()
        self._opened = None
        self._open_exchanges = {}

    def _open(self) -> "_Opened":
        opened = self._opened
        if opened is None:
            with self._lock:
                if self._closed:
                    raise TransportError("the connection to %s is closed" % self.where, may_have_run=False)
                if self._opened is None:
                    self._opened = _Opened(self._options, GuardedAdapter(self._options.connections))
                opened = self._opened
        return opened

    def _ended(self, exchange: "_HTTPExchange") -> None:
        with self._lock:
            self._open_exchanges.pop(id(exchange), None)


class _SharedTransport(StreamableHTTP):
    """Another principal's transport over the connections of the first."""

    def __init__(self, parent: StreamableHTTP, auth: Auth, headers: Dict[str, str]) -> None:
        given = parent._options
        merged = dict(given.headers)
        merged.update(headers)
        super().__init__(
            HTTPOptions(
                given.url,
                auth=auth,
                headers=merged,
                verify=given.verify,
                cert=given.cert,
                proxies=given.proxies,
                connect_timeout=given.connect_timeout,
                max_message_bytes=given.max_message_bytes,
                connections=given.connections,
            )
        )
        self._parent = parent

    def _open(self) -> "_Opened":
        with self._lock:
            if self._closed:
                raise TransportError("the connection to %s is closed" % self.where, may_have_run=False)
            adapter = self._parent._open().adapter
            if self._opened is None or self._opened.adapter is not adapter:
                self._opened = _Opened(self._options, adapter, owns_adapter=False)
            return self._opened


class _Opened:
    """A pool of connections and what every request over it has in common. Not changed after construction."""

    def __init__(self, options: HTTPOptions, adapter: GuardedAdapter, owns_adapter: bool = True) -> None:
        self.options = options
        self.adapter = adapter
        self._owns_adapter = owns_adapter
        self.session: Optional[requests.Session] = None
        template = requests.Request("POST", options.url, headers=dict(options.headers)).prepare()
        template.headers.setdefault("User-Agent", "mcp_sync/%s" % __version__)
        template.headers["Content-Type"] = "application/json"
        template.headers["Accept"] = "application/json, text/event-stream"
        template.headers["Accept-Encoding"] = "identity"
        template.headers.pop("Content-Length", None)
        if isinstance(options.auth, tuple):
            template = requests.auth.HTTPBasicAuth(*options.auth)(template)
        self.template = template
        self.static_headers = dict(template.headers)
        self.pool, self.target = pool_for(adapter, template, options.verify, options.cert, options.proxies)
        if callable(options.auth):
            # Callables may register hooks (Digest does), which only a session runs.
            session = requests.Session()
            session.trust_env = False
            session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
            session.mount("http://", adapter)
            session.mount("https://", adapter)
            self.session = session

    def close(self) -> None:
        if self._owns_adapter:
            self.adapter.close()

    def post(self, body: bytes, headers: Mapping[str, str], deadline: Deadline, url: Optional[str]) -> Any:
        """Send one POST and return urllib3's response, headers read and body not."""
        limit = deadline.remaining()
        connect = self.options.connect_timeout
        if limit is not None:
            if limit <= 0.0:
                raise deadline.error(may_have_run=False)
            connect = min(connect, limit)
        if self.session is not None:
            prepared = self.template.copy()
            prepared.url = url or prepared.url
            prepared.headers.update(headers)
            prepared.prepare_body(body, None)
            prepared.prepare_auth(self.options.auth, url or self.options.url)
            return self.session.send(
                prepared,
                stream=True,
                timeout=(connect, limit),
                allow_redirects=False,
                verify=self.options.verify,
                cert=self.options.cert,
                proxies=self.options.proxies,
            ).raw
        merged = self.static_headers.copy()
        merged.update(headers)
        return self.pool.urlopen(
            "POST",
            self.target if url is None else _target(url, self.target),
            body=body,
            headers=merged,
            retries=False,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
            decode_content=False,
            timeout=urllib3.Timeout(connect=connect, read=limit),
        )


def _target(url: str, usual: str) -> str:
    if usual.startswith("http"):
        return url  # through a proxy, the request line names the whole URL
    parts = urlsplit(url)
    return (parts.path or "/") + ("?" + parts.query if parts.query else "")


class _HTTPExchange(Exchange):
    def __init__(self, transport: StreamableHTTP, outgoing: Outgoing, deadline: Deadline, max_bytes: int) -> None:
        self._transport = transport
        self._outgoing = outgoing
        self._guard = Guard(deadline)
        self._max_bytes = max_bytes
        self._raw: Any = None
        self._at_end = False
        self._closed = False
        self._events: Optional[EventStream] = None
        self._lively: Optional[float] = None
        self._messages: Iterator[Received] = iter(())

    # -- any thread ------------------------------------------------------------------------------------------------------

    @property
    def interrupted(self) -> bool:  # type: ignore[override]
        return self._guard.interrupted

    def interrupt(self) -> None:
        self._guard.interrupt()

    # -- only the thread that reads --------------------------------------------------------------------------------------

    def limit(self, deadline: Deadline, silence: Optional[float] = None, lively: Optional[float] = None) -> None:
        self._guard.deadline = deadline
        self._guard.silence = silence
        self._lively = lively

    def __next__(self) -> Received:
        return next(self._messages)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._guard.detach()
        raw, self._raw = self._raw, None
        if raw is not None:
            try:
                if self._at_end:
                    raw.release_conn()
                else:
                    raw.close()
            except (OSError, http.client.HTTPException, urllib3.exceptions.HTTPError):
                pass  # it is gone either way
        self._transport._ended(self)

    def send(self, opened: _Opened, body: bytes) -> None:
        """Send the request, read the answer's headers, and get ready to iterate.

        :raises TransportError: if there is no answer, or one that is no message.
        """
        url: Optional[str] = None
        repeats = 1 if self._outgoing.repeatable else 0
        redirects = 0
        while True:
            try:
                with self._guard:
                    self._raw = opened.post(body, self._outgoing.headers, self._guard.deadline, url)
            except MCPSyncError:
                raise
            except Exception as error:
                if repeats and not self._guard.interrupted and _gone(error):
                    # Most likely the connection had been closed while it was idle. Once more, on another one.
                    repeats -= 1
                    self._guard.detach()
                    continue
                self._failed(error, sending=True)
            status = self._raw.status
            if status not in (301, 302, 303, 307, 308):
                break
            redirects += 1
            url = self._redirected(status, url or opened.options.url, redirects)
        self.status = status
        self.headers = self._raw.headers
        self.retry_after = retry_after_seconds(self.headers.get("Retry-After"))
        self._read_answer(status)

    def _redirected(self, status: int, url: str, redirects: int) -> str:
        location = self._raw.headers.get("Location") or ""
        target = urljoin(url, location)
        if status in (301, 302, 303) or not location:
            self._refuse(
                "%s answered %d and names another address: %s. A POST is not repeated there; "
                "use that address for the client if it is right" % (url, status, target or "none")
            )
        if _origin(target) != _origin(self._transport.where):
            self._refuse(
                "%s answered %d and sends the client to another origin: %s. Credentials are not carried there; "
                "use that address for the client if it is right" % (url, status, target)
            )
        if redirects > _MAX_REDIRECTS:
            self._refuse("%s redirects in circles (%d times, last to %s)" % (self._transport.where, redirects, target))
        self._guard.detach()
        raw, self._raw = self._raw, None
        raw.close()
        return str(target)

    def _refuse(self, message: str) -> NoReturn:
        raise TransportError(
            message, status=self._raw.status, headers=dict(self._raw.headers), may_have_run=False
        )

    def _read_answer(self, status: int) -> None:
        kind = media_type(self.headers.get("Content-Type"))
        if status == 200 and kind == "text/event-stream":
            self._events = EventStream(self._chunks(), self._max_bytes)
            self._messages = self._from_events(self._events)
            return
        if status == 200 and kind == "application/json":
            if self._outgoing.streaming:
                self._messages = iter((self._only_message(),))
            else:
                body = self._body()
                self._messages = iter((decode(body),))
            return
        if status in (202, 204):
            raise ProtocolError(
                "%s answered a request (%s) with %d, which is no answer"
                % (self._transport.where, self._outgoing.message.get("method"), status)
            )
        try:
            body = self._body()
        except MCPSyncError:
            body = b""  # the status says enough
        if status in (401, 403):
            raise AuthorizationError(
                "%s refused the credentials with %d%s" % (self._transport.where, status, _saying(body)),
                status=status,
                headers=dict(self.headers),
                body_start=beginning_of(body),
                challenge=self.headers.get("WWW-Authenticate"),
                retry_after=self.retry_after,
            )
        if status >= 400:
            # Servers of the modern era put JSON-RPC errors into 4xx and 5xx, with whatever content type.
            try:
                message = decode(body)
            except ProtocolError:
                pass
            else:
                if isinstance(message, Response) and message.error is not None:
                    self._messages = iter((message,))
                    return
        if status == 200:
            raise ProtocolError(
                "%s answered with %s, neither application/json nor text/event-stream%s"
                % (self._transport.where, kind or "no content type", _saying(body))
            )
        raise TransportError(
            "%s answered with HTTP status %d%s" % (self._transport.where, status, _saying(body)),
            status=status,
            headers=dict(self.headers),
            body_start=beginning_of(body),
            may_have_run=status >= 500,
            retry_after=self.retry_after,
        )

    def _from_events(self, events: EventStream) -> Iterator[Received]:
        for event in events:
            if not isinstance(event, Event):
                yield event
                continue
            if event.name != "message" or not event.data:
                continue  # a priming event, or one of another protocol on the same stream
            try:
                message = decode(event.data)
            except ProtocolError as error:
                yield error
                continue
            if isinstance(message, Response):
                self._farewell()
                yield message
                return
            yield message
        raise TransportError(
            "%s ended the stream without an answer to %s%s"
            % (self._transport.where, self._outgoing.message.get("method"), _beginning_with(events)),
            status=self.status,
            headers=dict(self.headers),
            body_start=beginning_of(events.beginning),
        )

    def _farewell(self) -> None:
        """The answer is there. If the stream ends at once, its connection can be used again."""
        self.limit(Deadline(_FAREWELL))
        try:
            for _ in range(3):
                if self._at_end or not self._read(_CHUNK):
                    break
        except (OSError, http.client.HTTPException, ValueError):
            pass  # it does not; close() ends the connection

    def _only_message(self) -> Received:
        """Read a JSON body where a stream was asked for, without waiting for the end of one that never ends."""
        body = b""
        for chunk in self._chunks():
            body += chunk
            line, newline, rest = body.partition(b"\n")
            if newline and rest.strip() or len(body) > self._max_bytes:
                break
            if newline:
                try:
                    message = decode(line)
                except ProtocolError:
                    continue  # one message in several lines
                if isinstance(message, Response):
                    return message
                break
        else:
            return decode(body)
        return ProtocolError(
            "%s answered %s with application/json where it takes text/event-stream (newline-delimited JSON?): %s"
            % (self._transport.where, self._outgoing.message.get("method"), beginning_of(body))
        )

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length")
        if length is not None and length.isdigit() and int(length) > self._max_bytes:
            self._too_large()
        parts = []
        size = 0
        for chunk in self._chunks():
            size += len(chunk)
            if size > self._max_bytes:
                self._too_large()
            parts.append(chunk)
        return b"".join(parts)

    def _too_large(self) -> NoReturn:
        raise MessageTooLarge(
            "%s answered %s with more than %d bytes (max_message_bytes)"
            % (self._transport.where, self._outgoing.message.get("method"), self._max_bytes)
        )

    def _chunks(self) -> Iterator[bytes]:
        """Yield the body as it comes, decompressed, until its end."""
        decompress = self._decompressor()
        try:
            while True:
                chunk = self._read(_CHUNK)
                if not chunk:
                    break
                if decompress is None:
                    yield chunk
                else:
                    while chunk:
                        yield decompress.decompress(chunk, _CHUNK)
                        chunk = decompress.unconsumed_tail
        except MCPSyncError:
            raise
        except Exception as error:
            self._failed(error, sending=False)
        if self._guard.interrupted:
            self._failed(ConnectionAbortedError("interrupted"), sending=False)
        left = getattr(self._raw._fp, "length", None)
        if left:
            raise TransportError(
                "%s broke off its answer to %s, %d bytes before the end"
                % (self._transport.where, self._outgoing.message.get("method"), left),
                status=self.status,
                headers=dict(self.headers),
            )

    def _read(self, amount: int) -> bytes:
        # Straight from http.client: what there is, at once. urllib3's and requests' own ways wait for a buffer to fill.
        if self._lively is not None and self._events is not None and self._events.comments:
            self._guard.silence, self._lively = self._lively, None
        chunk: bytes = self._raw._fp.read1(amount)
        if chunk:
            self.heard_at = time.time()
        else:
            self._at_end = not getattr(self._raw._fp, "length", None)
        return chunk

    def _decompressor(self) -> Any:
        coding = (self.headers.get("Content-Encoding") or "identity").strip().lower()
        if coding in ("identity", ""):
            return None
        if coding in ("gzip", "x-gzip", "deflate"):
            return zlib.decompressobj(47)  # gzip or zlib, whichever it is
        raise ProtocolError(
            "%s compresses its answers (%s) although asked not to, in a way that is not understood here"
            % (self._transport.where, coding)
        )

    def _failed(self, error: Exception, sending: bool) -> NoReturn:
        """Raise this package's error for one of the libraries'."""
        where, method = self._transport.where, self._outgoing.message.get("method")
        if self._guard.interrupted:
            raise TransportError("the exchange with %s (%s) was interrupted" % (where, method)) from error
        chain = list(_chain(error))
        # urllib3 makes the failure of a connection a subclass of its time-outs, so that one is looked for first.
        connecting = any(
            isinstance(e, (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)) for e in chain
        )
        timed_out = any(isinstance(e, (TimeoutError, urllib3.exceptions.TimeoutError)) or _is_timeout(e) for e in chain)
        if self._guard.deadline.expired:
            raise self._guard.deadline.error(may_have_run=not connecting) from error
        if timed_out and not any(isinstance(e, urllib3.exceptions.NewConnectionError) for e in chain):
            if connecting:
                limit, what = self._transport._options.connect_timeout, "did not accept a connection (connect_timeout=)"
            else:
                limit, what = self._guard.silence or self._guard.deadline.timeout or 0.0, "sent nothing"
                self.ending = "silence"
            raise RequestTimeout("%s %s for %g s" % (where, what, limit), may_have_run=not connecting) from error
        self.ending = "reset"
        told = _told(chain[-1])
        if connecting or (sending and isinstance(error, (requests.exceptions.InvalidURL, ValueError))):
            raise TransportError("%s cannot be reached: %s" % (where, told), may_have_run=False) from error
        raise TransportError(
            "the connection to %s broke while %s: %s"
            % (where, "it was asked (%s)" % method if sending else "it answered %s" % method, told),
            status=self.status,
        ) from error


def _is_timeout(error: BaseException) -> bool:
    # socket.timeout is a class of its own before Python 3.10.
    return type(error).__name__ == "timeout"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those inside it, whichever way requests and urllib3 wrapped them."""
    seen = 0
    inner: Any = error
    while isinstance(inner, BaseException) and seen < 10:
        yield inner
        seen += 1
        following = getattr(inner, "reason", None)
        if not isinstance(following, BaseException):
            following = next((arg for arg in reversed(inner.args) if isinstance(arg, BaseException)), None)
        inner = following if following is not None else inner.__cause__ or inner.__context__


def _gone(error: BaseException) -> bool:
    return any(isinstance(inner, _GONE) for inner in _chain(error))


def _told(error: BaseException) -> str:
    return beginning_of(str(error) or type(error).__name__)


def _saying(body: bytes) -> str:
    start = beginning_of(body)
    return ": " + start if start else ""


def _beginning_with(events: EventStream) -> str:
    start = beginning_of(events.beginning)
    return "; it began: " + start if start else ""
