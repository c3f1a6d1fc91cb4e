"""All contracts of workflows under one name: definition, vocabulary, graph and instances.

Imported by every package that uses workflows; imports the rest of `contracts`.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.contracts.runs.runs import Rerun, RerunMode
    from toolcrib.contracts.runs.stream import StepEnded
    from toolcrib.contracts.runs.workflow_instances import (
        MAX_ITEM_ERRORS,
        STEP_KEY,
        STEP_SETTLED,
        TAKEN_UP,
        EarlierCall,
        InstancePage,
        InstanceSummary,
        ItemError,
        SettledStep,
        StepInstance,
        StepStatus,
        StepWait,
        Takeover,
        WorkflowInstance,
    )
    from toolcrib.contracts.specs.workflow_steps import (
        AGENT_HANDLERS,
        AGENTIC_HANDLERS,
        BUILT_IN_HANDLERS,
        MAX_WAIT_S,
        SCOPE,
        WORKFLOW_LIMITS,
        ConditionBinding,
        ConditionUse,
        Derived,
        ForEach,
        GoTo,
        ItemFailure,
        Join,
        OnError,
        StepApproval,
        StepKind,
        StepName,
        StepRegistration,
        StepRetry,
        Wait,
        WorkflowImplementation,
        WorkflowParts,
        WorkflowStep,
        event_signal,
    )
    from toolcrib.contracts.workflows.graphs import (
        EdgeKind,
        GraphEdge,
        GraphNode,
        GraphState,
        MaterializePreview,
        Publication,
        WorkflowDraft,
        WorkflowGraph,
        WorkflowProblem,
    )
    from toolcrib.contracts.workflows.workflow_definitions import (
        WORKFLOW_CATEGORY,
        Materialized,
        PastCall,
        WorkflowDefinition,
    )
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.contracts.runs.runs": "Rerun RerunMode",
            "toolcrib.contracts.runs.stream": "StepEnded",
            "toolcrib.contracts.runs.workflow_instances": (
                "EarlierCall InstancePage InstanceSummary ItemError MAX_ITEM_ERRORS STEP_KEY STEP_SETTLED "
                "SettledStep StepInstance StepStatus StepWait TAKEN_UP Takeover WorkflowInstance"
            ),
            "toolcrib.contracts.specs.workflow_steps": (
                "AGENTIC_HANDLERS AGENT_HANDLERS BUILT_IN_HANDLERS ConditionBinding ConditionUse Derived ForEach "
                "GoTo ItemFailure Join MAX_WAIT_S OnError SCOPE StepApproval StepKind StepName StepRegistration "
                "StepRetry WORKFLOW_LIMITS Wait WorkflowImplementation WorkflowParts WorkflowStep event_signal"
            ),
            "toolcrib.contracts.workflows.graphs": (
                "EdgeKind GraphEdge GraphNode GraphState MaterializePreview Publication WorkflowDraft WorkflowGraph "
                "WorkflowProblem"
            ),
            "toolcrib.contracts.workflows.workflow_definitions": (
                "Materialized PastCall WORKFLOW_CATEGORY WorkflowDefinition"
            ),
        },
    )

__all__ = [
    "AGENTIC_HANDLERS",
    "AGENT_HANDLERS",
    "BUILT_IN_HANDLERS",
    "MAX_ITEM_ERRORS",
    "MAX_WAIT_S",
    "SCOPE",
    "STEP_KEY",
    "STEP_SETTLED",
    "TAKEN_UP",
    "WORKFLOW_CATEGORY",
    "WORKFLOW_LIMITS",
    "ConditionBinding",
    "ConditionUse",
    "Derived",
    "EarlierCall",
    "EdgeKind",
    "ForEach",
    "GoTo",
    "GraphEdge",
    "GraphNode",
    "GraphState",
    "InstancePage",
    "InstanceSummary",
    "ItemError",
    "ItemFailure",
    "Join",
    "MaterializePreview",
    "Materialized",
    "OnError",
    "PastCall",
    "Publication",
    "Rerun",
    "RerunMode",
    "SettledStep",
    "StepApproval",
    "StepEnded",
    "StepInstance",
    "StepKind",
    "StepName",
    "StepRegistration",
    "StepRetry",
    "StepStatus",
    "StepWait",
    "Takeover",
    "Wait",
    "WorkflowDefinition",
    "WorkflowDraft",
    "WorkflowGraph",
    "WorkflowImplementation",
    "WorkflowInstance",
    "WorkflowParts",
    "WorkflowProblem",
    "WorkflowStep",
    "event_signal",
]
