"""Triggers over REST, and webhooks at their addresses: without a key, with a signature."""

import json
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.server.client import PRINCIPALS, Server, checked, serving
from toolcrib.contracts import Principal, Run, ServiceAccount, WebhookForm
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
    assert len({json.dumps({**answer.json(), "instance": ""}) for answer in answers}) == 1
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


@pytest.mark.requirement("triggers.replay")
@pytest.mark.parametrize("form", ["standard", "github", "stripe", "slack"])
async def test_what_an_attacker_makes_of_a_webhook_that_was_heard_starts_nothing(hooked: Server, form: WebhookForm):
    """Sent again, changed, too early, too late, and to be signed by nobody: the tool is called once."""
    source = {"kind": "webhook", "signature": form, "secret": "${env:TOOLCRIB_SECRET_HOOK}"}
    checked(await hooked.client.put("/api/v1/ai/triggers/hook", json={**HOOK, "when": source}), 200)
    body = json.dumps({"id": "evt_1", "company": "Acme"}).encode()
    now = datetime.now(UTC)

    async def send(content: bytes, headers: Mapping[str, str]) -> int:
        answer = await hooked.client.post("/hooks/default/hook", content=content, headers={**NO_KEY, **headers})
        return answer.status_code

    heard = sign(form, SECRET, body, event_id="msg_1", at=now)
    assert [await send(body, heard), await send(body, heard)] == [202, 200]

    other = json.dumps({"id": "evt_2", "company": "Mallory"}).encode()
    forged = [send(other, heard), send(body + b" ", heard), send(body, dict.fromkeys(heard, "")), send(body, {})]
    forged += [send(other, sign(form, "guess", other, event_id="msg_2", at=now))]
    forged += [send(body, {**heard, name: f"9{value}"}) for name, value in heard.items()]
    if form != "github":  # which signs no time: its webhooks are known again by their bodies
        skewed = [now + timedelta(seconds=off) for off in (-400, 400)]
        forged += [send(other, sign(form, SECRET, other, event_id="msg_2", at=at)) for at in skewed]
    assert {await answer for answer in forged} == {401}

    await hooked.crib.recover()
    [run] = await hooked.crib.store.journal.runs("default", made_by="account:robot")
    assert (run.request.input, run.output, run.request.tainted) == ({"company": "Acme"}, [{"name": "Acme"}], True)


@pytest.mark.requirement("triggers.account")
async def test_a_webhook_calls_a_tool_under_the_rules_of_its_account(hooked: Server):
    """A tool that a person must approve waits for that; one without a grant is denied."""
    update = {**HOOK, "start": "update", "input": {"stage": "${event.body.stage}"}}
    await hooked.crib.accounts.save(ServiceAccount(name="narrow", grants=("ai://tools/*/search/*", "ai://secrets/*")))
    runs: list[Run] = []
    for account in ("robot", "narrow"):
        checked(await hooked.client.put("/api/v1/ai/triggers/hook", json={**update, "account": account}), 200)
        body = json.dumps({"stage": account}).encode()
        answer = await hooked.client.post("/hooks/default/hook", content=body, headers=signed(body, account))
        await hooked.crib.recover()
        runs.append(await hooked.crib.store.journal.run(checked(answer, 202)["run_id"]))

    assert [run.status for run in runs] == ["awaiting_approval", "failed"]
    assert runs[1].error is not None
    assert runs[1].error.code == "POLICY_DENIED"
