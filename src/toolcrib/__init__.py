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
        Limits,
        LLMConfig,
        Principal,
        ReferenceSource,
        RunNotCompleted,
        ToolcribError,
        ToolDefinition,
        ToolEnvelope,
    )
    from toolcrib.contracts.workflows import ConditionBinding, StepRegistration, WorkflowDefinition, WorkflowStep
    from toolcrib.core.runs import Result, recorded_model
    from toolcrib.crib import (
        Agent,
        AgenticTool,
        CompositeTool,
        Crib,
        DefinitionOptions,
        RunStream,
        SharingOptions,
        WorkflowHandle,
        use_tools_with_ai,
    )
    from toolcrib.infrastructure.net import EgressPolicy
    from toolcrib.interfaces.adapters import langchain, openai_agents, openai_functions, pydantic_ai
    from toolcrib.kinds.code.checks import code_tool
    from toolcrib.kinds.composite.shape import CompositeRoute
    from toolcrib.kinds.entity.importer import EntityOptions, entity
    from toolcrib.kinds.python.context import Ask, ToolContext
    from toolcrib.kinds.python.files import File
    from toolcrib.kinds.python.functions import FunctionTool, tool, tools_of
    from toolcrib.llm import ScriptedModel

__all__ = [
    "Agent",
    "AgentDefinition",
    "AgenticContext",
    "AgenticStep",
    "AgenticTool",
    "AllocatedTool",
    "Ask",
    "CompositeRoute",
    "CompositeTool",
    "ConditionBinding",
    "Crib",
    "DefinitionOptions",
    "EgressPolicy",
    "EntityOptions",
    "File",
    "FunctionTool",
    "LLMConfig",
    "Limits",
    "Principal",
    "ReferenceSource",
    "Result",
    "RunNotCompleted",
    "RunStream",
    "ScriptedModel",
    "SharingOptions",
    "StepRegistration",
    "ToolContext",
    "ToolDefinition",
    "ToolEnvelope",
    "ToolcribError",
    "WorkflowDefinition",
    "WorkflowHandle",
    "WorkflowStep",
    "code_tool",
    "entity",
    "langchain",
    "openai_agents",
    "openai_functions",
    "pydantic_ai",
    "recorded_model",
    "tool",
    "tools_of",
    "use_tools_with_ai",
]

_HOMES = {
    "Agent": "toolcrib.crib",
    "AgenticTool": "toolcrib.crib",
    "CompositeTool": "toolcrib.crib",
    "CompositeRoute": "toolcrib.kinds.composite.shape",
    "ConditionBinding": "toolcrib.contracts.workflows",
    "Crib": "toolcrib.crib",
    "DefinitionOptions": "toolcrib.crib",
    "EgressPolicy": "toolcrib.infrastructure.net",
    "EntityOptions": "toolcrib.kinds.entity.importer",
    "File": "toolcrib.kinds.python.files",
    "FunctionTool": "toolcrib.kinds.python.functions",
    "Result": "toolcrib.core.runs",
    "RunStream": "toolcrib.crib",
    "ScriptedModel": "toolcrib.llm",
    "SharingOptions": "toolcrib.crib",
    "StepRegistration": "toolcrib.contracts.workflows",
    "Ask": "toolcrib.kinds.python.context",
    "ToolContext": "toolcrib.kinds.python.context",
    "WorkflowDefinition": "toolcrib.contracts.workflows",
    "WorkflowHandle": "toolcrib.crib",
    "WorkflowStep": "toolcrib.contracts.workflows",
    "code_tool": "toolcrib.kinds.code.checks",
    "entity": "toolcrib.kinds.entity.importer",
    "recorded_model": "toolcrib.core.runs",
    "tool": "toolcrib.kinds.python.functions",
    "tools_of": "toolcrib.kinds.python.functions",
    "use_tools_with_ai": "toolcrib.crib",
}
_ADAPTERS = {"langchain", "openai_agents", "openai_functions", "pydantic_ai"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    if name in _ADAPTERS:
        return import_module(f"toolcrib.interfaces.adapters.{name}")
    value = getattr(import_module(_HOMES.get(name, "toolcrib.contracts")), name)
    globals()[name] = value
    return value
