"""Routes of agents, their executions and conversations, and of resources kept by name.

Imported by `interfaces.server.app` and `interfaces.server.workflows`.
"""
