"""Reading a definition that came from outside: what does not have the shape of one is told place by place."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from toolcrib.contracts import InvalidDefinition, Json, JsonObject, escaped
from toolcrib.contracts.workflows import WorkflowDefinition, WorkflowProblem, WorkflowStep
from toolcrib.workflows.checks.nearest import near

_UNKNOWN: Final = "extra_forbidden"
_MISSING: Final = "missing"
_TOO_SHORT: Final = "too_short"
_PATTERN: Final = "string_pattern_mismatch"
_NO_MAPPING: Final = ("model_type", "model_attributes_type", "dict_type")
_MAPPING: Final = "Input should be a mapping of fields"
_STEP_FIELD = 3
"""Parts of the location of a step's field: `steps`, its place, the field."""
_MOST_SHOWN: Final = 5
_MOST_REPEATED: Final = 100
"""Characters of a wrong name of which a better one is made."""


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
        found = _meant_so(problem.errors(include_url=False, include_input=False))
        return Document(None, _one_each([_told(error, given) for error in found]))


def refusal(name: str, errors: Sequence[WorkflowProblem]) -> InvalidDefinition:
    """What is raised if a workflow cannot be saved: all that is wrong with it."""
    shown = "; ".join(map(str, errors[:_MOST_SHOWN]))
    more = f"; and {len(errors) - _MOST_SHOWN} more" if len(errors) > _MOST_SHOWN else ""
    count = "a problem" if len(errors) == 1 else f"{len(errors)} problems"
    told: list[JsonObject] = [{"path": error.path, "problem": _said(error)} for error in errors]
    return InvalidDefinition(f"workflow {name!r} has {count}: {shown}{more}", told)


def _said(error: WorkflowProblem) -> str:
    return f"{error.message}; {error.suggestion}" if error.suggestion else error.message


def _meant_so(found: Sequence[ErrorDetails]) -> Sequence[ErrorDetails]:
    """Without the lists that are too short only because elements of them are wrong, which is told of those."""
    within = {error["loc"][:depth] for error in found for depth in range(len(error["loc"]))}
    return [error for error in found if error["type"] != _TOO_SHORT or error["loc"] not in within]


def _one_each(problems: Sequence[WorkflowProblem]) -> tuple[WorkflowProblem, ...]:
    """One problem for each place: what a value may be otherwise stands in its message, not in a problem of its own."""
    by_path: dict[str, WorkflowProblem] = {}
    for problem in problems:
        first = by_path.setdefault(problem.path, problem)
        if first is not problem:
            message = f"{first.message}, or: {problem.message}"
            by_path[problem.path] = first.model_copy(update={"message": message})
    return tuple(by_path.values())


def _told(error: ErrorDetails, document: Json) -> WorkflowProblem:
    """One thing that pydantic has found. Its location also names alternatives, which are no part of the document."""
    location, kind = error["loc"], error["type"]
    path, node = "", document
    for place, part in enumerate(location):
        is_last = place == len(location) - 1
        is_there, below = _below(node, part)
        if is_there or (is_last and kind == _MISSING):
            path, node = f"{path}/{escaped(str(part))}", below
    if kind == _UNKNOWN:
        name = str(location[-1])
        return WorkflowProblem(path=path, message=f"there is no field {name!r} here", suggestion=_meant(location))
    message = _MAPPING if kind in _NO_MAPPING else error["msg"].removeprefix("Value error, ")
    return WorkflowProblem(path=path, message=message, suggestion=_instead(error, node))


def _instead(error: ErrorDetails, value: Json) -> str | None:
    """What to write instead, where the message does not say so already."""
    if error["type"] in {_MISSING, _TOO_SHORT}:
        return "add it" if error["type"] == _MISSING else "add one"
    if error["type"] == _PATTERN and isinstance(value, str):
        name = re.sub(r"\W+", "_", value, flags=re.ASCII).strip("_")
        if len(value) <= _MOST_REPEATED and re.search(error.get("ctx", {})["pattern"], name):
            return f"write {name!r}"
    return None


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
