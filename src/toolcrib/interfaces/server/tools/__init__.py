"""Routes of tools, agentic tools and providers."""
