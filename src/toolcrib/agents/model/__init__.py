"""Model requests of a run: the client, JSON answers, tool calls of an answer, and the context window."""
