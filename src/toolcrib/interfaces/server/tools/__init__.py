"""Routes of tools, agentic tools and providers.

Imported by `interfaces.server.app`.
"""
