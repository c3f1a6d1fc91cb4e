"""Changing deals: one, many, new ones, none any more."""

from typing import Any

import pytest

from tests.unit.examples_crm.crm_client import Crm, where

EFFECTIVE = pytest.mark.requirement("crm.effective_changes")
EXPLAINS = pytest.mark.requirement("crm.errors_explain")
AUDIT = "SELECT deal_id, property, old, new, idempotency_key FROM audit ORDER BY seq"


async def an_acme_deal(crm: Crm, stage: str) -> dict[str, Any]:
    answer = await crm.search(where("company_name", "EQ", "Acme Corp"), where("stage", "EQ", stage), limit=1)
    return answer.body["results"][0]


@EFFECTIVE
async def test_a_change_raises_the_revision_and_leaves_one_audit_row_per_property(crm: Crm) -> None:
    stages = await crm.stages()
    before = await an_acme_deal(crm, stages["Qualified"])
    crm.clock.seconds = 60
    answer = await crm.patch(before["id"], {"stage": stages["Negotiation"], "amount": 1200.5}, key="k1")
    assert answer.status == 200
    assert answer.headers["ETag"] == '"2"'
    after = answer.body
    assert after["revision"] == before["revision"] + 1
    changed = {"stage": stages["Negotiation"], "amount": 1200.5, "updated_at": "2026-03-03T00:01:00.000Z"}
    assert after["properties"] == {**before["properties"], **changed}
    assert await crm.deal(before["id"]) == after
    assert {row[1]: row[2:] for row in crm.rows(AUDIT)} == {
        "stage": (stages["Qualified"], stages["Negotiation"], "k1"),
        "amount": (str(before["properties"]["amount"]), "1200.5", "k1"),
    }


@EFFECTIVE
async def test_setting_what_already_stands_there_changes_nothing(crm: Crm) -> None:
    [deal] = await crm.some_deals(1)
    before = await crm.deal(deal)
    same = {name: before["properties"][name] for name in ("name", "amount", "stage", "pipeline", "owner_id")}
    crm.clock.seconds = 60
    assert (await crm.patch(deal, same)).body == before
    assert (await crm.patch(deal, {})).body == before
    assert crm.rows(AUDIT) == []


@EFFECTIVE
async def test_null_clears_what_a_deal_may_lack(crm: Crm) -> None:
    [deal] = (await crm.search(where("amount", "GT", 0), where("owner_id", "HAS_PROPERTY"), limit=1)).ids
    cleared = {"amount": None, "owner_id": None, "close_date": None}
    assert (await crm.patch(deal, cleared)).body["properties"].items() >= cleared.items()


@EFFECTIVE
async def test_a_batch_tells_how_many_deals_it_changed(crm: Crm) -> None:
    stages = await crm.stages()
    there = await an_acme_deal(crm, stages["Negotiation"])
    not_there = await an_acme_deal(crm, stages["New lead"])
    inputs = [{"id": deal["id"], "properties": {"stage": stages["Negotiation"]}} for deal in (there, not_there)]
    answer = await crm.batch(inputs, key="b1")
    assert answer.status == 200
    assert {name: answer.body[name] for name in ("status", "updated", "unchanged")} == {
        "status": "COMPLETE",
        "updated": 1,
        "unchanged": 1,
    }
    assert answer.ids == [there["id"], not_there["id"]]
    assert [result["revision"] for result in answer.body["results"]] == [1, 2]
    audit = [(int(not_there["id"]), "stage", stages["New lead"], stages["Negotiation"], "b1")]
    assert crm.rows(AUDIT) == audit


BATCH = pytest.mark.requirement("crm.batch_all_or_nothing")


@BATCH
async def test_a_batch_of_one_hundred_is_the_most(crm: Crm) -> None:
    deals = await crm.some_deals(100)
    inputs = [{"id": deal, "properties": {"name": "Renamed"}} for deal in deals]
    answer = await crm.batch([*inputs, {"id": "4104999", "properties": {"name": "Renamed"}}])
    assert answer.status == 400
    assert answer.error["message"] == "inputs: 101 deals were sent; at most 100 are allowed in one request"
    assert crm.rows(AUDIT) == []
    assert (await crm.batch(inputs)).body["updated"] == 100


