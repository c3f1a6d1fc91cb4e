"""The agentic mode: the model selects tools, reviews what came back, recovers from errors, and completes.

Each turn is one model call and the tool calls of its answer, in parallel, at positions `t1.llm`, `t1.c1`, `t1.c2`,
`t2.llm`… The allocation is enforced by the guard: a tool outside it is denied, and the denial goes back to the model.
Limits end the run with what it has.
"""

from collections.abc import Sequence
from typing import cast

import orjson

from toolcrib.agents.answers import UnusableAnswer, ask_json, read_object
from toolcrib.agents.failures import model_failure
from toolcrib.agents.previews import preview, result_text
from toolcrib.agents.setup import Furnisher, Setup
from toolcrib.contracts import (
    ErrorCode,
    Json,
    JsonSchema,
    ModelError,
    Purpose,
    Reason,
    ToolEnvelope,
    ToolRevision,
)
from toolcrib.executor import ToolCall, error
from toolcrib.llm import Message, Response, ToolResult, user
from toolcrib.llm import ToolCall as ModelToolCall
from toolcrib.registry import compile_schema
from toolcrib.runs import BudgetExhausted, Ended, RunContext


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
                message = f"agentic tool {tool.ref!r} has no tools to choose from; allot at least one"
                none = error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_ALLOWED, message)
                return Ended(status="failed", stop_reason="no_tools", error=none)
            return await self._converse(setup, done)
        except BudgetExhausted as limit:
            return Ended(output=partial(done), stop_reason=limit.shortage.stop_reason, warnings=(str(limit),))
        except ModelError as failure:
            output = partial(done) if done else None
            return Ended(output=output, status="failed", stop_reason="error", error=model_failure(failure))

    async def _converse(self, setup: Setup, done: list[ToolEnvelope]) -> Ended:
        context = setup.context
        messages: tuple[Message, ...] = (user(setup.task),)
        tools = setup.place.tools
        system = setup.system_prompt()
        offered = await context.keep(setup.place.offered)
        purpose: Purpose = "tool_selection"
        context.partial = lambda: partial(done) if done else None
        turn = 0
        while True:
            turn += 1
            request = setup.request(messages, system=system, tools=tools)
            new, prompt = (messages, system) if turn == 1 else ((), None)
            call = setup.call(f"t{turn}.llm", purpose, request, new=new, system=prompt, tools=offered)
            response = await context.model(call)
            calls = response.message.calls
            if not calls:
                return await self._complete(setup, response, done)
            envelopes = await self._call_tools(setup, turn, calls)
            done += envelopes
            if _limit_hit(envelopes):
                warning = next(found.error.message for found in envelopes if found.error is not None)
                return Ended(output=partial(done), stop_reason="max_tool_calls", warnings=(warning,))
            messages = (*messages, response.message, _results(calls, envelopes))
            purpose = "error_recovery" if any(found.error for found in envelopes) else "result_review"

    async def _call_tools(self, setup: Setup, turn: int, calls: Sequence[ModelToolCall]) -> list[ToolEnvelope]:
        pending = [
            setup.context.call(ToolCall(f"t{turn}.c{index}", setup.named(call.name), _arguments(call.args)))
            for index, call in enumerate(calls, start=1)
        ]
        return await setup.context.wait_all(pending)

    async def _complete(self, setup: Setup, response: Response, done: list[ToolEnvelope]) -> Ended:
        text = response.message.text
        warnings = _stop_warnings(response)
        if not text.strip():
            message = f"the model {setup.model.name!r} ended with an empty answer (stop: {response.stop})"
            empty = error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message)
            output = partial(done) if done else None
            return Ended(output=output, status="failed", stop_reason="error", error=empty, warnings=warnings)
        schema = setup.implementation.result_schema
        if schema is None:
            return Ended(output={"summary": text}, warnings=warnings)
        found = read_object(text)
        if isinstance(found, dict) and not compile_schema(schema).problems(cast("Json", found)):
            return Ended(output=found, warnings=warnings)
        try:
            output = await self._format(setup, text, done, schema)
        except (ModelError, UnusableAnswer, BudgetExhausted) as failure:
            # The task is done: the answer is then the model's own words.
            output = {"summary": text}
            warnings = (*warnings, f"the answer could not be formatted: {failure}")
        return Ended(output=output, warnings=warnings)

    async def _format(self, setup: Setup, text: str, done: list[ToolEnvelope], schema: JsonSchema) -> Json:
        facts = preview([{"tool": found.name, "output": found.output} for found in done if found.ok], 6000)
        question = f"Task: {setup.task}\n\nAnswer so far: {text}\n\nFacts: {facts}\n\nPut the answer into the schema."
        system = "You put an answer into the given schema, truthfully, from the text and the facts that you are given."
        return await ask_json(setup, "format", "formatting", question, schema, name="answer", system=system)


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


def _arguments(text: str) -> Json:
    """The model's arguments as JSON; text that is none stays text, for the executor to refuse."""
    if not text.strip():
        return {}
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _results(calls: Sequence[ModelToolCall], envelopes: Sequence[ToolEnvelope]) -> Message:
    return Message(
        "user",
        tuple(
            ToolResult(call.id, call.name, result_text(envelope), is_error=envelope.error is not None)
            for call, envelope in zip(calls, envelopes, strict=True)
        ),
    )


def _limit_hit(envelopes: Sequence[ToolEnvelope]) -> bool:
    """Whether every call of a turn was denied because no more calls are allowed."""
    reasons = {found.error.reason if found.error else None for found in envelopes}
    return reasons == {Reason.MAX_TOOL_CALLS_EXCEEDED}


def _stop_warnings(response: Response) -> tuple[str, ...]:
    match response.stop:
        case "length":
            return ("the answer was cut off at max_tokens; raise max_tokens",)
        case "content_filter" | "refusal":
            return (f"the model did not answer the task: {response.raw_stop or response.stop}",)
        case _:
            return ()
