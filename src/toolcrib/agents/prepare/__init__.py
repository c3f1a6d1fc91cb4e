"""Everything that a run needs before its first model request: model, tools, reference data, prompt and memory.

It imports `agents.toolset`, `agents.history`, `agents.reference` and `agents.model`; the programs import it.
"""
