"""Bundles in the hands of people who may read little: a run that names something does not open it for them."""

import io

import pytest

from tests.twins import make_definition
from tests.unit.server.client import PRINCIPALS, Server, serving
from toolcrib import Crib, tool
from toolcrib.contracts import Principal
from toolcrib.core.runs.journal.bundles import Bundle, read_bundle
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.kinds.http.shape import HttpImplementation

pytestmark = pytest.mark.requirement("bundles.rest", "bundles.only_seen")


@tool(side_effects="reads")
def say(text: str) -> str:
    """Repeat a text."""
    return text


async def bundle_of(server: Server, run_id: str, token: str) -> Bundle:
    async with server.client_of(token) as client:
        answer = await client.get(f"/api/v1/executions/{run_id}/bundle")
    assert answer.status_code == 200, answer.text
    return read_bundle(io.BytesIO(answer.content))


async def run_by(server: Server, token: str, path: str, company: str) -> str:
    async with server.client_of(token) as client:
        answer = await client.post(f"/api/v1/ai/tools/{path}/invoke", json={"params": {"company": company}})
    return answer.json()["meta"]["run_id"]


async def test_who_names_the_run_of_another_does_not_get_it_with_their_own():
    async with serving() as server:
        secret = await run_by(server, "owner", "search", "salaries")
        mine = await run_by(server, "reader", "search", f"as in {secret}")

        bundle = await bundle_of(server, mine, "reader")
        whole = await bundle_of(server, mine, "owner")

    assert list(bundle.runs) == [mine]
    assert [(one.what, one.why) for one in bundle.manifest.left_out] == [
        (f"run {secret}", "it was named, and whom this is for may not read it")
    ]
    assert set(whole.runs) == {mine, secret}


async def test_a_run_of_another_realm_is_in_no_bundle_and_cannot_be_told_from_none():
    store = MemoryStore()
    async with Crib(store) as ours, Crib(store, principal=Principal(id="eve", realm="elsewhere")) as theirs:
        ours.add(say)
        theirs.add(say)
        secret = (await ours.call("say", {"text": "salaries"})).run_id
        mine = (await theirs.call("say", {"text": f"{secret} run_{'0' * 32}"})).run_id or ""
        file = io.BytesIO()
        manifest = await theirs.export_run(mine, file)

    assert list(read_bundle(file).runs) == [mine]
    assert {one.why for one in manifest.left_out} == {"it was named, and it is not in the store"}
    assert {one.what for one in manifest.left_out} == {f"run {secret}", f"run run_{'0' * 32}"}


async def test_a_provider_that_one_may_not_read_is_not_in_the_bundle_of_a_run_that_it_served(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(PRINCIPALS, "clerk", Principal(id="clerk", grants=("ai://runs/*/read", "ai://tools/*")))
    async with serving() as server:
        await server.post("/providers", {"name": "crm", "base_url": "https://10.1.2.3/internal"}, 201)
        deals = make_definition("deals", implementation=HttpImplementation(method="GET", url="/deals", provider="crm"))
        await server.crib.save(deals)
        run_id = (await server.crib.call("deals", {})).run_id or ""

        whole = await bundle_of(server, run_id, "owner")
        seen = await bundle_of(server, run_id, "clerk")

    assert [one.kind for one in whole.definitions] == ["provider", "tool"]
    assert [one.kind for one in seen.definitions] == ["tool"]
    assert [one.what for one in seen.manifest.left_out] == ["provider crm"]
