"""Makes the calls that a model asks for, in parallel, at positions `t1.c1`, `t1.c2`…, and searches for tools.

Every call goes through the run, so the guard denies tools that are not offered, and the model sees the denial.
"""

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from toolcrib.agents.model.tool_calls import (
    Calls,
    arguments_of,
    error_for_model,
    is_refused,
    refusal_key,
    text_for_model,
)
from toolcrib.agents.toolset.tool_search import FIND_TOOLS, finder, reading
from toolcrib.agents.toolset.toolset import Toolset
from toolcrib.agents.turn.call_evidence import CallEvidence
from toolcrib.contracts import ErrorCode, Json, JsonObject, Reason, ToolEnvelope, ToolError
from toolcrib.core.executor import CallRequest, error
from toolcrib.core.registry import compile_schema
from toolcrib.core.runs import RunContext
from toolcrib.llm import ToolCall as ModelToolCall
from toolcrib.llm import ToolResult, ToolSet


class CallResult(NamedTuple):
    """What came of one call of the model's."""

    call: ModelToolCall
    text: str
    """What the model is told."""
    error: ToolError | None = None
    refused: bool = False
    envelope: ToolEnvelope | None = None
    """Null if nothing was called: it was a look into the catalogue, or no call that could be taken."""

    @property
    def result(self) -> ToolResult:
        """The same for the model."""
        return ToolResult(self.call.id, self.call.name, self.text, is_error=self.error is not None)


class ToolCallRunner:
    """Does what the answers of one run ask for.

    Args:
        context: The run.
        offer: Its tools.
        found: Names of the hidden tools that the model has found before.
        grounds: Judges where the arguments of calls that write come from; nothing does if null.
    """

    def __init__(
        self, context: RunContext, offer: Toolset, found: Sequence[str] = (), grounds: CallEvidence | None = None
    ) -> None:
        self._grounds = grounds
        self._context = context
        self._offer = offer
        self._found = list(found)
        """Names of the hidden tools that the model has found, in order."""
        self.tools: ToolSet = offer.with_found(self._found)
        """What the model is offered now."""

    @property
    def has_found(self) -> bool:
        """Whether more is offered than from the start."""
        return bool(self._found)

    async def perform(self, calls: Calls, done: Sequence[ToolEnvelope] = ()) -> Sequence[CallResult]:
        """All calls of a turn, in parallel; the outcomes are in the order of the calls.

        Args:
            calls: Of the turn.
            done: The calls that were made before.
        """
        calls = await self._with_refusals(calls, done)
        hidden, open_calls = self._offer.folded.hidden, calls.made.keys() - calls.refused.keys()
        looks = [
            place for place in calls.made if place in open_calls and hidden and calls.made[place].name == FIND_TOOLS
        ]
        pending = {
            place: self._context.call(CallRequest(place, self._offer.real_name(call.name), arguments_of(call)))
            for place, call in calls.made.items()
            if place in open_calls and place not in looks
        }
        outcomes = {place: await self._look(place, calls.made[place]) for place in looks}
        for place, failure in calls.refused.items():
            await self._context.emit(refusal_key(place), "call_refused", {"message": failure.message})
            outcomes[place] = CallResult(calls.made[place], _dump(error_for_model(failure)), failure, refused=True)
        envelopes = await self._context.wait_all(list(pending.values()))
        offered = [tool.name for tool in self.tools.tools]
        for place, envelope in zip(pending, envelopes, strict=True):
            call = calls.made[place]
            text = text_for_model(envelope, called=call.name, offered=offered)
            outcomes[place] = CallResult(call, text, envelope.error, is_refused(envelope), envelope)
        return [outcomes[place] for place in calls.made]

    async def _with_refusals(self, calls: Calls, done: Sequence[ToolEnvelope]) -> Calls:
        """The calls with a refusal for those whose arguments come from nowhere."""
        if self._grounds is None:
            return calls
        refused = dict(calls.refused)
        for place, call in calls.made.items():
            if place not in refused:
                name = self._offer.real_name(call.name)
                failure = await self._grounds.refusal(place, name, arguments_of(call), done)
                if failure is not None:
                    refused[place] = failure
        return calls._replace(refused=refused)

    async def _look(self, position: str, call: ModelToolCall) -> CallResult:
        """Look into the catalogue of hidden tools; what is found can be called from now on.

        What the model is told of it stands nowhere else, so it is written down as well.
        """
        folded, wanted = self._offer.folded, arguments_of(call)
        problems = compile_schema(finder(folded.hidden).schema).problems(wanted)
        if problems:
            message = f"the arguments of {FIND_TOOLS!r} are not valid: {'; '.join(map(str, problems))}"
            failure = error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message)
            await self._context.emit(position, "call_refused", {"told": error_for_model(failure)})
            return CallResult(call, _dump(error_for_model(failure)), failure, refused=True)
        query: JsonObject = wanted

        async def look() -> Json:
            found = folded.find(query["query"], query.get("group"))
            return {**query, "found": [item.alias for item in found], "told": reading(found)}

        names = (await self._context.once(position, "tools_found", look))["found"]
        self._found += [name for name in names if name not in self._found]
        self.tools = self._offer.with_found(self._found)
        by_name = {item.alias: item for item in folded.hidden}
        return CallResult(call, _dump(reading([by_name[name] for name in names])))


def _dump(told: JsonObject) -> str:
    return orjson.dumps(told).decode()
