"""Providers of a crib: imports, connections, reference data and secrets.

Imported by `crib.crib`, `crib.container` and `interfaces`.
"""
