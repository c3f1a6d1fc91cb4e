"""A call that an agent has made, turned into a step of its own (001, section 8.1)."""

from pydantic import Field

from toolcrib.contracts.base.base import Contract
from toolcrib.contracts.specs.workflow_vocabulary import StepName
from toolcrib.contracts.workflows.definitions import WorkflowDefinition


class PastCall(Contract):
    """Which call is meant: by its id, by its place, or by the handle that it has filled."""

    run_id: str
    """The agent's run, or the run of the workflow in which the agent was asked."""
    node: StepName | None = None
    """The step that has asked the agent; needed with the workflow's run if several have."""
    call_id: str | None = None
    position: str | None = None
    """Of the call in the agent's run: `t1.c2`."""
    pin: str | None = None
    """A handle of the step or of its agent: the call that has filled it, if no other is named. What reads the handle
    will read the new step; without one, what reads any handle that the call has filled."""


class Materialized(Contract):
    """What materializing a call has changed. It is one revision of the workflow's draft, and nothing else."""

    definition: WorkflowDefinition
    """As the draft has it now."""
    step: str
    """The new step."""
    node: str
    """The step that has asked the agent; it stays as it was, with its handles."""
    tool: str
    """`name@version` of the call."""
    call_id: str
    run_id: str
    """The agent's run."""
    rewired: tuple[str, ...] = ()
    """JSON pointers into the definition: the expressions that read the new step instead of a handle."""
    left: tuple[str, ...] = ()
    """JSON pointers to where the handles are read as a whole, or at a computed place: that was not touched."""
    warnings: tuple[str, ...] = ()
    note: str
    """What was done, as the draft says it."""
    draft_revision: int = Field(ge=1)
    before_revision: int | None = None
    """The revision of the draft that was changed; null if there was none, and the published workflow was."""
