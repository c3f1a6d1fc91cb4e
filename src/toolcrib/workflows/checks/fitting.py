"""Can a value be what is wanted? Wrong is only what fits in no case; what may not fit is a warning at most."""

from typing import Final

from toolcrib.core.registry.schema.value_facts import NUMBERS
from toolcrib.workflows.checks.types.reading import Finding
from toolcrib.workflows.checks.types.shapes import (
    Described,
    Form,
    Shape,
    is_known,
    is_only,
    items_in,
    kinds_in,
    spoken,
)

_DEEPEST: Final = 6
_SCALARS: Final = frozenset({"string", "boolean", *NUMBERS})
_MOST_VALUES: Final = 6


def misfit(given: Shape, wanted: Shape, what: str, taker: str) -> Finding | None:
    """Why what is given cannot be what is wanted, or may not be; null if it can.

    Args:
        given: What is known of the value.
        wanted: What is taken.
        what: The value, as a message says it.
        taker: What takes it, as a message says it.
    """
    if not given or not wanted:
        return None
    if all(_are_apart(one, other, 0) for one in given for other in wanted):
        return Finding(
            f"{what} is {_words(given, wanted)}, and {taker} takes {_words(wanted, given)}", _instead(given, wanted)
        )
    why = next((form.why_null for form in given if form.why_null is not None), None)
    if (why or is_known(given)) and "null" in kinds_in(given) - kinds_in(wanted):
        told = f" if {why}" if why else ""
        return Finding(
            f"{what} may be null{told}, and {taker} does not take null", "write ${… ?? otherwise}", is_error=False
        )
    return _item_misfit(given, wanted, what, taker)


def _item_misfit(given: Shape, wanted: Shape, what: str, taker: str) -> Finding | None:
    """Lists whose elements never fit: only an empty one would."""
    if not is_only(kinds_in(given), "array") or "array" not in kinds_in(wanted):
        return None
    found = misfit(items_in(given), items_in(wanted), f"an element of {what}", taker)
    return None if found is None else found._replace(is_error=False)


def _are_apart(one: Form, other: Form, depth: int) -> bool:
    """Whether no value has both forms."""
    if not one.kinds & other.kinds:
        return True
    if one.values is not None and other.values is not None:
        return not one.values & other.values
    if depth == _DEEPEST or not is_only(one.kinds, "object") or not is_only(other.kinds, "object"):
        return False
    return any(_member_apart(one, other, name, depth) for name in sorted(one.required | other.required))


def _member_apart(one: Form, other: Form, name: str, depth: int) -> bool:
    """Whether an object that is given, and has one form, needs a member in the way of the other that is wanted."""
    mine, theirs = one.member(name), other.member(name)
    if mine is None:
        return name in other.required
    if theirs is None:  # what is not declared is taken all the same, unless the schema says that it is not
        return name in one.required and isinstance(other, Described) and other.refuses_others
    if name not in one.required or name not in other.required or not mine or not theirs:
        return False
    return all(_are_apart(first, second, depth + 1) for first in mine for second in theirs)


def _words(shape: Shape, beside: Shape) -> str:
    """What a value is, in words: its types, or its values where the types are the same."""
    kinds = kinds_in(shape)
    values = [value for form in shape if form.values is not None for value in form.values]
    if values and kinds & kinds_in(beside):
        shown = ", ".join(sorted(value.decode() for value in values)[:_MOST_VALUES])
        return f"one of {shown}" if len(values) > 1 else shown
    if is_only(kinds, "object") and is_only(kinds_in(beside), "object"):
        names = dict.fromkeys(name for form in shape for name in (*form.required, *form.names))
        return f"an object with {', '.join(list(names)[:_MOST_VALUES]) or 'no members'}"
    return spoken(shape)


def _instead(given: Shape, wanted: Shape) -> str | None:
    have, want = kinds_in(given) - {"null"}, kinds_in(wanted) - {"null"}
    if is_only(have, "array") and "array" not in want:
        return "take one element, or let the step run for_each of them"
    if is_only(want, "array") and have & _SCALARS:
        return "put it into a list: [${…}]"
    if is_only(want, "string") and have <= _SCALARS:
        return "make a text of it: ${string(…)}"
    if want <= NUMBERS and is_only(have, "string"):
        return "make a number of it: ${number(…)}"
    if is_only(have, "object"):
        return "read one of its fields"
    return None
