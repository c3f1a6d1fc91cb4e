"""Workflows of a crib: check, draft, publish and run them.

Imported by `crib.crib`, `crib.container` and `interfaces`. Graphs, checks and steps are in `toolcrib.workflows`.
"""
