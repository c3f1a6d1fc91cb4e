"""Commands for workflows and their instances.

Imported by `interfaces.cli.app`.
"""
