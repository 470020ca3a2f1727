"""A modern session: no more than the era itself, since every request stands alone."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Dict, Optional

from .._deadline import Deadline
from ..eras.base import Ended
from ..eras.modern import Modern
from ..errors import ProtocolError, beginning_of
from ..jsonrpc import Request, RequestIds
from ..notices import SubscriptionFilter
from ..transports.base import Exchange, Transport
from .base import Said, Session, Stream, answer_to, attended

if TYPE_CHECKING:
    from ..calling import Attempt

__all__ = ["ModernSession"]

_log = logging.getLogger("mcp_sync")


class ModernSession(Session):
    """Modern: no state at all.

    :param transport: how messages move.
    :param era: the revision.
    :param ids: where request ids come from.
    """

    def __init__(self, transport: Transport, era: Modern, ids: RequestIds) -> None:
        self.transport = transport
        self.era: Modern = era
        #: The channel on which the server showed that it is modern, where the transport has such; None before that.
        self.channel: Optional[int] = None
        self._ids = ids

    def call(
        self, method: str, params: Dict[str, Any], deadline: Deadline, attempt: "Optional[Attempt]" = None
    ) -> Dict[str, Any]:
        request_id = self._ids.next()
        if attempt is not None:
            params = dict(params, _meta={**params.get("_meta", {}), **attempt.meta(request_id, True)})
        outgoing = attended(self.era.request(request_id, method, params), attempt)
        with self.transport.exchange(outgoing, deadline) as exchange:
            return answer_to(exchange, outgoing, self.era, self.transport.where, self._asked, attempt)

    def listen(self, wanted: SubscriptionFilter, deadline: Deadline) -> Stream:
        request_id = self._ids.next()
        outgoing = self.era.listen(request_id, wanted)
        return _ModernStream(self.transport.exchange(outgoing, deadline), self.era, request_id)

    def _asked(self, request: Request) -> bool:
        _log.warning("ignored a request of the server's (%s): this revision has none", beginning_of(request.method))
        return False


class _ModernStream(Stream):
    def __init__(self, exchange: Exchange, era: Modern, request_id: int) -> None:
        super().__init__(exchange)
        self._era = era
        self._request_id = request_id

    def next(self) -> Said:
        message = next(self.exchange)
        if isinstance(message, ProtocolError):
            return message
        said = self._era.notice(self._request_id, message)
        if isinstance(said, Ended) and said.error is not None:
            said.error.status = self.exchange.status
            said.error.retry_after = self.exchange.retry_after
        return said
