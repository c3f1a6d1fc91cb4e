"""Filters that are refused, and what they are told; filters on other dialects, where no server is at hand."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from tests.unit.entities.shop import Order
from toolcrib.contracts import InvalidInput
from toolcrib.infrastructure.queries.grammar import MAX_DEPTH, MAX_TERMS, read_filter, read_order
from toolcrib.infrastructure.queries.statements import to_clause, to_order
from toolcrib.kinds.entity.importer.generation import MAX_FILTER, generate
from toolcrib.kinds.entity.importer.tables import as_entity
from toolcrib.kinds.entity.runtime.values import BoundField, fields_of, searchable_types
from toolcrib.kinds.entity.shape import EntityImplementation

NOW: Final = datetime(2026, 5, 1, tzinfo=UTC)
ORDERS: Final = as_entity(Order)
DIALECTS: Final[Mapping[str, sa.Dialect]] = {
    "mysql": mysql.dialect(),
    "postgresql": postgresql.dialect(),
    "sqlite": sqlite.dialect(),
}


def fields(dialect: str) -> dict[str, BoundField]:
    made = generate("shop", [ORDERS]).tools[0].implementation
    assert isinstance(made, EntityImplementation)
    return fields_of(made.columns, ORDERS.table, dialect)[0]


def clause(text: str, dialect: str) -> sa.ColumnElement[bool]:
    known = fields(dialect)
    return to_clause(read_filter(text, searchable_types(known), now=NOW), known, dialect=dialect)


def compiled(text: str, dialect: str) -> str:
    return str(clause(text, dialect).compile(dialect=DIALECTS[dialect]))


@pytest.mark.requirement("entities.filter_refusals")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("status eq", "no OData expression"),
        ("status = 'OPEN'", "no OData expression"),
        ("status EQ 'OPEN'", "case-sensitive"),
        ("color eq 'red'", "no field to filter by; there are: id, customer_id, status"),
        ("picture eq null", "no field to filter by"),
        ("customer/email eq 'x'", "no field to filter by"),
        ("customer/any(c:c/email eq 'x')", "no field to filter by"),
        ("$it/status eq 'OPEN'", "no field to filter by"),
        ("note/$count gt 1", "no field to filter by"),
        ("status", "is a string and no condition"),
        ("'x'", "where a condition is needed"),
        ("length(note)", "where a condition is needed"),
        ("total add 1", "where a condition is needed"),
        ("1 eq 1", "must name a field"),
        ("status eq 'LOST'", "status takes one of OPEN, PAID, CLOSED"),
        ("quantity eq 'many'", "quantity takes an integer"),
        ("placed gt 'soon'", "placed takes a moment"),
        ("customer_id eq 'x'", "customer_id takes a UUID"),
        ("note eq 5", "note takes text"),
        ("length(note) eq 'x'", "cannot compare"),
        ("tolower(note) eq 5", "cannot compare"),
        ("9223372036854775807 add 1 lt quantity", "64 bits"),
        ("total gt 1e400", "finite"),
        ("quantity add 1e400 gt 1", "no number"),
        ("quantity add note gt 1", "take numbers"),
        ("status gt quantity", "compare what is alike"),
        ("status in (note)", "values only"),
        ("status in 'OPEN'", "requires a parenthesised list"),
        ("'OPEN' in (status)", "needs a field"),
        ("contains('x',note)", "a field and a text in quotes"),
        ("contains(note,status)", "a field and a text in quotes"),
        ("contains(quantity,'1')", "takes text"),
        ("tolower('X') eq 'x'", "takes a field"),
        ("year(note) eq 1", "a date or a datetime"),
        ("total div 2 gt 1", "not offered here"),
        ("note add 1 eq 2", "add, sub and mul take numbers"),
        ("matchesPattern(note,'(a+)+$')", "which is not offered; there are: contains"),
        ("cast(note,Edm.Int32) eq 1", "not offered"),
        ("geo.length(note) gt 1", "not offered"),
        ("@p eq 1", "not offered here"),
        ("now() mul 2 lt placed", "cannot be applied"),
        ("placed gt now() add duration'P99999999D'", "too large"),
        ("placed gt 2026-02-30", "no OData expression"),
        ("[1,2]", "a list where a condition"),
    ],
)
def test_a_filter_that_asks_for_what_there_is_not_is_told_what_there_is(text: str, said: str):
    with pytest.raises(InvalidInput) as refusal:
        clause(text, "sqlite")

    assert said in str(refusal.value)


@pytest.mark.requirement("entities.filter_refusals")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(" * 500 + "quantity eq 1" + ")" * 500, f"{MAX_DEPTH} are the most"),
        (" or ".join(["quantity eq 1"] * 100), f"more than {MAX_TERMS} parts"),
        ("not " * 400 + "gift", f"more than {MAX_TERMS} parts"),
        ("-" * 300 + "quantity eq 1", f"more than {MAX_TERMS} parts"),
    ],
)
def test_a_filter_beyond_the_bounds_is_refused(text: str, said: str):
    with pytest.raises(InvalidInput, match=said):
        clause(text, "sqlite")


@pytest.mark.requirement("entities.filter_refusals")
def test_a_filters_length_is_bounded_by_the_tools_schema():
    schema = generate("shop", [ORDERS]).tools[0].input_schema

    assert schema["properties"]["filter"]["maxLength"] == MAX_FILTER


@pytest.mark.requirement("entities.injection")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_value_is_a_parameter_whatever_it_holds(dialect: str):
    text = "note eq '''; DROP TABLE orders; --' or contains(note,'%''_') or status in ('OPEN') or total gt 1.5"

    statement = compiled(text, dialect)

    assert "DROP" not in statement
    assert "OPEN" not in statement
    assert "1.5" not in statement


@pytest.mark.requirement("entities.filters")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_function_and_operator_is_compiled_for_every_dialect(dialect: str):
    text = (
        "not (contains(tolower(note),'a') or startswith(toupper(note),'B') or endswith(trim(note),'c')) "
        "and length(note) ge 1 and year(placed) eq 2026 and second(placed) lt 30 and quantity sub 1 le 5 "
        "and total mul 2 gt 3.5 and status ne 'PAID' and note ne null and 5 gt quantity and quantity eq id "
        "and quantity ne id and customer_id in (null) and -quantity lt 2 sub 3 and note gt null and true "
        "and gift and placed gt now() and quantity add id gt 1.5 and 1.5 add quantity gt 0 and (false or gift)"
    )

    assert compiled(text, dialect)
    assert to_order(
        read_order("placed desc, note", searchable_types(fields(dialect))), fields(dialect), dialect=dialect
    )
