"""The agentic mode: the model selects tools, reviews what came back, recovers from errors, and completes.

Each turn is one model call and the tool calls of its answer, in parallel, at positions `t1.llm`, `t1.c1`, `t1.c2`,
`t2.llm`… The allocation is enforced by the guard: a tool outside it is denied, and the denial goes back to the model.
Limits end the run with what it has.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import msgspec
import orjson

from toolcrib.agents.answers import UnusableAnswer, ask_json, read_object
from toolcrib.agents.failures import model_failure
from toolcrib.agents.finding import FIND_TOOLS, finder, reading
from toolcrib.agents.previews import preview
from toolcrib.agents.refusals import MAX_REFUSED_TURNS, given_up, is_refused, told
from toolcrib.agents.setup import Furnisher, Setup
from toolcrib.contracts import (
    ErrorCode,
    Json,
    JsonObject,
    JsonSchema,
    ModelError,
    Purpose,
    Reason,
    StopReason,
    ToolEnvelope,
    ToolError,
    ToolRevision,
)
from toolcrib.executor import ToolCall, error
from toolcrib.llm import Message, Response, ToolResult, ToolSet, user
from toolcrib.llm import ToolCall as ModelToolCall
from toolcrib.registry import compile_schema
from toolcrib.runs import BudgetExhausted, Ended, RunContext

_LIMITS: dict[Reason | None, StopReason] = {
    Reason.MAX_TOOL_CALLS_EXCEEDED: "max_tool_calls",
    Reason.MAX_COST_EXCEEDED: "max_cost",
}
_EMPTY = "Your answer was empty. Call a tool, or answer the task in words."


class Agentic:
    """The program of an agentic tool in agentic mode.

    Args:
        furnisher: Furnishes runs.
    """

    def __init__(self, furnisher: Furnisher) -> None:
        self._furnisher = furnisher

    async def __call__(self, context: RunContext, tool: ToolRevision) -> Ended:
        """Run to the end; whatever goes wrong is an end too, with what was reached until then."""
        done: list[ToolEnvelope] = []
        try:
            setup = await self._furnisher.prepare(context, tool)
            if not setup.allotted:
                return _no_tools(tool)
            return await Conversation(setup, done).run()
        except BudgetExhausted as limit:
            return Ended(output=partial(done), stop_reason=limit.shortage.stop_reason, warnings=(str(limit),))
        except ModelError as failure:
            output = partial(done) if done else None
            return Ended(output=output, status="failed", stop_reason="error", error=model_failure(failure))


class _Outcome(NamedTuple):
    """What came of one call of the model's."""

    text: str
    """What the model is told."""
    error: ToolError | None = None
    refused: bool = False
    envelope: ToolEnvelope | None = None
    """Null if it was a look into the catalogue, which is no call."""


