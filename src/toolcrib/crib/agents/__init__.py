"""Agents of a crib: definitions, executions, conversations, questions and evaluations.

Imported by `crib.crib`, `crib.container` and `interfaces`. Programs and prompts of agents are in `toolcrib.agents`.
"""
