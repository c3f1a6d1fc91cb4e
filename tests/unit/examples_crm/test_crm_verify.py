"""The verdict on a database: all of a company's deals, and only they."""

from pathlib import Path
from typing import Any

import pytest

from examples.crm.verify import StageVerdict, verify_stage_change
from tests.unit.examples_crm.crm_client import Crm, where

pytestmark = pytest.mark.requirement("crm.verdict")


def verdict(crm: Crm) -> StageVerdict:
    return verify_stage_change(crm.db, company="Acme Corp", stage="Negotiation")


async def acme_deals(crm: Crm) -> list[str]:
    deals: list[str] = []
    after: dict[str, Any] = {}
    while True:
        page = await crm.search(where("company_name", "EQ", "Acme Corp"), limit=100, properties=[], **after)
        deals += page.ids
        if "paging" not in page.body:
            return deals
        after = {"after": page.body["paging"]["next"]["after"]}


async def move(crm: Crm, deals: list[str], label: str = "Negotiation") -> None:
    stage = (await crm.stages())[label]
    for start in range(0, len(deals), 100):
        await crm.batch([{"id": deal, "properties": {"stage": stage}} for deal in deals[start : start + 100]])


async def test_moving_all_deals_of_the_company_and_nothing_else_is_proved(crm: Crm) -> None:
    deals = await acme_deals(crm)
    await move(crm, deals)
    found = verdict(crm)
    assert found.all_and_only
    assert found.total == found.in_stage == len(deals)
    assert found.already_in_stage > 0
    assert found.changed == found.total - found.already_in_stage
    assert found.missing == []
    assert found.as_json()["all_and_only"] is True


async def test_before_anything_was_done_the_missing_deals_are_named(crm: Crm) -> None:
    found = verdict(crm)
    assert not found.all_and_only
    assert (found.changed, found.changed_others) == (0, 0)
    assert len(found.missing) == found.total - found.already_in_stage


async def test_one_deal_left_out_is_noticed(crm: Crm) -> None:
    stage = (await crm.stages())["Negotiation"]
    left = (await crm.search(where("company_name", "EQ", "Acme Corp"), where("stage", "NEQ", stage), limit=1)).ids
    await move(crm, [deal for deal in await acme_deals(crm) if deal not in left])
    assert not verdict(crm).all_and_only
    assert verdict(crm).missing == left


async def test_a_deal_of_another_company_that_only_names_it_is_noticed(crm: Crm) -> None:
    await move(crm, await acme_deals(crm))
    decoy = await crm.search(where("name", "CONTAINS", "Acme Corp"), where("company_name", "NEQ", "Acme Corp"), limit=1)
    await crm.patch(decoy.ids[0], {"name": "Changed"})
    assert (verdict(crm).changed_others, verdict(crm).all_and_only) == (1, False)


async def test_a_deal_changed_twice_or_in_more_than_its_stage_is_noticed(crm: Crm) -> None:
    first, second, *_ = deals = await acme_deals(crm)
    await move(crm, [first], "New lead")
    await move(crm, [first], "Closed won")
    await crm.patch(second, {"amount": 1})
    await move(crm, deals)
    found = verdict(crm)
    assert found.in_stage == found.total
    assert (found.changed_twice, found.changed_beyond_stage, found.all_and_only) == (1, 1, False)


async def test_a_deal_cannot_hide_by_leaving_the_company_or_being_deleted(crm: Crm) -> None:
    first, second, *rest = await acme_deals(crm)
    other = (await crm.search(where("company_name", "EQ", "Globex"), limit=1)).body["results"][0]
    await crm.patch(first, {"company_id": other["properties"]["company_id"]})
    await crm.send("DELETE", f"/crm/v1/deals/{second}")
    await move(crm, rest)
    found = verdict(crm)
    assert found.total == len(rest) + 2
    assert second in found.missing
    assert (found.changed_beyond_stage, found.all_and_only) == (2, False)


async def test_a_deal_taken_over_or_created_counts_among_the_others(crm: Crm) -> None:
    deals = await acme_deals(crm)
    own = (await crm.deal(deals[0]))["properties"]
    [taken] = (await crm.search(where("company_name", "EQ", "Globex"), limit=1)).ids
    await crm.patch(taken, {"company_id": own["company_id"]})
    new = {name: own[name] for name in ("name", "pipeline", "stage", "company_id")}
    await crm.send("POST", "/crm/v1/deals", {"properties": new})
    await move(crm, deals)
    found = verdict(crm)
    assert (found.total, found.changed_others, found.all_and_only) == (len(deals), 2, False)


def test_unknown_names_are_refused(seeded: Path) -> None:
    with pytest.raises(LookupError, match="'Acme'"):
        verify_stage_change(seeded, company="Acme", stage="Negotiation")
    with pytest.raises(LookupError, match="'Negotiating'"):
        verify_stage_change(seeded, company="Acme Corp", stage="Negotiating")