class Conversation:
    """The turns of one run."""

    def __init__(self, setup: Setup, done: list[ToolEnvelope]) -> None:
        self._setup = setup
        self._done = done
        self._messages: tuple[Message, ...] = (user(setup.task),)
        self._new = self._messages
        """Messages that stand nowhere else in the journal."""
        self._system = ""
        self._purpose: Purpose = "tool_selection"
        self._tools: ToolSet = setup.place.tools
        self._found: list[str] = []
        """Names of the hidden tools that the model has found."""
        self._refused_turns = 0
        self._was_empty = False

    async def run(self) -> Ended:
        """Take turns until the model completes, or has had its chances."""
        self._setup.context.partial = lambda: partial(self._done) if self._done else None
        turn = 0
        ended = None
        while ended is None:
            turn += 1
            response = await self._ask(turn)
            if response.stop == "pause":
                self._messages = (*self._messages, response.message)
            elif response.message.calls:
                ended = await self._act(turn, response)
            else:
                ended = await self._answer(response)
        return ended

    async def _ask(self, turn: int) -> Response:
        setup, context = self._setup, self._setup.context
        before, self._system = self._system, self._prompt()
        request = setup.request(self._messages, system=self._system, tools=self._tools)
        offered = setup.place.offered if not self._found else msgspec.json.encode(self._tools.tools)
        call = setup.call(
            f"t{turn}.llm",
            self._purpose,
            request,
            new=self._new,
            system=None if self._system == before else self._system,
            tools=await context.keep(offered),
        )
        self._new = ()
        return await context.model(call)

    def _prompt(self) -> str:
        """The system prompt, with the history where it has a place for it: the messages have it anyway."""
        if "execution_history" in self._setup.place.prompt.references:
            return self._setup.system_prompt(_history(self._done))
        return self._system or self._setup.system_prompt()

    # Tools ------------------------------------------------------------------------------------------------------------

    async def _act(self, turn: int, response: Response) -> Ended | None:
        calls = response.message.calls
        outcomes = await self._perform(turn, calls)
        envelopes = [outcome.envelope for outcome in outcomes if outcome.envelope is not None]
        self._done += envelopes
        limit = _limit_hit(envelopes)
        if limit is not None:
            warning = next(found.error.message for found in envelopes if found.error is not None)
            return Ended(output=partial(self._done), stop_reason=limit, warnings=(warning,))
        results = tuple(
            ToolResult(call.id, call.name, outcome.text, is_error=outcome.error is not None)
            for call, outcome in zip(calls, outcomes, strict=True)
        )
        self._messages = (*self._messages, response.message, Message("user", results))
        failures = [outcome.error for outcome in outcomes if outcome.error is not None]
        self._purpose = "error_recovery" if failures else "result_review"
        self._refused_turns = self._refused_turns + 1 if all(outcome.refused for outcome in outcomes) else 0
        if self._refused_turns < MAX_REFUSED_TURNS:
            return None
        stop: StopReason = "policy" if failures[-1].code is ErrorCode.POLICY_DENIED else "error"
        refusal = given_up(self._setup.model.name, failures[-1])
        return Ended(output=partial(self._done), status="failed", stop_reason=stop, error=refusal)

    async def _perform(self, turn: int, calls: Sequence[ModelToolCall]) -> list[_Outcome]:
        """All calls of a turn, in parallel; the outcomes are in the order of the calls."""
        setup, hidden = self._setup, self._setup.place.folded.hidden
        places = {f"t{turn}.c{index}": call for index, call in enumerate(calls, start=1)}
        looks = [position for position, call in places.items() if hidden and call.name == FIND_TOOLS]
        pending = {
            position: setup.context.call(ToolCall(position, setup.named(call.name), _arguments(call.args)))
            for position, call in places.items()
            if position not in looks
        }
        found = {position: await self._look(position, places[position]) for position in looks}
        envelopes = dict(zip(pending, await setup.context.wait_all(list(pending.values())), strict=True))
        offered = [tool.name for tool in self._tools.tools]
        made = {
            position: _Outcome(
                told(envelope, called=places[position].name, offered=offered),
                envelope.error,
                is_refused(envelope),
                envelope,
            )
            for position, envelope in envelopes.items()
        }
        return [(made | found)[position] for position in places]

    async def _look(self, position: str, call: ModelToolCall) -> _Outcome:
        """Look into the catalogue of hidden tools; what is found can be called from now on."""
        setup, folded = self._setup, self._setup.place.folded
        wanted = _arguments(call.args)
        problems = compile_schema(finder(folded.hidden).schema).problems(wanted)
        if problems:
            message = f"the arguments of {FIND_TOOLS!r} are not valid: {'; '.join(map(str, problems))}"
            failure = error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message)
            return _Outcome(_dump({"error": failure.code.value, "message": message}), failure, refused=True)
        query: JsonObject = wanted

        async def look() -> Json:
            names = [item.alias for item in folded.find(query["query"], query.get("group"))]
            return {**query, "found": names}

        names = (await setup.context.once(position, "tools_found", look))["found"]
        self._found += [name for name in names if name not in self._found]
        self._tools = setup.place.with_found(self._found)
        by_name = {item.alias: item for item in folded.hidden}
        return _Outcome(_dump(reading([by_name[name] for name in names])))

    # The end ----------------------------------------------------------------------------------------------------------

    async def _answer(self, response: Response) -> Ended | None:
        setup, text = self._setup, response.message.text
        warnings = _stop_warnings(response)
        if not text.strip():
            if self._was_empty or warnings:
                return self._nothing(response, warnings)
            self._was_empty = True
            self._new = (user(_EMPTY),)
            self._messages = (*self._messages, *self._new)
            self._purpose = "error_recovery"
            return None
        schema = setup.implementation.result_schema
        if schema is None:
            return Ended(output={"summary": text}, warnings=warnings)
        found = read_object(text)
        if isinstance(found, dict) and not compile_schema(schema).problems(cast("Json", found)):
            return Ended(output=found, warnings=warnings)
        try:
            output = await self._format(text, schema)
        except (ModelError, UnusableAnswer, BudgetExhausted) as failure:
            # The task is done: the answer is then the model's own words.
            output = {"summary": text}
            warnings = (*warnings, f"the answer could not be formatted: {failure}")
        return Ended(output=output, warnings=warnings)

    def _nothing(self, response: Response, warnings: tuple[str, ...]) -> Ended:
        message = f"the model {self._setup.model.name!r} ended with an empty answer (stop: {response.stop})"
        empty = error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message)
        output = partial(self._done) if self._done else None
        return Ended(output=output, status="failed", stop_reason="error", error=empty, warnings=warnings)

    async def _format(self, text: str, schema: JsonSchema) -> Json:
        facts = preview([{"tool": found.name, "output": found.output} for found in self._done if found.ok], 6000)
        question = (
            f"Task: {self._setup.task}\n\nAnswer so far: {text}\n\nFacts: {facts}\n\nPut the answer into the schema."
        )
        system = "You put an answer into the given schema, truthfully, from the text and the facts that you are given."
        return await ask_json(self._setup, "format", "formatting", question, schema, name="answer", system=system)


def partial(done: Sequence[ToolEnvelope]) -> Json:
    """What a run that a limit ended has: its calls with their results in short."""
    calls = [
        {
            "tool": found.name,
            "status": found.status,
            "output": preview(found.output, 500) if found.ok else None,
            "error": found.error.message if found.error else None,
        }
        for found in done
    ]
    return {"summary": None, "calls": calls}


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


def _arguments(text: str) -> Json:
    """The model's arguments as JSON; text that is none stays text, for the executor to refuse."""
    if not text.strip():
        return {}
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _limit_hit(envelopes: Sequence[ToolEnvelope]) -> StopReason | None:
    """The limit that denied every call of a turn, if it did."""
    reasons = {found.error.reason if found.error else None for found in envelopes}
    return _LIMITS.get(reasons.pop()) if len(reasons) == 1 else None


def _stop_warnings(response: Response) -> tuple[str, ...]:
    match response.stop:
        case "length":
            return ("the answer was cut off at max_tokens; raise max_tokens",)
        case "content_filter" | "refusal":
            return (f"the model did not answer the task: {response.raw_stop or response.stop}",)
        case _:
            return ()


def _dump(facts: JsonObject) -> str:
    return orjson.dumps(facts).decode()
