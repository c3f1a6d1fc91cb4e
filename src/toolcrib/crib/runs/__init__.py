"""Runs of a crib: approvals, settlements, forks, bundles, retention and rehearsals.

Imported within `crib`, and by `interfaces`. The journal and its readings are in `toolcrib.core.runs`.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.crib.runs.approvals import ApprovalAnswer, Approvals
    from toolcrib.crib.runs.bundles import Capture, Sees, replay_run
    from toolcrib.crib.runs.forks import Forks
    from toolcrib.crib.runs.ids import IdKind, Ids
    from toolcrib.crib.runs.rehearsal import Rehearsal, ShiftedClock
    from toolcrib.crib.runs.retention import Retention
    from toolcrib.crib.runs.sent_prompts import prompt_at, read_sent_prompts
    from toolcrib.crib.runs.settlements import Settlements
    from toolcrib.crib.runs.triggers import Triggers
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.crib.runs.approvals": "ApprovalAnswer Approvals",
            "toolcrib.crib.runs.bundles": "Capture Sees replay_run",
            "toolcrib.crib.runs.forks": "Forks",
            "toolcrib.crib.runs.ids": "IdKind Ids",
            "toolcrib.crib.runs.rehearsal": "Rehearsal ShiftedClock",
            "toolcrib.crib.runs.retention": "Retention",
            "toolcrib.crib.runs.sent_prompts": "prompt_at read_sent_prompts",
            "toolcrib.crib.runs.settlements": "Settlements",
            "toolcrib.crib.runs.triggers": "Triggers",
        },
    )

__all__ = [
    "ApprovalAnswer",
    "Approvals",
    "Capture",
    "Forks",
    "IdKind",
    "Ids",
    "Rehearsal",
    "Retention",
    "Sees",
    "Settlements",
    "ShiftedClock",
    "Triggers",
    "prompt_at",
    "read_sent_prompts",
    "replay_run",
]
