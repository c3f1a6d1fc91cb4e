"""Agents and agentic tools: prompts, plans, turns, evidence, memory, and the programs of their runs.

It imports core, llm, infrastructure and contracts, not workflows. The crib and the interfaces import it. Decisions:
docs/decisions/0004, 0007, 0009, 0014, 0020, 0028, 0040.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.agents.agentic_tool_authoring import (
        TASK_INPUT,
        PromptTestProgram,
        TextProgram,
        agentic_definition,
        check_agentic,
    )
    from toolcrib.agents.history.prior_turns import SUMMARIZED, Summary
    from toolcrib.agents.history.variables import message_of, variables_of
    from toolcrib.agents.model.answer_checks import AnswerChecks
    from toolcrib.agents.planner.compiled_workflow import workflow_of
    from toolcrib.agents.planner.step_handlers import AgenticHandlers
    from toolcrib.agents.prepare.agent import check_agent, identity_of
    from toolcrib.agents.prepare.agentic_tool import Models, RunPreparer
    from toolcrib.agents.prepare.memory import Memory
    from toolcrib.agents.programs import CALL
    from toolcrib.agents.reference.lists import References, check_provider_data
    from toolcrib.agents.reference.snapshots import ReferenceUnavailable, Snapshot, Snapshots
    from toolcrib.agents.toolset.allocation import allocation
    from toolcrib.agents.toolset.default_prompt import default_prompt, reference_names
    from toolcrib.agents.toolset.drift import basis_of, drift_of, with_basis
    from toolcrib.agents.toolset.placeholders import PLACEHOLDERS, check_prompt, describe_placeholders
    from toolcrib.agents.toolset.resolution import ToolRequester, resolve
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.agents.agentic_tool_authoring": (
                "PromptTestProgram TASK_INPUT TextProgram agentic_definition check_agentic"
            ),
            "toolcrib.agents.history.prior_turns": "SUMMARIZED Summary",
            "toolcrib.agents.history.variables": "message_of variables_of",
            "toolcrib.agents.planner.compiled_workflow": "workflow_of",
            "toolcrib.agents.planner.step_handlers": "AgenticHandlers",
            "toolcrib.agents.model.answer_checks": "AnswerChecks",
            "toolcrib.agents.prepare.agent": "check_agent identity_of",
            "toolcrib.agents.prepare.agentic_tool": "Models RunPreparer",
            "toolcrib.agents.prepare.memory": "Memory",
            "toolcrib.agents.programs": "CALL",
            "toolcrib.agents.reference.lists": "References check_provider_data",
            "toolcrib.agents.reference.snapshots": "ReferenceUnavailable Snapshot Snapshots",
            "toolcrib.agents.toolset.allocation": "allocation",
            "toolcrib.agents.toolset.default_prompt": "default_prompt reference_names",
            "toolcrib.agents.toolset.drift": "basis_of drift_of with_basis",
            "toolcrib.agents.toolset.placeholders": "PLACEHOLDERS check_prompt describe_placeholders",
            "toolcrib.agents.toolset.resolution": "ToolRequester resolve",
        },
    )

__all__ = [
    "CALL",
    "PLACEHOLDERS",
    "SUMMARIZED",
    "TASK_INPUT",
    "AgenticHandlers",
    "AnswerChecks",
    "Memory",
    "Models",
    "PromptTestProgram",
    "ReferenceUnavailable",
    "References",
    "RunPreparer",
    "Snapshot",
    "Snapshots",
    "Summary",
    "TextProgram",
    "ToolRequester",
    "agentic_definition",
    "allocation",
    "basis_of",
    "check_agent",
    "check_agentic",
    "check_prompt",
    "check_provider_data",
    "default_prompt",
    "describe_placeholders",
    "drift_of",
    "identity_of",
    "message_of",
    "reference_names",
    "resolve",
    "variables_of",
    "with_basis",
    "workflow_of",
]
