"""Streamable HTTP: every message is a POST, and its answer is a JSON body or a stream of events.

See the specification, basic/transports/streamable-http. Header values that repeat fields of the message are made by the
eras. Here is who owns what; from the bottom up, each file importing only those before it:

* ``_headers``, ``_options``, ``_guard``: what an answer's headers mean; how to reach the server; one exchange's hold on
  its socket;
* ``_sockets``, ``_pool``: connections that keep to a deadline; the sending of one POST over them;
* ``_failures``, ``_body``, ``_answer``: the libraries' errors; an answer's bytes; what they say;
* ``_exchange``: one POST and its answer, from end to end.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Callable, Dict, Mapping, Optional

from .. import _fork
from .._deadline import Deadline
from ..errors import TransportError
from ..jsonrpc import encode
from ._exchange import HTTPExchange
from ._options import Auth, HTTPOptions
from ._pool import Pool
from .base import Outgoing, Transport, about_to_send

if TYPE_CHECKING:
    from .http_sse import HTTPSSE

__all__ = ["Auth", "HTTPOptions", "StreamableHTTP"]


class StreamableHTTP(Transport):
    """One server's MCP endpoint. Any thread.

    :param options: how to reach it.
    """

    def __init__(self, options: HTTPOptions) -> None:
        self.where = options.url
        self._options = options
        # Guards the four below. The pool is made at first use, and anew after a fork.
        self._lock = threading.Lock()
        self._pool: Optional[Pool] = None
        self._fallback: "Optional[HTTPSSE]" = None
        self._exchanges: Dict[int, HTTPExchange] = {}
        self._closed = False
        _fork.register(self)

    def exchange(self, outgoing: Outgoing, deadline: Deadline) -> HTTPExchange:
        exchange = HTTPExchange(self._opened(), outgoing, deadline, self._ended)
        about_to_send(outgoing, exchange)
        self._begun(exchange, exchange.send, encode(outgoing.message))
        return exchange

    def unsolicited(
        self, headers: Mapping[str, str], deadline: Deadline, channel: Optional[int] = None, after: Optional[str] = None
    ) -> HTTPExchange:
        asked = dict(headers)
        asked["Accept"] = "text/event-stream"
        if after is not None:
            asked["Last-Event-ID"] = after
        outgoing = Outgoing({}, asked, repeatable=True, streaming=True)
        exchange = HTTPExchange(self._opened(), outgoing, deadline, self._ended, "GET")
        self._begun(exchange, exchange.send, None)
        return exchange

    def send(self, outgoing: Outgoing, deadline: Deadline) -> None:
        exchange = HTTPExchange(self._opened(), outgoing, deadline, self._ended)
        self._begun(exchange, exchange.send_only, encode(outgoing.message))
        exchange.close()

    def end_session(self, headers: Mapping[str, str], deadline: Deadline) -> None:
        exchange = HTTPExchange(self._opened(), Outgoing({}, headers, repeatable=True), deadline, self._ended, "DELETE")
        self._begun(exchange, exchange.send_only, None)
        exchange.close()

    def _begun(
        self, exchange: HTTPExchange, send: Callable[[Optional[bytes]], None], message: Optional[bytes]
    ) -> None:
        """Begin an exchange, known to whoever closes the transport."""
        with self._lock:
            # Asked again: the transport may have been closed since, and nobody would interrupt this exchange then.
            if self._closed:
                raise self._is_closed()
            self._exchanges[id(exchange)] = exchange
        try:
            send(message)
        except BaseException:
            exchange.close()
            raise

    def with_auth(self, auth: Auth, headers: Optional[Mapping[str, str]]) -> "StreamableHTTP":
        """Return a transport to the same server for another principal, over the same connections."""
        return _SharedTransport(self, self._options.for_principal(auth, headers))

    def fallback(self) -> "HTTPSSE":
        """Return the transport to a server of 2024 at the same address; made at first use, since few need it."""
        with _fork.held_off():
            from .http_sse import HTTPSSE
        with self._lock:
            if self._closed:
                raise self._is_closed()
            if self._fallback is None:
                self._fallback = HTTPSSE(self._options)
            return self._fallback

    def close(self) -> None:
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
            fallback = self._fallback
            exchanges = list(self._exchanges.values())
        for exchange in exchanges:
            exchange.interrupt()
        if pool is not None:
            pool.close()
        if fallback is not None:
            fallback.close()

    def after_fork_in_child(self) -> None:
        # The parent's sockets are dropped elsewhere. Its pools are kept alive for ever: their finalisers take locks.
        _fork.keep_for_ever((self._pool, self._exchanges))
        self._lock = threading.Lock()
        self._pool = None
        self._exchanges = {}

    def _opened(self) -> Pool:
        pool = self._pool
        if pool is None:
            with self._lock:
                if self._closed:
                    raise self._is_closed()
                if self._pool is None:
                    self._pool = Pool(self._options)
                pool = self._pool
        return pool

    def _is_closed(self) -> TransportError:
        return TransportError("the connection to %s is closed" % self.where, may_have_run=False)

    def _ended(self, exchange: HTTPExchange) -> None:
        with self._lock:
            self._exchanges.pop(id(exchange), None)


class _SharedTransport(StreamableHTTP):
    """Another principal's transport over the connections of the first, whose end is its own."""

    def __init__(self, parent: StreamableHTTP, options: HTTPOptions) -> None:
        super().__init__(options)
        self._parent = parent

    def _opened(self) -> Pool:
        adapter = self._parent._opened().adapter
        with self._lock:
            if self._closed:
                raise self._is_closed()
            if self._pool is None or self._pool.adapter is not adapter:
                self._pool = Pool(self._options, adapter)
            return self._pool
