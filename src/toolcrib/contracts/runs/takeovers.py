"""What a run of a workflow takes over from the one that it takes up, read once and kept with it.

It is stored as a text of the run (its digest stands in the journal), so the run can be replayed and carried on when the
one before is gone.
"""

from typing import Final

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Json, JsonSchema
from toolcrib.contracts.base.envelope import ToolEnvelope
from toolcrib.contracts.runs.events import CallStarted
from toolcrib.contracts.runs.workflow_instances import SettledStep

TAKEN_UP: Final = "taken_up"
"""Key and kind of the `progress_made` event that names the text."""


class EarlierCall(Contract):
    """A call that the run has made which is taken up."""

    envelope: ToolEnvelope
    asked: Json = None
    """Its arguments with the tool's defaults, before a person may have edited them."""
    intent: CallStarted | None = None
    """Null if it never came to that."""
    child_run_id: str | None = None
    """Its nested run, if it was a workflow's and the call has failed."""


class Takeover(Contract):
    """What there is of the run that is taken up."""

    run_id: str
    tainted: bool = False
    """It had read what outsiders can write."""
    steps: dict[str, SettledStep] = Field(default_factory=dict)
    """Those that stand as they are, by name, with their outputs."""
    calls: dict[str, EarlierCall] = Field(default_factory=dict)
    """Calls of the others, by position."""
    schemas: dict[str, JsonSchema] = Field(default_factory=dict)
    """Input schemas of the tools that were called, by content hash."""
    changed: tuple[str, ...] = ()
    """Those of `steps` whose definition is another one now."""
