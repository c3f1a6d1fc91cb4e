"""The stages of deterministic agentic tools: plan, steps, review and answer, and their questions to people.

It imports `agents.evidence`, `agents.model` and `agents.prepare`; the programs import it.
"""
