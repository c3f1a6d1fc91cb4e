"""Calls that write, held against what their model may know, where it chooses its calls one by one.

What names a record must stand in the task, in the author's documentation, in reference data or in an earlier result;
else the call is refused before it runs, and the model is told to look it up. What else stands in none of these is
written down, and refused too where the tool is `strict`.
"""

from collections.abc import Sequence
from typing import cast

from toolcrib.agents.evidence import Finding, Passage, Said, Step, doubts_of_call, seen_in
from toolcrib.agents.setup import Setup
from toolcrib.contracts import ErrorCode, Json, JsonObject, Reason, ToolEnvelope, ToolError
from toolcrib.executor import error


class Grounds:
    """Judges the calls of one run.

    Args:
        setup: The run.
    """

    def __init__(self, setup: Setup) -> None:
        implementation = setup.implementation
        self._setup = setup
        self._strict = implementation.grounding == "strict"
        self._tools = {item.tool.name: item for item in setup.allotted if item.tool.definition.side_effects == "writes"}
        documentation = "\n".join((implementation.context.documentation, implementation.system_prompt))
        self._said = Said(
            task=Passage(setup.task),
            documentation=Passage(documentation),
            today=setup.context.run.created_at.date(),
            lists=setup.place.lists,
        )

    async def refusal(
        self, position: str, tool: str, arguments: Json, done: Sequence[ToolEnvelope]
    ) -> ToolError | None:
        """Why a call is not made; null if nothing speaks against it.

        Args:
            position: Of the call.
            tool: Its name.
            arguments: As the model wrote them.
            done: The calls that were made before.
        """
        item = self._tools.get(tool)
        if item is None or not isinstance(arguments, dict):
            return None
        step = Step(position, cast("JsonObject", arguments), item.schema, writes=True)
        doubts = doubts_of_call(step, self._said, seen_in(found.output for found in done if found.ok))
        if not doubts:
            return None
        told: JsonObject = {"doubts": [_told(doubt) for doubt in doubts]}
        await self._setup.context.emit(f"{position}.evidence", "call_judged", told)
        refused = [doubt for doubt in doubts if self._strict or doubt.state == "invented"]
        if not refused:
            return None
        named = "; ".join(f"{doubt.field} {doubt.shown!r}" for doubt in refused)
        message = f"{tool!r} was not called: {named} comes from no result, not from the task and from no list"
        return error(
            ErrorCode.VALIDATION_ERROR, Reason.NOT_GROUNDED, f"{message}; look it up first, or ask for it", **told
        )


def _told(doubt: Finding) -> JsonObject:
    return {"field": doubt.field, "value": doubt.shown, "state": doubt.state}


def grounds_of(setup: Setup) -> Grounds | None:
    """What judges the calls of a run; null where nothing does: it is off, or the run began in an older release."""
    is_off = setup.implementation.grounding == "off" or setup.context.request.plan_format == 1
    return None if is_off else Grounds(setup)
