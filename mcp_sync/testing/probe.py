"""What a server of the legacy era answers to a request of the modern era, which it does not know.

The pages leave it open (basic/versioning, "Compatibility Matrix"); all of these have been met.
"""

from typing import Callable, Dict, Union

from .answer import Answer
from .call import Call, Fault
from .exchange import Exchange
from .legacy import Legacy, method_not_found
from .protocol import INVALID_REQUEST, LEGACY_BAD_REQUEST, error_of_nobody, error_response, result_response
from .session import Session
from .waiting import Disconnected

_HTML = b"<!DOCTYPE html>\n<html><body><h1>400 Bad Request</h1></body></html>\n"


class Probe:
    """One way to answer.

    :param how: a key of :data:`WAYS`, or a fault.
    :param legacy: the legacy methods.
    """

    def __init__(self, how: Union[str, Fault], legacy: Legacy) -> None:
        if isinstance(how, str) and how not in WAYS:
            raise ValueError("modern_probe must be one of {}, not {!r}".format(", ".join(WAYS), how))
        self._how = how
        self._legacy = legacy

    def answer(self, exchange: Exchange) -> Answer:
        """The answer to a modern request.

        :raises Disconnected: there is none.
        """
        if not isinstance(self._how, str):
            answer = self._how(Call(exchange, lambda: self._processed(exchange)))
            if answer is None:
                raise Disconnected("dealt with")
            return answer
        return WAYS[self._how](self, exchange)

    def _processed(self, exchange: Exchange) -> Answer:
        # As if the request were one of the legacy era: an answer without resultType.
        if exchange.request.method == "server/discover":
            return Answer(items=(result_response(exchange.request.id, self._legacy.greeting()),))
        session = exchange.session or Session(None, exchange.request.principal, False)
        return Answer(items=(self._legacy.respond(exchange, session),))

    def _silence(self, exchange: Exchange) -> Answer:
        exchange.wire.wait_until(lambda: False)
        raise Disconnected("the end of the silence")


def _always(answer: Answer) -> Callable[[Probe, Exchange], Answer]:
    return lambda probe, exchange: answer


#: The ways by name.
WAYS: Dict[str, Callable[[Probe, Exchange], Answer]] = {
    # npm server-everything: "id" is null.
    "-32000": _always(Answer(status=400, items=(
        error_of_nobody(LEGACY_BAD_REQUEST, "Bad Request: Server not initialized"),))),
    "-32600": lambda probe, exchange: Answer(status=400, items=(
        error_response(exchange.request.id, INVALID_REQUEST, "Invalid Request"),)),
    "-32601": lambda probe, exchange: Answer(items=(method_not_found(exchange.request),)),
    "400 empty": _always(Answer(status=400)),
    "400 html": _always(Answer(status=400, body=_HTML, content_type="text/html")),
    "401": _always(Answer(status=401, headers=(("WWW-Authenticate", 'Bearer realm="mcp_sync-testing"'),))),
    "404": _always(Answer(status=404, body=b"Not Found", content_type="text/plain")),
    "405": _always(Answer(status=405, headers=(("Allow", "GET"),))),
    "result": Probe._processed,
    "garbage": _always(Answer(body=b"\x00{]]", content_type="application/json")),
    "silence": Probe._silence,
}
