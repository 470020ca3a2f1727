"""Streamable HTTP: every message is a POST, and its answer is a JSON body or a stream of events.

See the specification, basic/transports/streamable-http. Header values that repeat fields of the message are made by the
eras. Here is who owns what; from the bottom up, each file importing only those before it:

* ``_headers``, ``_options``, ``_guard``: what an answer's headers mean; how to reach the server; one exchange's hold on its
  socket;
* ``_sockets``, ``_pool``: connections that keep to a deadline; the sending of one POST over them;
* ``_failures``, ``_body``, ``_answer``: the libraries' errors; an answer's bytes; what they say;
* ``_exchange``: one POST and its answer, from end to end.
"""

import threading
from typing import Dict, Mapping, Optional

from .. import _fork
from .._deadline import Deadline
from ..errors import MCPSyncError, TransportError
from ..jsonrpc import encode
from ._exchange import HTTPExchange
from ._failures import failure
from ._guard import Guard
from ._options import Auth, HTTPOptions
from ._pool import Pool
from .base import Outgoing, Transport

__all__ = ["Auth", "HTTPOptions", "StreamableHTTP"]


class StreamableHTTP(Transport):
    """One server's MCP endpoint. Any thread.

    :param options: how to reach it.
    """

    def __init__(self, options: HTTPOptions) -> None:
        self.where = options.url
        self._options = options
        # Guards the three below. The pool is made at first use, and anew after a fork.
        self._lock = threading.Lock()
        self._pool: Optional[Pool] = None
        self._exchanges: Dict[int, HTTPExchange] = {}
        self._closed = False
        _fork.register(self)

    def exchange(self, outgoing: Outgoing, deadline: Deadline) -> HTTPExchange:
        return self._exchange(HTTPExchange(self._opened(), outgoing, deadline, self._ended), encode(outgoing.message))

    def unsolicited(
        self, headers: Mapping[str, str], deadline: Deadline, channel: Optional[int] = None, after: Optional[str] = None
    ) -> HTTPExchange:
        asked = dict(headers)
        asked["Accept"] = "text/event-stream"
        if after is not None:
            asked["Last-Event-ID"] = after
        outgoing = Outgoing({}, asked, repeatable=True, streaming=True)
        return self._exchange(HTTPExchange(self._opened(), outgoing, deadline, self._ended, "GET"), None)

    def send(self, outgoing: Outgoing, deadline: Deadline) -> None:
        self._without_answer("POST", encode(outgoing.message), outgoing.headers, deadline)

    def end_session(self, headers: Mapping[str, str], deadline: Deadline) -> None:
        self._without_answer("DELETE", None, headers, deadline)

    def _exchange(self, exchange: HTTPExchange, message: Optional[bytes]) -> HTTPExchange:
        with self._lock:
            # Asked again: the transport may have been closed since, and nobody would interrupt this exchange then.
            if self._closed:
                raise self._is_closed()
            self._exchanges[id(exchange)] = exchange
        try:
            exchange.send(message)
        except BaseException:
            exchange.close()
            raise
        return exchange

    def with_auth(self, auth: Auth, headers: Optional[Mapping[str, str]]) -> "StreamableHTTP":
        """Return a transport to the same server for another principal, over the same connections."""
        return _SharedTransport(self, self._options.for_principal(auth, headers))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
            exchanges = list(self._exchanges.values())
        for exchange in exchanges:
            exchange.interrupt()
        if pool is not None:
            pool.close()

    def after_fork_in_child(self) -> None:
        # The parent's sockets are dropped elsewhere. Its pools are kept alive for ever: their finalisers take locks.
        _fork.keep_for_ever((self._pool, self._exchanges))
        self._lock = threading.Lock()
        self._pool = None
        self._exchanges = {}

    def _without_answer(self, verb: str, body: Optional[bytes], headers: Mapping[str, str], deadline: Deadline) -> None:
        """Send something, and only look whether the server took it."""
        guard = Guard(deadline)
        try:
            raw = self._opened().request(verb, body, headers, guard, None)
            status = raw.status
            # Only what has no body for certain is given back; a body may have no end.
            empty = status == 204 or raw.headers.get("Content-Length") == "0"
            raw.release_conn() if empty else raw.close()
        except MCPSyncError:
            raise
        except Exception as error:
            raise failure(error, guard, self.where, verb, self._options.connect_timeout, False)[0] from error
        if status >= 300:
            raise TransportError("%s answered %d to what has no answer" % (self.where, status), status=status)

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
