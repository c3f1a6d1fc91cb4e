"""The groups of operations of the synchronous client."""
