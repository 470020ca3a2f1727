"""A site that shows what stands on an MCP server."""
