"""Definitions of tools and agents as authors write them, imports, and changes.

Any package may import it; most names are in `toolcrib.contracts` too.
"""
