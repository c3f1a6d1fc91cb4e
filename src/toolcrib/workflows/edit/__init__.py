"""Changes of workflows by people and agents: authoring, materializing calls, impact of tool changes, published state.

It imports `workflows.checks` and `workflows.values`; the crib imports it.
"""
