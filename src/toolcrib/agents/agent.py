"""The program of an agent: its conversation so far, the user's message, and the turns that follow."""

from typing import cast

from toolcrib.agents.failures import model_failure
from toolcrib.agents.loop import Conversation, partial
from toolcrib.agents.setup import Furnisher
from toolcrib.contracts import (
    AgenticImplementation,
    AgentImplementation,
    AllocatedTool,
    InvalidDefinition,
    Json,
    JsonObject,
    ModelError,
    ToolEnvelope,
    ToolRevision,
)
from toolcrib.runs import BudgetExhausted, Ended, RunContext


class Agent:
    """Runs agents.

    Args:
        furnisher: Furnishes runs.
    """

    def __init__(self, furnisher: Furnisher) -> None:
        self._furnisher = furnisher

    async def __call__(self, context: RunContext, tool: ToolRevision) -> Ended:
        """Run to the end; whatever goes wrong is an end too, with what was reached until then."""
        implementation = tool.definition.implementation
        if not isinstance(implementation, AgentImplementation):
            msg = f"tool {tool.ref!r} is of kind {implementation.kind!r}, not an agent"
            raise InvalidDefinition(msg)
        done: list[ToolEnvelope] = []
        try:
            setup = await self._furnisher.prepare(context, tool, _inside(implementation))
            ended = await Conversation(setup, done).run()
        except BudgetExhausted as limit:
            return Ended(output=partial(done), stop_reason=limit.shortage.stop_reason, warnings=(str(limit),))
        except ModelError as failure:
            output = partial(done) if done else None
            return Ended(output=output, status="failed", stop_reason="error", error=model_failure(failure))
        return Ended(
            output=_answer(ended.output), status=ended.status, stop_reason=ended.stop_reason, error=ended.error,
            warnings=ended.warnings,
        )  # fmt: skip


def _inside(agent: AgentImplementation) -> AgenticImplementation:
    return AgenticImplementation(
        mode="agentic",
        llm=agent.llm,
        system_prompt=agent.system_prompt,
        tools=(*agent.tools, *(AllocatedTool(tool=delegate) for delegate in agent.delegates)),
        limits=agent.limits,
        result_schema=agent.response_schema,
    )


def _answer(output: Json) -> Json:
    """What an agent puts out: `{"response": text}`."""
    found = cast("JsonObject", output) if isinstance(output, dict) else {}
    return {"response": found["summary"]} if "summary" in found else output
