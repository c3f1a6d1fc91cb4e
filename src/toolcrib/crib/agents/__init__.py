"""Agents of a crib: definitions, executions, conversations, questions and evaluations.

Imported within `crib` only. Programs and prompts of agents are in `toolcrib.agents`.
"""
