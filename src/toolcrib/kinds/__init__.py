"""The kinds of tools: one folder each, with what imports their definitions and what executes their calls.

`runtimes` names them all.
"""
