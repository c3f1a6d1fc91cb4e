"""Routes of runs: start, follow, approve and fork them.

Imported by `interfaces.server.app`.
"""
