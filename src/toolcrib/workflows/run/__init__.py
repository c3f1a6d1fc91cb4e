"""The program of a workflow: steps, calls, waits, fan-out, reuse, and instances read from journals.

It imports `workflows.values`; the crib imports it.
"""
