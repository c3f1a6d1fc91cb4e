"""Tools of mapped classes and tables: names, schemas, behaviour, losses. No database is asked."""

import re
from typing import Any, ClassVar

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from tests.unit.entities.shop import TAGS, Customer, Order
from toolcrib import EntityOptions, entity
from toolcrib.contracts import InvalidDefinition, ToolDefinition
from toolcrib.core.providers import ImportedApi
from toolcrib.kinds.entity.importer.generation import generate
from toolcrib.kinds.entity.importer.names import field_names, plural_of, singular_of, snake
from toolcrib.kinds.entity.importer.tables import as_entity
from toolcrib.kinds.entity.shape import EntityImplementation


def tools_of(*things: Any, options: EntityOptions | None = None) -> dict[str, ToolDefinition]:
    return {tool.name: tool for tool in imported(*things, options=options).tools}


def imported(*things: Any, options: EntityOptions | None = None) -> ImportedApi:
    return generate("shop", [as_entity(thing, options) for thing in things])


def table(*columns: sa.Column[Any], name: str = "things") -> "sa.Table[Any]":
    return sa.Table(name, sa.MetaData(), *columns)


@pytest.mark.requirement("entities.generation")
def test_an_entity_becomes_six_tools_without_those_that_are_excluded():
    assert list(tools_of(Order, Customer)) == [
        "search_orders",
        "get_order",
        "create_order",
        "update_order",
        "count_orders",
        "search_customers",
        "get_customer",
        "create_customer",
        "update_customer",
        "delete_customer",
        "count_customers",
    ]


@pytest.mark.requirement("entities.generation")
def test_the_decorator_says_description_category_tags_and_searchable_fields():
    search = tools_of(Order)["search_orders"]

    assert search.description == (
        "Find orders that meet a filter. Customer purchase orders with line items and fulfillment status."
    )
    assert (search.category, search.tags, search.source) == ("order_management", ("orders", "oms"), "auto_generated")
    made = search.implementation
    assert isinstance(made, EntityImplementation)
    assert {name for name, column in made.columns.items() if not column.searchable} == {"picture", "extra", "version"}


@pytest.mark.requirement("entities.generation")
def test_reading_tools_read_and_changes_name_the_version_so_they_may_be_repeated():
    tools = tools_of(Order, Customer)

    assert {name: (tool.side_effects, tool.idempotent) for name, tool in tools.items()} == {
        "search_orders": ("reads", True),
        "get_order": ("reads", True),
        "create_order": ("writes", False),
        "update_order": ("writes", True),
        "count_orders": ("reads", True),
        "search_customers": ("reads", True),
        "get_customer": ("reads", True),
        "create_customer": ("writes", False),
        "update_customer": ("writes", True),
        "delete_customer": ("writes", True),
        "count_customers": ("reads", True),
    }
    assert tools["update_order"].input_schema["required"] == ["id", "version"]
    assert tools["delete_customer"].input_schema["required"] == ["id", "row_version"]


@pytest.mark.requirement("entities.generation")
def test_the_schema_of_a_new_row_says_what_the_columns_say():
    schema = tools_of(Order)["create_order"].input_schema

    assert schema["required"] == ["total"]
    assert set(schema["properties"]) == {
        *("customer_id", "status", "total", "quantity", "placed", "note", "gift", "picture", "extra"),
    }
    said = schema["properties"]
    assert said["status"] == {"type": "string", "enum": ["OPEN", "PAID", "CLOSED"], "description": "Default: OPEN."}
    assert said["total"]["description"].startswith("What is to be paid. A decimal number with at most 2 digits")
    assert said["customer_id"]["description"] == "Key of customers.id."
    assert said["note"] == {"type": ["string", "null"]}
    assert said["quantity"]["description"] == "The database fills it in if it is left out."
    assert "Default" not in str(tools_of(Order)["update_order"].input_schema)


@pytest.mark.requirement("entities.generation")
def test_lengths_uniqueness_comments_and_relations_are_told():
    tools = tools_of(Customer)

    assert tools["create_customer"].input_schema["properties"]["email"] == {
        "type": "string",
        "maxLength": 40,
        "description": "Where bills go. Unique.",
    }
    assert tools["create_customer"].input_schema["required"] == ["email"]
    assert (tools["get_customer"].long_description or "").endswith("Relations: orders: several of orders.")


@pytest.mark.requirement("entities.generation")
def test_what_the_database_or_the_mapping_fills_in_is_not_written():
    stamped = table(
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String),
        sa.Column("changed", sa.DateTime, onupdate=sa.func.now()),
        sa.Column("double", sa.Integer, sa.Computed("id * 2")),
        sa.Column("secret", sa.String),
    )
    tools = tools_of(stamped, options=EntityOptions(read_only={"secret"}))

    assert set(tools["create_thing"].input_schema["properties"]) == {"name"}
    assert set(tools["update_thing"].input_schema["properties"]) == {"id", "row_version", "name"}


@pytest.mark.requirement("entities.generation")
def test_a_plain_table_has_tools_too():
    assert "create_tag" in tools_of(TAGS)


