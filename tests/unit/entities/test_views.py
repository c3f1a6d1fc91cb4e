"""Views, materialized views and other schemas of SQLite and of a real PostgreSQL server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.servers.postgres import PostgresServer
from tests.unit.cli.command import toolcrib
from tests.unit.entities.shop import Shop
from toolcrib import Crib, EntityOptions
from toolcrib.contracts import InvalidDefinition, InvalidInput
from toolcrib.core.providers import ImportedApi
from toolcrib.kinds.entity.importer.engines import open_engine
from toolcrib.kinds.entity.shape import EntityImplementation

pytestmark = pytest.mark.requirement("entities.views")

STATEMENTS = (
    "CREATE TABLE orders (id integer PRIMARY KEY, customer text, total numeric(8,2))",
    "INSERT INTO orders VALUES (1, 'ada', 9.5), (2, 'ada', 0.5), (3, 'bob', 7)",
    """CREATE VIEW v_orders AS
    SELECT customer, count(*) AS number, sum(total) AS total, max(id) AS last FROM orders GROUP BY customer""",
)
MATERIALIZED = "CREATE MATERIALIZED VIEW m_orders AS SELECT customer, count(*) AS number FROM orders GROUP BY customer"
OTHERS = (
    "CREATE SCHEMA sales",
    "CREATE TABLE sales.offers (id integer PRIMARY KEY, name text)",
    "CREATE VIEW sales.v_offers AS SELECT name FROM sales.offers",
    "INSERT INTO sales.offers VALUES (1, 'first')",
)


@asynccontextmanager
async def database(url: str, *statements: str) -> AsyncGenerator[Shop]:
    engine = open_engine(url)
    try:
        with engine.begin() as connection:
            for statement in (*STATEMENTS, *statements):
                connection.exec_driver_sql(statement)
        async with Crib("memory://", environment={"URL": url}) as crib:
            yield Shop(crib, engine)
    finally:
        engine.dispose()


async def bring(shop: Shop, **options: Any) -> ImportedApi:
    return await shop.crib.imports.database(name="shop", url="${env:URL}", **options)


def told(api: ImportedApi) -> dict[str, str]:
    return {loss.what: loss.why for loss in api.report.losses}


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    return postgres.database()


async def test_a_view_is_searched_and_counted_and_never_written(database_url: str) -> None:
    async with database(database_url) as shop:
        api = await bring(shop, views=True)
        assert [tool.name for tool in api.tools if "v_order" in tool.name] == ["search_v_orders", "count_v_orders"]
        assert {tool.side_effects for tool in api.tools if "v_order" in tool.name} == {"reads"}
        first, second = (await shop.done("search_v_orders", order_by="customer"))["items"]
        assert (first["customer"], first["number"], first["last"]) == ("ada", 2, 2)
        assert float(first["total"]) == 10
        assert second["customer"] == "bob"
        assert (await shop.done("search_v_orders", filter="customer eq 'bob'"))["items"] == [second]
        assert (await shop.done("count_v_orders"))["count"] == 2
        pages = [(await shop.done("search_v_orders", top=1, skip=skip))["items"] for skip in (0, 1)]
        assert pages == [[first], [second]], "rows without a key come in the same order each time"


async def test_the_report_names_the_views_that_are_left_out_and_how_to_get_them(database_url: str) -> None:
    async with database(database_url) as shop:
        api = await bring(shop)
        assert {tool.tags[0] for tool in api.tools} == {"orders"}
        (loss,) = (loss for loss in api.report.losses if loss.what == "1 views")
        assert (loss.matters, loss.places) == (True, ("/v_orders",))
        named = await bring(shop, tables=["v_orders"], options={"v_orders": EntityOptions(plural="sums")})
        assert [tool.name for tool in named.tools] == ["search_sums", "count_sums"]
        assert told(named) == {}
        with pytest.raises(InvalidInput, match=r"no table 'v_oders'.*orders, v_orders"):
            await bring(shop, tables=["v_oders"])
        with pytest.raises(InvalidInput, match="excludes every operation"):
            await bring(shop, tables=["v_orders"], options={"v_orders": EntityOptions(exclude={"search", "count"})})


async def test_a_materialized_view_of_postgresql_is_imported_too(postgres_url: str) -> None:
    async with database(postgres_url, MATERIALIZED) as shop:
        assert told(await bring(shop)) == {
            "2 views": "left out: import with views, or name them as tables; their tools only read"
        }
        await bring(shop, tables=["m_orders"])
        found = await shop.done("search_m_orders", filter="number gt 1")
        assert found["items"] == [{"customer": "ada", "number": 2}]


async def test_other_schemas_are_named_in_the_report_and_imported_by_name(postgres_url: str) -> None:
    async with database(postgres_url, *OTHERS) as shop:
        api = await bring(shop)
        why = "import it with schema 'sales', or name what you want as 'sales.NAME'"
        assert told(api)["schema sales"] == f"left out: it has 1 tables and 1 views; {why}"
        mixed = await bring(shop, tables=["orders", "sales.offers", "sales.v_offers"])
        assert {tool.tags[0] for tool in mixed.tools} == {"orders", "offers", "v_offers"}
        assert (await shop.done("get_offer", id=1))["name"] == "first"
        assert (await shop.done("search_v_offers"))["items"] == [{"name": "first"}]
        await bring(shop, schema="sales", accept=True)
        assert (await shop.done("count_offers"))["count"] == 1
        with pytest.raises(InvalidInput, match=r"no table 'sales\.nothing'"):
            await bring(shop, tables=["sales.nothing"])


def test_the_command_line_imports_views(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    file.touch()
    url = f"sqlite:///{file}"
    engine = open_engine(url)
    with engine.begin() as connection:
        for statement in STATEMENTS:
            connection.exec_driver_sql(statement)
    engine.dispose()
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    options = ("tool", "import-database", "${env:TOOLCRIB_SECRET_URL}", "--name", "shop")
    without = toolcrib(*options, store=store, TOOLCRIB_SECRET_URL=url)
    assert without.exit_code == 0, without.output
    assert "1 views" in without.output
    done = toolcrib(*options, "--views", store=store, TOOLCRIB_SECRET_URL=url)
    assert done.exit_code == 0, done.output
    listed = orjson.loads(toolcrib("tool", "list", "--json", store=store).stdout)
    assert {"search_v_orders", "count_v_orders"} <= {tool["definition"]["name"] for tool in listed}


async def test_a_tool_of_one_row_needs_a_key(database_url: str) -> None:
    async with database(database_url) as shop:
        api = await bring(shop, tables=["v_orders"])
        made = api.tools[0].implementation
        assert isinstance(made, EntityImplementation)
        wrong = api.tools[0].model_copy(update={"implementation": made.model_copy(update={"operation": "get"})})
        with pytest.raises(InvalidDefinition, match="needs a key"):
            await shop.crib.save(wrong)
