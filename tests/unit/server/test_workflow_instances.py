"""Instances of workflows over REST: run, followed, told, resumed, run anew from a step, cancelled."""

import json
from typing import Any

import pytest

from tests.unit.server.client import PRINCIPALS, Server, checked
from toolcrib.contracts import JsonObject, Principal

STEPS: list[JsonObject] = [
    {"name": "look", "tool": "search", "input": {"company": "${input.company}"}},
    {"name": "told", "output": {"found": "${look.length}"}},
]
PAID: JsonObject = {"name": "paid", "wait": {"signal": "paid"}}
SIGN: JsonObject = {
    "name": "sign",
    "approval": {"message": "Pay ${input.company}?", "show": {"to": "${input.company}"}},
}


async def published(server: Server, *steps: JsonObject, name: str = "find", **fields: Any) -> None:
    """A workflow, published."""
    schema = {"type": "object", "properties": {"company": {"type": "string"}}, "required": ["company"]}
    definition = {"name": name, "input_schema": schema, "steps": list(steps or STEPS), **fields}
    await server.post(f"/ai/workflows/{name}/publish", {"definition": definition})


async def run(server: Server, company: str = "Acme", status: int = 200, **fields: Any) -> JsonObject:
    """Run it."""
    return await server.post("/ai/workflows/find/run", {"input": {"company": company}, **fields}, status)


async def ended(server: Server, run_id: str) -> JsonObject:
    """The instance, when it has ended or waits."""
    await server.client.get(f"/api/v1/ai/instances/{run_id}/stream")
    return await server.get(f"/ai/instances/{run_id}")


def states(instance: JsonObject) -> dict[str, str]:
    """How each step stands."""
    return {step["step"]: step["status"] for step in instance["steps"]}


@pytest.mark.requirement("workflow_server.instances")
async def test_a_workflow_is_run_and_read_step_by_step(server: Server):
    await published(server)
    answer = await server.client.post("/api/v1/ai/workflows/find/run", json={"input": {"company": "Acme"}})
    instance = checked(answer, 200)

    assert (instance["status"], instance["output"]) == ("completed", {"told": {"found": 1}})
    assert states(instance) == {"look": "succeeded", "told": "succeeded"}
    assert answer.headers["Location"] == f"/api/v1/ai/instances/{instance['run_id']}"
    short = await server.get(f"/ai/instances/{instance['run_id']}", {"outputs": "false"})
    assert [step["output"] for step in short["steps"]] == [None, None]
    listed = await server.get("/ai/instances", {"workflow": "find", "status": "completed", "limit": 1})
    assert ([item["run_id"] for item in listed["items"]], listed["next"]) == ([instance["run_id"]], None)
    assert (await server.get("/ai/instances", {"workflow": "other"}))["items"] == []


@pytest.mark.requirement("workflow_server.instances")
async def test_one_that_is_not_waited_for_goes_on_by_itself(server: Server):
    await published(server)
    begun = await run(server, status=202, wait=False)

    assert (await ended(server, begun["run_id"]))["status"] == "completed"


@pytest.mark.requirement("workflow_server.instances")
async def test_a_dry_run_skips_what_would_write(server: Server):
    await published(server, *STEPS, {"name": "move", "tool": "update", "input": {"stage": "won"}})
    dry = await server.post("/ai/workflows/find/dry-run", {"input": {"company": "Acme"}})

    assert (dry["dry_run"], states(dry)["look"], states(dry)["move"]) == (True, "succeeded", "skipped")


@pytest.mark.requirement("workflow_server.instances", "workflow_server.steps_streamed")
async def test_its_steps_are_streamed_and_taken_up_again_at_any_message(server: Server):
    await published(server)
    run_id = (await run(server))["run_id"]
    path = f"/api/v1/ai/instances/{run_id}/stream"
    told = _messages((await server.client.get(path)).text)

    assert [kind for _, kind, _ in told] == ["tool_call_start", "tool_call_end", "step", "step", "done"]
    assert [data["step"] for _, kind, data in told if kind == "step"] == ["look", "told"]
    rest = _messages((await server.client.get(path, headers={"Last-Event-ID": told[2][0]})).text)
    assert rest == told[3:]


@pytest.mark.requirement("workflow_server.instances")
async def test_one_that_has_failed_is_resumed_and_one_that_has_ended_run_anew_from_a_step(server: Server):
    await published(server, *STEPS[:1])
    failed = await run(server, "Broken")
    assert (failed["status"], states(failed)) == ("failed", {"look": "failed"})
    fixed = {"name": "look", "output": ["put right"]}
    await published(server, fixed)

    resumed = await server.post(f"/ai/instances/{failed['run_id']}/resume")
    assert (resumed["status"], resumed["rerun"]["run_id"]) == ("completed", failed["run_id"])
    await server.post(f"/ai/instances/{resumed['run_id']}/resume", status=409)
    anew = await server.post(f"/ai/instances/{resumed['run_id']}/rerun", {"step": "look"})
    assert anew["rerun"]["step"] == "look"
    await server.post(f"/ai/instances/{resumed['run_id']}/rerun", {"step": "lok"}, status=404)


