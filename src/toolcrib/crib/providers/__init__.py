"""Providers of a crib: imports, connections, reference data and secrets.

Imported within `crib` only.
"""
