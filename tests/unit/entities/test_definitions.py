"""Entity tools that somebody writes by hand: what is refused when they are saved, and what when they are called."""

import pytest
import sqlalchemy as sa

from tests.twins import make_definition
from tests.unit.entities.shop import TAGS, Customer, open_shop
from toolcrib.contracts import InvalidDefinition, JsonObject, ToolDefinition
from toolcrib.kinds.dispatch import check_tool
from toolcrib.kinds.entity.shape import EntityColumn, EntityImplementation

COLUMNS = {"label": EntityColumn(type="string"), "weight": EntityColumn(type="number", writable=False)}


def written(operation: str, *, required: tuple[str, ...] = ("label",), **changed: object) -> ToolDefinition:
    made: JsonObject = {
        "provider": "shop",
        "operation": operation,
        "table": "tags",
        "columns": COLUMNS,
        "key": ("label",),
        **changed,
    }
    writes = operation in {"create", "update", "delete"}
    return make_definition(
        f"{operation}_by_hand",
        input_schema={"type": "object", "required": list(required)},
        side_effects="writes" if writes else "reads",
        implementation=EntityImplementation(**made),
    )


@pytest.mark.requirement("entities.generation")
@pytest.mark.parametrize(
    ("definition", "said"),
    [
        (written("get", key=("id",)), "'id' is not among its columns"),
        (written("update", version_field="etag"), "'etag' is not among its columns"),
        (written("get", columns={"label": EntityColumn(type="array")}), "needs items"),
        (written("get", required=()), "needs the argument 'label'"),
        (written("delete", version_field="row_version"), "needs the argument 'row_version'"),
        (written("create").model_copy(update={"side_effects": "reads"}), "'create' writes"),
        (written("count").model_copy(update={"side_effects": "writes"}), "'count' reads"),
    ],
)
def test_an_operation_that_could_not_be_called_is_refused_when_it_is_saved(definition: ToolDefinition, said: str):
    with pytest.raises(InvalidDefinition, match=said):
        check_tool(definition)


@pytest.mark.requirement("entities.rows", "entities.access")
async def test_a_tool_by_hand_writes_only_what_it_may_and_only_in_tables_of_the_application(database_url: str):
    async with open_shop(database_url) as shop:
        with shop.engine.begin() as connection:
            connection.execute(sa.text("CREATE TABLE hidden (label varchar(9) PRIMARY KEY, weight float)"))
        await shop.crib.save(written("create"))
        await shop.crib.save(written("search", table="hidden"))

        foreign = await shop.refused("create_by_hand", label="x", weight=1)
        hidden = await shop.refused("search_by_hand", label="x")

        assert "'weight' is no field that this tool writes" in foreign.message
        assert "has added no table 'hidden'" in hidden.message
        assert shop.rows("tags") == 0


@pytest.mark.requirement("entities.reflection")
async def test_tables_are_added_to_an_engine_one_call_after_the_other(database_url: str):
    async with open_shop(database_url) as shop:
        await shop.crib.add_entities("shop", shop.engine, TAGS)
        await shop.crib.add_entities("shop", shop.engine, Customer)

        assert (await shop.done("count_tags"))["count"] == (await shop.done("count_orders"))["count"] == 0
