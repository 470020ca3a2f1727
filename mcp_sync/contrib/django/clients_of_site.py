"""The clients that the site's settings describe, and the signal that tells of changes."""

import logging
from typing import Any

import django
from django.conf import settings
from django.core.signals import setting_changed
from django.db import close_old_connections
from django.dispatch import Signal

from ... import Change, Client
from ..clients import Clients

__all__ = ["clients", "resource_changed"]

_log = logging.getLogger("mcp_sync")

#: Sent when something changed that the settings have watched. Receivers are called in a thread of the client's, with ``sender``
#: (the class ``Client``), ``alias``, ``client`` and ``change`` (:class:`mcp_sync.Change`). What is not used in a process is not
#: watched in it, and nothing is sent there.
resource_changed: Any = Signal()

#: The clients of this process, by alias.
clients = Clients(lambda: getattr(settings, "MCP_SERVERS", None))


def _send(alias: str, client: Client, change: Change) -> None:
    # Receivers may use the database. Outside of requests nobody else closes what they leave open.
    close_old_connections()
    try:
        answers = resource_changed.send_robust(sender=Client, alias=alias, client=client, change=change)
    finally:
        close_old_connections()
    if django.VERSION < (3, 2):  # later versions log it themselves
        for receiver, answer in answers:
            if isinstance(answer, Exception):
                _log.error("a receiver of resource_changed failed: %r", receiver, exc_info=answer)


def _forget(*, setting: str, **_: Any) -> None:
    if setting == "MCP_SERVERS":
        clients.close()


clients.on_change(_send)
# In tests: override_settings(MCP_SERVERS=...)
setting_changed.connect(_forget, dispatch_uid="mcp_sync.contrib.django")
