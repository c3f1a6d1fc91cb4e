"""Triggers over REST, and webhooks at their addresses: without a key, with a signature."""

import json
from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest

from tests.unit.server.client import PRINCIPALS, Server, checked, serving
from toolcrib.contracts import Principal, ServiceAccount
from toolcrib.core.triggers import sign

SECRET = "shared-secret"
HOOK = {
    "name": "hook",
    "when": {"kind": "webhook", "secret": "${env:TOOLCRIB_SECRET_HOOK}"},
    "start": "search",
    "input": {"company": "${event.body.company}"},
    "account": "robot",
    "overlap": "allow",
}
NO_KEY = {"Authorization": ""}


@pytest.fixture
async def hooked() -> AsyncGenerator[Server]:
    """A server with a webhook."""
    async with serving(environment={"TOOLCRIB_SECRET_HOOK": SECRET}) as server:
        await _define(server)
        yield server


async def _define(server: Server) -> None:
    await server.crib.accounts.save(ServiceAccount(name="robot", grants=("ai://tools/*", "ai://secrets/*")))
    checked(await server.client.put("/api/v1/ai/triggers/hook", json=HOOK), 200)


def signed(body: bytes, event_id: str = "msg_1", secret: str = SECRET) -> dict[str, str]:
    return {**NO_KEY, **sign("standard", secret, body, event_id=event_id, at=datetime.now(UTC))}


@pytest.mark.requirement("triggers.webhook", "triggers.once")
async def test_a_signed_webhook_needs_no_key_and_starts_one_run(hooked: Server):
    body = json.dumps({"company": "Acme"}).encode()

    first = await hooked.client.post("/hooks/default/hook", content=body, headers=signed(body))
    again = await hooked.client.post("/hooks/default/hook", content=body, headers=signed(body))
    unusable = await hooked.client.post("/hooks/default/hook", content=b"[]", headers=signed(b"[]", "msg_2"))

    assert [answer.status_code for answer in (first, again, unusable)] == [202, 200, 422]
    assert first.json()["run_id"] == again.json()["run_id"]
    assert unusable.json()["problem"] is None
    result = await hooked.crib.resume(first.json()["run_id"])
    assert result.output == [{"name": "Acme"}]
    state = checked(await hooked.client.get("/api/v1/ai/triggers/hook/state"), 200)
    assert (state["started"], "company" in state["problem"]) == (1, True)


@pytest.mark.requirement("triggers.webhook")
async def test_every_webhook_that_is_not_signed_gets_the_same_answer(hooked: Server):
    body = b"{}"
    answers = [
        await hooked.client.post(path, content=body, headers=headers)
        for path, headers in (
            ("/hooks/default/hook", NO_KEY),
            ("/hooks/default/hook", {}),
            ("/hooks/default/hook", signed(body, secret="another")),
            ("/hooks/default/hook", signed(b"[]")),
            ("/hooks/default/unknown", signed(body)),
            ("/hooks/made-up/hook", signed(body)),
        )
    ]

    assert {answer.status_code for answer in answers} == {401}
    assert len({json.dumps(answer.json()["error"]) for answer in answers}) == 1
    assert not hooked.crib.registry.current("made-up")
    assert (await hooked.client.post("/api/v1/ai/triggers/hook/fire", json={}, headers=NO_KEY)).status_code == 401


@pytest.mark.requirement("triggers.webhook")
async def test_a_paused_webhook_is_told_to_who_signs_and_a_large_body_is_refused(hooked: Server):
    checked(await hooked.client.post("/api/v1/ai/triggers/hook/pause"), 200)
    assert (await hooked.client.post("/hooks/default/hook", content=b"{}", headers=signed(b"{}"))).status_code == 409
    state = checked(await hooked.client.post("/api/v1/ai/triggers/hook/resume"), 200)
    large = b"x" * 20_000_000
    refused = await hooked.client.post("/hooks/default/hook", content=large, headers=signed(large))

    assert (state["enabled"], refused.status_code) == (True, 413)


@pytest.mark.requirement("triggers.manage", "triggers.account")
async def test_each_act_needs_its_grant(hooked: Server, monkeypatch: pytest.MonkeyPatch):
    path, event = "/api/v1/ai/triggers/hook", {"event": {"body": {"company": "Acme"}}}
    started = checked(await hooked.client.post(f"{path}/fire", json=event), 202)
    assert started["outcome"] == "started"

    for grants, status in (
        (("ai://triggers/hook/read",), {"state": 200, "pause": 403, "resume": 403, "fire": 403}),
        (("ai://triggers/hook/*",), {"state": 200, "pause": 403, "resume": 403, "fire": 403}),
        (
            ("ai://triggers/hook/*", "ai://accounts/robot/execute", "ai://secrets/*"),
            {"state": 200, "pause": 200, "resume": 200, "fire": 202},
        ),
    ):
        monkeypatch.setitem(PRINCIPALS, "ann", Principal(id="ann", grants=grants))
        ann = {"Authorization": "Bearer ann"}
        found = {"state": (await hooked.client.get(f"{path}/state", headers=ann)).status_code}
        for verb in ("pause", "resume"):
            found[verb] = (await hooked.client.post(f"{path}/{verb}", headers=ann)).status_code
        found["fire"] = (await hooked.client.post(f"{path}/fire", json=event, headers=ann)).status_code
        assert found == status
