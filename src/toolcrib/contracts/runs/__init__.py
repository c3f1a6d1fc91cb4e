"""Runs: their states, events, traces, approvals, streams and comparisons.

Imported by the other modules of `contracts`; other packages import from `toolcrib.contracts`.
"""
