"""Turns of a run in which a model chooses its calls: request, checks, calls, results.

The programs import it.
"""
