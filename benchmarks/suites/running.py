"""What the command line of a suite takes."""

import argparse
from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """Which tasks to play."""

    group: str | None
    limit: int | None


def asked() -> Asked:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", help="one group of tasks")
    parser.add_argument("--limit", type=int, help="so many tasks of each group")
    given = parser.parse_args()
    return Asked(given.only, given.limit)
