"""Who may see what: the status page behind its guard, and the health check, which tells next to nothing, for everybody."""

import json
import logging
from typing import Any, Callable, Dict, NamedTuple

from .clients import Clients
from .page import CONTENT_SECURITY_POLICY, page
from .report import FAILING, report

__all__ = ["Answer", "Guard", "StatusPage", "checked", "health"]

_log = logging.getLogger("mcp_sync")

#: Given the framework's request, returns True for whoever may see the page.
Guard = Callable[[Any], Any]

_HTML = "text/html; charset=utf-8"
_JSON = "application/json"
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Answer(NamedTuple):
    """An HTTP response, for whatever framework.

    :param status: the HTTP status.
    :param content_type: of the body.
    :param body: as text.
    :param headers: beside the content type.
    """

    status: int
    content_type: str
    body: str
    headers: Dict[str, str]


def checked(guard: Guard) -> Guard:
    """Return the guard.

    :raises TypeError: if it is none.
    """
    if not callable(guard):
        raise TypeError(
            "the status page needs a guard: a function that is given the request and returns True for whoever may see it"
        )
    return guard


class StatusPage:
    """The status page and the same as JSON, for those whom a guard lets in. Any thread.

    :param clients: what it is about.
    :param guard: called with the request, for each one. Only True lets in.
    :param refresh: seconds after which a browser loads the page again.
    :raises TypeError: if there is no guard: the page names servers, URIs and errors, which are not for everybody.
    """

    def __init__(self, clients: Clients, guard: Guard, refresh: int = 5) -> None:
        self._clients = clients
        self._guard = checked(guard)
        self._refresh = refresh

    def answer(self, request: Any, as_json: bool = False, json_address: str = "status.json") -> Answer:
        """Answer one request. What the guard raises is raised here: a framework's "forbidden", for example.

        :param request: the framework's, for the guard.
        :param as_json: whether JSON is wanted, and not the page.
        :param json_address: where the JSON is, for a link.
        """
        allowed = self._guard(request)
        if allowed is not True:
            # A redirect, a coroutine, a user: many things that are no answer would count as a yes.
            if allowed:
                _log.warning(
                    "the guard of the status page returned a %s, which is no answer: only True lets in", type(allowed).__name__
                )
            return _refusal(as_json)
        found = report(self._clients)
        if as_json:
            return Answer(200, _JSON, json.dumps(found.to_json(), indent=1), dict(_HEADERS))
        headers = dict(_HEADERS)
        headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        headers["X-Frame-Options"] = "DENY"
        return Answer(200, _HTML, page(found, self._refresh, json_address), headers)


def _refusal(as_json: bool) -> Answer:
    if as_json:
        return Answer(403, _JSON, json.dumps({"error": "forbidden"}), dict(_HEADERS))
    return Answer(403, "text/plain; charset=utf-8", "403: this page is not for you.\n", dict(_HEADERS))


def health(clients: Clients) -> Answer:
    """Answer a health check, without waiting: 200, or 503 if something that is watched was never read or is too old.

    It tells the aliases of the servers and one word for each, and nothing else. Clients that were not used yet are started,
    so that a process is healthy soon after its start.
    """
    found = report(clients)
    status = 503 if found.health == FAILING else 200
    return Answer(status, _JSON, json.dumps(found.health_document()), dict(_HEADERS))
