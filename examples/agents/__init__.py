"""Agents: one that asks another, waits for a person, hands a call to its client, and remembers what was said."""
