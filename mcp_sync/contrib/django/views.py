"""The health check, and the status page."""

from typing import Any

from django.http import Http404, HttpResponse
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_safe

from ..serving import Answer, StatusPage
from ..serving import health as answer_health
from .clients_of_site import clients
from .guard import guard, is_on

__all__ = ["health", "status", "status_json"]


@require_safe
def health(request: Any) -> Any:
    """200 if all that is watched can be served, 503 if not; see :func:`mcp_sync.contrib.serving.health`. For everybody."""
    return _response(answer_health(clients))


@require_safe
def status(request: Any) -> Any:
    """The status page. Not found unless ``MCP_STATUS_PAGE`` is True; forbidden but for those whom the guard lets in."""
    return _guarded(request, False)


@require_safe
def status_json(request: Any) -> Any:
    """The same as JSON."""
    return _guarded(request, True)


def _guarded(request: Any, as_json: bool) -> Any:
    if not is_on():
        raise Http404("the status page is off: MCP_STATUS_PAGE")
    try:
        address = reverse("mcp_sync:status_json", current_app=getattr(request.resolver_match, "namespace", None))
    except NoReverseMatch:
        address = "status.json"  # the view was put into a urlconf of the site's own
    return _response(StatusPage(clients, guard()).answer(request, as_json, address))


def _response(answer: Answer) -> Any:
    response = HttpResponse(answer.body, content_type=answer.content_type, status=answer.status)
    for name, value in answer.headers.items():
        response[name] = value
    return response
