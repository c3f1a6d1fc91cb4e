"""The kinds of tools, one folder each: shape, checks, importer, runtime and commands of the kind.

`table` lists all kinds; `dispatch` applies what a kind defines to a tool. Agentic tools, agents and workflows have no
folder here: their programs are in `toolcrib.agents` and `toolcrib.workflows`.

Imported by `agents`, `workflows`, `builtin_tools`, `crib` and `interfaces`; imports `core` and below. Decisions:
docs/decisions/0006 (http), 0012 (entity), 0013 (code).
"""
