"""Asking a model: the client of one run, JSON answers, the tool calls of an answer, and the context window."""
