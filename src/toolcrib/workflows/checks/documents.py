"""Reading a definition that came from outside: what does not have the shape of one is told place by place."""

from collections.abc import Sequence
from typing import NamedTuple, cast

from pydantic import ValidationError

from toolcrib.contracts import InvalidDefinition, Json, JsonObject, escaped
from toolcrib.contracts.workflows import WorkflowDefinition, WorkflowProblem, WorkflowStep
from toolcrib.workflows.checks.nearest import near

_UNKNOWN = "extra_forbidden"
_MISSING = "missing"
_STEP_FIELD = 3
"""Parts of the location of a step's field: `steps`, its place, the field."""
_MOST_SHOWN = 5


class Document(NamedTuple):
    """A definition, or why what was given is none."""

    definition: WorkflowDefinition | None
    problems: tuple[WorkflowProblem, ...] = ()


def read_definition(given: WorkflowDefinition | JsonObject) -> Document:
    """The definition that a document is; every field that is wrong or unknown is a problem with its place."""
    if isinstance(given, WorkflowDefinition):
        return Document(given)
    try:
        return Document(WorkflowDefinition.model_validate(given))
    except ValidationError as problem:
        found = problem.errors(include_url=False, include_context=False, include_input=False)
        return Document(None, tuple(_told(error["loc"], error["type"], error["msg"], given) for error in found))


def refusal(name: str, errors: Sequence[WorkflowProblem]) -> InvalidDefinition:
    """What is raised if a workflow cannot be saved: all that is wrong with it."""
    shown = "; ".join(map(str, errors[:_MOST_SHOWN]))
    more = f"; and {len(errors) - _MOST_SHOWN} more" if len(errors) > _MOST_SHOWN else ""
    count = "a problem" if len(errors) == 1 else f"{len(errors)} problems"
    told: list[JsonObject] = [{"path": error.path, "problem": _said(error)} for error in errors]
    return InvalidDefinition(f"workflow {name!r} has {count}: {shown}{more}", told)


def _said(error: WorkflowProblem) -> str:
    return f"{error.message}; {error.suggestion}" if error.suggestion else error.message


def _told(location: tuple[int | str, ...], kind: str, message: str, document: Json) -> WorkflowProblem:
    """One thing that pydantic has found. Its location also names alternatives, which are no part of the document."""
    path, node = "", document
    for place, part in enumerate(location):
        is_last = place == len(location) - 1
        is_there, below = _below(node, part)
        if is_there or (is_last and kind == _MISSING):
            path, node = f"{path}/{escaped(str(part))}", below
    if kind == _UNKNOWN:
        name = str(location[-1])
        return WorkflowProblem(path=path, message=f"there is no field {name!r} here", suggestion=_meant(location))
    return WorkflowProblem(path=path, message=message.removeprefix("Value error, "))


def _below(node: Json, part: int | str) -> tuple[bool, Json]:
    if isinstance(node, dict):
        members = cast("JsonObject", node)
        return part in members, members.get(str(part))
    if isinstance(node, list | tuple) and isinstance(part, int):
        return True, cast("Sequence[Json]", node)[part]
    return False, None


def _meant(location: tuple[int | str, ...]) -> str | None:
    """The field that an unknown one may have been meant as, of the definition and of its steps."""
    name = str(location[-1])
    if len(location) == 1:
        return near(name, WorkflowDefinition.model_fields)
    if len(location) == _STEP_FIELD and location[0] == "steps":
        return near(name, WorkflowStep.model_fields)
    return None
