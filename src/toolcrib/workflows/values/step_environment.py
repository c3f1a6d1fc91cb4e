"""What the steps of one run have in common: the run, the workflow, what its references mean, and who may act in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from toolcrib.contracts import ToolError, ToolRevision
from toolcrib.contracts.workflows import WorkflowImplementation
from toolcrib.core.policy import Accounts
from toolcrib.core.runs import RunContext
from toolcrib.workflows.values.handlers import Handler

Callee: TypeAlias = ToolRevision | ToolError
"""What a reference means in a run, or why it means nothing."""

HELD_S: Final = 5.0
"""Seconds of a rest for which a run is not suspended."""


@dataclass(slots=True)
class Setting:
    """One run of a workflow, as its steps see it."""

    context: RunContext
    tool: ToolRevision
    """The workflow as the tool that it is."""
    implementation: WorkflowImplementation
    callees: Mapping[str, Callee]
    """The tools by reference."""
    handlers: Mapping[str, Handler]
    """The handlers that come with the crib, by name."""
    accounts: Accounts
    """Finds the service accounts that steps act as."""
    ending: bool = False
    """The run has failed: nothing new begins, no element of a `for_each` and no further try either."""
