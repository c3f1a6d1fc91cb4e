"""Why one schema may refuse values of another: one rule per keyword, with its message.

A rule compares facts about the values (`Facts`) with one part of the schema. Nested schemas are handled by
`subsumption`.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias, cast

from toolcrib.contracts import Json, JsonSchema, canonical
from toolcrib.core.registry.schema.value_facts import NUMBERS, Facts, enumerations, kinds_of, type_names

_TEXT_RULES: Final = ("pattern", "format", "contentEncoding", "contentMediaType")
_WIDER: Final = frozenset({("int32", "int64"), ("float", "double")})
_SIZES: Final = (("Length", "string"), ("Items", "array"), ("Properties", "object"))
_MOST_SHOWN: Final = 10

_Bound: TypeAlias = tuple[float, bool]
"""A number, and whether it is itself excluded."""


class Refusal(NamedTuple):
    """A reason why schema `b` may refuse a value that schema `a` takes."""

    place: str
    """Dotted path; `[]` for the items of a list, empty for the whole value."""
    keyword: str
    """Of JSON Schema; `property` for a whole property, `size` for schemas that are too large to be compared."""
    a: Json = None
    """What `a` says; null for nothing."""
    b: Json = None
    """What `b` says."""
    always: bool = False
    """Whatever uses the place is refused, not only now and then."""


def within(place: str, name: str) -> str:
    """The place of a property."""
    return f"{place}.{name}" if place else name


def scalar_refusals(facts: Facts, part: JsonSchema, place: str) -> Iterator[Refusal]:
    """The refusals of a part's keywords that hold no schemas."""
    yield from _types(facts, part, place)
    yield from _values(facts, part, place)
    if facts.types & NUMBERS:
        yield from _numbers(facts, part, place)
    yield from _sizes(facts, part, place)
    for keyword in _TEXT_RULES:
        known = facts.values_for(keyword)
        if keyword in part and part[keyword] not in known and not _is_wider(known, part[keyword]):
            yield Refusal(place, keyword, a=known[0] if known else None, b=part[keyword])
    if part.get("uniqueItems") is True and "array" in facts.types and True not in facts.values_for("uniqueItems"):
        yield Refusal(place, "uniqueItems", b=True)
    if "object" in facts.types:
        yield from _check_required(facts, part, place)


def words_of(keyword: str, before: Json, after: Json) -> str:
    """What has changed, in words that follow the name of the place."""
    match keyword:
        case "type":
            return f"was {_types_in_words(before)} and is {_types_in_words(after)}"
        case "enum":
            return _values_in_words(before, after)
        case "required":
            return "is required now" if after else "is not required any more"
        case "property":
            return f"({after}) was added" if after else "was removed"
        case "additionalProperties":
            return "takes no other properties any more" if before else "takes other properties too"
        case "uniqueItems":
            return "must have no item twice now" if after else "may have items twice"
        case "size":
            return "is too large to be compared"
        case _ if before is None and after is None:
            return f"has other rules of {keyword}"
        case _:
            return f"had {_keyword_text(keyword, before)} and has {_keyword_text(keyword, after)}"


def _types(facts: Facts, part: JsonSchema, place: str) -> Iterator[Refusal]:
    allowed = kinds_of(part.get("type"))
    if not facts.types <= allowed:
        names = type_names(facts.types), type_names(allowed)
        yield Refusal(place, "type", *names, always=not facts.types & allowed)


def _values(facts: Facts, part: JsonSchema, place: str) -> Iterator[Refusal]:
    known = facts.values
    if known is None and facts.types <= {"boolean", "null"}:
        candidates: list[Json] = [False, True] if "boolean" in facts.types else []
        candidates += [None] if "null" in facts.types else []
        known = {canonical(value): value for value in candidates}
    for listed in enumerations(part):
        allowed = {canonical(value) for value in listed}
        if known is None or not known.keys() <= allowed:
            before = None if facts.values is None else list(facts.values.values())
            never = known is not None and not known.keys() & allowed
            yield Refusal(place, "enum", before, list(listed), always=never)


