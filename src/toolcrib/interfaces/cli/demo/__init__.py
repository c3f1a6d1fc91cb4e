"""The demos, and what they print.

Imported by `interfaces.cli.app`.
"""
