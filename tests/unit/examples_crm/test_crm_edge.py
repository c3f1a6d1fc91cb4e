"""The HTTP edge: tokens, rates, sizes, routes that do not exist, faults, and the log of all of it."""

import hashlib
import json
from contextlib import closing
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from examples.crm.app import create_app
from examples.crm.ratelimit import Rate
from examples.crm.store import Store
from tests.unit.examples_crm.crm_client import TOKEN, Crm

AUTH = pytest.mark.requirement("crm.authentication")
RATE = pytest.mark.requirement("crm.rate_limit")
LOG = pytest.mark.requirement("crm.request_log")
EXPLAINS = pytest.mark.requirement("crm.errors_explain")

LOGGED = "SELECT method, path, operation, idempotency_key, body_sha256, status, replayed FROM request_log ORDER BY seq"


@AUTH
@pytest.mark.parametrize("header", ["", TOKEN, f"Basic {TOKEN}", "Bearer", "Bearer crm_guess", "Bearer crm_ü"])
async def test_a_request_without_a_known_token_is_refused(crm: Crm, header: str) -> None:
    answer = await crm.send("GET", "/crm/v1/owners", headers={"Authorization": header})
    assert (answer.status, answer.error["code"]) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert "crm_guess" not in json.dumps(answer.body)


@AUTH
async def test_a_token_outlives_a_restart_and_only_its_hash_is_kept(crm: Crm) -> None:
    with closing(Store(crm.db, seed=1)) as store:
        async with TestClient(TestServer(create_app(store, rate=Rate(1, 1)))) as client:
            answer = await Crm(client, crm.db, crm.clock).send("GET", "/crm/v1/owners")
    assert answer.status == 200
    assert len(answer.body["results"]) == 25
    assert [row[0] for row in crm.rows("SELECT sha256 FROM tokens")] == [hashlib.sha256(TOKEN.encode()).hexdigest()]


class TestRate:
    @pytest.fixture
    def rate(self) -> Rate:
        return Rate(4, 8)

    @RATE
    async def test_an_empty_bucket_says_when_to_come_back_and_then_lets_pass(self, crm: Crm) -> None:
        for _ in range(4):
            assert (await crm.send("GET", "/crm/v1/pipelines")).status == 200
        refused = await crm.send("GET", "/crm/v1/pipelines")
        assert (refused.status, refused.error["code"]) == (429, "rate_limited")
        assert refused.headers["Retry-After"] == "2"
        crm.clock.seconds += 2
        assert (await crm.send("GET", "/crm/v1/pipelines")).status == 200
        assert (await crm.send("GET", "/crm/v1/pipelines")).status == 429
        crm.clock.seconds += 1000
        statuses = [(await crm.send("GET", "/crm/v1/pipelines")).status for _ in range(5)]
        assert statuses == [200] * 4 + [429]

    @RATE
    async def test_each_token_has_its_own_bucket_and_unknown_ones_have_none(self, crm: Crm, db: Path) -> None:
        for _ in range(6):
            assert (await crm.send("GET", "/crm/v1/owners", headers={"Authorization": "Bearer x"})).status == 401
        for _ in range(5):
            await crm.send("GET", "/crm/v1/owners")
        with closing(Store(db, seed=7)) as store:
            store.admit_token("crm_other", "2026-03-03T00:00:00.000Z")
        other = await crm.send("GET", "/crm/v1/owners", headers={"Authorization": "Bearer crm_other"})
        assert other.status == 200


@RATE
@pytest.mark.parametrize("text", ["", "50", "0/1", "5/0", "-1/1", "x/y", "5/inf", "5/nan"])
def test_a_rate_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="N/SECONDS"):
        Rate.parse(text)


@RATE
def test_a_rate_is_read_as_requests_in_seconds() -> None:
    assert Rate.parse("50/1.5") == Rate(50, 1.5)


@pytest.mark.requirement("crm.body_cap")
async def test_a_body_over_the_cap_is_refused_and_one_at_the_cap_is_read(crm: Crm) -> None:
    at_cap = b'{"limit": 1' + b" " * (1024 * 1024 - 12) + b"}"
    assert (await crm.send("POST", "/crm/v1/deals/search", at_cap)).status == 200
    answer = await crm.send("POST", "/crm/v1/deals/search", at_cap + b" ")
    assert (answer.status, answer.error["code"]) == (413, "too_large")
    assert [row[4:6] for row in crm.rows(LOGGED)][-1] == (None, 413)


@EXPLAINS
async def test_routes_that_do_not_exist_are_explained(crm: Crm) -> None:
    missing = await crm.send("GET", "/crm/v2/deals")
    assert (missing.status, missing.error["code"]) == (404, "not_found")
    assert "/openapi.json" in missing.error["message"]
    method = await crm.send("PUT", "/crm/v1/deals/4100001")
    assert (method.status, method.error["code"]) == (405, "method_not_allowed")
    assert method.headers["Allow"] == "DELETE, GET, PATCH"


@EXPLAINS
async def test_a_fault_of_the_crm_is_told_without_its_inside_and_changes_nothing(
    crm: Crm, caplog: pytest.LogCaptureFixture
) -> None:
    [deal] = await crm.some_deals(1)
    with closing(Store(crm.db, seed=7)) as store:
        store.connection.execute("DROP TABLE idempotency_keys")
    answer = await crm.patch(deal, {"name": "x"}, key="k")
    assert (answer.status, answer.error["code"]) == (500, "internal_error")
    assert "idempotency_keys" not in json.dumps(answer.body)
    assert "idempotency_keys" in caplog.text
    assert crm.rows("SELECT count(*) FROM audit") == [(0,)]


@LOG
async def test_every_request_is_logged_as_it_was_sent_and_answered(crm: Crm) -> None:
    body = b'{"properties": {"name": "Once"}}'
    sha256 = hashlib.sha256(body).hexdigest()
    empty = hashlib.sha256(b"").hexdigest()
    path = "/crm/v1/deals/4100001"
    await crm.send("PATCH", path, body, key="k")
    await crm.send("PATCH", path, body, key="k")
    await crm.send("PATCH", path, body)
    await crm.send("GET", "/nowhere%20else")
    await crm.send("GET", "/crm/v1/owners", headers={"Authorization": ""})
    assert crm.rows(LOGGED) == [
        ("PATCH", path, "update_deal", "k", sha256, 200, 0),
        ("PATCH", path, "update_deal", "k", sha256, 200, 1),
        ("PATCH", path, "update_deal", None, sha256, 200, 0),
        ("GET", "/nowhere%20else", None, None, empty, 404, 0),
        ("GET", "/crm/v1/owners", "list_owners", None, empty, 401, 0),
    ]
