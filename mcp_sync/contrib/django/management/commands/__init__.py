"""``mcp_read``, ``mcp_watch``, ``mcp_status``."""
