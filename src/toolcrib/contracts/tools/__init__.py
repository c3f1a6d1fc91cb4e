"""Definitions of tools and agents as authors write them, imports, and changes.

Imported by the other modules of `contracts`; other packages import from `toolcrib.contracts`.
"""
