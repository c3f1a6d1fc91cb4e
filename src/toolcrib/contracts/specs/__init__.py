"""The parts of definitions: models, limits, guardrails, agents, workflow steps and sandboxes.

Imported by the other modules of `contracts`; other packages import from `toolcrib.contracts`.
"""
