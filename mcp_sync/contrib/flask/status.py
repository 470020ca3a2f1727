"""The status page as a blueprint, and the health check."""

from typing import Any

from flask import Blueprint, Response, current_app, request, url_for

from ..clients import Clients
from ..serving import Answer, Guard, StatusPage, checked
from ..serving import health as answer_health

__all__ = ["health", "status_blueprint"]


def status_blueprint(guard: Guard, name: str = "mcp_status", refresh: int = 5) -> Any:
    """Return a blueprint with the status page (``/``) and the same as JSON (``/status.json``).

    :param guard: called with the request, for each one. Only True lets in; it may also ``abort``.
    :param name: the blueprint's.
    :param refresh: seconds after which a browser loads the page again.
    :raises TypeError: if there is no guard.
    """
    checked(guard)  # now, and not at the first visit
    blueprint = Blueprint(name, __name__)

    def answered(as_json: bool) -> Any:
        # A plain request: a guard gets what it can keep.
        asked = request._get_current_object()
        address = url_for("%s.status_json" % (asked.blueprint or name))
        return _response(StatusPage(_clients(), guard, refresh).answer(asked, as_json, address))

    def status() -> Any:
        return answered(False)

    def status_json() -> Any:
        return answered(True)

    blueprint.add_url_rule("/", "status", status)
    blueprint.add_url_rule("/status.json", "status_json", status_json)
    return blueprint


def health() -> Any:
    """A view: 200 if all that is watched can be served, 503 if not; see :func:`mcp_sync.contrib.serving.health`."""
    return _response(answer_health(_clients()))


def _clients() -> Clients:
    clients: Clients = current_app.extensions["mcp_sync"]
    return clients


def _response(answer: Answer) -> Any:
    return Response(answer.body, status=answer.status, content_type=answer.content_type, headers=answer.headers)