def _numbers(facts: Facts, part: JsonSchema, place: str) -> Iterator[Refusal]:
    listed = facts.numbers()
    low, high = _lowest(part), _highest(part)
    lows = [(min(listed), False)] if listed else [bound for each in facts.parts if (bound := _lowest(each))]
    highs = [(max(listed), False)] if listed else [bound for each in facts.parts if (bound := _highest(each))]
    if low is not None and not any(bound >= low for bound in lows):
        yield Refusal(place, "minimum", max(lows, default=None), low)
    if high is not None and not any(_upside_down(bound) >= _upside_down(high) for bound in highs):
        yield Refusal(place, "maximum", min(highs, key=_upside_down, default=None), high)
    step = part.get("multipleOf")
    if step is not None and not any(_divides(step, known) for known in facts.values_for("multipleOf")):
        yield Refusal(place, "multipleOf", next(iter(facts.values_for("multipleOf")), None), step)


def _lowest(part: JsonSchema) -> _Bound | None:
    bounds = [(part[keyword], excluded) for keyword, excluded in _LOW if _is_number(part.get(keyword))]
    return max(bounds, default=None)


def _highest(part: JsonSchema) -> _Bound | None:
    bounds = [(part[keyword], excluded) for keyword, excluded in _HIGH if _is_number(part.get(keyword))]
    return min(bounds, key=lambda bound: (bound[0], not bound[1]), default=None)


_LOW: Final = (("minimum", False), ("exclusiveMinimum", True))
_HIGH: Final = (("maximum", False), ("exclusiveMaximum", True))


def _upside_down(bound: _Bound) -> _Bound:
    """A bound from above, so that the stricter one is the greater."""
    return -bound[0], bound[1]


def _divides(step: float, known: float) -> bool:
    """Whether every multiple of `known` is one of `step`, where that is exact."""
    exact = isinstance(step, int) and isinstance(known, int) and step > 0
    return step == known or (exact and known % step == 0)


def _sizes(facts: Facts, part: JsonSchema, place: str) -> Iterator[Refusal]:
    for noun, kind in _SIZES:
        least, most = part.get(f"min{noun}", 0), part.get(f"max{noun}")
        if kind not in facts.types:
            continue
        lengths = [len(value) for value in (facts.values or {}).values() if isinstance(value, str)]
        known = lengths if kind == "string" and facts.values is not None else None
        low = min(known, default=0) if known is not None else max(facts.values_for(f"min{noun}"), default=0)
        if kind == "object":
            low = max(low, len(facts.required))
        if least > low:
            yield Refusal(place, f"min{noun}", low or None, least)
        high = max(known, default=0) if known is not None else min(facts.values_for(f"max{noun}"), default=None)
        if most is not None and (high is None or high > most):
            yield Refusal(place, f"max{noun}", high, most)


def _check_required(facts: Facts, part: JsonSchema, place: str) -> Iterator[Refusal]:
    for name in cast("list[str]", part.get("required") or []):
        if name not in facts.required:
            yield Refusal(within(place, name), "required", b=True, always=True)
    dependent = cast("dict[str, list[str]]", part.get("dependentRequired") or {})
    for name, needed in dependent.items():
        known = {each for given in facts.values_for("dependentRequired") for each in given.get(name, ())}
        if not set(needed) <= known | facts.required:
            yield Refusal(within(place, name), "dependentRequired", a=sorted(known) or None, b=sorted(needed))


def _is_wider(known: list[Json], wanted: Json) -> bool:
    return any((each, wanted) in _WIDER for each in known if isinstance(each, str) and isinstance(wanted, str))


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _types_in_words(names: Json) -> str:
    if names is None or len(names) > 5:
        return "any value"
    return " or ".join(names) or "nothing"


def _values_in_words(before: list[Json] | None, after: list[Json] | None) -> str:
    if before is None or after is None:
        return "allows any value" if after is None else f"allows only {_join_values(after)}"
    old, new = ({canonical(value): value for value in values} for values in (before, after))
    removed = [value for key, value in old.items() if key not in new]
    if removed:
        return f"does not allow {_join_values(removed)} any more"
    return f"also allows {_join_values([value for key, value in new.items() if key not in old])}"


def _join_values(values: list[Json]) -> str:
    shown = ", ".join(canonical(value).decode() for value in values[:_MOST_SHOWN])
    return shown + (f" and {len(values) - _MOST_SHOWN} more" if len(values) > _MOST_SHOWN else "")


def _keyword_text(keyword: str, value: Json) -> str:
    if value is None:
        return f"no {keyword}"
    if isinstance(value, tuple):  # a bound
        number, excluded = cast("_Bound", value)
        return f"{'exclusive ' if excluded else ''}{keyword} {number}"
    return f"{keyword} {canonical(value).decode()[:200]}"
