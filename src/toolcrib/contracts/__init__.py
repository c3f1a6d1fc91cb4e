"""The stable shapes of Toolcrib. Pydantic only, no I/O, nothing of ours below it."""
