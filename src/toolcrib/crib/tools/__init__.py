"""The catalogue of a crib: list, search, deprecate and block tools; prompts, and definitions kept by name.

Imported within `crib`, and by `interfaces`. The catalogue itself is in `toolcrib.core.registry`.
"""
