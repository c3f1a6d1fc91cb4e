"""The program of an agent: what was said before, the user's message, the turns that follow, and the answer.

The answer is `{"response": text}`, and beside it `output` where the definition wants an object: the model's own words
if they are one that meets the schema, else asked for once more. An agent whose tools are all gone does not begin; one
that names none just answers.
"""

from collections.abc import Sequence

import orjson

from toolcrib.agents.model.failures import model_failure
from toolcrib.agents.model.json_answers import UnusableAnswer, fitting_object, read_object
from toolcrib.agents.model.previews import calls_in_short
from toolcrib.agents.prepare.agent import AgentFurnisher, Furnished
from toolcrib.agents.turn.turns import Turns, refusal_of, stop_warnings
from toolcrib.contracts import (
    AgentImplementation,
    ErrorCode,
    InvalidDefinition,
    Json,
    JsonSchema,
    Reason,
    ToolEnvelope,
    ToolRevision,
)
from toolcrib.core.executor import CallFailed, error
from toolcrib.core.runs import Ended, RunContext
from toolcrib.llm import Response

_FORMAT = "Give your final answer now: one JSON object that meets the schema, and nothing else."


class Agent:
    """Runs agents.

    Args:
        furnisher: Furnishes runs.
    """

    def __init__(self, furnisher: AgentFurnisher) -> None:
        self._furnisher = furnisher

    async def __call__(self, context: RunContext, tool: ToolRevision) -> Ended:
        """Run to the end; whatever goes wrong is an end too, with what was reached until then."""
        agent = tool.definition.implementation
        if not isinstance(agent, AgentImplementation):
            msg = f"tool {tool.ref!r} is of kind {agent.kind!r}, not an agent"
            raise InvalidDefinition(msg)
        try:
            furnished = await self._furnisher.prepare(context, tool, agent)
        except CallFailed as refusal:
            return Ended(status="failed", stop_reason="policy", error=refusal.error)
        if _names_tools(agent) and not furnished.offer.tools:
            return _no_tools(tool)
        return await Turns(_Reply(furnished), furnished.found).run()


class _Reply:
    """The work of an agent: a message, and an answer."""

    def __init__(self, furnished: Furnished) -> None:
        self.desk = furnished.desk
        self.offer = furnished.offer
        self.opening = furnished.opening
        self.answer_schema = furnished.agent.answer_schema
        self._system = furnished.system

    def prompt(self, done: Sequence[ToolEnvelope]) -> str:
        """The same always."""
        del done
        return self._system

    def partial(self, turns: Turns) -> Json:
        """The last words and the calls with their results in short."""
        return {"response": turns.said, "calls": calls_in_short(turns.done)}

    async def answered(self, turns: Turns, response: Response) -> Ended:
        """The answer, or why there is none."""
        if response.stop in ("content_filter", "refusal"):
            message = f"the model {self.desk.model.name!r} did not answer: {refusal_of(response)}"
            refused = error(ErrorCode.PROVIDER_ERROR, Reason.REQUEST_REFUSED, message)
            return turns.failed(refused, stop_reason="policy")
        if self.answer_schema is not None:
            return await self._structured(turns, response, self.answer_schema)
        text, warnings = response.message.text, stop_warnings(response)
        if response.wants_format:
            text = await turns.final_words(response.message)
        if warnings:
            return Ended(output={"response": text}, stop_reason="max_tokens", warnings=warnings)
        return Ended(output={"response": text}) if text.strip() else turns.nothing(response)

    async def _structured(self, turns: Turns, response: Response, schema: JsonSchema) -> Ended:
        text = response.message.text.strip()
        if not text and not response.wants_format:
            return turns.nothing(response)
        found = None if response.wants_format else fitting_object(text, schema)
        if found is None:
            try:
                found = await turns.formatted(response.message, _FORMAT, schema)
            except UnusableAnswer as failure:
                output = {"response": text, "calls": calls_in_short(turns.done)}
                return Ended(output=output, status="failed", stop_reason="error", error=model_failure(failure))
            if isinstance(read_object(text), dict):
                text = ""  # no words, but an object that has been put right since
        return Ended(output={"response": text or orjson.dumps(found).decode(), "output": found})


def _names_tools(agent: AgentImplementation) -> bool:
    return bool(agent.tools or agent.tool_categories or agent.tool_tags or agent.delegates)


def _no_tools(tool: ToolRevision) -> Ended:
    message = f"agent {tool.ref!r} names tools, and none of them can be used; its journal says why each was left out"
    none = error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_ALLOWED, message)
    return Ended(status="failed", stop_reason="no_tools", error=none)
