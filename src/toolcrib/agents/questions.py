"""What the model of a deterministic tool is asked: to plan, to correct one step, to report.

What is the same for every task stands in the system prompt, so that a provider can keep it in its cache.
"""

from collections.abc import Sequence

from toolcrib.agents.linking import Shapes, plan_example
from toolcrib.agents.placeholders import describe
from toolcrib.agents.setup import Setup
from toolcrib.agents.signatures import brief, signature
from toolcrib.agents.uses import Mention

FORMAT_SYSTEM = "You report what was done for a task, truthfully and briefly, from the facts that you are given."

_OPERATIONS = """The operations run in this order:
{steps}

A plan looks like this, with … filled in or left out: {example}

Rules:
- The reasoning is one short sentence.
- Select by every name, number, date and label with which the task says what it means, one condition for each.
- Write only what the task says. Leave out every optional field that the task does not mention.
- Write names, labels and numbers as the task does; ids are put in for them.
- A value of an earlier step is a reference: ${{STEP.field}}. To do a step for all items of an earlier list, set \
for_each to the list and write the input for one item, with ${{item.field}}; it is repeated for all.
- Skip a step that the task does not need. A task that only asks something needs no step that changes data.
- If the task names something that is not among the valid values, or cannot be done with these operations, write a \
question and skip every step."""

_PLAN = """Task: {task}
{mentioned}
Fill in the input of every step."""

_MENTIONED = """
The task mentions {names}. Say first in "uses" what each is for: to select the items by it, or what to set. Then \
use each so.
"""

_DOUBT = """Check this plan against the task, word by word:
{doubts}

Correct what is wrong, keep what is right, and answer with the whole JSON object only. If the task cannot be done so, \
write a question and skip every step."""

_REVIEW = """Task: {task}

Step {step} could not be carried out: {problem}

Results so far: {results}

Write the corrected step."""

_FORMAT = """Task: {task}

Facts of the steps that ran: {results}
Steps not needed: {skipped}
Problems: {problems}

Report what was done. Numbers must come from the facts."""

_LONGEST_DESCRIPTION = 240
"""Characters."""


def shapes(setup: Setup) -> Shapes:
    """What goes into the steps and what comes out."""
    return [
        (step.id, item.schema, item.tool.definition.output_schema)
        for step, item in zip(setup.implementation.steps, setup.allotted, strict=True)
    ]


def plan_system(setup: Setup) -> str:
    """The system prompt of the plan: the tool's own, and how a plan for its steps is written."""
    steps = "\n".join(_overview(setup))
    return f"{setup.system_prompt()}\n\n{_OPERATIONS.format(steps=steps, example=plan_example(shapes(setup)))}"


def plan_question(setup: Setup, mentioned: Sequence[Mention]) -> str:
    """Asks for the inputs of all steps.

    Args:
        setup: The run.
        mentioned: What the task mentions.
    """
    names = _MENTIONED.format(names="; ".join(map(str, mentioned))) if mentioned else ""
    return _PLAN.format(task=setup.task, mentioned=names)


def doubt_question(doubts: Sequence[str]) -> str:
    """Asks to look at a plan again."""
    return _DOUBT.format(doubts="\n".join(f"- {doubt}" for doubt in doubts))


def review_question(setup: Setup, step: str, problem: str, results: str) -> str:
    """Asks for one step anew."""
    return _REVIEW.format(task=setup.task, step=step, problem=problem, results=results)


def format_question(setup: Setup, results: str, skipped: Sequence[str], problems: Sequence[str]) -> str:
    """Asks for the answer."""
    return _FORMAT.format(
        task=setup.task,
        results=results,
        skipped=", ".join(skipped) or "none",
        problems="; ".join(problems) or "none",
    )


def _overview(setup: Setup) -> list[str]:
    """The steps: what each does, and what it returns as far as later ones may refer to it."""
    lines: list[str] = []
    pairs = list(zip(setup.implementation.steps, setup.allotted, strict=True))
    for number, (step, item) in enumerate(pairs, start=1):
        definition = item.tool.definition
        writes = " (changes data)" if definition.side_effects == "writes" else ""
        lines.append(f"{number}. {step.id}{writes}: {step.purpose or brief(describe(item.tool), _LONGEST_DESCRIPTION)}")
        if definition.output_schema is not None and number < len(pairs):
            lines.append(f"   returns {signature(definition.output_schema, note=0)}")
    return lines
