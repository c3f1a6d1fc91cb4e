"""Reads a definition from outside, and reports each problem of its form with path, value, expectation and example.

Pydantic finds the problems; this module only words them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from toolcrib.contracts import Contract, InvalidDefinition, InvalidInput, Json, JsonObject, canonical, escape_name
from toolcrib.contracts.workflows import (
    ConditionUse,
    ForEach,
    GoTo,
    StepApproval,
    StepRetry,
    Wait,
    WorkflowDefinition,
    WorkflowProblem,
    WorkflowStep,
)
from toolcrib.workflows.checks.structure.prepared_definition import near

MISSING: Final = "missing"
TOO_SHORT: Final = "too_short"

_PATTERN: Final = "string_pattern_mismatch"
_MAPPING: Final = "a mapping of fields"
_EXPECTED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), _MAPPING),
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "text",
    "string_too_short": "a text of {min_length:,} characters or more",
    "string_too_long": "a text of {max_length:,} characters or less",
    "literal_error": "{expected}",
    "greater_than": "more than {gt:,.10g}",
    "greater_than_equal": "{ge:,.10g} or more",
    "less_than": "less than {lt:,.10g}",
    "less_than_equal": "{le:,.10g} or less",
    _PATTERN: "like {pattern}",
    TOO_SHORT: "a list of {min_length:,} or more",
    "too_long": "a list of {max_length:,} or less",
}
"""What must stand there, by pydantic's type of error, over the context of the error."""
_EXAMPLES: Final[Mapping[str, str]] = {
    "ForEach": '"${LIST}", or {"items": "${LIST}"}',
    "GoTo": '{"go_to": STEP}',
    "StepApproval": '{"message": "…"}',
    "StepRetry": '{"count": 2}',
    "Wait": '{"seconds": 60}, {"until": MOMENT} or {"signal": NAME}',
}
"""What to write, by the name of the contract that was expected."""
_LONGEST: Final = 100
"""Characters of a value that is repeated."""


class DocumentFault(NamedTuple):
    """One thing that is wrong, and what to write instead where the message does not say so already."""

    message: str
    suggestion: str | None = None


def fault(errors: Sequence[ErrorDetails], field: str, value: Json) -> DocumentFault:
    """All that was found at one place, as one fault: alternatives are each refused for a reason of their own.

    Args:
        errors: What pydantic has found there.
        field: How the place is called.
        value: What stands there.
    """
    expected = [_expectation(error) for error in errors]
    suggestion = next(_instead(errors, value), None)
    if all(expected):
        return DocumentFault(
            f"{field} is {_describe_value(value)}, and must be {' or '.join(map(str, expected))}", suggestion
        )
    messages = (error["msg"].removeprefix("Value error, ") for error in errors)
    return DocumentFault(", or: ".join(dict.fromkeys(messages)), suggestion)


def _expectation(error: ErrorDetails) -> str | None:
    template = _EXPECTED.get(error["type"])
    return None if template is None else template.format_map(_context(error))


def _instead(errors: Sequence[ErrorDetails], value: Json) -> Iterator[str]:
    for error in errors:
        context = _context(error)
        if error["type"] == MISSING:
            yield "add it"
        elif error["type"] == _PATTERN and isinstance(value, str):
            name = re.sub(r"\W+", "_", value, flags=re.ASCII).strip("_")
            if len(value) <= _LONGEST and re.search(context["pattern"], name):
                yield f"write {name!r}"
        elif context.get("class_name") in _EXAMPLES:
            yield f"write {_EXAMPLES[context['class_name']]}"


def _context(error: ErrorDetails) -> Mapping[str, Any]:
    return error.get("ctx", {})


def _describe_value(value: Json) -> str:
    """A value, if it is short; else what it is."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST else f"a text of {len(value):,} characters"
    return json.dumps(value, default=str)


_UNKNOWN: Final = "extra_forbidden"
_STEP_FIELD = 3
"""Parts of the location of a step's field: `steps`, its place, the field."""
_PARTS: Final[Mapping[str, type[Contract]]] = {
    "approval": StepApproval,
    "condition": ConditionUse,
    "for_each": ForEach,
    "on_error": GoTo,
    "retry": StepRetry,
    "wait": Wait,
}
"""What the fields of a step are made of."""
_MOST_SHOWN: Final = 5


class DefinitionDocument(NamedTuple):
    """A definition, or why what was given is none."""

    definition: WorkflowDefinition | None
    problems: tuple[WorkflowProblem, ...] = ()


