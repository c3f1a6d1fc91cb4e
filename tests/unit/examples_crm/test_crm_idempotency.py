"""A write with a key is done once."""

from contextlib import closing
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from examples.crm.app import create_app
from examples.crm.ratelimit import Rate
from examples.crm.store import Store
from tests.unit.examples_crm.crm_client import Crm

pytestmark = pytest.mark.requirement("crm.idempotency")

EFFECTS = "SELECT count(*) FROM audit"


async def test_the_same_request_is_done_once_and_answered_twice(crm: Crm) -> None:
    [deal] = await crm.some_deals(1)
    first = await crm.patch(deal, {"name": "Once"}, key="k")
    await crm.patch(deal, {"name": "Later"})
    second = await crm.patch(deal, {"name": "Once"}, key="k")
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"
    assert (second.status, second.body, second.headers["ETag"]) == (200, first.body, first.headers["ETag"])
    assert (await crm.deal(deal))["properties"]["name"] == "Later"
    assert crm.rows(EFFECTS) == [(2,)]


async def test_a_batch_a_creation_and_a_deletion_are_done_once(crm: Crm) -> None:
    [deal] = await crm.some_deals(1)
    old = (await crm.deal(deal))["properties"]
    new = {name: old[name] for name in ("name", "pipeline", "stage", "company_id")}
    requests: list[tuple[str, str, Any]] = [
        ("POST", "/crm/v1/deals/batch/update", {"inputs": [{"id": deal, "properties": {"name": "Once"}}]}),
        ("POST", "/crm/v1/deals", {"properties": new}),
        ("DELETE", f"/crm/v1/deals/{deal}", None),
    ]
    for number, (method, path, body) in enumerate(requests):
        first = await crm.send(method, path, body, key=f"k{number}")
        effects = crm.rows(EFFECTS)
        second = await crm.send(method, path, body, key=f"k{number}")
        assert (second.status, second.body) == (first.status, first.body)
        assert second.headers["Idempotent-Replayed"] == "true"
        assert crm.rows(EFFECTS) == effects


async def test_the_order_of_members_makes_no_other_request(crm: Crm) -> None:
    [deal] = await crm.some_deals(1)
    await crm.patch(deal, {"name": "Once", "amount": 5}, key="k")
    second = await crm.patch(deal, {"amount": 5, "name": "Once"}, key="k")
    assert second.headers["Idempotent-Replayed"] == "true"


async def test_a_key_serves_no_other_body_and_no_other_deal(crm: Crm) -> None:
    first, second = await crm.some_deals(2)
    await crm.patch(first, {"name": "Once"}, key="k")
    for deal, name in ((first, "Other"), (second, "Once")):
        answer = await crm.patch(deal, {"name": name}, key="k")
        assert (answer.status, answer.error["code"]) == (422, "idempotency_key_reused")
        assert "'k'" in answer.error["message"]
    assert crm.rows(EFFECTS) == [(1,)]


async def test_a_refused_write_leaves_its_key_free(crm: Crm) -> None:
    [deal] = await crm.some_deals(1)
    assert (await crm.patch(deal, {"name": ""}, key="k")).status == 400
    assert (await crm.patch(deal, {"name": "Right"}, key="k")).status == 200


@pytest.mark.parametrize("key", ["", "x" * 256, "schlüssel"])
async def test_a_key_is_printable_ascii_of_limited_length(crm: Crm, key: str) -> None:
    [deal] = await crm.some_deals(1)
    answer = await crm.patch(deal, {"name": "x"}, key=key)
    assert answer.status == 400
    assert "1 to 255" in answer.error["message"]


async def test_keys_hold_after_a_restart_and_for_another_token(crm: Crm) -> None:
    [deal] = await crm.some_deals(1)
    await crm.patch(deal, {"name": "Once"}, key="k")
    with closing(Store(crm.db, seed=1)) as store:
        store.admit_token("crm_new", "2026-03-04T00:00:00.000Z")
        async with TestClient(TestServer(create_app(store, rate=Rate(100, 1)))) as client:
            restarted = Crm(client, crm.db, crm.clock, {"Authorization": "Bearer crm_new"})
            answer = await restarted.patch(deal, {"name": "Once"}, key="k")
    assert answer.headers["Idempotent-Replayed"] == "true"
    assert crm.rows(EFFECTS) == [(1,)]
