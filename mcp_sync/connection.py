"""One server, one settled era and transport: ``call``, ``listen``, ``close``."""

import logging
from typing import Any, Dict, Mapping, NamedTuple, Optional

from ._deadline import Deadline
from .eras.base import Era
from .errors import ProtocolError, RequestTimeout, TransportError, UnsupportedVersion, beginning_of
from .jsonrpc import FOREIGN, SAME, RequestIds, Response, classify_id
from .negotiate import first_era, next_era
from .notices import SubscriptionFilter
from .transports.base import Exchange, Transport

__all__ = ["Connection", "Stream"]

_log = logging.getLogger("mcp_sync")


class Stream(NamedTuple):
    """An open ``subscriptions/listen``: the exchange, and what is needed to understand it."""

    exchange: Exchange
    era: Era
    request_id: int


class Connection:
    """Speaks with one server. Any thread.

    :param transport: how messages move.
    :param client_info: the client's name and version.
    :param capabilities: what the client can do for the server.
    """

    def __init__(
        self, transport: Transport, client_info: Mapping[str, Any], capabilities: Optional[Mapping[str, Any]] = None
    ) -> None:
        self.transport = transport
        self._client_info = dict(client_info)
        self._capabilities = dict(capabilities or {})
        self._ids = RequestIds()
        # Replaced as a whole, by whichever thread learns better first: no lock.
        self._era = first_era(self._client_info, self._capabilities)

    @property
    def protocol_version(self) -> str:
        """The revision that is spoken; until a first answer, the one that is tried."""
        return self._era.version

    def call(self, method: str, params: Optional[Dict[str, Any]] = None, *, deadline: Deadline) -> Dict[str, Any]:
        """Send one request and return its result.

        :raises MCPSyncError: whatever went wrong (see :mod:`mcp_sync.errors`).
        """
        try:
            return self._call(self._era, method, params or {}, deadline)
        except UnsupportedVersion as refused:
            self._era = next_era(refused, self._client_info, self._capabilities)
            return self._call(self._era, method, params or {}, deadline)

    def listen(self, wanted: SubscriptionFilter, deadline: Deadline) -> Stream:
        """Open a stream of notices.

        :param deadline: for the answer's beginning; set the exchange's own limits afterwards.
        """
        era = self._era
        request_id = self._ids.next()
        return Stream(self.transport.exchange(era.listen(request_id, wanted), deadline), era, request_id)

    def close(self) -> None:
        """End all exchanges."""
        self.transport.close()

    def _call(self, era: Era, method: str, params: Dict[str, Any], deadline: Deadline) -> Dict[str, Any]:
        outgoing = era.request(self._ids.next(), method, params)
        unreadable: Optional[ProtocolError] = None
        with self.transport.exchange(outgoing, deadline) as exchange:
            try:
                for message in exchange:
                    if isinstance(message, Response):
                        self._check_id(outgoing.message["id"], message.id, method, exchange)
                        return era.result(outgoing, message, exchange)
                    if isinstance(message, ProtocolError):
                        _log.warning("skipped a message before the answer to %s: %s", method, message)
                        unreadable = message
                    else:
                        _log.debug("skipped %s before the answer to %s", beginning_of(message.method), method)
            except RequestTimeout:
                raise
            except TransportError as ended:
                # What was skipped may have been the answer, and tells more than that there was none.
                if unreadable is None or exchange.interrupted:
                    raise
                raise unreadable from ended
        raise ProtocolError("%s answered %s with a message that is no answer" % (self.transport.where, method))

    def _check_id(self, sent: int, came: Any, method: str, exchange: Exchange) -> None:
        fits = classify_id(sent, came)
        if fits == FOREIGN:
            # Whatever it came over is out of step: it must not serve another request.
            exchange.interrupt()
            raise ProtocolError(
                "%s answered %s with the answer to another request (id %s instead of %d)"
                % (self.transport.where, method, beginning_of(came), sent)
            )
        if fits != SAME:
            _log.info("%s answered %s with id %s for %d", self.transport.where, method, beginning_of(came), sent)
