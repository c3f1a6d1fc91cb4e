"""Agentic tools: a model inside a tool, with a fixed sequence that it fills in or a choice of tools that it makes."""

from toolcrib.agents.allotment import allocation
from toolcrib.agents.authoring import TASK_INPUT, agentic_definition, check_agentic
from toolcrib.agents.drafting import Draft
from toolcrib.agents.drift import basis_of, drift_of, made_from
from toolcrib.agents.placeholders import PLACEHOLDERS, check_prompt
from toolcrib.agents.programs import CALL, programs
from toolcrib.agents.prompts import default_prompt, reference_names
from toolcrib.agents.references import References, check_provider_data
from toolcrib.agents.setup import Furnisher, Models
from toolcrib.agents.snapshots import ReferenceUnavailable, Snapshot, Snapshots
from toolcrib.agents.trial import Trial

__all__ = [
    "CALL",
    "PLACEHOLDERS",
    "TASK_INPUT",
    "Draft",
    "Furnisher",
    "Models",
    "ReferenceUnavailable",
    "References",
    "Snapshot",
    "Snapshots",
    "Trial",
    "agentic_definition",
    "allocation",
    "basis_of",
    "check_agentic",
    "check_prompt",
    "check_provider_data",
    "default_prompt",
    "drift_of",
    "made_from",
    "programs",
    "reference_names",
]
