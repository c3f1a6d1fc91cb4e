"""Looking around in the catalogue: pages, words, and only what a principal may see."""

import asyncio

import pytest

from toolcrib import Crib
from toolcrib.contracts import Principal, ToolDefinition
from toolcrib.kinds.http.shape import HttpImplementation


def definition(name: str, said: str, category: str = "crm") -> ToolDefinition:
    return ToolDefinition(
        name=name,
        description=said,
        category=category,
        implementation=HttpImplementation(method="GET", url="https://crm.test/x"),
    )


TOOLS = (
    definition("find_deals", "Find the deals of a company."),
    definition("move_deal", "Move a deal to another stage."),
    definition("pay", "Pay an invoice.", category="money"),
)
NARROW = Principal(id="ann", grants=("ai://tools/crm/*/read",))


@pytest.mark.requirement("crib.listing")
async def test_a_page_shows_what_fits_and_says_whether_more_follow():
    async with Crib("memory://") as crib:
        crib.add(*TOOLS)

        first = await crib.listing.page(limit=2)
        rest = await crib.listing.page(after=first.items[-1].name)
        found = await crib.listing.page(text="STAGE", facets={"category": "crm", "tag": None})

    assert ([tool.name for tool in first.items], first.more) == (["find_deals", "move_deal"], True)
    assert ([tool.name for tool in rest.items], rest.more) == (["pay"], False)
    assert [tool.name for tool in found.items] == ["move_deal"]


@pytest.mark.requirement("crib.listing", "policy.reach")
async def test_nobody_is_shown_what_no_grant_of_theirs_names():
    async with Crib("memory://") as crib:
        crib.add(*TOOLS)

        page = await crib.acting_as(NARROW).listing.page()
        hits = await crib.acting_as(NARROW).listing.search("pay an invoice for a deal")

    assert [tool.name for tool in page.items] == ["find_deals", "move_deal"]
    assert {tool.name for tool, _ in hits} == {"find_deals", "move_deal"}


@pytest.mark.requirement("crib.listing")
async def test_a_tool_that_is_saved_while_the_index_is_made_is_found():
    async with Crib("memory://") as crib:
        crib.add(*TOOLS)
        await crib.open()

        looking = asyncio.create_task(crib.listing.search("archive"))
        await asyncio.sleep(0)
        await crib.save(definition("archive_deal", "Archive a deal."))
        await looking
        [(tool, hit)] = await crib.listing.search("archive")

    assert (tool.name, hit.name) == ("archive_deal", "archive_deal")
