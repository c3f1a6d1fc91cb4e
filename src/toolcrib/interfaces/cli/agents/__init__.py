"""Commands for agents, conversations, evaluations and models."""
