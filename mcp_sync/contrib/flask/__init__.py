"""For Flask, 1.1 and later: ``MCPSync(app)``, or ``mcp = MCPSync()`` and later ``mcp.init_app(app)``.

::

    app.config["MCP_SERVERS"] = {"default": {"target": "https://docs.example.com/mcp", "watch": ["docs://service/config"]}}
    mcp = MCPSync(app)

    @app.route("/")
    def index():
        return escape(current_mcp["default"].read_resource("docs://service/config", stale_ok=True).text)

    app.register_blueprint(status_blueprint(guard=is_admin), url_prefix="/mcp")
    app.add_url_rule("/health", view_func=health)

``MCP_SERVERS`` is explained in :mod:`mcp_sync.contrib.settings`; mistakes in it are told when the app is made. The commands are
``flask mcp read``, ``flask mcp watch`` and ``flask mcp status``.

* ``extension``: :class:`MCPSync` and ``current_mcp``; ``status``: the blueprint and the health check; ``commands``.
"""

from .extension import MCPSync, current_mcp
from .status import health, status_blueprint

__all__ = ["MCPSync", "current_mcp", "health", "status_blueprint"]
