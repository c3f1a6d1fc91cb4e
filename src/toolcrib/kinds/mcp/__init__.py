"""Tools of kind `mcp`: tools, resources and prompts of MCP servers."""
