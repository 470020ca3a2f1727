from typing import Any

from django.shortcuts import render

from mcp_sync import MCPSyncError
from mcp_sync.contrib.django import clients


def notice(request: Any) -> Any:
    try:
        today = clients["default"].read_resource("docs://notices/today", stale_ok=True)
    except MCPSyncError as error:
        return render(request, "notice.html", {"error": error}, status=503)
    return render(request, "notice.html", {"today": today})
