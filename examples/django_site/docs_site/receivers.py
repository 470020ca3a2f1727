import logging
from typing import Any

from django.dispatch import receiver

from mcp_sync.contrib.django import resource_changed

log = logging.getLogger("docs_site")


@receiver(resource_changed)
def note(alias: str, change: Any, **kwargs: Any) -> None:
    log.info("%s: %s was %s", alias, change.uri, change.kind)
