"""The catalogue of a crib: list, search, deprecate and block tools; prompts, and definitions kept by name.

Imported by `crib.crib`, `crib.container` and `interfaces`. The catalogue itself is in `toolcrib.core.registry`.
"""
