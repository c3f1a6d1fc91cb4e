"""Rows through the tools of a crib, on SQLite and on PostgreSQL."""

import asyncio

import pytest

from tests.unit.entities.shop import open_shop
from toolcrib.contracts import ErrorCode, Reason


@pytest.mark.requirement("entities.rows")
async def test_a_row_is_made_read_changed_and_deleted(database_url: str):
    async with open_shop(database_url) as shop:
        made = await shop.done("create_customer", email="ada@example.com")
        changed = await shop.done("update_customer", id=made["id"], row_version=made["row_version"], email="a@b.c")

        assert await shop.done("get_customer", id=made["id"]) == changed
        assert (changed["email"], changed["id"]) == ("a@b.c", made["id"])

        await shop.done("delete_customer", id=made["id"], row_version=changed["row_version"])

        gone = await shop.refused("get_customer", id=made["id"])
        assert (gone.code, gone.reason) == (ErrorCode.VALIDATION_ERROR, Reason.NOT_FOUND)


@pytest.mark.requirement("entities.values")
async def test_values_come_back_as_they_were_given(database_url: str):
    given = {
        "status": "PAID",
        "total": "12345678.90",
        "quantity": 7,
        "placed": "2026-01-31T10:00:00.250000Z",
        "note": "50% off_\\ 'quoted' \"double\" \U0001d4b3 -- ; DROP",
        "gift": True,
        "picture": "AAEC/w==",
        "extra": {"a": [1, None, {"b": "c"}]},
    }
    async with open_shop(database_url) as shop:
        made = await shop.order(**given)

        assert {name: made[name] for name in given} == given
        assert await shop.done("get_order", id=made["id"]) == made


@pytest.mark.requirement("entities.values")
async def test_moments_are_kept_in_utc_and_defaults_are_filled_in(database_url: str):
    async with open_shop(database_url) as shop:
        made = await shop.order(placed="2026-01-31T12:00:00+02:00", total=3)

    assert made["placed"] == "2026-01-31T10:00:00Z"
    assert (made["status"], made["quantity"], made["gift"], made["total"]) == ("OPEN", 1, False, "3.00")
    assert (made["note"], made["picture"], made["extra"]) == (None, None, None)


@pytest.mark.requirement("entities.values")
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("total", "1.234", "at most 2 digits"),
        ("total", "much", "decimal number"),
        ("total", "NaN", "decimal number"),
        ("placed", "yesterday", "a moment such as"),
        ("picture", "%%%", "base64"),
        ("quantity", 2**63, "64 bits"),
        ("note", "a\x00b", "U+0000"),
        ("customer_id", "no uuid", "UUID"),
    ],
)
async def test_a_value_that_a_column_cannot_hold_is_refused_by_its_name(
    database_url: str, field: str, value: object, said: str
):
    async with open_shop(database_url) as shop:
        refusal = await shop.refused("create_order", **{"total": "1.00", field: value})

        assert refusal.code is ErrorCode.VALIDATION_ERROR
        assert field in refusal.message
        assert said in refusal.message or "is not a" in refusal.message
        assert shop.rows("orders") == 0


@pytest.mark.requirement("entities.versions")
async def test_a_stale_version_changes_nothing_and_is_told_the_present_one(database_url: str):
    async with open_shop(database_url) as shop:
        seen = await shop.order(note="first")
        await shop.done("update_order", id=seen["id"], version=seen["version"], note="second")

        stale = await shop.refused("update_order", id=seen["id"], version=seen["version"], note="third")

        assert (stale.code, stale.reason) == (ErrorCode.VALIDATION_ERROR, Reason.STALE_VERSION)
        assert (stale.details["present"], stale.details["seen"]) == (2, 1)
        assert (await shop.done("get_order", id=seen["id"]))["note"] == "second"


@pytest.mark.requirement("entities.versions")
async def test_a_row_without_a_version_column_has_a_hash_in_its_place(database_url: str):
    async with open_shop(database_url) as shop:
        seen = await shop.done("create_tag", label="red", weight=0.1)
        await shop.done("update_tag", label="red", row_version=seen["row_version"], weight=0.5)

        for name, given in (("update_tag", {"weight": 0.7}), ("delete_tag", {})):
            stale = await shop.refused(name, label="red", row_version=seen["row_version"], **given)
            assert stale.reason is Reason.STALE_VERSION

        assert (await shop.done("get_tag", label="red"))["weight"] == 0.5


