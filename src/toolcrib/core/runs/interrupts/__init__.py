"""Why a run stops before its end, and how it goes on: approvals, questions, client calls, signals, recovery."""
