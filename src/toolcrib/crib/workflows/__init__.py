"""Workflows of a crib: check, draft, publish and run them.

Imported within `crib` only. Graphs, checks and steps are in `toolcrib.workflows`.
"""
