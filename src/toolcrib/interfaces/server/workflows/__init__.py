"""Routes of workflows, their drafts and instances.

Imported by `interfaces.server.app`.
"""
