"""Filters mean on every database and in memory what they say: random ones agree with Python's own evaluation."""

import operator
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.servers.postgres import running_postgres
from toolcrib.contracts import InvalidInput
from toolcrib.infrastructure.queries.grammar import read_filter
from toolcrib.infrastructure.queries.rows import Field, compile_test, types_of
from toolcrib.infrastructure.queries.statements import to_clause
from toolcrib.kinds.entity.importer.engines import open_engine
from toolcrib.kinds.entity.runtime.values import fields_of, searchable_types
from toolcrib.kinds.entity.shape import EntityColumn

pytestmark = pytest.mark.requirement("entities.filters", "entities.injection", "queries.agreement")

Row = Mapping[str, Any]
Test = Callable[[Row], bool]
Said = tuple[str, Test]
"""A filter's text, and what it means."""

NOW: Final = datetime(2026, 5, 1, 12, tzinfo=UTC)
METADATA: Final = sa.MetaData()
THINGS: Final = sa.Table(
    "things",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("size", sa.Integer),
    sa.Column("price", sa.Numeric(10, 2)),
    sa.Column("name", sa.String),
    sa.Column("ready", sa.Boolean),
    sa.Column("made", sa.DateTime(timezone=True)),
    sa.Column("due", sa.Date),
)
COLUMNS: Final[dict[str, EntityColumn]] = {
    "id": EntityColumn(type="integer"),
    "size": EntityColumn(type="integer"),
    "price": EntityColumn(type="decimal"),
    "name": EntityColumn(type="string"),
    "ready": EntityColumn(type="boolean"),
    "made": EntityColumn(type="datetime"),
    "due": EntityColumn(type="date"),
}
WORDS: Final = ("", "a", "A", "ab", "it's", "50%", "a_b", "a\\b", "/x%", "' or 1=1 --", "Zoë", '"', ";")
_SIZES: Final = (None, -1, 0, 1, 2, 7)
_PRICES: Final = (None, "0.00", "9.99", "10.00", "-3.50")
_MOMENTS: Final = (None, "2026-01-31T10:00:00Z", "2026-04-30T23:59:59Z", "2025-12-31T00:00:00Z")
ROWS: Final[list[Row]] = [
    {
        "id": index,
        "size": _SIZES[index % 6],
        "price": None if (price := _PRICES[index % 5]) is None else Decimal(price),
        "name": (*WORDS, None)[index % 14],
        "ready": (True, False, None)[index % 3],
        "made": None if (moment := _MOMENTS[index % 4]) is None else datetime.fromisoformat(moment),
        "due": None if index % 7 == 0 else date(2026, 1, 1) + timedelta(days=index * 9),
    }
    for index in range(42)
]
FIELDS: Final[Mapping[str, Field[Row]]] = {
    name: Field(column.type, "", operator.itemgetter(name)) for name, column in COLUMNS.items()
}
"""The same, as rows in memory have them."""
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


_SEARCHES: Final[dict[str, Callable[[str, str], bool]]] = {
    "contains": operator.contains,
    "startswith": str.startswith,
    "endswith": str.endswith,
}
_FUNCTIONS: Final[list[tuple[str, str, Callable[[Any], int]]]] = [
    ("length(name)", "name", len),
    ("size add 1", "size", lambda value: value + 1),
    ("size mul size", "size", lambda value: value * value),
    ("3 sub size", "size", lambda value: 3 - value),
    ("year(made)", "made", lambda value: value.year),
    ("month(due)", "due", lambda value: value.month),
    ("hour(made)", "made", lambda value: value.hour),
    ("second(made)", "made", lambda value: value.second),
    ("-size", "size", operator.neg),
]


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Generator[list[sa.Connection]]:
    file: Path = tmp_path_factory.mktemp("filters") / "things.db"
    file.touch()
    with running_postgres() as server:
        engines = [open_engine(f"sqlite:///{file}"), open_engine(server.database())]
        connections = [engine.connect() for engine in engines]
        for connection in connections:
            METADATA.create_all(connection)
            connection.execute(sa.insert(THINGS), ROWS)
        yield connections
        for connection, engine in zip(connections, engines, strict=True):
            connection.close()
            engine.dispose()


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def compared(word: str, left: Any, right: Any) -> bool:
    """OData 4.01, section 5.1.1.1: null equals null only, and is neither more nor less than anything."""
    if left is None or right is None:
        return {"eq": left is right, "ne": left is not right}.get(word, False)
    return _OPERATORS[word](left, right)


def values_of(name: str) -> st.SearchStrategy[tuple[str, Any]]:
    """A value for a field, as a filter writes it and as Python has it."""
    match name:
        case "size":
            return st.sampled_from([(str(value), value) for value in _SIZES if value is not None])
        case "price":
            return st.sampled_from([(text, Decimal(text)) for text in _PRICES if text is not None])
        case "name":
            return st.sampled_from([(quoted(word), word) for word in WORDS])
        case "made":
            return st.sampled_from([(text, datetime.fromisoformat(text)) for text in _MOMENTS if text is not None])
        case _:
            days = [date(2026, 1, 1) + timedelta(days=9 * number) for number in range(45)]
            return st.sampled_from([(str(day), day) for day in days])


