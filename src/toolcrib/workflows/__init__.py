"""Workflows: the graph of a definition, the program that runs it, and what is read from a run's journal.

A workflow touches the world only through its run context, like every program: each call has a fixed position, so it
may be started again at any time and gets what the journal knows. Nothing here knows a store, a model or a runtime.
"""

from toolcrib.workflows.edit.authoring import authoring_tools, function_of
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
