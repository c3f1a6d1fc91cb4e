"""Earlier turns of a conversation: read from journals, and selected for a prompt.

`agents.prepare` and the programs import it.
"""
