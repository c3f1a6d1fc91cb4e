"""Calls of MCP clients: how they are followed, what they wait for, and tasks."""
