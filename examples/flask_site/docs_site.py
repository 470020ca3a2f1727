"""A site that shows what stands on an MCP server."""

import os
import sys
from typing import Any, Optional

from flask import Flask, render_template

from mcp_sync import MCPSyncError
from mcp_sync.contrib.flask import MCPSync, current_mcp, health, status_blueprint

mcp = MCPSync()


def on_this_machine(request: Any) -> bool:
    return request.remote_addr == "127.0.0.1"


def create_app(url: Optional[str] = None) -> Flask:
    app = Flask(__name__)
    app.config["MCP_SERVERS"] = {
        "default": {
            "target": url or os.environ["DOCS_MCP_URL"],
            "watch": ["docs://notices/today"],  # kept current from its first use on
            "timeout": 5,
        },
    }
    mcp.init_app(app)
    app.register_blueprint(status_blueprint(guard=on_this_machine), url_prefix="/mcp")
    app.add_url_rule("/health", view_func=health)
    app.add_url_rule("/", view_func=notice)
    return app


def notice() -> Any:
    try:
        today = current_mcp["default"].read_resource("docs://notices/today", stale_ok=True)
    except MCPSyncError as error:
        return render_template("notice.html", error=error), 503
    return render_template("notice.html", today=today)


@mcp.on_change
def note(alias: str, client: Any, change: Any) -> None:
    print("%s: %s was %s" % (alias, change.uri, change.kind), file=sys.stderr)
