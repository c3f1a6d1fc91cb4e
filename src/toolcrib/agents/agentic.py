"""The agentic mode: the model selects tools, reviews what came back, recovers from errors, and completes.

The allocation is enforced by the guard: a tool outside it is denied, and the denial goes back to the model.
"""

from collections.abc import Sequence

from toolcrib.agents.model.json_answers import UnusableAnswer, ask_json, fitting_object
from toolcrib.agents.model.previews import calls_in_short, preview
from toolcrib.agents.prepare.agentic_tool import Furnisher, Setup
from toolcrib.agents.turn.call_evidence import grounds_of
from toolcrib.agents.turn.turns import Turns, stop_warnings
from toolcrib.contracts import ErrorCode, Json, JsonSchema, ModelError, Reason, ToolEnvelope, ToolRevision
from toolcrib.core.executor import error
from toolcrib.core.runs import BudgetExhausted, Ended, RunContext
from toolcrib.llm import Message, Response, user

_FORMAT = "Give your final answer now: put it into the schema, truthfully, from the results above."


class Agentic:
    """The program of an agentic tool in agentic mode.

    Args:
        furnisher: Furnishes runs.
    """

    def __init__(self, furnisher: Furnisher) -> None:
        self._furnisher = furnisher

    async def __call__(self, context: RunContext, tool: ToolRevision) -> Ended:
        """Run to the end; whatever goes wrong is an end too, with what was reached until then."""
        setup = await self._furnisher.prepare(context, tool)
        return await Turns(_Task(setup), grounds=grounds_of(setup)).run() if setup.allotted else _no_tools(tool)


class _Task:
    """The work of an agentic tool: a task, and an answer that is put into a schema."""

    def __init__(self, setup: Setup) -> None:
        self.desk = setup
        self.offer = setup.place.offer
        self.opening: tuple[Message, ...] = (user(setup.task),)
        self.answer_schema: JsonSchema | None = None
        self._prompt = ""

    def prompt(self, done: Sequence[ToolEnvelope]) -> str:
        """The system prompt, with the history where it has a place for it: the messages have it anyway."""
        if "execution_history" in self.desk.place.prompt.references:
            return self.desk.system_prompt(_history(done))
        self._prompt = self._prompt or self.desk.system_prompt()
        return self._prompt

    def partial(self, turns: Turns) -> Json:
        """The calls with their results in short."""
        return {"summary": turns.closing or None, "calls": calls_in_short(turns.done)}

    async def answered(self, turns: Turns, response: Response) -> Ended:
        """The answer as it is, or put into the result schema."""
        text, warnings = response.message.text, stop_warnings(response)
        schema = self.desk.implementation.result_schema
        if response.wants_format and schema is None:
            text = await turns.final_words(response.message)
        if not text.strip() and not (response.wants_format and schema):
            return turns.nothing(response)
        if schema is None:
            return Ended(output={"summary": text}, warnings=warnings)
        found = fitting_object(text, schema)
        if found is not None:
            return Ended(output=found, warnings=warnings)
        try:
            if response.wants_format:
                output = await turns.formatted(response.message, _FORMAT, schema)
            else:
                output = await self._format(turns.done, text, schema)
        except (ModelError, UnusableAnswer, BudgetExhausted) as failure:
            # The task is done: the answer is then the model's own words.
            output = {"summary": text}
            warnings = (*warnings, f"the answer could not be formatted: {failure}")
        return Ended(output=output, warnings=warnings)

    async def _format(self, done: Sequence[ToolEnvelope], text: str, schema: JsonSchema) -> Json:
        facts = preview([{"tool": found.name, "output": found.output} for found in done if found.ok], 6000)
        question = (
            f"Task: {self.desk.task}\n\nAnswer so far: {text}\n\nFacts: {facts}\n\nPut the answer into the schema."
        )
        system = "You put an answer into the given schema, truthfully, from the text and the facts that you are given."
        return await ask_json(self.desk, "format", "formatting", question, schema, name="answer", system=system)


def _history(done: Sequence[ToolEnvelope]) -> str:
    """The calls so far, one a line."""
    return "\n".join(
        f"{number}. {found.name}({preview(found.input, 300)}): "
        f"{found.error.message if found.error else preview(found.output, 300)}"
        for number, found in enumerate(done, start=1)
    )


def _no_tools(tool: ToolRevision) -> Ended:
    message = f"agentic tool {tool.ref!r} has no tools to choose from; allot at least one that is in service"
    none = error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_ALLOWED, message)
    return Ended(status="failed", stop_reason="no_tools", error=none)
