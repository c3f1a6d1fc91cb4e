"""Output for terminals: tables, trees, graphs and comparisons.

Imported by the commands of `interfaces.cli`. Nothing here reads a store, except `streams`.
"""
