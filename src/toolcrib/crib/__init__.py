"""The crib: the composition root that wires everything together, and the Python API."""

from toolcrib.crib.container.environment import DefinitionOptions, SharingOptions
from toolcrib.crib.crib import ActingCrib, Crib
from toolcrib.crib.definitions import Agent, AgenticTool, CompositeTool, WorkflowHandle
from toolcrib.crib.tool_use import ToolUse, use_tools_with_ai

__all__ = [
    "ActingCrib",
    "Agent",
    "AgenticTool",
    "CompositeTool",
    "Crib",
    "DefinitionOptions",
    "SharingOptions",
    "ToolUse",
    "WorkflowHandle",
    "use_tools_with_ai",
]
