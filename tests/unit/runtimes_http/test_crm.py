"""The tools of the imported CRM against the CRM itself."""

from collections.abc import AsyncGenerator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from examples.crm.app import create_app
from examples.crm.document import load_document
from examples.crm.ratelimit import Rate
from examples.crm.store import Store
from tests.twins import AT, DictSecrets, ManualClock, make_access, make_context
from toolcrib.contracts import JsonObject, ReferenceSource, ToolRevision
from toolcrib.core.executor import CallFailed, Dispatch, Outcome
from toolcrib.core.providers import ImportedApi, read_reference, resolve
from toolcrib.infrastructure.net import EgressPolicy, HttpSession
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.kinds.http.openapi import import_openapi
from toolcrib.kinds.http.runtime import HttpRuntime
from toolcrib.kinds.http.shape import ToolOverride

TOKEN = "crm_test-token"
pytestmark = pytest.mark.requirement("runtime_http.crm")


@dataclass
class Crm:
    """The imported CRM, running."""

    api: ImportedApi
    runtime: HttpRuntime

    async def call(self, name: str, arguments: JsonObject | None = None, position: str = "t1.c1") -> Outcome:
        (definition,) = (tool for tool in self.api.tools if tool.name == name)
        tool = ToolRevision(
            definition=definition,
            revision=1,
            content_hash=definition.content_hash(),
            realm="default",
            made_by="owner",
            created_at=AT,
        )
        dispatch = Dispatch(
            tool=tool,
            input=arguments or {},
            auth={},
            idempotency_key=f"run_1/{position}",
            position=position,
            attempt=1,
            context=make_context(),
        )
        return await self.runtime.run(dispatch)


@pytest.fixture
async def crm(tmp_path: Path) -> AsyncGenerator[Crm]:
    with closing(Store(tmp_path / "crm.db", seed=7)) as store:
        store.admit_token(TOKEN, "2026-03-03T00:00:00.000Z")
        runner = web.AppRunner(create_app(store, rate=Rate(100_000, 1)))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        api = import_openapi(
            load_document(),
            name="crm",
            base_url=f"http://127.0.0.1:{port}",
            overrides={"search_deals": ToolOverride(side_effects="reads")},
        )
        async with HttpSession(EgressPolicy(allow=(f"127.0.0.1:{port}",))) as session:
            secrets = DictSecrets({"${env:CRM_TOKEN}": TOKEN})
            known = {("default", "crm"): api.provider}
            clock = ManualClock()
            access = make_access(session, clock, secrets, lambda realm, name: known.get((realm, name)))
            runtime = HttpRuntime(session, access, blob_sink=MemoryStore().blobs, clock=clock)
            yield Crm(api, runtime)
        await runner.cleanup()


async def test_a_search_brings_all_pages(crm: Crm) -> None:
    outcome = await crm.call("search_deals", {"properties": ["name"]})
    assert outcome.output["total"] == len(outcome.output["results"]) > 100
    assert len({deal["id"] for deal in outcome.output["results"]}) == outcome.output["total"]
    assert outcome.metadata["paging"]["complete"] is True


async def test_a_limited_search_stops_and_goes_on_from_its_cursor(crm: Crm) -> None:
    first = (await crm.call("search_deals", {"limit": 5})).output
    second = (await crm.call("search_deals", {"limit": 5, "after": first["paging"]["next"]["after"]})).output
    ids = [deal["id"] for deal in first["results"] + second["results"]]
    assert len(set(ids)) == 10


async def test_an_update_is_done_once_for_one_key(crm: Crm) -> None:
    deal = (await crm.call("search_deals", {"limit": 1})).output["results"][0]
    change: JsonObject = {"deal_id": deal["id"], "properties": {"name": "Renamed"}}
    first = await crm.call("update_deal", change)
    again = await crm.call("update_deal", change)
    other = await crm.call("update_deal", {**change, "properties": {"name": "Other"}}, position="t2.c1")
    assert first.output["revision"] == deal["revision"] + 1 == again.output["revision"]
    assert "idempotent-replayed" not in first.metadata["headers"]
    assert again.metadata["headers"]["idempotent-replayed"] == "true"
    assert other.output["revision"] == deal["revision"] + 2


async def test_a_stage_is_found_by_its_label_and_a_wrong_one_is_explained(crm: Crm) -> None:
    pipelines = (await crm.call("list_pipelines")).output
    source = ReferenceSource(name="stages", tool="list_pipelines", items="$.results[0].stages[*]")
    stages = read_reference(source, pipelines, fetched_at=AT)
    assert all(resolve(stages, item.label) == item for item in stages.items)
    deal = (await crm.call("search_deals", {"limit": 1})).output["results"][0]
    with pytest.raises(CallFailed, match=r"properties\.stage") as caught:
        await crm.call("update_deal", {"deal_id": deal["id"], "properties": {"stage": "no such stage"}})
    assert caught.value.http_status == 400


async def test_a_deal_is_created_and_deleted(crm: Crm) -> None:
    pattern = (await crm.call("search_deals", {"limit": 1})).output["results"][0]["properties"]
    wanted = {name: pattern[name] for name in ("name", "pipeline", "stage", "company_id")}
    created = await crm.call("create_deal", {"properties": wanted})
    assert created.http_status == 201
    deleted = await crm.call("delete_deal", {"deal_id": created.output["id"]}, position="t2.c1")
    assert (deleted.http_status, deleted.output) == (204, None)
    with pytest.raises(CallFailed, match="no deal has the id"):
        await crm.call("get_deal", {"deal_id": created.output["id"]})
