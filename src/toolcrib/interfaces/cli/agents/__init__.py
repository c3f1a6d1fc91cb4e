"""Commands for agents, conversations, evaluations and models.

Imported by `interfaces.cli.app`.
"""
