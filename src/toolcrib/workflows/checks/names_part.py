"""Do the names in a definition mean one thing each, and do they mean something at all?

Steps may be known by one name if they are alternatives; see `alternatives`. Two steps that both have a condition are
believed to be, with a warning if it cannot be seen.
"""

from collections.abc import Iterator
from typing import Final

from toolcrib.contracts.workflows import SCOPE, WorkflowProblem, WorkflowStep
from toolcrib.workflows.checks.names import relation
from toolcrib.workflows.checks.structure.layout import Layout

_MOST_ALTERNATIVES: Final = 50


def name_problems(layout: Layout) -> Iterator[WorkflowProblem]:
    """What is wrong with the names of steps, and with the steps that others name."""
    yield from _own_names(layout)
    yield from _shared_names(layout)
    for step in layout.steps:
        for index, name in enumerate(step.depends_on):
            yield from _other(layout, step, name, ("depends_on", index))
        if step.goes_to is not None:
            yield from _other(layout, step, step.goes_to, ("on_error", "go_to"))


def _own_names(layout: Layout) -> Iterator[WorkflowProblem]:
    seen: set[str] = set()
    for step in layout.steps:
        if step.name in seen:
            yield layout.error(step, ("name",), f"two steps are named {step.name!r}", "give each a name of its own")
        seen.add(step.name)
        for field, name in (("name", step.name), ("save_as", step.save_as)):
            if name in SCOPE:
                message = f"expressions read something else as {name!r}"
                yield layout.error(step, (field,), message, f"use another name than {', '.join(sorted(SCOPE))}")


def _shared_names(layout: Layout) -> Iterator[WorkflowProblem]:
    for name, steps in layout.known.items():
        if len(steps) == 1 or len({step.name for step in steps}) < len(steps):
            continue
        for place, step in enumerate(steps[:_MOST_ALTERNATIVES]):
            related = {other.name: relation(step, other, layout.by_name) for other in steps[:place]}
            both = next((other for other in related if related[other] == "together"), None)
            unclear = next((other for other in related if related[other] == "unclear"), None)
            field = ("save_as" if step.save_as else "name",)
            if both is not None:
                message = f"expressions would read the output of {both!r} and of {step.name!r} as {name!r}"
                instead = "save one of them as something else, or let one go to the other when it fails"
                yield layout.error(step, field, message, instead)
            elif unclear is not None:
                message = f"if {unclear!r} and {step.name!r} both run, {name!r} is what the later one puts out"
                yield layout.warning(step, field, message, "have their conditions leave no case for both")


def _other(layout: Layout, step: WorkflowStep, name: str, field: tuple[str | int, ...]) -> Iterator[WorkflowProblem]:
    """What is wrong with a step that another one names."""
    if name == step.name:
        yield layout.error(step, field, f"step {name!r} would wait for itself", "take it out")
    elif name not in layout.by_name:
        yield layout.error(step, field, f"there is no step {name!r}", layout.nearest.near(name, layout.by_name))
