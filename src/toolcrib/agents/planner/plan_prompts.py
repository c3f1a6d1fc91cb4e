"""Prompts of deterministic tools: plan, correct a step, report.

The system prompt has everything that is the same for all tasks, so that providers can cache it.
"""

from collections.abc import Sequence
from datetime import date

from toolcrib.agents.evidence.plan_schema import Shapes, plan_example
from toolcrib.agents.prepare.agentic_tool import Setup
from toolcrib.agents.toolset.default_prompt import default_prompt
from toolcrib.agents.toolset.placeholders import describe
from toolcrib.agents.toolset.signatures import brief, signature

_FORMAT_SYSTEM = "You report what was done for a task, truthfully and briefly, from the facts that you are given."
_AUTHORS = """

These are the instructions for the whole task. The operations are over: follow what is said here of the answer, such \
as its language, form and content.

{prompt}"""
_LEFT_OUT = "(left out here)"

_OPERATIONS = """The operations run in this order:
{steps}

A plan looks like this, with … filled in or left out: {example}

Rules:
{reading}- Select by every name, number, date and label with which the task says what it means, one condition for each.
- Write only what the task says. Leave out every optional field that the task does not mention.
- Write names and labels as they are; ids are put in for them. Never make up an id: take it from a result.
- A value of an earlier step is a reference: ${{STEP.field}}. To do a step for all items of an earlier list, set \
for_each to the list and write the input for one item, with ${{item.field}}; it is repeated for all.
- Skip a step that the task does not need. A task that only asks something needs no step that changes data.
- If the task names something that is not among the valid values, or cannot be done with these operations, write a \
question and skip every step."""

_READING = """- "reading" comes first: go through the task from left to right, copy each part of its words and say \
what it is for. A part that says which items are meant is a condition, what these get is a change, each with one \
value. Of "Please give Ann's tickets over 3 hours to Bo": \
[{"words":"Please give","use":"request"},{"words":"Ann's","use":"condition","value":"Ann"},\
{"words":"tickets","use":"request"},{"words":"over 3 hours","use":"condition","value":3},\
{"words":"to Bo","use":"change","value":"Bo"}]
- Every condition of the reading is a condition of the search, every change is set.
"""

_PLAN = """Task: {task}

Today is {today:%A, %Y-%m-%d}. {named}Fill in the input of every step."""

_NAMED = """The task names {names}: each is something to select the items by, or what they get. """

_CORRECT = """Check this plan against the task:
{problems}

Correct what is wrong, keep what is right, and answer with the whole JSON object only. If the task cannot be done so, \
write a question and skip every step."""

_ANSWERED = """{question}

The answer is: {answer}

It belongs to the task from now on. Correct the plan, keep what is right, and answer with the whole JSON object only."""

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


def plan_system(setup: Setup, *, reads: bool) -> str:
    """The system prompt of the plan: the tool's own, and how a plan for its steps is written.

    Args:
        setup: The run.
        reads: Whether the plan begins with a reading of the task.
    """
    example = plan_example(shapes(setup), reads=reads)
    rules = _OPERATIONS.format(steps="\n".join(_overview(setup)), example=example, reading=_READING if reads else "")
    return f"{setup.system_prompt()}\n\n{rules}"


def plan_question(setup: Setup, today: date, named: Sequence[str]) -> str:
    """Asks for the inputs of all steps.

    Args:
        setup: The run.
        today: The day on which it began.
        named: What the task names by its form, for a model that is not asked to read it part by part.
    """
    names = _NAMED.format(names=", ".join(f'"{name}"' for name in named)) if named else ""
    return _PLAN.format(task=setup.task, today=today, named=names)


def correction(problems: Sequence[str]) -> str:
    """Asks to look at a plan again."""
    return _CORRECT.format(problems="\n".join(f"- {problem}" for problem in problems))


def question_after_answer(question: str, answer: str) -> str:
    """Goes on with what a person has answered."""
    return _ANSWERED.format(question=question, answer=answer)


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


def format_system(setup: Setup) -> str:
    """The system prompt of the answer: with the tool's own, without schemas, if its author has written one."""
    if setup.context.request.has_old_rules or _has_default_prompt(setup):
        return _FORMAT_SYSTEM
    prompt = setup.system_prompt(integration_schema=_LEFT_OUT, available_tools=_LEFT_OUT)
    return f"{_FORMAT_SYSTEM}{_AUTHORS.format(prompt=prompt)}"


def _has_default_prompt(setup: Setup) -> bool:
    """Whether the prompt is the one of a tool whose author has written none: it speaks of the plan only."""
    implementation = setup.implementation
    pairs = zip(implementation.steps, setup.allotted, strict=True)
    tools = {step.tool: item.tool.definition for step, item in pairs}
    written = default_prompt(implementation, purpose=setup.tool.definition.description, tools=tools)
    return implementation.system_prompt == written


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
