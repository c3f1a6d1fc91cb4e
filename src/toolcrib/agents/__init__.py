"""Agents, and agentic tools: a model that chooses tools turn by turn, or fills in a fixed sequence of them."""

from toolcrib.agents.allotment import allocation
from toolcrib.agents.authoring import TASK_INPUT, agentic_definition, check_agentic
from toolcrib.agents.checking import check_agent
from toolcrib.agents.compiling import workflow_of
from toolcrib.agents.drafting import Draft
from toolcrib.agents.drift import basis_of, drift_of, made_from
from toolcrib.agents.handling import AgenticHandlers
from toolcrib.agents.identity import identity_of
from toolcrib.agents.memory import Memory
from toolcrib.agents.past import SUMMARIZED, Summary
from toolcrib.agents.placeholders import PLACEHOLDERS, check_prompt
from toolcrib.agents.programs import CALL, programs
from toolcrib.agents.prompts import default_prompt, reference_names
from toolcrib.agents.recall import message_of, variables_of
from toolcrib.agents.references import References, check_provider_data
from toolcrib.agents.resolving import Asker, resolve
from toolcrib.agents.setup import Furnisher, Models
from toolcrib.agents.snapshots import ReferenceUnavailable, Snapshot, Snapshots
from toolcrib.agents.trial import Trial

__all__ = [
    "CALL",
    "PLACEHOLDERS",
    "SUMMARIZED",
    "TASK_INPUT",
    "AgenticHandlers",
    "Asker",
    "Draft",
    "Furnisher",
    "Memory",
    "Models",
    "ReferenceUnavailable",
    "References",
    "Snapshot",
    "Snapshots",
    "Summary",
    "Trial",
    "agentic_definition",
    "allocation",
    "basis_of",
    "check_agent",
    "check_agentic",
    "check_prompt",
    "check_provider_data",
    "default_prompt",
    "drift_of",
    "identity_of",
    "made_from",
    "message_of",
    "programs",
    "reference_names",
    "resolve",
    "variables_of",
    "workflow_of",
]