@BATCH
async def test_one_missing_deal_refuses_the_whole_batch(crm: Crm) -> None:
    [deal] = await crm.some_deals(1)
    inputs = [{"id": deal, "properties": {"name": "x"}}, {"id": "99", "properties": {"name": "y"}}]
    answer = await crm.batch(inputs)
    assert answer.status == 404
    assert answer.details == [{"path": "inputs[1].id", "problem": "no deal has the id '99'"}]
    assert crm.rows(AUDIT) == []


@BATCH
async def test_one_refused_value_refuses_the_whole_batch(crm: Crm) -> None:
    first, second = await crm.some_deals(2)
    inputs = [{"id": first, "properties": {"name": "x"}}, {"id": second, "properties": {"stage": "stg_none"}}]
    answer = await crm.batch(inputs)
    assert (answer.status, answer.details[0]["path"]) == (400, "inputs[1].properties.stage")
    assert crm.rows(AUDIT) == []


@BATCH
async def test_a_deal_may_stand_in_a_batch_only_once(crm: Crm) -> None:
    [deal] = await crm.some_deals(1)
    answer = await crm.batch([{"id": deal, "properties": {"name": name}} for name in ("x", "y")])
    assert answer.status == 400
    assert answer.details == [{"path": "inputs[1].id", "problem": f"'{deal}' stands at inputs[0] already"}]


FAULTY_BATCHES: list[tuple[Any, str]] = [
    ({}, "inputs"),
    ({"inputs": []}, "inputs"),
    ({"inputs": ["4100001"]}, "inputs[0]"),
    ({"inputs": [{"id": "4100001"}]}, "inputs[0].properties"),
    ({"inputs": [{"id": 4100001, "properties": {}}]}, "inputs[0].id"),
    ({"inputs": [{"id": "4100001", "properties": []}]}, "inputs[0].properties"),
]


@BATCH
@EXPLAINS
@pytest.mark.parametrize(("body", "path"), FAULTY_BATCHES)
async def test_a_faulty_batch_is_explained(crm: Crm, body: Any, path: str) -> None:
    answer = await crm.send("POST", "/crm/v1/deals/batch/update", body)
    assert (answer.status, answer.details[0]["path"]) == (400, path)


STAGE = pytest.mark.requirement("crm.stage_belongs")


@STAGE
@EXPLAINS
async def test_an_unknown_stage_is_answered_with_the_stages_of_the_deals_pipeline(crm: Crm) -> None:
    stages = await crm.stages()
    deal = await an_acme_deal(crm, stages["Qualified"])
    answer = await crm.patch(deal["id"], {"stage": "Negotiation"})
    assert answer.status == 400
    [detail] = answer.details
    assert detail["path"] == "properties.stage"
    assert "the pipeline 'Sales'" in detail["problem"]
    assert detail["allowed"] == [{"value": stage, "label": label} for label, stage in stages.items()]


@STAGE
async def test_a_stage_of_another_pipeline_is_refused_unless_the_pipeline_changes_too(crm: Crm) -> None:
    deal = await an_acme_deal(crm, (await crm.stages())["Qualified"])
    renewals = (await crm.send("GET", "/crm/v1/pipelines")).body["results"][1]
    stage = renewals["stages"][1]["id"]
    assert (await crm.patch(deal["id"], {"stage": stage})).status == 400
    refused = await crm.patch(deal["id"], {"pipeline": renewals["id"]})
    assert (refused.status, refused.details[0]["path"]) == (400, "properties.pipeline")
    moved = await crm.patch(deal["id"], {"pipeline": renewals["id"], "stage": stage})
    assert moved.body["properties"]["pipeline"] == renewals["id"]


@EXPLAINS
@pytest.mark.parametrize(
    ("properties", "path", "problem"),
    [
        ({"stge": "x"}, "properties.stge", "did you mean 'stage'"),
        ({"company_name": "x"}, "properties.company_name", "is read-only"),
        ({"name": None}, "properties.name", "cannot be empty"),
        ({"name": 5}, "properties.name", "a text"),
        ({"amount": -1}, "properties.amount", "between 0 and"),
        ({"amount": 1e999}, "body", "not valid JSON"),
        ({"close_date": "tomorrow"}, "properties.close_date", "YYYY-MM-DD"),
        ({"owner_id": "1"}, "properties.owner_id", "list_owners"),
        ({"company_id": "1"}, "properties.company_id", "search_companies"),
        ({"pipeline": "Sales"}, "properties.pipeline", "no pipeline has the id 'Sales'"),
    ],
)
async def test_a_faulty_update_is_explained(crm: Crm, properties: dict[str, Any], path: str, problem: str) -> None:
    [deal] = await crm.some_deals(1)
    answer = await crm.patch(deal, properties)
    assert answer.status == 400
    [detail] = answer.details
    assert detail["path"] == path
    assert problem in detail["problem"]
    assert crm.rows(AUDIT) == []


