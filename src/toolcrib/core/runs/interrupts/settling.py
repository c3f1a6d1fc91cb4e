"""Calls of runs that have ended of which nobody knew whether they took effect, and what somebody has said since.

Pure: a reading of envelopes and signals. Who may say so is decided elsewhere.
"""

import re
from collections.abc import Mapping
from typing import Final

from toolcrib.contracts import Reason, Signal, ToolEnvelope, ToolError
from toolcrib.contracts.base.envelope import SideEffects
from toolcrib.contracts.runs.settlements import OutcomeTold, Settlement, settled_signal

_TRY: Final = re.compile(r"\.try[0-9]+$")


def first_try(position: str) -> str:
    """Position of the first try of a call, of which this may be a further one."""
    return _TRY.sub("", position)


def in_doubt(side_effects: SideEffects, failure: ToolError | None) -> bool:
    """Whether a call that failed has taken effect or may have."""
    if failure is None or side_effects != "writes":
        return False
    return failure.effect != "none" or failure.reason is Reason.TOOL_TIMEOUT  # as older releases tell it


def settlement_of(position: str, signals: Mapping[str, Signal]) -> Settlement | None:
    """What was said of the call at a position, or of all its tries; null if nothing was.

    Args:
        position: Of the call in its run.
        signals: Those that were left for the run, by name.
    """
    told = signals.get(settled_signal(position)) or signals.get(settled_signal(first_try(position)))
    if told is None:
        return None
    said = OutcomeTold.model_validate(told.payload)
    return Settlement(**said.model_dump(), made_by=told.made_by, at=told.at)


def as_settled(envelope: ToolEnvelope, signals: Mapping[str, Signal]) -> ToolEnvelope:
    """The envelope of a call of a run that has ended, as it would be if what was said since had been known.

    One that took effect is a success with the output that was told. The error of one that did not says no more that it
    may have, so whoever takes up the run makes it once more.
    """
    told = settlement_of(envelope.position, signals)
    if told is None or envelope.error is None:
        return envelope
    if told.happened:
        return envelope.model_copy(update={"status": "success", "output": told.output, "error": None})
    message = f"{envelope.error.message}; {told.made_by!r} has said since that it did not take effect"
    known = {"message": message, "details": {"reason": Reason.TOOL_FAILED.value}}
    return envelope.model_copy(update={"error": envelope.error.model_copy(update=known)})
