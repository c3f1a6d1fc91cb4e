"""The tools that a model is offered, with their names and schemas, and their texts in the system prompt.

It imports core; `agents.prepare` and the crib import it.
"""
