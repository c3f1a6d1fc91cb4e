"""The functions of the language: pure, and linear in their arguments.

`f(x, y)` and `x.f(y)` are the same call. They raise `InvalidExpression` without name and column; the evaluator adds
both.
"""

import inspect
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from toolcrib.contracts import Json
from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions.values import (
    MAX_LIST,
    MAX_STRING,
    WorkCounter,
    check_list,
    check_number,
    check_text,
    contains,
    equal,
    is_list,
    is_number,
    is_object,
    json_text,
    kind,
    length,
    text,
)

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_WIDTH = 400
_DIGITS = 10
_EXACT = 1e15
"""Doubles from here on have no decimals that could be rounded."""


def _string(value: Json) -> str:
    if isinstance(value, str):
        return value
    raise _wrong_type("a string", value)


def _numeric(value: Json) -> int | float:
    if is_number(value):
        return check_number(value)
    raise _wrong_type("a number", value)


def _whole(value: Json) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _wrong_type("a whole number", value)


def _sequence(value: Json) -> list[Json]:
    if is_list(value):
        return value
    raise _wrong_type("a list", value)


def _wrong_type(what: str, value: Json) -> InvalidExpression:
    return InvalidExpression(f"expects {what}, got {kind(value)}")


def _length(value: Json) -> int:
    number = length(value)
    if number is None:
        raise _wrong_type("a string, list or object", value)
    return number


def _contains(work: WorkCounter, container: Json, item: Json) -> bool:
    return contains(container, item, work)


def _index_of(work: WorkCounter, value: Json, item: Json) -> int:
    if isinstance(value, str):
        return value.find(_string(item))
    return next((index for index, element in enumerate(_sequence(value)) if equal(element, item, work)), -1)


def _starts_with(value: Json, prefix: Json) -> bool:
    return _string(value).startswith(_string(prefix))


def _ends_with(value: Json, suffix: Json) -> bool:
    return _string(value).endswith(_string(suffix))


def _lower(value: Json) -> str:
    return check_text(_string(value).lower())


def _upper(value: Json) -> str:
    return check_text(_string(value).upper())


def _trim(value: Json) -> str:
    return _string(value).strip()


def _replace(value: Json, old: Json, new: Json) -> str:
    source, search, replacement = _string(value), _string(old), _string(new)
    if not search:
        raise InvalidExpression("cannot replace an empty string")
    if len(source) + source.count(search) * (len(replacement) - len(search)) > MAX_STRING:
        raise InvalidExpression(f"text would be longer than {MAX_STRING:,} characters")
    return source.replace(search, replacement)


def _split(value: Json, separator: Json) -> list[Json]:
    source, at = _string(value), _string(separator)
    if not at:
        raise InvalidExpression("cannot split at an empty string")
    if source.count(at) >= MAX_LIST:
        raise InvalidExpression(f"list would have more than {MAX_LIST:,} elements")
    return list(source.split(at))


def _join(work: WorkCounter, items: Json, separator: Json = ",") -> str:
    between = _string(separator)
    parts: list[str] = []
    total = 0
    for item in _sequence(items):
        parts.append(text(item, work))
        total += len(parts[-1]) + len(between)
        if total > MAX_STRING + len(between):
            raise InvalidExpression(f"text would be longer than {MAX_STRING:,} characters")
    return check_text(between.join(parts))


def _slice(value: Json, start: Json, end: Json = None) -> Json:
    until = None if end is None else _whole(end)
    if isinstance(value, str):
        return check_text(value[_whole(start) : until])
    return check_list(_sequence(value)[_whole(start) : until])


def _json(work: WorkCounter, value: Json) -> str:
    return json_text(value, work)


def _to_string(work: WorkCounter, value: Json) -> str:
    return text(value, work)


def _number(value: Json) -> int | float:
    if is_number(value):
        return check_number(value)
    written = _string(value).strip()
    if len(written) > _NUMBER_WIDTH or not _NUMBER.fullmatch(written):
        raise InvalidExpression("expects the text of a number such as '12' or '-1.5'")
    return check_number(int(written) if written.lstrip("-").isdecimal() else float(written))


def _int(value: Json) -> int:
    number = _number(value)
    return number if isinstance(number, int) else int(check_number(math.trunc(number)))


def _type(value: Json) -> str:
    return kind(value)


def _keys(value: Json) -> list[Json]:
    if is_object(value):
        return check_list(list(value))
    raise _wrong_type("an object", value)


