"""System checks: what is wrong with the settings, before a visitor finds out."""

from typing import Any, List

from django.conf import settings
from django.core import checks

from ..settings import SettingsError
from .clients_of_site import clients
from .guard import guard, is_on, is_staff

__all__ = ["check_servers", "check_status_page"]

_AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"


@checks.register("mcp_sync")
def check_servers(app_configs: Any = None, **_: Any) -> List[Any]:
    """Check ``MCP_SERVERS``. Connects to nothing."""
    if getattr(settings, "MCP_SERVERS", None) is None:
        hint = "MCP_SERVERS = {'default': 'https://docs.example.com/mcp'}"
        return [checks.Warning("MCP_SERVERS is not set, so there are no servers.", hint=hint, id="mcp_sync.W002")]
    found = []
    for mistake in clients.mistakes():
        kind = checks.Warning if mistake.code.startswith("W") else checks.Error
        found.append(kind(mistake.text + ".", hint=mistake.hint + ".", id="mcp_sync." + mistake.code))
    return found


@checks.register("mcp_sync")
def check_status_page(app_configs: Any = None, **_: Any) -> List[Any]:
    """Check that the status page has a guard that can work."""
    found = []
    switch = getattr(settings, "MCP_STATUS_PAGE", False)
    if not isinstance(switch, bool):
        text = "MCP_STATUS_PAGE is a %s, and so the page stays off." % type(switch).__name__
        found.append(checks.Error(text, hint="Write True or False.", id="mcp_sync.E010"))
    try:
        who = guard()
    except SettingsError as error:
        hint = "Give a function that returns True for whoever may see the page, or the dotted path to one."
        return found + [checks.Error(str(error) + ".", hint=hint, id="mcp_sync.E011")]
    if is_on() and who is is_staff and not _tells_users():
        text = "The status page is on, but nobody can see it: its guard asks for request.user, which no middleware sets."
        hint = "Add %r to MIDDLEWARE, or set MCP_STATUS_GUARD." % _AUTHENTICATION
        found.append(checks.Warning(text, hint=hint, id="mcp_sync.W010"))
    return found


def _tells_users() -> bool:
    # A subclass of it, or another that does the same, has a name of its own.
    return any("auth" in str(name).lower() for name in settings.MIDDLEWARE)
