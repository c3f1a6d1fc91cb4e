"""Read a search request: filters in groups, one sort, the properties wanted, a page.

Groups are OR-ed, the filters of a group AND-ed. A request without filters finds everything. This module turns JSON
into a checked `Query`; `query.py` runs it.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from examples.crm.checks import Problems, join
from examples.crm.cursor import Cursor
from examples.crm.properties import ObjectType, Property
from examples.crm.values import Json, Kind, Stored

MAX_GROUPS: Final = 5
MAX_FILTERS: Final = 6
MAX_VALUES: Final = 100
MAX_LIMIT: Final = 100
DEFAULT_LIMIT: Final = 20


class Operator(StrEnum):
    """How a filter compares a property."""

    EQ = "EQ"
    NEQ = "NEQ"
    LT = "LT"
    LTE = "LTE"
    GT = "GT"
    GTE = "GTE"
    BETWEEN = "BETWEEN"
    IN = "IN"
    NOT_IN = "NOT_IN"
    CONTAINS = "CONTAINS"
    HAS_PROPERTY = "HAS_PROPERTY"
    NOT_HAS_PROPERTY = "NOT_HAS_PROPERTY"


_ANY_KIND = (
    Operator.EQ,
    Operator.NEQ,
    Operator.IN,
    Operator.NOT_IN,
    Operator.HAS_PROPERTY,
    Operator.NOT_HAS_PROPERTY,
)
_ORDERED = (*_ANY_KIND, Operator.LT, Operator.LTE, Operator.GT, Operator.GTE, Operator.BETWEEN)
_OPERATORS: Final = {
    Kind.TEXT: (*_ANY_KIND, Operator.CONTAINS),
    Kind.ID: _ANY_KIND,
    Kind.PIPELINE: _ANY_KIND,
    Kind.STAGE: _ANY_KIND,
    Kind.MONEY: _ORDERED,
    Kind.COUNT: _ORDERED,
    Kind.DATE: _ORDERED,
    Kind.TIMESTAMP: _ORDERED,
}


@dataclass(frozen=True, slots=True)
class Filter:
    """One comparison; the number of operands fits the operator."""

    property: Property
    operator: Operator
    operands: Sequence[Stored]
    path: str
    """Where it stands in the request, for messages."""


@dataclass(frozen=True, slots=True)
class Sort:
    """The order of the results; equal values follow by id, unset values come last in both directions."""

    property: Property
    descending: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A search that can be run."""

    groups: Sequence[Sequence[Filter]]
    sort: Sort | None
    properties: Sequence[Property]
    limit: int
    after: Cursor | None
    digest: str
    """Identifies filters and order, which every page of one search must share."""


def parse_search(target: ObjectType, body: Json, problems: Problems) -> Query:
    """The query in a request's body; read `problems` before using it."""
    known = ("filter_groups", "sorts", "properties", "limit", "after")
    members = problems.mapping(body, "", known=known)
    digest = _digest(members)
    return Query(
        groups=_groups(target, members.get("filter_groups", []), problems),
        sort=_sort(target, members.get("sorts", []), problems),
        properties=_wanted(target, members.get("properties"), problems),
        limit=problems.whole(members.get("limit", DEFAULT_LIMIT), "limit", least=1, most=MAX_LIMIT),
        after=_after(members.get("after"), digest, problems),
        digest=digest,
    )


def _groups(target: ObjectType, value: Json, problems: Problems) -> list[list[Filter]]:
    groups: list[list[Filter]] = []
    entries = problems.sequence(value, "filter_groups", least=0, most=MAX_GROUPS, noun="filter groups")
    for number, entry in enumerate(entries):
        path = f"filter_groups[{number}]"
        members = problems.mapping(entry, path, known=("filters",), required=("filters",))
        if "filters" not in members:
            continue
        inner = join(path, "filters")
        filters = problems.sequence(members["filters"], inner, least=1, most=MAX_FILTERS, noun="filters")
        read = [_filter(target, item, f"{inner}[{place}]", problems) for place, item in enumerate(filters)]
        groups.append([item for item in read if item is not None])
    return groups


def _filter(target: ObjectType, value: Json, path: str, problems: Problems) -> Filter | None:
    known = ("property", "operator", "value", "high_value", "values")
    members = problems.mapping(value, path, known=known, required=("property", "operator"))
    if "property" not in members or "operator" not in members:
        return None
    name = problems.choice(
        members["property"], join(path, "property"), f"a property of a {target.name}", target.properties
    )
    if name is None:
        return None
    chosen = target.properties[name]
    fitting = [operator.value for operator in _OPERATORS[chosen.kind]]
    operator = problems.choice(
        members["operator"], join(path, "operator"), f"an operator for {name} ({chosen.kind.value})", fitting
    )
    if operator is None:
        return None
    operands = _operands(chosen.kind, Operator(operator), members, path, problems)
    return Filter(chosen, Operator(operator), operands, path)


def _operands(kind: Kind, operator: Operator, members: dict[str, Json], path: str, problems: Problems) -> list[Stored]:
    wanted = _operand_names(operator)
    for name in ("value", "high_value", "values"):
        if name in wanted and name not in members:
            problems.add(join(path, name), f"is required by {operator.value}")
        elif name in members and name not in wanted:
            problems.add(join(path, name), f"has no meaning for {operator.value}")
    if "values" in wanted and "values" in members:
        inner = join(path, "values")
        values = problems.sequence(members["values"], inner, least=1, most=MAX_VALUES, noun="values")
        return [problems.value(kind, item, f"{inner}[{place}]") for place, item in enumerate(values)]
    return [problems.value(kind, members[name], join(path, name)) for name in wanted if name in members]


def _operand_names(operator: Operator) -> tuple[str, ...]:
    match operator:
        case Operator.HAS_PROPERTY | Operator.NOT_HAS_PROPERTY:
            return ()
        case Operator.IN | Operator.NOT_IN:
            return ("values",)
        case Operator.BETWEEN:
            return ("value", "high_value")
        case _:
            return ("value",)


def _sort(target: ObjectType, value: Json, problems: Problems) -> Sort | None:
    entries = problems.sequence(value, "sorts", least=0, most=1, noun="sorts")
    if not entries:
        return None
    known = ("property", "direction")
    members = problems.mapping(entries[0], "sorts[0]", known=known, required=("property",))
    if "property" not in members:
        return None
    name = problems.choice(
        members["property"], "sorts[0].property", f"a property of a {target.name}", target.properties
    )
    direction = problems.choice(
        members.get("direction", "ASCENDING"), "sorts[0].direction", "a direction", ("ASCENDING", "DESCENDING")
    )
    return None if name is None else Sort(target.properties[name], descending=direction == "DESCENDING")


def _wanted(target: ObjectType, value: Json, problems: Problems) -> list[Property]:
    if value is None:
        return list(target.properties.values())
    most = len(target.properties)
    entries = problems.sequence(value, "properties", least=0, most=most, noun="property names")
    names = [
        problems.choice(entry, f"properties[{place}]", f"a property of a {target.name}", target.properties)
        for place, entry in enumerate(entries)
    ]
    return [target.properties[name] for name in dict.fromkeys(names) if name is not None]


def _after(value: Json, digest: str, problems: Problems) -> Cursor | None:
    if value is None:
        return None
    try:
        return Cursor.parse(value, digest)
    except ValueError as error:
        problems.add("after", str(error))
        return None


def _digest(members: dict[str, Json]) -> str:
    fixed = [members.get("filter_groups"), members.get("sorts")]
    return hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()[:16]
