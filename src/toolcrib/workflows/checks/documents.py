"""Reads a definition from outside, and reports each problem of its form with path, value, expectation and example.

Pydantic finds the problems; this module only words them.
"""

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeVar, cast, get_args

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
ContractT = TypeVar("ContractT", bound=Contract)

_DECIDES: Final = frozenset(
    {"agent", "approval", "for_each", "handler_ref", "input_schema", "name", "save_as", "tool", "wait", "workflow"}
)
"""Fields on which it depends what can be said of the other fields of a step, or of all steps."""
_MOST_SHOWN: Final = 5


class DefinitionDocument(NamedTuple):
    """A definition, or why what was given is none."""

    definition: WorkflowDefinition | None
    problems: tuple[WorkflowProblem, ...] = ()
    rest: WorkflowDefinition | None = None
    """What was given without the parts that are wrong, if that is a definition: its other problems are told as well."""
    removed: frozenset[str] = frozenset()
    """JSON pointers of these parts, and of what unknown fields were probably meant as."""

    def with_further(self, found: Iterable[WorkflowProblem]) -> tuple[WorkflowProblem, ...]:
        """All problems: those of the form, and those of the rest that are none of the parts that were taken out.

        Args:
            found: What is wrong with the rest.
        """
        return (*self.problems, *(problem for problem in found if self._stands(problem)))

    def _stands(self, problem: WorkflowProblem) -> bool:
        """Whether a problem of the rest is one of the whole: none of what it looks at was taken out."""
        if not problem.is_error or any(is_on_one_way(problem.path, path) for path in self.removed):
            return False
        wholes = {path.rsplit("/", 1)[0] for path in self.removed if path.rpartition("/")[2] in _DECIDES}
        steps = [*self.rest.steps] if self.rest is not None else []
        names = {step.name for place, step in enumerate(steps) if f"/steps/{place}" in wholes}
        if "" in wholes or any(is_on_one_way(problem.path, path) for path in wholes):
            return False
        return not any(name in f"{problem.message} {problem.reference}" for name in names)


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
        rest, removed = rest_of(WorkflowDefinition, given, found)
        return DefinitionDocument(None, _problems_by_place(found, given), rest, removed)


def rest_of(
    contract: type[ContractT], given: Mapping[str, object], found: Sequence[ErrorDetails]
) -> tuple[ContractT | None, frozenset[str]]:
    """A document without what is wrong in it, if that has the shape of a definition.

    Args:
        contract: The shape.
        given: The document.
        found: What pydantic has found.

    Returns:
        The definition, or null; and JSON pointers of what was taken out, and of what unknown fields may have meant.
    """
    document: Json = copy.deepcopy(dict(given))
    paths = {place_of(error, document)[0] for error in found}
    if any(error["type"] == MISSING for error in found) or "" in paths:
        return None, frozenset()
    meant = {
        f"{place_of(error, document)[0].rpartition('/')[0]}/{field}"
        for error in found
        if error["type"] == _UNKNOWN and (field := _meant_field(contract, error["loc"])) is not None
    }
    outermost = [path for path in paths if not any(path.startswith(f"{other}/") for other in paths)]
    if not all(_take_out(document, path) for path in outermost):
        return None, frozenset()
    try:
        return contract.model_validate(document), frozenset(paths | meant)
    except ValidationError:
        return None, frozenset()


def _take_out(document: Json, path: str) -> bool:
    """Remove the member that a pointer leads to; false for an element of a list, whose place others have then."""
    *way, last = (part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:])
    node: Any = document
    for part in way:
        node = cast("Sequence[Any]", node)[int(part)] if isinstance(node, list | tuple) else node[part]
    if not isinstance(node, dict):
        return False
    cast("JsonObject", node).pop(last, None)
    return True


def is_on_one_way(one: str, other: str) -> bool:
    """Whether one of two places is the other, or within it."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


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
        path, value = place_of(error, document)
        places.setdefault(path, []).append((error, value))
    return tuple(_problem(path, [error for error, _ in there], there[0][1]) for path, there in places.items())


def _problem(path: str, errors: Sequence[ErrorDetails], value: Json) -> WorkflowProblem:
    unknown = next((error for error in errors if error["type"] == _UNKNOWN), None)
    if unknown is not None:
        name = str(unknown["loc"][-1])
        return WorkflowProblem(path=path, message=f"there is no field {name!r} here", suggestion=_meant(unknown["loc"]))
    message, suggestion = fault(errors, path.rpartition("/")[2], value)
    return WorkflowProblem(path=path, message=message, suggestion=suggestion)


def place_of(error: ErrorDetails, document: Json) -> tuple[str, Json]:
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


def fields_at(shape: type[Contract], location: Sequence[int | str]) -> Iterable[str]:
    """The names of the fields at a place of a document, as far as its contract is known.

    >>> "temperature" in fields_at(AgentDefinition, ["llm"])
    True
    """
    named = [part for part in location if isinstance(part, str)]
    if not named:
        return shape.model_fields
    annotation: Any = shape.model_fields[named[0]].annotation if named[0] in shape.model_fields else None
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Contract):
            return fields_at(candidate, named[1:])
    return ()


def _meant(location: tuple[int | str, ...]) -> str | None:
    """The field that an unknown one may have been meant as, in words."""
    contract = _contract_at(location)
    return None if contract is None else near(str(location[-1]), contract.model_fields)


def _meant_field(whole: type[Contract], location: tuple[int | str, ...]) -> str | None:
    """The field that an unknown one may have been meant as, its name only."""
    contract = whole if len(location) == 1 else _contract_at(location)
    names = () if contract is None else get_close_matches(str(location[-1]), contract.model_fields, n=1)
    return next(iter(names), None)


def _contract_at(location: tuple[int | str, ...]) -> type[Contract] | None:
    """Whose fields stand at a place: those of the definition, of its steps or of their parts."""
    if len(location) == 1:
        return WorkflowDefinition
    if location[0] != "steps" or len(location) < _STEP_FIELD:
        return None
    return WorkflowStep if len(location) == _STEP_FIELD else _PARTS.get(str(location[_STEP_FIELD - 1]))
