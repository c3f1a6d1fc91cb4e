"""The parts of definitions: models, limits, guardrails, agents, workflow steps and sandboxes.

Any package may import it; most names are in `toolcrib.contracts` too.
"""
