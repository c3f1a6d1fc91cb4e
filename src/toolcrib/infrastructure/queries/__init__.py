"""Filters and orders over anything that is listed: one grammar; `statements` makes SQL of it, `rows` evaluates it.

The store, tools of kind `entity` and the crib import the modules. Decisions: docs/decisions/0012.
"""
