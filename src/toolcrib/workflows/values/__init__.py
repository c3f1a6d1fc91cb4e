"""Values of steps: the graph, the scope of expressions, arguments, outputs and errors.

Checks, edits and runs import it.
"""
