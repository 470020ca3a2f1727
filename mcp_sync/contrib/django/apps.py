"""The app."""

from django.apps import AppConfig

__all__ = ["MCPSyncConfig"]


class MCPSyncConfig(AppConfig):
    """Registers the system checks. Starts nothing: each client begins when it is first used."""

    name = "mcp_sync.contrib.django"
    label = "mcp_sync"
    verbose_name = "Model Context Protocol"

    def ready(self) -> None:
        from . import checks  # noqa: F401  # registers them
