"""Databases that others have made: names, types and values as no one here would write them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.servers.postgres import PostgresServer
from tests.unit.entities.shop import Shop
from toolcrib import Crib
from toolcrib.kinds.entity.importer.engines import open_engine


@asynccontextmanager
async def foreign(url: str, *statements: str) -> AsyncGenerator[Shop]:
    """A crib with the tools of a database that the statements have made."""
    engine = open_engine(url)
    try:
        with engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)
        async with Crib("memory://", environment={"URL": url}) as crib:
            await crib.imports.database(name="foreign", url="${env:URL}")
            yield Shop(crib, engine)
    finally:
        engine.dispose()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    file = tmp_path / "foreign.db"
    file.touch()
    return f"sqlite:///{file}"


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    return postgres.database()


@pytest.mark.requirement("entities.names", "entities.injection")
async def test_names_that_are_words_of_sql_or_hold_any_character_work(database_url: str):
    names = ("from", "a.b", "x:y", ":bind", "p%(s)s", "per%cent", "semi;colon", 'dq"x', "größe", "eq")
    columns = ", ".join(f'''"{name.replace('"', '""').replace("%", "%%")}" text''' for name in names)
    table = f'CREATE TABLE "Select %%" ("Order" integer PRIMARY KEY, {columns})'
    async with foreign(database_url, table.replace("%%", "%") if "sqlite" in database_url else table) as shop:
        fields = ["from", "a_b", "x_y", "_bind", "p_s_s", "per_cent", "semi_colon", "dq_x", "grosse", "_eq"]
        given = {field: f"{field}'; --" for field in fields}
        key = {} if "sqlite" in database_url else {"Order": 1}
        made = await shop.done("create_select", **given, **key)
        test = " and ".join(f"{field} eq '{field}''; --'" for field in fields)

        assert {**given, "Order": 1}.items() <= made.items()
        assert (await shop.done("search_selects", filter=test, order_by="per_cent desc"))["items"] == [made]
        await shop.done("update_select", Order=1, row_version=made["row_version"], per_cent="%s")
        assert (await shop.done("get_select", Order=1))["per_cent"] == "%s"


@pytest.mark.requirement("entities.filters", "entities.values")
@pytest.mark.parametrize(
    "written",
    ["2026-01-31", "2026-01-31 00:00", "2026-01-31 00:00:00", "2026-01-31T00:00:00", "2026-01-31 00:00:00.000"],
)
async def test_a_moment_in_sqlite_is_the_same_however_others_have_written_it(sqlite_url: str, written: str):
    table = "CREATE TABLE visits (id INTEGER PRIMARY KEY, at DATETIME)"
    async with foreign(sqlite_url, table, f"INSERT INTO visits (at) VALUES ('{written}')") as shop:
        for test in ("eq", "ge", "le"):
            found = await shop.done("search_visits", filter=f"at {test} 2026-01-31T00:00:00")
            assert [row["at"] for row in found["items"]] == ["2026-01-31T00:00:00"]
        assert (await shop.done("count_visits", filter="at gt 2026-01-31T00:00:00"))["count"] == 0
        assert (await shop.done("count_visits", filter="day(at) eq 31"))["count"] == 1


@pytest.mark.requirement("entities.values")
async def test_values_in_sqlite_that_are_not_of_their_columns_type_are_shown_as_they_are(sqlite_url: str):
    table = (
        "CREATE TABLE logs (id INTEGER PRIMARY KEY, at DATETIME, d DATE, t TIME, n NUMERIC, j JSON, u UUID, s STRING)"
    )
    row = "INSERT INTO logs VALUES (1, 1700000000, '31.01.2026', 'noon', 'many', 'no json', 'not a uuid', 7)"
    large = "INSERT INTO logs (id, n, j) VALUES (2, 9e999, '{\"a\": [NaN]}')"
    async with foreign(sqlite_url, table, row, large) as shop:
        first, second = (await shop.done("search_logs"))["items"]

        assert (first["at"], first["d"]) == ("1700000000", "31.01.2026")
        assert (first["t"], first["n"], first["j"]) == ("noon", "many", "no json")
        assert (first["u"], first["s"]) == ("not a uuid", "7")
        assert second["j"] == {"a": [None]}
        assert (await shop.done("count_logs", filter="u eq 'not a uuid'"))["count"] == 1


@pytest.mark.requirement("entities.reflection")
async def test_a_key_that_sqlite_does_not_number_is_asked_for(sqlite_url: str):
    tables = ("CREATE TABLE ints (id INT PRIMARY KEY, v TEXT)", "CREATE TABLE bigs (id BIGINT PRIMARY KEY, v TEXT)")
    async with foreign(sqlite_url, *tables) as shop:
        assert (await shop.done("create_int", id=7, v="x"))["id"] == 7
        assert (await shop.done("create_big", id=8, v="x"))["id"] == 8
        assert '"id" is a required property' in (await shop.refused("create_int", v="x")).message


@pytest.mark.requirement("entities.reflection")
async def test_what_a_virtual_table_consists_of_has_no_tools(sqlite_url: str):
    tables = ("CREATE VIRTUAL TABLE texts USING fts5(body)", "CREATE TABLE notes (id INTEGER PRIMARY KEY)")
    async with foreign(sqlite_url, *tables) as shop:
        assert {tool.definition.tags for tool in shop.crib.registry.current("default")} == {("notes",)}


@pytest.mark.requirement("entities.values")
async def test_a_domain_of_postgresql_is_the_type_that_it_narrows(postgres_url: str):
    domain = "CREATE DOMAIN positive AS integer CHECK (VALUE > 0)"
    async with foreign(postgres_url, domain, "CREATE TABLE sizes (id serial PRIMARY KEY, size positive)") as shop:
        assert (await shop.done("create_size", size=4))["size"] == 4
        assert (await shop.refused("create_size", size=-4)).details["constraint"] == "positive_check"


@pytest.mark.requirement("entities.values")
async def test_moments_that_python_cannot_hold_are_shown_as_postgresql_writes_them(postgres_url: str):
    table = "CREATE TABLE offers (id serial PRIMARY KEY, until timestamptz, day date, at timestamp, closes time)"
    row = "INSERT INTO offers (until, day, at, closes) VALUES ('infinity', '-infinity', '0044-03-15 BC', '24:00')"
    async with foreign(postgres_url, table, row) as shop:
        offer = await shop.done("get_offer", id=1)

        assert (offer["until"], offer["day"]) == ("infinity", "-infinity")
        assert (offer["at"], offer["closes"]) == ("0044-03-15 00:00:00 BC", "24:00:00")


@pytest.mark.requirement("entities.filters", "entities.values")
async def test_a_number_of_32_bits_is_found_by_what_is_shown_of_it(postgres_url: str):
    table = "CREATE TABLE weights (kg real PRIMARY KEY, n integer)"
    async with foreign(postgres_url, table, "INSERT INTO weights VALUES (9.8, 1)") as shop:
        assert (await shop.done("get_weight", kg=9.8))["n"] == 1
        assert (await shop.done("count_weights", filter="kg eq 9.8"))["count"] == 1
        assert (await shop.done("count_weights", filter="kg gt 9.8"))["count"] == 0
        assert (await shop.done("count_weights", filter="kg in (9.8, 1)"))["count"] == 1


@pytest.mark.requirement("entities.rows")
async def test_a_key_of_bytes_is_among_what_a_search_shows(database_url: str):
    column = "BLOB" if "sqlite" in database_url else "bytea"
    table = sa.text(f"CREATE TABLE blocks (k {column} PRIMARY KEY, v integer)").text
    async with foreign(database_url, table) as shop:
        made = await shop.done("create_block", k="3q2+7w==", v=1)

        assert (await shop.done("search_blocks"))["items"] == [made]
        assert await shop.done("get_block", k="3q2+7w==") == made
