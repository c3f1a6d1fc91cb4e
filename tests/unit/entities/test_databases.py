"""Existing databases by reference: what they tell of themselves, who may reach them, and how they fail."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DataError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import StaticPool

from tests.servers.postgres import PostgresServer
from tests.unit.entities.shop import TAGS, Order, Shop, engine_for, open_shop
from toolcrib import Crib, EgressPolicy, EntityOptions
from toolcrib.contracts import (
    EgressDenied,
    ErrorCode,
    InvalidDefinition,
    InvalidInput,
    InvalidSettings,
    ProviderDefinition,
    Reason,
    ReconnectRequired,
    Unavailable,
)
from toolcrib.infrastructure.net import HttpSession
from toolcrib.kinds.entity.importer import Databases
from toolcrib.kinds.entity.importer.engines import EntityDatabase, open_engine
from toolcrib.kinds.entity.importer.failures import diagnose
from toolcrib.kinds.entity.importer.generation import provider_of

URL = "${env:SHOP_URL}"


@asynccontextmanager
async def imported(url: str, **options: Any) -> AsyncGenerator[Shop]:
    """A crib that knows nothing of the application but the URL of its database."""
    with engine_for(url) as engine:
        async with Crib("memory://", environment={"SHOP_URL": url}) as crib:
            await crib.imports.database(name="legacy", url=URL, **options)
            yield Shop(crib, engine)


@pytest.mark.requirement("entities.reflection")
async def test_an_existing_database_has_tools_that_work(database_url: str):
    async with imported(database_url) as shop:
        customer = await shop.done("create_customer", id="0" * 32, email="ada@example.com")
        order = await shop.done(
            "create_order",
            customer_id=customer["id"],
            status="PAID",
            total="9.90",
            gift=False,
            version=1,
            placed="2026-01-31T10:00:00Z",
        )
        found = await shop.done("search_orders", filter="status eq 'PAID' and total gt 9.5 and not gift")

        assert [row["id"] for row in found["items"]] == [order["id"]]
        changed = await shop.done("update_order", id=order["id"], row_version=order["row_version"], note="x")
        assert (await shop.done("delete_order", id=order["id"], row_version=changed["row_version"]))["deleted"]
        assert (await shop.done("count_orders"))["count"] == 0


@pytest.mark.requirement("entities.reflection")
async def test_only_the_named_tables_are_imported_with_their_choices(database_url: str):
    choices = {"orders": EntityOptions(singular="sale", plural="sales", exclude={"delete"}, version="version")}
    async with imported(database_url, tables=["orders"], options=choices) as shop:
        names = {tool.name for tool in shop.crib.registry.current("default")}

        assert names == {"search_sales", "get_sale", "create_sale", "update_sale", "count_sales"}


@pytest.mark.requirement("entities.reflection")
async def test_a_table_that_is_not_there_is_refused_with_those_that_are(database_url: str):
    with pytest.raises(InvalidInput, match=r"no table 'oders'.*customers, orders, tags"):
        async with imported(database_url, tables=["oders"]):
            pass


@pytest.mark.requirement("entities.reflection", "entities.losses")
async def test_types_of_postgresql_are_mapped_or_told_as_losses(postgres: PostgresServer):
    url = postgres.database()
    engine = open_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TYPE mood AS ENUM ('sad', 'ok')"))
        connection.execute(
            sa.text(
                "CREATE TABLE places (id bigserial PRIMARY KEY, ip inet, mood mood, labels text[], spot point, "
                "doc jsonb, at timestamptz, plain timestamp, span interval, amount numeric(6,2), ref uuid, day date)"
            )
        )
        connection.execute(sa.text("CREATE TABLE loose (n integer)"))
    engine.dispose()
    async with Crib("memory://", environment={"SHOP_URL": url}) as crib:
        api = await crib.imports.database(name="legacy", url=URL)
        shop = Shop(crib, engine)
        given = {
            "ip": "10.0.0.1",
            "mood": "ok",
            "labels": ["a", "b,c"],
            "doc": {"k": [1]},
            "at": "2026-01-31T10:00:00Z",
            "plain": "2026-01-31T10:00:00",
            "amount": "12.30",
            "ref": "01234567-89ab-cdef-0123-456789abcdef",
            "day": "2026-01-31",
        }
        made = await shop.done("create_place", **given)
        found = await shop.done("search_places", filter="mood eq 'ok' and contains(mood,'k') and mood lt 'sad'")

    assert {name: made[name] for name in given} == given
    assert len(found["items"]) == 1
    assert {(loss.what, loss.kind) for loss in api.losses} == {
        ("column spot", "unsupported"),
        ("column span", "unsupported"),
        ("table loose", "operation"),
    }


@pytest.mark.requirement("entities.constraints")
async def test_a_number_that_is_too_large_for_its_column_is_the_callers_error(postgres: PostgresServer):
    async with open_shop(postgres.database()) as shop:
        refusal = await shop.refused("create_order", total="123456789012.00")

    assert (refusal.code, refusal.reason) == (ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED)


@pytest.mark.requirement("entities.access")
async def test_an_own_engine_that_is_not_bound_in_this_process_is_asked_for(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'crib.db'}"
    shop_file = tmp_path / "shop.db"
    shop_file.touch()
    with engine_for(f"sqlite:///{shop_file}") as engine:
        async with Crib(url) as crib:
            await crib.add_entities("shop", engine, Order)
        async with Crib(url) as crib:
            refusal = await Shop(crib, engine).refused("count_orders")

    assert refusal.code is ErrorCode.AUTH_REQUIRED
    assert "crib.add_entities('shop'" in refusal.message


REFUSED_IMPORTS = {
    ErrorCode.AUTH_REQUIRED: ReconnectRequired,
    ErrorCode.NETWORK_ERROR: Unavailable,
    ErrorCode.UNKNOWN: InvalidInput,
}
"""What an import raises where a call fails with a code."""


@pytest.mark.requirement("entities.access")
@pytest.mark.parametrize(
    ("value", "code", "said"),
    [
        ("", ErrorCode.AUTH_REQUIRED, "not set or not released"),
        ("swordfish", ErrorCode.AUTH_REQUIRED, "something else than the URL of a database"),
        ("https://user:swordfish@example.com/", ErrorCode.AUTH_REQUIRED, "something else"),
        ("sqlite:////nowhere/swordfish.db", ErrorCode.AUTH_REQUIRED, "does not exist"),
        ("sqlite://", ErrorCode.AUTH_REQUIRED, "does not exist"),
        ("postgresql://user:swordfish@127.0.0.1:1/shop", ErrorCode.NETWORK_ERROR, "cannot be reached"),
        (
            "mysql+pymysql://user:swordfish@127.0.0.1/shop",
            ErrorCode.UNKNOWN,
            "needs the driver 'pymysql', which is not installed: pip install pymysql",
        ),
    ],
)
async def test_a_reference_that_leads_to_no_database_is_told_without_what_it_holds(
    tmp_path: Path, value: str, code: ErrorCode, said: str
):
    file = tmp_path / "shop.db"
    file.touch()
    environment = {"SHOP_URL": f"sqlite:///{file}"}
    with engine_for(environment["SHOP_URL"]) as engine:
        async with Crib("memory://", environment=environment) as crib:
            await crib.imports.database(name="legacy", url=URL)
            environment["SHOP_URL"] = value
            refusal = await Shop(crib, engine).refused("count_orders")

            assert refusal.code is code
            assert said in refusal.message
            assert "swordfish" not in refusal.message
            with pytest.raises(REFUSED_IMPORTS[code]) as again:
                await crib.imports.database(name="legacy", url=URL)
            assert "swordfish" not in str(again.value)


@pytest.mark.requirement("entities.access")
async def test_wrong_credentials_are_told_as_such(postgres: PostgresServer):
    url = postgres.database()
    with engine_for(url) as engine:
        environment = {"SHOP_URL": url}
        async with Crib("memory://", environment=environment) as crib:
            await crib.imports.database(name="legacy", url=URL)
            environment["SHOP_URL"] = postgres.url("postgres", password="opensesame")
            refusal = await Shop(crib, engine).refused("count_orders")

    assert (refusal.code, refusal.reason) == (ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED)
    assert "opensesame" not in refusal.message


@pytest.mark.requirement("entities.access")
async def test_the_store_of_a_crib_is_no_database_of_tools(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'crib.db'}"
    async with Crib(url, environment={"SHOP_URL": url}) as crib:
        with pytest.raises(EgressDenied, match="the store of a crib"):
            await crib.imports.database(name="legacy", url=URL, tables=["api_keys"])


@asynccontextmanager
async def from_vault(url: str, *, allow: tuple[str, ...] = ()) -> AsyncGenerator[EntityDatabase]:
    """A database whose URL somebody has put into the vault."""
    session = HttpSession(EgressPolicy(allow=allow))
    databases = Databases(session.route)

    async def secret(reference: str) -> str | None:
        return url

    try:
        yield await databases.open("default", provider_of("legacy", "${secret:SHOP_URL}"), secret)
    finally:
        await databases.close()
        await session.close()


@pytest.mark.requirement("entities.access")
@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////etc/passwd",
        "mysql://host/shop",
        "postgresql:///shop",
        "postgresql://user:swordfish@127.0.0.1/shop?host=/var/run/postgresql",
        "postgresql://user:swordfish@example.com/shop?sslkey=/etc/passwd",
        "postgresql://user:swordfish@127.0.0.1:5432/shop",
        "postgresql://user:swordfish@169.254.169.254:443/shop",
        "postgresql://user:swordfish@[::1]:443/shop",
    ],
)
async def test_a_url_that_is_not_the_operators_leads_to_no_file_and_no_inner_address(url: str):
    with pytest.raises(EgressDenied) as refusal:
        async with from_vault(url):
            pass

    assert "swordfish" not in str(refusal.value)


@pytest.mark.requirement("entities.access")
async def test_a_url_that_is_not_the_operators_reaches_what_the_egress_policy_opens(postgres: PostgresServer):
    async with from_vault(postgres.database(), allow=(f"127.0.0.1:{postgres.port}",)) as database:
        assert await database.run(lambda connection: connection.scalar(sa.select(1)), limit_s=10) == 1


@pytest.mark.requirement("entities.access")
async def test_a_provider_of_another_kind_is_no_database():
    databases = Databases(HttpSession(EgressPolicy()).route)

    async def secret(reference: str) -> str | None:
        return None

    with pytest.raises(InvalidDefinition, match="is not a database"):
        await databases.open("default", ProviderDefinition(name="web", base_url="https://x.example"), secret)


@pytest.mark.requirement("entities.access")
async def test_an_engine_that_threads_cannot_share_is_refused_and_one_connection_serves_one_call_at_a_time():
    with pytest.raises(InvalidSettings, match="StaticPool"):
        EntityDatabase(sa.create_engine("sqlite://"))
    engine = sa.create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    TAGS.create(engine)
    async with Crib("memory://") as crib:
        await crib.add_entities("shop", engine, TAGS)
        shop = Shop(crib, engine)
        await asyncio.gather(*(shop.done("create_tag", label=f"t{number}") for number in range(10)))

        assert (await shop.done("count_tags"))["count"] == 10
    engine.dispose()


@pytest.mark.requirement("entities.transactions")
async def test_a_call_that_takes_too_long_leaves_nothing_behind(postgres: PostgresServer):
    async with open_shop(postgres.database()) as shop:
        seen = await shop.order(note="before")
        tool = shop.crib.registry.require("default", "update_order").definition
        await shop.crib.save(tool.model_copy(update={"timeout_s": 0.3}))
        with shop.engine.begin() as holding:
            holding.execute(sa.text("SELECT * FROM orders FOR UPDATE"))
            refusal = await shop.refused("update_order", id=seen["id"], version=seen["version"], note="after")

        assert refusal.code is ErrorCode.TIMEOUT
        assert (await shop.done("get_order", id=seen["id"]))["note"] == "before"


@pytest.mark.requirement("entities.transactions")
async def test_work_that_nobody_waits_for_is_rolled_back(database_url: str):
    with engine_for(database_url) as engine:
        database = EntityDatabase(engine)
        began, may_end = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def insert(connection: sa.Connection) -> None:
            connection.execute(sa.insert(TAGS).values(label="x"))
            loop.call_soon_threadsafe(began.set)
            may_end.wait(10)

        waiting = asyncio.create_task(database.run(insert, limit_s=30, writes=True))
        await began.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        may_end.set()
        await database.close()

        with engine.connect() as connection:
            assert connection.scalar(sa.select(sa.func.count()).select_from(TAGS)) == 0


@pytest.mark.requirement("entities.failures")
async def test_a_table_that_has_changed_since_is_told_with_what_to_do(database_url: str):
    async with imported(database_url, tables=["tags"]) as shop:
        with shop.engine.begin() as connection:
            connection.execute(sa.text("DROP TABLE tags"))
        gone = await shop.refused("count_tags")

    assert (gone.code, gone.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)
    assert "import it again" in gone.message


@pytest.mark.requirement("entities.failures")
async def test_a_database_that_somebody_else_holds_is_busy_and_nothing_is_lost(tmp_path: Path):
    file = tmp_path / "shop.db"
    file.touch()
    async with open_shop(f"sqlite:///{file}") as shop:
        with sa.create_engine(f"sqlite:///{file}").connect() as other:
            other.exec_driver_sql("BEGIN EXCLUSIVE")
            impatient = sa.create_engine(f"sqlite:///{file}", connect_args={"timeout": 0})
            await shop.crib.add_entities("shop", impatient, TAGS)
            refusal = await shop.refused("create_tag", label="x")
            other.rollback()
            impatient.dispose()

        assert (refusal.code, refusal.reason) == (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED)
        assert "call again" in refusal.message


class _Refused(Exception):
    """An error of a driver."""

    def __init__(self, sqlstate: str | None) -> None:
        super().__init__("SELECT secret FROM somewhere")
        self.sqlstate = sqlstate


@pytest.mark.requirement("entities.failures")
@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (OperationalError("SELECT", {}, _Refused("40P01")), ErrorCode.PROVIDER_ERROR),
        (OperationalError("SELECT", {}, _Refused("40001")), ErrorCode.PROVIDER_ERROR),
        (OperationalError("SELECT", {}, _Refused("53300")), ErrorCode.PROVIDER_ERROR),
        (OperationalError("SELECT", {}, _Refused("57P01")), ErrorCode.NETWORK_ERROR),
        (OperationalError("SELECT", {}, _Refused("08006")), ErrorCode.NETWORK_ERROR),
        (OperationalError("SELECT", {}, _Refused("57014")), ErrorCode.TIMEOUT),
        (OperationalError("SELECT", {}, _Refused("42501")), ErrorCode.AUTH_REQUIRED),
        (OperationalError("SELECT", {}, _Refused("28P01")), ErrorCode.AUTH_REQUIRED),
        (OperationalError("SELECT", {}, _Refused("XX000")), ErrorCode.PROVIDER_ERROR),
        (OperationalError("SELECT", {}, _Refused(None)), ErrorCode.NETWORK_ERROR),
        (InterfaceError("SELECT", {}, _Refused(None)), ErrorCode.NETWORK_ERROR),
        (IntegrityError("SELECT", {}, _Refused(None)), ErrorCode.VALIDATION_ERROR),
        (DataError("SELECT", {}, _Refused(None)), ErrorCode.PROVIDER_ERROR),
        (PoolTimeout(), ErrorCode.PROVIDER_ERROR),
    ],
)
def test_a_failure_has_the_code_of_its_kind_and_tells_no_statement(problem: Any, code: ErrorCode):
    found = diagnose(problem)

    assert found.code is code
    assert "SELECT" not in found.words
