"""Makes the parts of a crib once and connects them; also what all parts need: catalogue, access, requests.

Imported by `crib` only.
"""
