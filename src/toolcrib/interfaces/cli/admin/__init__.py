"""Commands for operators: providers, keys, settings, stores, servers and workers.

Imported by `interfaces.cli.app`.
"""
