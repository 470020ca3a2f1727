"""What answers HTTP requests: one class for each way in which the protocol has used HTTP."""

import abc
import logging
import urllib.parse
from typing import Optional, Tuple

from .answer import Answer
from .exchange import Core, Exchange
from .protocol import INTERNAL_ERROR, Forbidden, Refusal, error_response
from .request import Request
from .session import Session
from .waiting import Disconnected

_log = logging.getLogger(__name__)

#: What a 401 asks for.
CHALLENGE = 'Bearer realm="mcp_sync-testing"'
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


class Face(abc.ABC):
    """The endpoints of one server.

    :param core: what all requests share.
    :param host: the address that the server listens on; an ``Origin`` must name it, or this machine.
    :param path: the path of the endpoint.

    Threads: any thread may call any method.
    """

    def __init__(self, core: Core, host: str, path: str) -> None:
        self._core = core
        self._settings = core.settings
        self._host = host
        self._path = path

    @abc.abstractmethod
    def session(self, request: Request) -> Optional[Session]:
        """The legacy session that a request names, if there is such a one."""

    @abc.abstractmethod
    def route(self, exchange: Exchange) -> Answer:
        """The ordinary answer to a request.

        :raises Refusal: it is answered with a JSON-RPC error.
        :raises Forbidden: it is answered with HTTP 403.
        """

    def answer(self, exchange: Exchange) -> Answer:
        """The ordinary answer to a request; errors are answers too."""
        request = exchange.request
        try:
            return self.route(exchange)
        except Refusal as refusal:
            known = request.id if isinstance(request.id, (str, int, float)) else None
            error = error_response(known, refusal.code, refusal.message, refusal.data)
            return Answer(items=(error,), status=refusal.http_status)
        except Forbidden as forbidden:
            return plain(403, "{} may not see {}".format(request.principal, forbidden))
        except Disconnected:
            raise
        except Exception as error:
            # A callable of the user's: what it raised is shown on both sides.
            _log.exception("%s could not be answered", request)
            return Answer(items=(error_response(request.id, INTERNAL_ERROR, repr(error)),), status=500)

    def refused(self, request: Request) -> Optional[Answer]:
        """The refusal of a request that no era would take.

        Pages: basic/transports/streamable-http, "Security & Endpoint"; basic/authorization, "Error Handling".
        """
        origin = request.headers.get("Origin")
        if origin is not None and urllib.parse.urlsplit(origin).hostname not in _LOCAL_NAMES + (self._host,):
            return plain(403, "an origin that is not this machine")
        if self._core.authenticate is not None and request.principal is None:
            return plain(401, "authorization required", ("WWW-Authenticate", CHALLENGE))
        return None


def plain(status: int, text: str, *headers: Tuple[str, str]) -> Answer:
    """An HTTP answer for people."""
    body = (text + "\n").encode("utf-8")
    return Answer(status=status, headers=headers, body=body, content_type="text/plain; charset=utf-8")


def accepts(request: Request, *content_types: str) -> bool:
    """Whether the client takes all of these."""
    accepted = [part.split(";")[0].strip().lower() for part in request.headers.get("Accept", "").split(",")]
    return all(content_type in accepted for content_type in content_types)