def _values(value: Json) -> list[Json]:
    if is_object(value):
        return check_list(list(value.values()))
    raise _wrong_type("an object", value)


def _first(value: Json) -> Json:
    return _require_items(value)[0]


def _last(value: Json) -> Json:
    return _require_items(value)[-1]


def _require_items(value: Json) -> Sequence[Json]:
    items = value if isinstance(value, str) else _sequence(value)
    if not items:
        raise InvalidExpression(f"got an empty {kind(value)} (x?.[0] gives null there)")
    return items


def _default(value: Json, otherwise: Json) -> Json:
    return otherwise if value is None else value


def _unique(value: Json) -> list[Json]:
    seen: dict[tuple[str, Json], Json] = {}
    for item in _sequence(value):
        if is_list(item) or is_object(item):
            raise InvalidExpression(f"expects a list of strings, numbers or booleans, got one of {kind(item)}s")
        seen.setdefault((kind(item), item), item)
    return check_list(list(seen.values()))


def _abs(value: Json) -> int | float:
    return check_number(abs(_numeric(value)))


def _round(value: Json, digits: Json = 0) -> int | float:
    places = _whole(digits)
    if not 0 <= places <= _DIGITS:
        raise InvalidExpression(f"expects 0 to {_DIGITS} digits, got {places}")
    number = _numeric(value)
    if isinstance(number, int) or abs(number) >= _EXACT:
        return number
    rounded = Decimal(repr(number)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return float(rounded) if places else int(rounded)


def _floor(value: Json) -> int | float:
    return check_number(math.floor(_numeric(value)))


def _ceil(value: Json) -> int | float:
    return check_number(math.ceil(_numeric(value)))


def _sum(value: Json) -> int | float:
    return check_number(sum(map(_numeric, _sequence(value))))


def _min(*values: Json) -> Json:
    return min(_comparable(values))


def _max(*values: Json) -> Json:
    return max(_comparable(values))


def _comparable(values: tuple[Json, ...]) -> Sequence[Json]:
    """One list, or several arguments; all numbers or all strings, since no other two values have an order."""
    candidates: Sequence[Json] = _sequence(values[0]) if len(values) == 1 else values
    if not candidates:
        raise InvalidExpression("got nothing to compare")
    one_kind = _string if isinstance(candidates[0], str) else _numeric
    return [one_kind(candidate) for candidate in candidates]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the language."""

    run: Callable[..., Json]
    least: int
    """Arguments that must be given."""
    most: float
    """Arguments that may be given; infinite if any number may."""
    metered: bool
    """Whether `run` takes the evaluation's `Work` before its arguments, since its cost is more than their lengths."""

    @property
    def arity(self) -> str:
        """How many arguments it takes, in words."""
        if self.most == self.least:
            return f"{self.least} argument{'' if self.least == 1 else 's'}"
        return f"{self.least} or more arguments" if math.isinf(self.most) else f"{self.least} to {self.most} arguments"


def _function(run: Callable[..., Json]) -> Function:
    parameters = list(inspect.signature(run).parameters.values())
    metered = parameters[0].name == "work"
    given = parameters[1:] if metered else parameters
    if given[0].kind is inspect.Parameter.VAR_POSITIONAL:
        return Function(run, 1, math.inf, metered)
    least = sum(parameter.default is inspect.Parameter.empty for parameter in given)
    return Function(run, least, len(given), metered)


FUNCTIONS: dict[str, Function] = {
    name: _function(run)
    for name, run in {
        "abs": _abs,
        "ceil": _ceil,
        "contains": _contains,
        "default": _default,
        "endsWith": _ends_with,
        "first": _first,
        "floor": _floor,
        "includes": _contains,
        "indexOf": _index_of,
        "int": _int,
        "join": _join,
        "json": _json,
        "keys": _keys,
        "last": _last,
        "len": _length,
        "length": _length,
        "lower": _lower,
        "max": _max,
        "min": _min,
        "number": _number,
        "replace": _replace,
        "round": _round,
        "size": _length,
        "slice": _slice,
        "split": _split,
        "startsWith": _starts_with,
        "string": _to_string,
        "sum": _sum,
        "toLowerCase": _lower,
        "toUpperCase": _upper,
        "trim": _trim,
        "type": _type,
        "unique": _unique,
        "upper": _upper,
        "values": _values,
    }.items()
}
"""By name; some have a second name that people of another language expect."""