@pytest.mark.requirement("crm.stale_revision")
async def test_a_change_of_an_old_revision_is_refused(crm: Crm) -> None:
    [deal] = await crm.some_deals(1)
    etag = {"If-Match": '"1"'}
    assert (await crm.patch(deal, {"name": "First"}, headers=etag)).status == 200
    stale = await crm.patch(deal, {"name": "Second"}, headers=etag)
    assert (stale.status, stale.error["code"]) == (409, "stale_revision")
    assert "has revision 2" in stale.error["message"]
    assert (await crm.send("DELETE", f"/crm/v1/deals/{deal}", headers=etag)).status == 409
    assert (await crm.patch(deal, {"name": "Third"}, headers={"If-Match": "2"})).status == 200


CREATES = pytest.mark.requirement("crm.create_and_delete")


async def new_deal(crm: Crm, **properties: Any) -> dict[str, Any]:
    stages = await crm.send("GET", "/crm/v1/pipelines")
    sales = stages.body["results"][0]
    company = (await crm.some_deals(1))[0]
    company_id = (await crm.deal(company))["properties"]["company_id"]
    given = {"name": "New", "pipeline": sales["id"], "stage": sales["stages"][0]["id"], "company_id": company_id}
    return {**given, **properties}


@CREATES
async def test_a_deal_is_created_and_deleted_with_its_audit_and_its_id_is_not_used_again(crm: Crm) -> None:
    properties = await new_deal(crm)
    created = await crm.send("POST", "/crm/v1/deals", {"properties": properties}, key="c1")
    assert created.status == 201
    assert created.body["properties"].items() >= {**properties, "amount": None}.items()
    deal = created.body["id"]
    assert {row[1]: row[2:4] for row in crm.rows(AUDIT)} == {name: (None, text) for name, text in properties.items()}

    gone = await crm.send("DELETE", f"/crm/v1/deals/{deal}", key="d1")
    assert (gone.status, gone.body) == (204, None)
    for method in ("GET", "DELETE"):
        assert (await crm.send(method, f"/crm/v1/deals/{deal}")).status == 404
    deleted = {row[1]: row[2:4] for row in crm.rows(AUDIT) if row[4] == "d1"}
    assert deleted == {name: (text, None) for name, text in properties.items()}

    again = await crm.send("POST", "/crm/v1/deals", {"properties": properties})
    assert int(again.body["id"]) > int(deal)


@CREATES
@EXPLAINS
async def test_a_new_deal_needs_its_properties(crm: Crm) -> None:
    answer = await crm.send("POST", "/crm/v1/deals", {"properties": {"name": "New"}})
    assert answer.status == 400
    assert [detail["path"] for detail in answer.details] == [
        "properties.stage",
        "properties.pipeline",
        "properties.company_id",
    ]
    missing = await crm.send("POST", "/crm/v1/deals", {})
    assert missing.details == [{"path": "properties", "problem": "is required"}]


@CREATES
@EXPLAINS
async def test_a_new_deal_cannot_refer_to_what_does_not_exist(crm: Crm) -> None:
    properties = await new_deal(crm, company_id="1", owner_id="2", stage="Qualified")
    answer = await crm.send("POST", "/crm/v1/deals", {"properties": properties})
    assert {detail["path"] for detail in answer.details} == {
        "properties.company_id",
        "properties.owner_id",
        "properties.stage",
    }


@EXPLAINS
@pytest.mark.parametrize("path", ["/crm/v1/deals/1", "/crm/v1/deals/abc", "/crm/v1/companies/1", "/crm/v1/companies/x"])
async def test_an_id_that_does_not_exist_is_not_found(crm: Crm, path: str) -> None:
    answer = await crm.send("GET", path)
    assert (answer.status, answer.error["code"]) == (404, "not_found")
    assert path.rpartition("/")[2] in answer.error["message"]
