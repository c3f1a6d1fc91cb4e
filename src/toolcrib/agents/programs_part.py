"""The programs of runs: a single tool call, agentic tools in both modes, and agents."""

from collections.abc import Mapping

from toolcrib.agents.agentic import Agentic
from toolcrib.agents.deterministic import Deterministic
from toolcrib.agents.history.variables import Recall
from toolcrib.agents.prepare.agent import AgentFurnisher, Fragments
from toolcrib.agents.prepare.agentic_tool import Furnisher, Models
from toolcrib.agents.programs import Agent
from toolcrib.agents.reference.lists import References
from toolcrib.contracts import RunKind, ToolRevision
from toolcrib.core.executor import ToolCall
from toolcrib.core.policy import Accounts
from toolcrib.core.registry import Providers, Registry
from toolcrib.core.runs import Ended, Program, RunContext

CALL = "call"
"""Position of the only call of a run of kind `tool`."""


def programs(
    models: Models,
    registry: Registry,
    providers: Providers,
    references: References,
    *,
    fragments: Fragments,
    accounts: Accounts,
    recall: Recall,
) -> Mapping[RunKind, Program]:
    """The program of every kind of run.

    Args:
        models: Opens the model that a configuration names.
        registry: Finds the tools that models are allotted.
        providers: Has the lists that prompts were made from.
        references: Reads reference data.
        fragments: Finds the pieces of agents' prompts.
        accounts: Finds the service accounts that agents act as.
        recall: Remembers agents' conversations.
    """
    furnisher = Furnisher(models, registry, providers, references)
    agents = AgentFurnisher(models, registry, fragments=fragments, accounts=accounts, recall=recall)
    deterministic, agentic = Deterministic(furnisher), Agentic(furnisher)

    async def run_agentic(context: RunContext, tool: ToolRevision) -> Ended:
        implementation = tool.definition.implementation
        fixed = implementation.kind == "agentic" and implementation.mode == "deterministic"
        return await (deterministic if fixed else agentic)(context, tool)

    return {"tool": call_once, "agentic": run_agentic, "agent": Agent(agents)}


async def call_once(context: RunContext, tool: ToolRevision) -> Ended:
    """One call of one tool; its envelope is the run's end."""
    envelope = await context.call(ToolCall(CALL, tool.name, context.request.input, tool.content_hash))
    if envelope.error is None:
        return Ended(output=envelope.output, attachments=envelope.attachments)
    denied = envelope.status == "denied"
    return Ended(status="failed", stop_reason="policy" if denied else "error", error=envelope.error)
