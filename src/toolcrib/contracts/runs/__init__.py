"""Runs: their states, events, traces, approvals, streams and comparisons.

Any package may import it; most names are in `toolcrib.contracts` too.
"""
