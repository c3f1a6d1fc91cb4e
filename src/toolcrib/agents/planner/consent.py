"""Previews: shows a person what a step would change, if it changes many items, cannot be undone, or is uncertain.

A tool whose calls wait for a person anyway (`requires_confirmation`, or a guardrail) has no preview.
"""

from collections.abc import Iterator, Sequence
from typing import Final, cast

from toolcrib.agents.evidence.plan import StepPlan
from toolcrib.agents.planner.caller_questions import NO, YES, QuestionDraft, consents
from toolcrib.agents.prepare.agentic_tool import Setup
from toolcrib.agents.toolset.allocation import ToolAllocation
from toolcrib.contracts import Json, JsonObject
from toolcrib.contracts.runs.executions import ChangePreview, Choice, PreviewedItem, QuestionReason
from toolcrib.core.policy import confirms, deletes
from toolcrib.core.runs import shorten_json

_SHOWN: Final = 3
"""Items of a preview."""
_LENGTH: Final = 600
"""Characters of an item."""


async def has_consent(
    setup: Setup,
    position: str,
    item: ToolAllocation,
    plan: StepPlan,
    inputs: Sequence[JsonObject],
    *,
    found: Sequence[Json],
    assumptions: Sequence[str],
) -> bool:
    """Whether a step may make its calls: nothing speaks against it, or a person has seen what they would do.

    Args:
        setup: The run.
        position: Of the step's calls.
        item: The step's tool.
        plan: What is wanted of the step.
        inputs: Of its calls.
        found: The items that it is done for; empty if it is done once.
        assumptions: What its plan takes for granted.

    Raises:
        Unanswered: The run has a caller, which gets the question instead.
        Suspended: A person was asked.
    """
    definition, implementation = item.tool.definition, setup.implementation
    if implementation.grounding == "off" or definition.side_effects != "writes" or not inputs:
        return True
    if setup.context.request.skips_writes or confirms(setup.context.policy, item.tool):
        return True
    count = len(found) if plan.for_each is not None else max(map(_longest, inputs))
    reason = _reason(item, inputs, wide=count > implementation.preview_above, assumed=bool(assumptions))
    if reason is None:
        return True
    preview = ChangePreview(
        step=position,
        tool=item.tool.ref,
        calls=len(inputs),
        items=count,
        sample=tuple(_sample(found, inputs)),
    )
    draft = QuestionDraft(
        text=_text(item, reason, count, assumptions),
        reason=reason,
        choices=(
            Choice(value=YES, label="Yes", outcome=f"{item.tool.name} is called for {count} items."),
            Choice(value=NO, label="No", outcome="Nothing is changed."),
        ),
        assumptions=tuple(assumptions),
        preview=preview,
    )
    return await consents(setup, f"{position}.preview", draft)


def _reason(item: ToolAllocation, inputs: Sequence[JsonObject], *, wide: bool, assumed: bool) -> QuestionReason | None:
    if any(deletes(item.tool.definition, given) for given in inputs):
        return "irreversible"
    if assumed:
        return "unsure"
    return "wide" if wide else None


def _text(item: ToolAllocation, reason: QuestionReason, count: int, assumptions: Sequence[str]) -> str:
    what = item.purpose or item.tool.definition.title or item.tool.name
    why = {
        "irreversible": "This cannot be undone.",
        "wide": "These are many items.",
        "unsure": f"I assume: {' '.join(assumptions)}",
    }.get(reason, "")
    return f"{what}: {count} {'item' if count == 1 else 'items'} would be changed. {why} Go on?"


def _longest(value: Json) -> int:
    """The length of the longest list in a value; 1 if it has none."""
    if isinstance(value, list):
        items = cast("list[Json]", value)
        return max(len(items), *map(_longest, items), 1)
    if isinstance(value, dict):
        return max([1, *map(_longest, cast("JsonObject", value).values())])
    return 1


def _sample(found: Sequence[Json], inputs: Sequence[JsonObject]) -> Iterator[PreviewedItem]:
    """The first items, with what they would get: a call of their own, or their element of a batch."""
    batches = [element for given in inputs for element in _elements(given)]
    after: Sequence[Json] = batches if len(batches) == len(found) and found else inputs
    for place, given in enumerate(after[:_SHOWN]):
        before = found[place] if place < len(found) else None
        yield PreviewedItem(before=shorten_json(before, _LENGTH), after=shorten_json(given, _LENGTH))


def _elements(given: JsonObject) -> Sequence[Json]:
    """The elements of the longest list of objects at the top of an input."""
    lists: list[Sequence[Json]] = [cast("list[Json]", item) for item in given.values() if isinstance(item, list)]
    return max(lists, key=len) if lists else ()
