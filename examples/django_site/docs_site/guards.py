"""Who may see the status page."""

from typing import Any

from django.conf import settings


def on_this_machine(request: Any) -> bool:
    return settings.DEBUG is True and request.META["REMOTE_ADDR"] == "127.0.0.1"
