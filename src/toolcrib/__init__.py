"""Toolcrib: governed, observable, durable tools for AI agents.

    from toolcrib import Crib, tool

Names load when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcrib.contracts import (
        AgentDefinition,
        AgenticContext,
        AgenticStep,
        AllocatedTool,
        CompositeRoute,
        Limits,
        LLMConfig,
        Principal,
        ReferenceSource,
        ToolcribError,
        ToolDefinition,
        ToolEnvelope,
    )
    from toolcrib.contracts.workflows import ConditionBinding, StepRegistration, WorkflowDefinition, WorkflowStep
    from toolcrib.crib import Agent, AgenticTool, CompositeTool, Crib, ToolUse, WorkflowHandle, use_tools_with_ai
    from toolcrib.llm import ScriptedModel
    from toolcrib.net import EgressPolicy
    from toolcrib.providers.entities import EntityOptions, entity
    from toolcrib.registry import FunctionTool, ToolContext, code_tool, tool, tools_of
    from toolcrib.runs import Result, recorded_model

__all__ = [
    "Agent",
    "AgentDefinition",
    "AgenticContext",
    "AgenticStep",
    "AgenticTool",
    "AllocatedTool",
    "CompositeRoute",
    "CompositeTool",
    "ConditionBinding",
    "Crib",
    "EgressPolicy",
    "EntityOptions",
    "FunctionTool",
    "LLMConfig",
    "Limits",
    "Principal",
    "ReferenceSource",
    "Result",
    "ScriptedModel",
    "StepRegistration",
    "ToolContext",
    "ToolDefinition",
    "ToolEnvelope",
    "ToolUse",
    "ToolcribError",
    "WorkflowDefinition",
    "WorkflowHandle",
    "WorkflowStep",
    "code_tool",
    "entity",
    "recorded_model",
    "tool",
    "tools_of",
    "use_tools_with_ai",
]

_HOMES = {
    "Agent": "toolcrib.crib",
    "AgenticTool": "toolcrib.crib",
    "CompositeTool": "toolcrib.crib",
    "ConditionBinding": "toolcrib.contracts.workflows",
    "Crib": "toolcrib.crib",
    "EgressPolicy": "toolcrib.net",
    "EntityOptions": "toolcrib.providers.entities",
    "FunctionTool": "toolcrib.registry",
    "Result": "toolcrib.runs",
    "ScriptedModel": "toolcrib.llm",
    "StepRegistration": "toolcrib.contracts.workflows",
    "ToolContext": "toolcrib.registry",
    "ToolUse": "toolcrib.crib",
    "WorkflowDefinition": "toolcrib.contracts.workflows",
    "WorkflowHandle": "toolcrib.crib",
    "WorkflowStep": "toolcrib.contracts.workflows",
    "code_tool": "toolcrib.registry",
    "entity": "toolcrib.providers.entities",
    "recorded_model": "toolcrib.runs",
    "tool": "toolcrib.registry",
    "tools_of": "toolcrib.registry",
    "use_tools_with_ai": "toolcrib.crib",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(import_module(_HOMES.get(name, "toolcrib.contracts")), name)
    globals()[name] = value
    return value
