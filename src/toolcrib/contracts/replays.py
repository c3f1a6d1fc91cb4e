"""What a replay of a recorded run found: the same, or where it first went another way."""

from toolcrib.contracts._base import Contract, Json
from toolcrib.contracts.envelope import ToolEnvelope
from toolcrib.contracts.runs import RunStatus, StopReason


class Divergence(Contract):
    """The first difference between what a program asks for and what the journal has."""

    run_id: str
    event: int
    """Number of the recorded event that it was held against; the last one's if the program went on beyond it."""
    field: str
    """What differs, as `t1.c2.input` or `output`."""
    expected: Json = None
    """As recorded."""
    got: Json = None


class Replay(Contract):
    """A run whose program was executed again against its journal alone."""

    run_id: str
    tool: str
    """`name@version` of the tool that the run executes."""
    same: bool
    """The program asked for the same calls and answers and came to the same end, in all nested runs too."""
    divergence: Divergence | None = None
    """The first one: of this run, else of a nested one."""
    status: RunStatus
    """Of the run as recorded, like the next two."""
    stop_reason: StopReason | None = None
    output: Json = None
    envelopes: tuple[ToolEnvelope, ...] = ()
    """Of the calls that the program asked for, in that order; they come from the journal."""
    model_calls: int = 0
    """Model calls whose requests were held against the recorded ones."""
    nested: tuple["Replay", ...] = ()
