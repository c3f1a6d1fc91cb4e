"""The program of a workflow: steps, calls, waits, fan-out, and reading instances."""
