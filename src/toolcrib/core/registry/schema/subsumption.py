"""Decides by proof whether one JSON Schema accepts everything that another one accepts.

`refusals(a, b)` lists the places where `b` may refuse a value that `a` accepts; an empty list is a proof that it
refuses none. What cannot be proved counts as a refusal: `not`, conditions and dynamic references must be identical.
Objects are read differently from JSON Schema 2020-12 in two ways, because callers matter here; see `Reading`.

The proof is by induction over the depth of a value, so a pair of schemas that occurs again during its own proof holds.
Beyond `MOST_PAIRS` pairs of schemas or `DEEPEST` levels, schemas count as too different.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from toolcrib.contracts import Json, JsonSchema, canonical
from toolcrib.core.registry.schema.refusals import Refusal, scalar_refusals, within
from toolcrib.core.registry.schema.value_facts import (
    UNIONS,
    Facts,
    Side,
    Values,
    are_disjoint,
    branches_of,
    has_resources,
    is_same,
    items_of,
    kinds_of,
    patterns_of,
    properties_of,
    type_names,
)

MOST_PAIRS: Final = 20_000
DEEPEST: Final = 60
_MOST_BRANCHES: Final = 64

Reading: TypeAlias = Literal["arguments", "outputs"]
"""arguments: an object of `a` that declares properties and says nothing of others has no others, and what `b` does not
declare beside others is refused. outputs: what only `a` declares harms nobody, and what only `b` declares is missed."""

_LITERAL: Final = (
    ("not",),
    ("if", "then", "else"),
    ("contains", "minContains", "maxContains"),
    ("dependentSchemas",),
    ("dependencies",),
    ("patternProperties",),
    ("$dynamicRef",),
    ("$recursiveRef",),
)
"""Keywords, with those that they go together with, that are compared to the letter."""
_WHOLE: Final = ("unevaluatedProperties", "unevaluatedItems")
"""Keywords whose meaning depends on everything beside them."""


class _Duty(NamedTuple):
    """Every value that meets all of `a` must meet `b`."""

    a: Values
    b: Json
    place: str


_Pair: TypeAlias = tuple[tuple[int, ...], int]
_Here: TypeAlias = frozenset[_Pair]
_NOWHERE: Final[_Here] = frozenset()
_Step: TypeAlias = Refusal | _Duty


def refusals(a: Json, b: Json, reading: Reading) -> list[Refusal]:
    """Why a value that `a` takes may be refused by `b`.

    Args:
        a: A schema that has been compiled, or `True`.
        b: Another one.
        reading: What undeclared properties mean.

    Returns:
        Each place and keyword once; empty if `b` takes everything that `a` does.
    """
    if has_resources(a) or has_resources(b):
        return [] if canonical(a) == canonical(b) else [Refusal("", "$id", always=True)]
    proof = _Proof(a, b, reading)
    found = {(refusal.place, refusal.keyword): refusal for refusal in proof.explain(_Duty((a,), b, ""), 0, _NOWHERE)}
    return list(found.values())


class _Proof:
    def __init__(self, a: Json, b: Json, reading: Reading) -> None:
        self._a, self._b = Side(a), Side(b)
        self._reading: Reading = reading
        self._left = MOST_PAIRS
        self._explained: set[_Pair] = set()
        self._proved: dict[_Pair, None] = {}
        """Pairs that hold, or are being proved, in the order in which they were begun."""
        self._refuted: set[_Pair] = set()
        self._made: dict[tuple[int, str], JsonSchema] = {}
        """Parts without their union, kept so that their identity stays."""

    def explain(self, duty: _Duty, depth: int, here: _Here) -> Iterator[Refusal]:
        """All refusals; a pair that was explained before is not explained again.

        Args:
            duty: What must hold.
            depth: Levels above.
            here: Pairs that are being explained for the same value: one that is met again explains nothing.
        """
        pair = _pair(duty)
        if pair in here or not self._take(depth):
            yield Refusal(duty.place, "$ref" if pair in here else "size", always=True)
            return
        if pair in self._explained:
            return
        self._explained.add(pair)
        if len(duty.a) == 1 and is_same(self._a, duty.a[0], self._b, duty.b):
            return
        here = here | {pair}
        pieces = self._pieces(duty)
        for piece in pieces or ():
            if not self._holds(piece, depth + 1, here):
                for refusal in self.explain(piece, depth + 1, here):
                    yield self._of_all(refusal, duty, pieces or [])
        for step in self._steps(duty, depth, here) if pieces is None else ():
            if isinstance(step, Refusal):
                yield step
            else:
                yield from self.explain(step, depth + 1, here if step.place == duty.place else _NOWHERE)

    def _holds(self, duty: _Duty, depth: int, here: _Here) -> bool:
        """Whether there is no refusal. A pair that is refuted takes with it what was proved by assuming it."""
        pair = _pair(duty)
        if pair in here or pair in self._refuted:
            return False
        if pair in self._proved:
            return True
        if not self._take(depth):
            return False
        self._proved[pair] = None
        here = here | {pair}
        pieces = self._pieces(duty)
        if pieces is not None:
            holds = all(self._holds(piece, depth + 1, here) for piece in pieces)
        else:
            holds = all(self._is_met(step, duty, depth, here) for step in self._steps(duty, depth, here))
        if not holds:
            while self._proved.popitem()[0] != pair:
                pass
            self._refuted.add(pair)
        return holds

    def _is_met(self, step: _Step, duty: _Duty, depth: int, here: _Here) -> bool:
        if isinstance(step, Refusal):
            return step.keyword == "default"
        return self._holds(step, depth + 1, here if step.place == duty.place else _NOWHERE)

    def _take(self, depth: int) -> bool:
        self._left -= 1
        return self._left > 0 and depth <= DEEPEST

    def _pieces(self, duty: _Duty) -> list[_Duty] | None:
        """The duty for each alternative of the first union that the values meet; null if they meet none."""
        for part in (parts := self._a.parts(duty.a)):
            for keyword in UNIONS:
                if keyword in part:
                    others = tuple(self._alone(each, keyword if each is part else "") for each in parts)
                    return [duty._replace(a=(*others, branch)) for branch in branches_of(part, keyword)]
        return None

    def _of_all(self, refusal: Refusal, duty: _Duty, pieces: list[_Duty]) -> Refusal:
        """A refusal of one alternative, as one of all: the value may still be of another one."""
        if refusal.place != duty.place:
            return refusal
        types = frozenset[str]().union(*(Facts(self._a.parts(piece.a)).types for piece in pieces))
        if refusal.keyword != "type":
            return refusal._replace(always=refusal.always and len(pieces) == 1)
        allowed = kinds_of(list(refusal.b))
        return refusal._replace(a=type_names(types), always=not types & allowed)

    def _alone(self, part: JsonSchema, union: str) -> JsonSchema:
        """A part without a union of it, and without what composes it, which stands beside it already."""
        left_out = {union, "allOf", "$ref"} & part.keys()
        if not left_out:
            return part
        key = (id(part), union)
        if key not in self._made:
            self._made[key] = {name: value for name, value in part.items() if name not in left_out}
        return self._made[key]

    def _steps(self, duty: _Duty, depth: int, here: _Here) -> Iterator[_Step]:
        place = duty.place
        facts = Facts(self._a.parts(duty.a), closed=self._reading == "arguments")
        if not facts.types:
            return
        wanted = self._b.parts([duty.b])
        target = Facts(wanted)
        for part in wanted:
            yield from scalar_refusals(facts, part, place)
            yield from self._letters(facts, part, place)
            for keyword in UNIONS:
                if keyword in part:
                    yield from self._union(duty._replace(b=part), facts, keyword, depth, here)
            if "object" in facts.types:
                yield from self._object(facts, part, target, place)
            if "array" in facts.types:
                yield from self._array(facts, part, place)

    def _letters(self, facts: Facts, part: JsonSchema, place: str) -> Iterator[Refusal]:
        for group in _LITERAL:
            if group[0] in part:
                wanted = {keyword: part.get(keyword) for keyword in group}
                found = ({keyword: each.get(keyword) for keyword in group} for each in facts.parts)
                if not any(is_same(self._a, each, self._b, wanted) for each in found):
                    yield Refusal(place, group[0])
        for keyword in _WHOLE:
            if part.get(keyword, True) is not True and not any(
                is_same(self._a, each, self._b, part) for each in facts.parts
            ):
                yield Refusal(place, keyword)
        if "$ref" in part and self._b.target(part["$ref"]) is None:
            yield Refusal(place, "$ref")

    def _union(self, duty: _Duty, facts: Facts, keyword: str, depth: int, here: _Here) -> Iterator[_Step]:
        branches = branches_of(duty.b, keyword)
        if any(is_same(self._a, each.get(keyword), self._b, branches) for each in facts.parts if keyword in each):
            return
        if len(branches) > _MOST_BRANCHES or (keyword == "oneOf" and not are_disjoint(self._b, branches)):
            yield Refusal(duty.place, keyword)
            return
        names = type_names(facts.types)
        allowed = frozenset[str]().union(*(Facts(self._b.parts([branch])).types for branch in branches))
        if not facts.types <= allowed:
            yield Refusal(duty.place, "type", names, type_names(allowed), always=not facts.types & allowed)
            return
        for piece in [(*duty.a, _OF_TYPE[name]) for name in names] if len(names) > 1 else [duty.a]:
            if not any(self._holds(_Duty(piece, branch, duty.place), depth + 1, here) for branch in branches):
                yield self._nearest(piece, branches, keyword, duty.place)

    def _nearest(self, piece: Values, branches: Sequence[Json], keyword: str, place: str) -> _Step:
        """The only alternative that a value could be meant by, or that there is more than one."""
        types = Facts(self._a.parts(piece)).types
        near = [branch for branch in branches if types & Facts(self._b.parts([branch])).types]
        if len(near) == 1:
            return _Duty(piece, near[0], place)
        return Refusal(place, keyword)

    def _object(self, facts: Facts, part: JsonSchema, target: Facts, place: str) -> Iterator[_Step]:
        declared = properties_of(part)
        for name in dict.fromkeys((*facts.names, *declared)):
            if facts.property(name) != (False,) or self._reading == "outputs":
                yield from self._property(facts, part, target, name, within(place, name))
        others = part.get("additionalProperties", True)
        open_values = facts.property(None, beside=patterns_of(part))
        if others is False and self._reading == "arguments" and open_values != (False,):
            yield Refusal(place, "additionalProperties", a=True, b=False)
        elif not isinstance(others, bool):
            yield _Duty(open_values, others, within(place, "*"))
        if "propertyNames" in part:
            names = (*(each["propertyNames"] for each in facts.parts if "propertyNames" in each), _OF_TYPE["string"])
            yield _Duty(names, part["propertyNames"], place)

    def _property(self, facts: Facts, part: JsonSchema, target: Facts, name: str, place: str) -> Iterator[_Step]:
        declared = properties_of(part)
        if name not in target.names:
            others = part.get("additionalProperties", True)
            if self._reading == "arguments" and target.describes_objects:
                yield Refusal(place, "property", a=self._describe_types(self._a, facts.property(name)), always=True)
            elif others is not True and (self._reading == "arguments" or others is not False):
                yield _Duty(facts.property(name), others, place)
        elif name in declared:
            if name not in facts.names and self._reading == "outputs":
                yield Refusal(place, "property", b=self._describe_types(self._b, (declared[name],)), always=True)
                return
            yield _Duty(facts.property(name), declared[name], place)
            if name in facts.names:
                yield from _default(facts.property(name), declared[name], place)
        elif (others := part.get("additionalProperties", True)) is not True:
            yield _Duty(facts.property(name), others, place)

    def _describe_types(self, side: Side, values: Values) -> str:
        types = Facts(side.parts(values)).types
        return " or ".join(type_names(types)) if len(types) < 6 else "any value"

    def _array(self, facts: Facts, part: JsonSchema, place: str) -> Iterator[_Step]:
        first = items_of(part)
        for index, item in enumerate(first):
            yield _Duty(facts.item(index), item, f"{place}[{index}]")
        if "items" in part:
            longest = max((len(items_of(each)) for each in facts.parts), default=0)
            for index in range(len(first), longest):
                yield _Duty(facts.item(index), part["items"], f"{place}[{index}]")
            yield _Duty(facts.item(None), part["items"], f"{place}[]")


_OF_TYPE: Final[dict[str, JsonSchema]] = {
    name: {"type": name} for name in ("array", "boolean", "integer", "null", "number", "object", "string")
}


def _default(a: Values, b: Json, place: str) -> Iterator[Refusal]:
    """A default that differs is no refusal, but what a call means that leaves the property out."""
    was, now = (_first_default(nodes) for nodes in (a, (b,)))
    if was != now:
        yield Refusal(place, "default", a=was, b=now)


def _first_default(nodes: Values) -> Json:
    schemas = (cast("JsonSchema", node) for node in nodes if isinstance(node, dict))
    return next((schema["default"] for schema in schemas if "default" in schema), None)


def _pair(duty: _Duty) -> _Pair:
    return tuple(map(id, duty.a)), id(duty.b)
