"""The catalogue of a crib: listed, searched, deprecated; prompts and named definitions."""