@pytest.mark.requirement("workflow_server.instances")
async def test_a_signal_is_told_once_and_only_if_a_step_waits_for_it(server: Server):
    await published(server, PAID)
    waiting = await run(server, status=202)
    path = f"/ai/instances/{waiting['run_id']}/signal"

    assert states(waiting) == {"paid": "waiting"}
    await server.post(path, {"name": "other", "payload": {}}, status=404)
    await server.post(path, {"name": "paid", "payload": {"amount": 12}}, status=202)
    done = await ended(server, waiting["run_id"])
    assert (done["status"], done["output"]) == ("completed", {"paid": {"amount": 12}})
    await server.post(path, {"name": "paid"}, status=409)


@pytest.mark.requirement("workflow_server.instances")
async def test_who_may_act_on_a_run_and_not_read_it_tells_it_something_and_reads_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(PRINCIPALS, "bank", Principal(id="bank", grants=("ai://runs/*/execute",)))
    await published(server, PAID)
    waiting = await run(server, status=202)
    path = f"/api/v1/ai/instances/{waiting['run_id']}"
    bank = server.client_of("bank")

    told = checked(await bank.post(f"{path}/signal", json={"name": "paid", "payload": {"amount": 12}}), 202)

    assert told == {"run_id": waiting["run_id"], "name": "paid"}
    assert (await bank.get(path)).status_code == 403
    assert (await ended(server, waiting["run_id"]))["output"] == {"paid": {"amount": 12}}


@pytest.mark.requirement("workflow_server.instances")
async def test_one_that_waits_is_cancelled(server: Server):
    await published(server, PAID)
    waiting = await run(server, status=202)
    path = f"/ai/instances/{waiting['run_id']}"

    await server.post(f"{path}/cancel", {"reason": "not needed"}, status=202)
    assert (await ended(server, waiting["run_id"]))["status"] == "cancelled"
    await server.post(f"{path}/cancel", status=409)


@pytest.mark.requirement("workflow_server.instances")
async def test_runs_of_other_tools_are_no_instances(server: Server):
    run_id = (await server.post("/ai/tools/search/invoke", {"params": {"company": "Acme"}}))["meta"]["run_id"]

    await server.get(f"/ai/instances/{run_id}", status=422)
    await server.post("/ai/workflows/search/run", status=404)
    assert (await server.get("/ai/instances"))["items"] == []


@pytest.mark.requirement("workflow_server.grants")
async def test_no_signal_and_no_answer_of_the_starter_takes_the_place_of_an_approval(server: Server):
    await published(server, SIGN, PAID)
    waiting = await run(server, status=202)
    path = f"/ai/instances/{waiting['run_id']}/signal"
    for name in ("sign", "approval:sign", "approval_sign_1", "event:paid"):
        refused = await server.client.post(f"/api/v1{path}", json={"name": name, "payload": {"approved": True}})
        assert refused.status_code in {404, 422}
    await server.post(path, {"name": "paid", "payload": {"approved": True}}, status=202)

    assert states(await ended(server, waiting["run_id"]))["sign"] == "waiting"
    (asked,) = (await server.get("/approvals", {"run_id": waiting["run_id"]}))["items"]
    await server.post(f"/approvals/{asked['approval_id']}/decide", {"approved": True}, status=403)
    boss = server.client_of("boss")
    checked(await boss.post(f"/api/v1/approvals/{asked['approval_id']}/decide", json={"approved": True}), 200)
    assert (await ended(server, waiting["run_id"]))["output"]["sign"] == {"to": "Acme"}


@pytest.mark.requirement("workflow_server.grants")
@pytest.mark.parametrize(("who", "expected"), [("ann", 403), ("elsewhere", 404)])
async def test_an_instance_of_others_is_neither_read_nor_touched(
    server: Server, monkeypatch: pytest.MonkeyPatch, who: str, expected: int
):
    grants = ("ai://tools/*", "ai://workflows/*")
    monkeypatch.setitem(PRINCIPALS, "ann", Principal(id="ann", grants=grants))
    monkeypatch.setitem(PRINCIPALS, "elsewhere", Principal(id="owner", realm="elsewhere"))
    await published(server, PAID)
    path = f"/api/v1/ai/instances/{(await run(server, status=202))['run_id']}"
    client = server.client_of(who)
    answers = [
        await client.get(path),
        await client.get(f"{path}/stream"),
        await client.post(f"{path}/signal", json={"name": "paid"}),
        await client.post(f"{path}/resume"),
        await client.post(f"{path}/rerun", json={"step": "paid"}),
        await client.post(f"{path}/cancel"),
    ]

    assert [answer.status_code for answer in answers] == [expected] * len(answers)
    assert checked(await client.get("/api/v1/ai/instances"), 200)["items"] == []
    assert (await server.get(path.removeprefix("/api/v1")))["status"] not in {"completed", "cancelled"}


@pytest.mark.requirement("workflow_server.grants")
async def test_a_workflow_gives_nobody_what_its_steps_need(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(PRINCIPALS, "ann", Principal(id="ann", grants=("ai://workflows/find/execute",)))
    await published(server)
    denied = checked(
        await server.client_of("ann").post("/api/v1/ai/workflows/find/run", json={"input": {"company": "Acme"}}), 200
    )

    assert (denied["status"], denied["error"]["code"]) == ("incomplete", "POLICY_DENIED")


def _messages(stream: str) -> list[tuple[str, str, Any]]:
    """Id, type and data of each message; comments are left out."""
    blocks = [block for block in stream.strip().split("\n\n") if not block.startswith(":")]
    fields = [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]
    return [(each["id"], each["event"], json.loads(each["data"])) for each in fields]
