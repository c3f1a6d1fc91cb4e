"""Commands for tools: list, call, import, author and deprecate them.

Imported by `interfaces.cli.app`.
"""
