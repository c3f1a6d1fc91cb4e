"""Columns that are versions, of every type, and tools that a person has changed."""

from typing import Any, ClassVar

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from tests.servers.postgres import PostgresServer
from tests.unit.entities.shop import Order, Shop, open_shop
from toolcrib import Crib, EntityOptions
from toolcrib.contracts import Reason
from toolcrib.kinds.entity.importer.engines import open_engine
from toolcrib.kinds.entity.importer.tables import as_entity


class Base(DeclarativeBase):
    """Of the class below."""


class Note(Base):
    __tablename__ = "notes"
    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str]
    stamp: Mapped[int] = mapped_column(server_default="7")
    __mapper_args__: ClassVar = {"version_id_col": stamp, "version_id_generator": False}


@pytest.mark.requirement("entities.versions")
@pytest.mark.parametrize(
    "column_type", [sa.Integer(), sa.DateTime(timezone=True), sa.DateTime(), sa.Uuid(), sa.String(32)], ids=repr
)
async def test_a_version_column_of_any_type_is_begun_and_renewed(
    database_url: str, column_type: "sa.types.TypeEngine[Any]"
):
    papers = sa.Table(
        "papers",
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("text", sa.String),
        sa.Column("mark", column_type),
    )
    engine = open_engine(database_url)
    papers.create(engine)
    async with Crib("memory://") as crib:
        await crib.add_entities("shop", engine, as_entity(papers, EntityOptions(version="mark")))
        shop = Shop(crib, engine)
        made = await shop.done("create_paper", text="a")
        changed = await shop.done("update_paper", id=made["id"], mark=made["mark"], text="b")
        stale = await shop.refused("update_paper", id=made["id"], mark=made["mark"], text="c")

        assert made["mark"] is not None
        assert changed["mark"] != made["mark"]
        assert stale.reason is Reason.STALE_VERSION
        assert await shop.done("delete_paper", id=made["id"], mark=changed["mark"]) == {"deleted": True}
    engine.dispose()


@pytest.mark.requirement("entities.versions")
async def test_a_version_that_the_database_changes_is_left_to_it(postgres: PostgresServer):
    engine = open_engine(postgres.database())
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        body = "BEGIN NEW.stamp := OLD.stamp + 5; RETURN NEW; END"
        connection.execute(sa.text(f"CREATE FUNCTION count_up() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$"))
        connection.execute(sa.text("CREATE TRIGGER t BEFORE UPDATE ON notes FOR EACH ROW EXECUTE FUNCTION count_up()"))
    async with Crib("memory://") as crib:
        await crib.add_entities("shop", engine, Note)
        shop = Shop(crib, engine)
        made = await shop.done("create_note", text="a")
        changed = await shop.done("update_note", id=made["id"], stamp=made["stamp"], text="b")
    engine.dispose()

    assert (made["stamp"], changed["stamp"]) == (7, 12)


@pytest.mark.requirement("entities.customised")
async def test_importing_again_keeps_what_a_person_has_changed(database_url: str):
    async with open_shop(database_url) as shop:
        tool = shop.crib.registry.require("default", "search_orders").definition
        await shop.crib.save(tool.model_copy(update={"description": "Ours."}))
        await shop.crib.add_entities("shop", shop.engine, Order)

        kept = shop.crib.registry.require("default", "search_orders").definition
        assert kept.description == "Ours."
        assert (await shop.done("search_orders"))["items"] == []
