"""Workflows: checks and edits of definitions, the program that runs a graph, and its state read from a journal.

A workflow makes calls only through its run context, at fixed positions, so it can be restarted at any time and gets
recorded results. It imports core, llm, infrastructure and contracts, not agents; the crib and the interfaces import
it. Decisions: docs/decisions/0023, 0024, 0025, 0026, 0027, 0028, 0029.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.workflows.edit.draft_tools import authoring_tools, function_of
    from toolcrib.workflows.edit.materialize import (
        AgentRequestMade,
        Chosen,
        Rewired,
        check_call,
        check_place,
        check_tool,
        choose,
        with_step,
    )
    from toolcrib.workflows.run.instances import read_settled_steps
    from toolcrib.workflows.run.program import Workflow
    from toolcrib.workflows.values.graph import Edge, StepNode, WorkflowPlan, plan_of
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.workflows.edit.draft_tools": "authoring_tools function_of",
            "toolcrib.workflows.edit.materialize": (
                "AgentRequestMade Chosen Rewired check_call check_place check_tool choose with_step"
            ),
            "toolcrib.workflows.run.instances": "read_settled_steps",
            "toolcrib.workflows.run.program": "Workflow",
            "toolcrib.workflows.values.graph": "Edge StepNode WorkflowPlan plan_of",
        },
    )

__all__ = [
    "AgentRequestMade",
    "Chosen",
    "Edge",
    "Rewired",
    "StepNode",
    "Workflow",
    "WorkflowPlan",
    "authoring_tools",
    "check_call",
    "check_place",
    "check_tool",
    "choose",
    "function_of",
    "plan_of",
    "read_settled_steps",
    "with_step",
]
