"""For Django, 2.2 and later: add ``"mcp_sync.contrib.django"`` to ``INSTALLED_APPS``.

::

    MCP_SERVERS = {"default": {"target": "https://docs.example.com/mcp", "watch": ["docs://service/config"]}}

    from mcp_sync.contrib.django import clients
    clients["default"].read_resource("docs://service/config", stale_ok=True).text

Settings:

* ``MCP_SERVERS``: see :mod:`mcp_sync.contrib.settings`; ``manage.py check`` says what is wrong with it.
* ``MCP_STATUS_PAGE``: True to have the status page served where ``mcp_sync.contrib.django.urls`` is included. False by
  default: then it is not found.
* ``MCP_STATUS_GUARD``: a function, or the dotted path to one, that is given the request and returns True for whoever may see
  that page. By default those may whose ``request.user.is_staff``.

Views: ``views.health``, ``views.status``, ``views.status_json``; ``urls`` has them all. Template tag: ``{% load mcp_sync %}
{% mcp_resource "docs://service/config" %}``. Commands: ``mcp_read``, ``mcp_watch``, ``mcp_status``. Signal:
``resource_changed``.

* ``clients_of_site``: the clients, and the signal; ``guard``: who may see the status page; ``checks``, ``views``, ``urls``,
  ``apps``, ``templatetags``, ``management``: as Django wants them.
"""

import django

from .clients_of_site import clients, resource_changed

__all__ = ["clients", "resource_changed"]

if django.VERSION < (3, 2):
    # Later versions find it by themselves, and warn of this.
    default_app_config = "mcp_sync.contrib.django.apps.MCPSyncConfig"
