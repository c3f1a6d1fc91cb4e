"""The groups of operations of the asynchronous client."""
