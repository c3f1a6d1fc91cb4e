"""What all steps of a run share: the run, the workflow, its resolved references, accounts and handlers.

A handler is code that a step runs instead of one call. It makes calls only through the run context, at positions below
the step's, and is called again when a run is restarted. The handlers themselves are passed in.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from toolcrib.contracts import JsonObject, ToolError, ToolRevision
from toolcrib.contracts.workflows import SettledStep, WorkflowImplementation
from toolcrib.core.policy import Accounts
from toolcrib.core.runs import RunContext

Handler: TypeAlias = Callable[[RunContext, ToolRevision, JsonObject, str], Awaitable[SettledStep]]
"""Carries out one step, or one element of its `for_each`, and tells how it has ended; a failure is an end too. It gets
the run as the one sees it who makes the step's calls; what the step names as its `tool`, as the run has pinned it; the
step's input, with values in place of expressions; and where it stands in the journal: `NAME`, or `NAME[i]`."""

Handling: TypeAlias = Callable[[RunContext], Mapping[str, Handler]]
"""The handlers of one run, by the name that steps call them by."""


def no_handlers(context: RunContext) -> Mapping[str, Handler]:
    """Of a crib that has none."""
    del context
    return {}


Callee: TypeAlias = ToolRevision | ToolError
"""What a reference means in a run, or why it means nothing."""

HELD_S: Final = 5.0
"""Seconds of a rest for which a run is not suspended."""


@dataclass(slots=True)
class StepEnvironment:
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
