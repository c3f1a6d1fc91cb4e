"""Settlements: what a person says of a call after its run has ended without knowing whether the call took effect.

It is a signal to the run that has ended, so the first answer counts. The run's journal stays as it is: a run that takes
up that one, and readers of its trace, take the answer together with it.
"""

from typing import Final

from toolcrib.contracts.base.base import Contract, Json, Timestamp

_SIGNAL: Final = "settled:"


def settled_signal(position: str) -> str:
    """Name of the signal that settles the call at a position."""
    return f"{_SIGNAL}{position}"


class OutcomeTold(Contract):
    """Whether a call took effect."""

    happened: bool
    """False: it did not, and may be made once more."""
    output: Json = None
    """What the call that took effect has brought."""
    reason: str | None = None
    """How that is known, for the record."""


class Settlement(OutcomeTold):
    """The same as it is kept."""

    made_by: str
    at: Timestamp