@pytest.mark.requirement("entities.versions")
async def test_of_concurrent_updates_none_is_lost(database_url: str):
    """Each of the writers adds one to what it has read, and reads again where it came too late."""

    async def add_one(number: int) -> None:
        while True:
            seen = await shop.done("get_tag", label="count")
            given = {"label": "count", "row_version": seen["row_version"], "weight": seen["weight"] + 1}
            envelope = await shop.call("update_tag", **given)
            if envelope.error is None:
                return
            assert envelope.error.reason is Reason.STALE_VERSION, envelope.error

    async with open_shop(database_url) as shop:
        await shop.done("create_tag", label="count", weight=0)
        await asyncio.gather(*map(add_one, range(8)))

        assert (await shop.done("get_tag", label="count"))["weight"] == 8


@pytest.mark.requirement("entities.versions")
async def test_an_update_of_nothing_is_refused(database_url: str):
    async with open_shop(database_url) as shop:
        made = await shop.order()

        refusal = await shop.refused("update_order", id=made["id"], version=made["version"])

        assert "nothing to change" in refusal.message


@pytest.mark.requirement("entities.constraints")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"quantity": 0}, "quantity_positive"),
        ({"customer_id": "01234567-89ab-cdef-0123-456789abcdef"}, "reference"),
    ],
)
async def test_what_a_constraint_refuses_is_the_callers_error(database_url: str, given: dict[str, object], said: str):
    async with open_shop(database_url) as shop:
        refusal = await shop.refused("create_order", **{"total": "1.00", **given})

        assert refusal.code is ErrorCode.VALIDATION_ERROR
        assert said in refusal.message
        assert shop.rows("orders") == 0


@pytest.mark.requirement("entities.constraints")
async def test_a_second_row_of_the_same_unique_value_is_refused_by_the_column(database_url: str):
    async with open_shop(database_url) as shop:
        await shop.done("create_customer", email="ada@example.com")

        refusal = await shop.refused("create_customer", email="ada@example.com")

        assert refusal.reason is Reason.REQUEST_REFUSED
        assert "email" in refusal.message
        assert shop.rows("customers") == 1


@pytest.mark.requirement("entities.constraints")
async def test_a_row_that_others_refer_to_is_not_deleted(database_url: str):
    async with open_shop(database_url) as shop:
        customer = await shop.done("create_customer", email="ada@example.com")
        await shop.order(customer_id=customer["id"])

        refusal = await shop.refused("delete_customer", id=customer["id"], row_version=customer["row_version"])

        assert "still referred to" in refusal.message
        assert shop.rows("customers") == 1


@pytest.mark.requirement("entities.paging")
async def test_a_search_goes_on_where_it_ended(database_url: str):
    async with open_shop(database_url) as shop:
        for number in range(5):
            await shop.order(quantity=number % 2 + 1)
        found: list[int] = []
        skip: int | None = 0
        while skip is not None:
            page = await shop.done("search_orders", order_by="quantity desc", top=2, skip=skip)
            found += [row["id"] for row in page["items"]]
            skip = page["next_skip"]

        assert found == [2, 4, 1, 3, 5]


@pytest.mark.requirement("entities.paging")
async def test_more_rows_than_an_answer_holds_are_told_by_a_warning(database_url: str):
    async with open_shop(database_url) as shop:
        for number in range(101):
            await shop.done("create_tag", label=f"t{number:03}")

        envelope = await shop.call("search_tags")
        asked = await shop.call("search_tags", top=1)

        assert len(envelope.output["items"]) == 100
        assert envelope.metadata["paging"] == {"pages": 1, "items": 100, "complete": False}
        assert "skip=100" in envelope.metadata["warnings"][0]
        assert "warnings" not in asked.metadata


@pytest.mark.requirement("entities.paging")
async def test_a_search_returns_the_fields_that_are_wanted_with_key_and_version(database_url: str):
    async with open_shop(database_url) as shop:
        await shop.order(picture="AAEC")

        chosen = await shop.done("search_orders", select=["note"])
        every = await shop.done("search_orders")

        assert set(chosen["items"][0]) == {"id", "note", "version"}
        assert "picture" not in every["items"][0]


@pytest.mark.requirement("entities.paging")
@pytest.mark.parametrize(
    "order", ["nothing", "picture", "id up", "id,,total", "id; drop table orders", ",".join(["id"] * 9)]
)
async def test_an_order_by_what_there_is_not_is_refused(database_url: str, order: str):
    async with open_shop(database_url) as shop:
        refusal = await shop.refused("search_orders", order_by=order)

        assert refusal.code is ErrorCode.VALIDATION_ERROR
        assert "order_by" in refusal.message


@pytest.mark.requirement("entities.paging")
async def test_null_comes_first_in_an_order_and_last_in_its_reverse(database_url: str):
    async with open_shop(database_url) as shop:
        for note in ("b", None, "a"):
            await shop.order(note=note)

        rising = await shop.done("search_orders", order_by="note")
        falling = await shop.done("search_orders", order_by="note desc")

        assert [row["note"] for row in rising["items"]] == [None, "a", "b"]
        assert [row["note"] for row in falling["items"]] == ["b", "a", None]
