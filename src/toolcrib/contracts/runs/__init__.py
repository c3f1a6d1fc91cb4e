"""Runs: their states, events, traces, approvals, streams and comparisons."""
