"""What is wrong with one place of a document, in words: what stands there, what must stand there, and an example.

It reads what pydantic has found, and is not a check of its own.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic_core import ErrorDetails

from toolcrib.contracts import Json

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


class Fault(NamedTuple):
    """One thing that is wrong, and what to write instead where the message does not say so already."""

    message: str
    suggestion: str | None = None


def fault(errors: Sequence[ErrorDetails], field: str, value: Json) -> Fault:
    """All that was found at one place, as one fault: alternatives are each refused for a reason of their own.

    Args:
        errors: What pydantic has found there.
        field: How the place is called.
        value: What stands there.
    """
    expected = [_expected(error) for error in errors]
    suggestion = next(_instead(errors, value), None)
    if all(expected):
        return Fault(f"{field} is {_shown(value)}, and must be {' or '.join(map(str, expected))}", suggestion)
    said = (error["msg"].removeprefix("Value error, ") for error in errors)
    return Fault(", or: ".join(dict.fromkeys(said)), suggestion)


def _expected(error: ErrorDetails) -> str | None:
    told = _EXPECTED.get(error["type"])
    return None if told is None else told.format_map(_context(error))


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


def _shown(value: Json) -> str:
    """A value, if it is short; else what it is."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST else f"a text of {len(value):,} characters"
    return json.dumps(value, default=str)
