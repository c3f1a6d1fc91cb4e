"""Providers: addresses, authentication, connections, reference data, and definitions that are kept by name.

Imported by the other modules of `contracts`; other packages import from `toolcrib.contracts`.
"""
