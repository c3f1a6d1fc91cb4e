"""What every request passes: keys, middleware, parsing, errors and streams.

Imported by the routes of `interfaces.server`.
"""
