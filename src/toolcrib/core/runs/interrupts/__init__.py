"""Interruptions of runs: approvals, questions, client calls, signals, suspension and recovery."""
