"""Agentic tools: a model inside a tool, with a fixed sequence that it fills in or a choice of tools that it makes."""

from toolcrib.agents.authoring import TASK_INPUT, agentic_definition, check_agentic
from toolcrib.agents.programs import CALL, programs
from toolcrib.agents.prompts import default_prompt, reference_names
from toolcrib.agents.setup import PLACEHOLDERS, Furnisher, Models, allocation, pins_of
from toolcrib.agents.trial import Trial

__all__ = [
    "CALL",
    "PLACEHOLDERS",
    "TASK_INPUT",
    "Furnisher",
    "Models",
    "Trial",
    "agentic_definition",
    "allocation",
    "check_agentic",
    "default_prompt",
    "pins_of",
    "programs",
    "reference_names",
]
