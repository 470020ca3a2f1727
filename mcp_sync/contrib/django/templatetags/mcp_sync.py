"""``{% mcp_resource "docs://service/config" %}``: the text of a resource, or its last good copy."""

from typing import Any, Optional

from django import template

from mcp_sync import MCPSyncError
from mcp_sync.contrib.django.clients_of_site import clients

__all__ = ["mcp_resource", "register"]

register: Any = template.Library()


@register.simple_tag
def mcp_resource(
    uri: str, server: str = "default", default: Optional[str] = None, timeout: Optional[float] = None
) -> str:
    """Return the text of a resource: from memory if that is current, from the server if not, the last good copy if it cannot
    be had. Escaped like every other value; ``as name`` puts it into a variable instead.

    :param uri: the resource.
    :param server: its alias in ``MCP_SERVERS``.
    :param default: what stands there if there is no copy at all. Without it that is an error, as elsewhere.
    :param timeout: seconds that the server may take; those of the client by default.
    """
    try:
        return clients[server].read_resource(uri, stale_ok=True, timeout=timeout).text
    except MCPSyncError:
        if default is None:
            raise
        return default
