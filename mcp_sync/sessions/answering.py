"""The requests that a legacy server makes of the client, and the threads that answer them."""

import collections
import logging
import threading
from typing import Callable, ContextManager, Deque, List, Set

from .. import _fork
from .._deadline import Deadline
from .._worker import Worker
from ..eras.legacy import Legacy
from ..errors import MCPSyncError, beginning_of
from ..jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Request, encode
from ..transports.base import Outgoing, Transport
from .base import Handlers, InvalidParams

__all__ = ["Answering"]

_log = logging.getLogger("mcp_sync")

#: How many requests of a server are answered at the same time, and how many may wait for that.
_ANSWERERS = 16
_MAX_ASKED = 1000


class Answering:
    """Answers the requests of one session's server. Any thread.

    :param transport: how answers move.
    :param handlers: who gives them.
    :param era: returns the session's era.
    :param over: set when the session is.
    :param waiting: entered while a user is busy with something that may hold up any call.
    """

    def __init__(
        self,
        transport: Transport,
        handlers: Handlers,
        era: Callable[[], Legacy],
        over: Callable[[], bool],
        waiting: "Callable[[], ContextManager[None]]",
    ) -> None:
        self._transport = transport
        self._handlers = handlers
        self._era = era
        self._over = over
        self._waiting = waiting
        self._made_anew()
        _fork.register(self)

    def _made_anew(self) -> None:
        self._lock = threading.Lock()  # guards the two below
        self._asked: Deque[Request] = collections.deque()
        self._answerers: Set[Worker] = set()

    def after_fork_in_child(self) -> None:
        self._made_anew()

    @property
    def threads(self) -> List[Worker]:
        """Those that answer something at the moment."""
        with self._lock:
            return list(self._answerers)

    def here(self, request: Request) -> bool:
        """Answer a request of the server's, in this thread; return whether that was left to a handler."""
        try:
            self._send(self._reply_to(request))
        except MCPSyncError as error:
            _log.warning("could not answer %s of %s: %s", beginning_of(request.method), self._transport.where, error)
        return self._is_for_a_user(request)

    def elsewhere(self, request: Request) -> bool:
        """Answer in a thread for that: the one that reads must not wait, and never runs a user's code."""
        with self._lock:
            if self._over() or len(self._asked) >= _MAX_ASKED:
                return False
            if request.method == "ping":
                self._asked.appendleft(request)  # who asks whether one lives must not wait for a user
            else:
                self._asked.append(request)
            if len(self._answerers) >= _ANSWERERS:
                return False
            # One for each: a handler that calls the server may cause the next question, and waits for its answer.
            start = Worker("mcp_sync-answers", lambda: self._answer_all(start))
            self._answerers.add(start)
        start.start()
        return False

    def _is_for_a_user(self, request: Request) -> bool:
        return request.method != "ping" and request.method in self._handlers

    def _answer_all(self, worker: Worker) -> None:
        try:
            while True:
                with self._lock:
                    if not self._asked or self._over():
                        self._answerers.discard(worker)
                        return
                    request = self._asked.popleft()
                if self._is_for_a_user(request):
                    # Which call is held up by this question, if any, the server does not say.
                    with self._waiting():
                        self.here(request)
                else:
                    self.here(request)
        finally:
            with self._lock:
                self._answerers.discard(worker)

    def _reply_to(self, request: Request) -> Outgoing:
        if request.method == "ping":
            return self._era().reply(request.id, {})
        handler = self._handlers.get(request.method)
        if handler is None:
            told = {"code": METHOD_NOT_FOUND, "message": "Method not found: %s" % beginning_of(request.method)}
            return self._era().reply(request.id, None, told)
        try:
            result = handler(request.params)
            if not isinstance(result, dict):
                raise TypeError("the handler of %s has to return a dict, not %r" % (request.method, result))
            encode(result)
            return self._era().reply(request.id, result)
        except InvalidParams as error:
            return self._era().reply(request.id, None, {"code": INVALID_PARAMS, "message": str(error)})
        except Exception as error:
            # The boundary between a user's code and ours: the server has to be told something.
            _log.exception("the handler of %s failed", request.method)
            return self._era().reply(request.id, None, {"code": -32603, "message": beginning_of(str(error))})

    def _send(self, reply: Outgoing) -> None:
        self._transport.send(reply, Deadline(10.0, "the answer to a request of the server's"))
