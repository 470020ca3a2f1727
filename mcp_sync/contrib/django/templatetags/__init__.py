"""``{% load mcp_sync %}``"""
