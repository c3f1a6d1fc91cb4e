"""What lies between writing a workflow and running it: a draft that nobody can run yet, and what publishing it did."""

from typing import Final

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Timestamp
from toolcrib.contracts.tools.tools import ToolRevision
from toolcrib.contracts.workflows.definitions import WorkflowDefinition
from toolcrib.contracts.workflows.graphs import WorkflowProblem
from toolcrib.contracts.workflows.impact import ImpactReport

FIND_WORKFLOW_TOOLS: Final = "find_workflow_tools"
SAVE_WORKFLOW_DRAFT: Final = "save_workflow_draft"
AUTHORING_TOOLS: Final = (FIND_WORKFLOW_TOOLS, SAVE_WORKFLOW_DRAFT)
"""What an agent with `can_create_workflows` is offered besides its own tools."""


class WorkflowDraft(Contract):
    """A definition that is kept beside the published one of its name, and never in its place."""

    definition: WorkflowDefinition
    note: str = ""
    """What its author wants whoever publishes it to know."""
    authored_by: str | None = None
    """The agent that has written it; null for a person."""
    run_id: str | None = None
    """The run in which it was written."""
    tainted_by: str | None = None
    """What that run had read before that outsiders can write, the first of it; null if nothing."""
    revision: int = Field(ge=1)
    """1, 2, 3… per name and realm."""
    made_by: str
    """Id of the principal who has saved it."""
    created_at: Timestamp
    problems: tuple[WorkflowProblem, ...] = ()
    """Of the moment in which it was saved or read, and not stored."""


class Publication(Contract):
    """What publishing a workflow did."""

    tool: ToolRevision
    impact: ImpactReport | None = None
    """Whom the new revision concerns; null if there was nothing of its name before."""
    problems: tuple[WorkflowProblem, ...] = ()
    """Warnings: what is wrong with it is told before."""
