"""Forks: what a fork keeps and reuses of the original run."""