@st.composite
def comparisons(draw: st.DrawFn) -> Said:
    name = draw(st.sampled_from(["size", "price", "name", "made", "due"]))
    word = draw(st.sampled_from(list(_OPERATORS)))
    text, value = draw(st.one_of(values_of(name), st.just(("null", None))))
    if draw(st.booleans()):
        return f"{name} {word} {text}", lambda row: compared(word, row[name], value)
    return f"{text} {word} {name}", lambda row: compared(word, value, row[name])


@st.composite
def memberships(draw: st.DrawFn) -> Said:
    name = draw(st.sampled_from(["size", "name", "due"]))
    choices = draw(st.lists(st.one_of(values_of(name), st.just(("null", None))), min_size=1, max_size=4))
    members = [value for _, value in choices]
    return f"{name} in ({','.join(text for text, _ in choices)})", lambda row: row[name] in members


@st.composite
def searches(draw: st.DrawFn) -> Said:
    function = draw(st.sampled_from(["contains", "startswith", "endswith"]))
    sought = draw(st.one_of(st.sampled_from(WORDS), st.text("aAb%_\\'/", max_size=2)))
    finds = _SEARCHES[function]
    text = f"{function}(name,{quoted(sought)})"
    return text, lambda row: row["name"] is not None and finds(row["name"], sought)


@st.composite
def functions(draw: st.DrawFn) -> Said:
    text, name, computed = draw(st.sampled_from(_FUNCTIONS))
    word = draw(st.sampled_from(list(_OPERATORS)))
    number = draw(st.one_of(st.integers(-3, 13), st.sampled_from([2025, 2026])))

    def test(row: Row) -> bool:
        return compared(word, None if row[name] is None else computed(row[name]), number)

    return f"{text} {word} {number}", test


_SINGLE: Final[list[Said]] = [
    ("ready", lambda row: row["ready"] is True),
    ("size eq price", lambda row: compared("eq", row["size"], row["price"])),
    ("size in (1,0.5,null)", lambda row: row["size"] in {None, 1}),
    ("ready gt false", lambda row: row["ready"] is True),
    ("made lt now()", lambda row: compared("lt", row["made"], NOW)),
    ("made gt now() sub duration'P30D'", lambda row: compared("gt", row["made"], NOW - timedelta(days=30))),
    ("due le now()", lambda row: compared("le", row["due"], NOW.date())),
]
_LEAVES: Final = st.one_of(comparisons(), memberships(), searches(), functions(), st.sampled_from(_SINGLE))


def _joined(pair: tuple[str, Said, Said]) -> Said:
    word, (left, first), (right, second) = pair
    if word == "and":
        return f"({left} and {right})", lambda row: first(row) and second(row)
    return f"({left} or {right})", lambda row: first(row) or second(row)


def _negated(said: Said) -> Said:
    text, test = said
    return f"not ({text})", lambda row: not test(row)


FILTERS: Final = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(st.tuples(st.sampled_from(["and", "or"]), inner, inner).map(_joined), inner.map(_negated)),
    max_leaves=8,
)


def matching(connection: sa.Connection, text: str) -> list[int]:
    dialect = connection.dialect.name
    fields, _ = fields_of(COLUMNS, THINGS, dialect)
    condition = to_clause(read_filter(text, searchable_types(fields), now=NOW), fields, dialect=dialect)
    return list(connection.scalars(sa.select(THINGS.c.id).where(condition).order_by(THINGS.c.id)))


@settings(max_examples=400)
@given(FILTERS)
def test_a_filter_finds_on_every_database_the_rows_that_it_is_true_of(databases: list[sa.Connection], said: Said):
    text, test = said
    wanted = [row["id"] for row in ROWS if test(row)]

    for connection in databases:
        assert matching(connection, text) == wanted
    test_here = compile_test(read_filter(text, types_of(FIELDS), now=NOW), FIELDS)
    assert [row["id"] for row in ROWS if test_here(row)] == wanted


@settings(max_examples=300)
@given(st.one_of(st.text(max_size=60), st.text("()'=;- nametorduleqi1,%/*\\\"", max_size=60)))
def test_a_text_that_is_no_filter_is_refused_and_nothing_else(databases: list[sa.Connection], text: str):
    for connection in databases:
        with suppress(InvalidInput):
            matching(connection, text)
        assert connection.scalar(sa.select(sa.func.count()).select_from(THINGS)) == len(ROWS)


@settings(max_examples=100)
@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=30))
def test_any_text_in_quotes_is_a_value_and_no_more(databases: list[sa.Connection], text: str):
    for connection in databases:
        wanted = [row["id"] for row in ROWS if row["name"] == text]
        assert matching(connection, f"name eq {quoted(text)}") == wanted
        assert set(matching(connection, f"contains(name,{quoted(text)})")) >= set(wanted)
