"""The MCP server: the tools of a crib for clients of the Model Context Protocol, over HTTP and standard input.

It needs the extra `mcp`. Nothing here is imported before a client asks for it.
"""
