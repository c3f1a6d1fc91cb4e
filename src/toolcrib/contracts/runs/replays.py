"""What a replay of a recorded run found: the same events, or where it first went another way."""

from toolcrib.contracts.base.base import Contract, Json
from toolcrib.contracts.base.envelope import ToolEnvelope
from toolcrib.contracts.runs.runs import RunStatus, StopReason


class Divergence(Contract):
    """The first difference between an event that the code made and the recorded one."""

    run_id: str
    event: int
    """Number of the recorded event that it was held against, or that comes next where the recording has no such one."""
    field: str
    """What differs, as `t1.c2.input.company` or `output`; an event that only one side has is named as a whole, with
    the other side null: `call_started t1.c2`."""
    expected: Json = None
    """As recorded."""
    got: Json = None


class Replay(Contract):
    """A run that was executed again on its recording alone."""

    run_id: str
    tool: str
    """`name@version` of the tool that the run executes."""
    same: bool
    """The code made the same events, in all nested runs too."""
    divergence: Divergence | None = None
    """The first one: of this run, else of a nested one."""
    status: RunStatus
    """Of the run as recorded, like the next two; how it stands if it has not ended."""
    stop_reason: StopReason | None = None
    output: Json = None
    envelopes: tuple[ToolEnvelope, ...] = ()
    """Of the calls that the program asked for, in the order in which they began."""
    model_calls: int = 0
    """Model calls that were answered, or have failed."""
    events: int = 0
    """Events of this run that were made again."""
    digest: str = ""
    """Hash of what was made again, nested runs included; the next one of what was recorded."""
    recorded_digest: str = ""
    nested: tuple["Replay", ...] = ()