@pytest.mark.requirement("entities.names")
def test_tables_that_come_to_the_same_names_have_tools_of_their_own_and_keep_them():
    tag, tags = (table(sa.Column("id", sa.Integer, primary_key=True), name=name) for name in ("tag", "tags"))
    found = imported(tag, tags)
    names = {entry.operation: entry.tool for entry in found.report.operations if entry.tool is not None}

    assert names["search tag"] == "search_tags"
    assert re.fullmatch("search_tags_[0-9a-f]{8}", names["search tags"])
    assert len(set(names.values())) == len(names)
    again = generate("shop", [as_entity(tags), as_entity(tag)], names=names)
    assert {entry.operation: entry.tool for entry in again.report.operations if entry.tool is not None} == names


@pytest.mark.requirement("entities.names")
@pytest.mark.parametrize("name", ["客户", "l" * 63])
def test_a_table_of_any_name_has_tools_with_names_that_models_take(name: str):
    tools = tools_of(table(sa.Column("编号", sa.Integer, primary_key=True), name=name))

    assert all(re.fullmatch("[a-z][a-z0-9_]{0,63}", tool) for tool in tools)
    search = next(tool for tool in tools.values() if tool.name.startswith("search_"))
    assert name.isascii() or search.description.endswith("Table 客户.")
    assert search.output_schema is not None
    assert search.output_schema["properties"]["items"]["items"]["properties"]["_"]["description"] == "Column 编号"


@pytest.mark.requirement("entities.losses")
def test_a_column_that_a_tool_cannot_have_is_a_loss_and_so_is_what_needs_it():
    placed = table(
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", postgresql.INTERVAL, nullable=False),
        sa.Column("grid", sa.ARRAY(sa.Integer, dimensions=2)),
    )
    found = imported(placed)

    assert [tool.name for tool in found.tools] == ["search_things", "get_thing", "delete_thing", "count_things"]
    assert {(loss.effect, loss.kind, loss.what) for loss in found.losses} == {
        ("dropped", "unsupported", "column at"),
        ("dropped", "unsupported", "column grid"),
        ("dropped", "operation", "operation"),
    }
    assert {operation.operation for operation in found.report.operations if operation.tool is None} == {
        "create things",
        "update things",
    }


@pytest.mark.requirement("entities.losses")
def test_a_table_whose_key_a_tool_cannot_give_is_left_out():
    found = imported(table(sa.Column("during", postgresql.INTERVAL, primary_key=True), sa.Column("n", sa.Integer)))

    assert not found.tools
    assert {operation.tool for operation in found.report.operations} == {None}


class Base(DeclarativeBase):
    """Of the classes below."""


class Animal(Base):
    __tablename__ = "animals"
    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    __mapper_args__: ClassVar = {"polymorphic_on": "kind", "polymorphic_identity": "animal"}


class Dog(Animal):
    __mapper_args__: ClassVar = {"polymorphic_identity": "dog"}


@pytest.mark.requirement("entities.generation")
@pytest.mark.parametrize(
    ("thing", "options", "said"),
    [
        (dict, None, "neither a class that SQLAlchemy maps nor a table"),
        (Dog, None, "inherits from another entity"),
        (table(sa.Column("n", sa.Integer)), None, "has no primary key"),
        (TAGS, EntityOptions(searchable=("lable",)), "no field 'lable'"),
        (TAGS, EntityOptions(version="etag"), "no field 'etag'"),
    ],
)
def test_what_cannot_be_an_entity_is_refused(thing: Any, options: EntityOptions | None, said: str):
    with pytest.raises(InvalidDefinition, match=said):
        as_entity(thing, options)


@pytest.mark.requirement("entities.generation")
def test_options_that_exclude_what_there_is_not_or_everything_are_refused():
    with pytest.raises(InvalidDefinition, match="no operation 'remove'"):
        EntityOptions(exclude={"remove"})  # pyright: ignore[reportArgumentType] - what a caller without types writes
    with pytest.raises(InvalidDefinition, match="excludes every operation"):
        entity(exclude={"search", "get", "create", "update", "delete", "count"})


@pytest.mark.requirement("entities.generation", "entities.access")
@pytest.mark.parametrize("url", ["postgresql://shop:swordfish@host/shop", "sqlite:///shop.db"])
def test_a_databases_url_is_given_by_reference_only_and_not_repeated(url: str):
    with pytest.raises(InvalidDefinition, match="by reference") as refusal:
        generate("shop", [as_entity(TAGS)], url=url)

    assert "swordfish" not in str(refusal.value)


@pytest.mark.requirement("entities.names")
@pytest.mark.parametrize(
    ("name", "one", "many"),
    [
        ("OrderLine", "order_line", "order_lines"),
        ("categories", "category", "categories"),
        ("boxes", "box", "boxes"),
        ("address", "address", "addresses"),
        ("addresses", "address", "addresses"),
        ("status", "status", "statuses"),
        ("statuses", "status", "statuses"),
        ("people", "person", "people"),
        ("sales_person", "sales_person", "sales_people"),
        ("news", "news", "news"),
        ("days", "day", "days"),
        ("HTTPRequest", "http_request", "http_requests"),
    ],
)
def test_a_name_gives_one_and_many(name: str, one: str, many: str):
    assert singular_of(snake(name)) == one
    assert plural_of(one) == many


@pytest.mark.requirement("entities.names")
def test_a_field_has_a_name_that_a_filter_can_hold():
    assert field_names(["Order Date", "order date", "order-date", "2nd", "in", "größe"]) == [
        "Order_Date",
        "order_date",
        "order_date_2",
        "_2nd",
        "_in",
        "grosse",
    ]
