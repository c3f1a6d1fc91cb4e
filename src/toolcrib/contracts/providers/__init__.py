"""Providers: addresses, authentication, connections, reference data, and definitions that are kept by name.

Any package may import it; most names are in `toolcrib.contracts` too.
"""
