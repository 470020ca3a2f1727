"""Who may see the status page."""

from typing import Any

from django.conf import settings

from ..serving import Guard
from ..settings import SettingsError, resolve

__all__ = ["guard", "is_on", "is_staff"]


def is_on() -> bool:
    """Whether the status page is to be served at all."""
    return getattr(settings, "MCP_STATUS_PAGE", False) is True


def is_staff(request: Any) -> bool:
    """The guard by default: lets in who is logged in, active, and of the staff."""
    user = getattr(request, "user", None)
    return user is not None and bool(user.is_active) and bool(user.is_staff)


def guard() -> Guard:
    """Return the guard that the settings name.

    :raises SettingsError: if it is none.
    """
    named = getattr(settings, "MCP_STATUS_GUARD", None)
    if named is None:
        return is_staff
    if isinstance(named, str):
        try:
            named = resolve(named)
        except SettingsError as error:
            raise SettingsError("MCP_STATUS_GUARD is %r: %s" % (named, error)) from error
    if not callable(named):
        raise SettingsError("MCP_STATUS_GUARD is a %s, and not a function that is given the request" % type(named).__name__)
    found: Guard = named
    return found
