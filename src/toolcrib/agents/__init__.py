"""Agentic tools: a model inside a tool, with a fixed sequence that it fills in or a choice of tools that it makes."""

from toolcrib.agents.authoring import TASK_INPUT, agentic_definition, check_agentic
from toolcrib.agents.programs import CALL, programs
from toolcrib.agents.setup import PLACEHOLDERS, Models, allocation, pins_of

__all__ = [
    "CALL",
    "PLACEHOLDERS",
    "TASK_INPUT",
    "Models",
    "agentic_definition",
    "allocation",
    "check_agentic",
    "pins_of",
    "programs",
]