def read_definition(given: WorkflowDefinition | Mapping[str, object]) -> DefinitionDocument:
    """The definition that a document is; every field that is wrong or unknown is a problem with its place.

    Args:
        given: JSON. Parts of it, such as its steps, may be contracts already.
    """
    if isinstance(given, WorkflowDefinition):
        return DefinitionDocument(given)
    try:
        canonical(_without_contracts(given))
    except InvalidInput as problem:
        return DefinitionDocument(None, (WorkflowProblem(path="", message=str(problem)),))
    try:
        return DefinitionDocument(WorkflowDefinition.model_validate(given))
    except ValidationError as problem:
        found = _meant_so(problem.errors(include_url=False, include_input=False))
        return DefinitionDocument(None, _problems_by_place(found, given))


def _without_contracts(given: Mapping[str, object]) -> dict[str, object]:
    """What is not valid JSON by its type: a field, or an element of one, that is a contract is left out."""
    plain = {name: value for name, value in given.items() if not isinstance(value, Contract)}
    for name, value in plain.items():
        if isinstance(value, list | tuple):
            plain[name] = [each for each in cast("Sequence[object]", value) if not isinstance(each, Contract)]
    return plain


def refusal(name: str, errors: Sequence[WorkflowProblem]) -> InvalidDefinition:
    """What is raised if a workflow cannot be saved: all that is wrong with it."""
    shown = "; ".join(map(str, errors[:_MOST_SHOWN]))
    more = f"; and {len(errors) - _MOST_SHOWN} more" if len(errors) > _MOST_SHOWN else ""
    count = "a problem" if len(errors) == 1 else f"{len(errors)} problems"
    problems: list[JsonObject] = [{"path": error.path, "problem": _problem_text(error)} for error in errors]
    return InvalidDefinition(f"workflow {name!r} has {count}: {shown}{more}", problems)


def _problem_text(error: WorkflowProblem) -> str:
    return f"{error.message}; {error.suggestion}" if error.suggestion else error.message


def _meant_so(found: Sequence[ErrorDetails]) -> Sequence[ErrorDetails]:
    """Without the lists that are too short only because elements of them are wrong, which is told of those."""
    within = {error["loc"][:depth] for error in found for depth in range(len(error["loc"]))}
    return [error for error in found if error["type"] != TOO_SHORT or error["loc"] not in within]


def _problems_by_place(found: Sequence[ErrorDetails], document: Json) -> tuple[WorkflowProblem, ...]:
    """One problem for each place: whatever else a value may be stands in its message, not in a problem of its own."""
    places: dict[str, list[tuple[ErrorDetails, Json]]] = {}
    for error in found:
        path, value = _place(error, document)
        places.setdefault(path, []).append((error, value))
    return tuple(_problem(path, [error for error, _ in there], there[0][1]) for path, there in places.items())


def _problem(path: str, errors: Sequence[ErrorDetails], value: Json) -> WorkflowProblem:
    unknown = next((error for error in errors if error["type"] == _UNKNOWN), None)
    if unknown is not None:
        name = str(unknown["loc"][-1])
        return WorkflowProblem(path=path, message=f"there is no field {name!r} here", suggestion=_meant(unknown["loc"]))
    message, suggestion = fault(errors, path.rpartition("/")[2], value)
    return WorkflowProblem(path=path, message=message, suggestion=suggestion)


def _place(error: ErrorDetails, document: Json) -> tuple[str, Json]:
    """Where an error is, and what stands there. Alternatives in its location are no part of the document."""
    path, node = "", document
    for place, part in enumerate(error["loc"]):
        is_last = place == len(error["loc"]) - 1
        is_there, below = _below(node, part)
        if is_there or (is_last and error["type"] == MISSING):
            path, node = f"{path}/{escape_name(str(part))}", below
    return path, node


def _below(node: Json, part: int | str) -> tuple[bool, Json]:
    if isinstance(node, dict):
        members = cast("JsonObject", node)
        return part in members, members.get(str(part))
    if isinstance(node, list | tuple) and isinstance(part, int):
        return True, cast("Sequence[Json]", node)[part]
    return False, None


def _meant(location: tuple[int | str, ...]) -> str | None:
    """The field that an unknown one may have been meant as, of the definition, of its steps or of their parts."""
    name = str(location[-1])
    if len(location) == 1:
        return near(name, WorkflowDefinition.model_fields)
    if location[0] != "steps" or len(location) < _STEP_FIELD:
        return None
    contract = WorkflowStep if len(location) == _STEP_FIELD else _PARTS.get(str(location[_STEP_FIELD - 1]))
    return None if contract is None else near(name, contract.model_fields)
