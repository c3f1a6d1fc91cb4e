"""Commands for runs: traces, approvals, forks, replays and upgrades."""
