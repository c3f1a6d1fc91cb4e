"""Commands for runs: traces, approvals, forks, replays and upgrades.

Imported by `interfaces.cli.app`.
"""
