"""The header `Idempotency-Key`: one answer and one run for a request, however often it is sent."""

import asyncio
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.unit.server.client import BOSS, QuickClock, Server, body_of, checked, http_tool, serving
from toolcrib import Crib, tool
from toolcrib.contracts import AgentDefinition, JsonObject, LLMConfig
from toolcrib.interfaces.server.http.idempotency import KeyedRequest

pytestmark = pytest.mark.requirement("server.idempotency")

FIND = {"name": "find", "steps": [{"name": "look", "tool": "search", "input": {"company": "${input.company}"}}]}
DESK = AgentDefinition(name="desk", llm=LLMConfig(model="scripted:free")).model_dump(mode="json")
KEY = {"Idempotency-Key": "order-7"}


async def _send(server: Server, path: str, body: JsonObject | None, key: str = "order-7") -> httpx2.Response:
    return await server.client.post(f"/api/v1{path}", json=body, headers={"Idempotency-Key": key})


async def _runs(server: Server) -> list[str]:
    return [run["run_id"] for run in (await server.get("/executions"))["items"]]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/ai/tools/search/invoke", {"params": {"company": "Acme"}}),
        ("/ai/tools/search/invoke", {"params": {"company": "Acme"}, "wait": False}),
        ("/agentic-tools/invoke", {"tool": "deals", "params": {"task": "Find Acme's deals"}}),
        ("/ai/tools/search/execute", {"params": {"company": "Acme"}}),
        ("/ai/agents/desk/execute", {"message": "Find Acme's deals"}),
        ("/ai/agents/desk/execute/durable", {"message": "Find Acme's deals"}),
    ],
)
async def test_a_request_that_is_sent_again_gets_the_same_answer_and_no_second_run(
    server: Server, path: str, body: JsonObject
) -> None:
    await server.post("/ai/agents", DESK, status=201)
    first, again = [await _send(server, path, body) for _ in range(2)]
    other = await _send(server, path, body, key="order-8")

    assert first.is_success
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers.get("location") == first.headers.get("location")
    assert (first.headers.get("idempotency-replayed"), again.headers.get("idempotency-replayed")) == (None, "true")
    assert other.content != first.content
    assert len(await _runs(server)) == 2


async def test_the_order_of_members_makes_no_other_request(server: Server) -> None:
    headers = {**KEY, "Content-Type": "application/json"}
    bodies = (b'{"params": {"company": "Acme"}, "dry_run": false}', b'{"dry_run":false,"params":{"company":"Acme"}}')
    answers = [
        await server.client.post("/api/v1/ai/tools/search/invoke", content=body, headers=headers) for body in bodies
    ]
    assert answers[0].json() == answers[1].json()


async def test_another_request_with_the_key_is_refused(server: Server) -> None:
    await _send(server, "/ai/tools/search/invoke", {"params": {"company": "Acme"}})
    for path, body in (
        ("/ai/tools/search/invoke", {"params": {"company": "Other"}}),
        ("/ai/tools/search/execute", {"params": {"company": "Acme"}}),
    ):
        problem = checked(await _send(server, path, body), 422)
        assert problem["code"] == "idempotency_mismatch"
        assert "take a new key" in problem["detail"]
    assert len(await _runs(server)) == 1


async def test_keys_belong_to_a_principal(server: Server) -> None:
    await _send(server, "/ai/tools/search/invoke", {"params": {"company": "Acme"}})
    async with server.client_of("boss") as boss:
        path = "/api/v1/ai/tools/search/invoke"
        answer = await boss.post(path, json={"params": {"company": "Other"}}, headers=KEY)
    assert checked(answer, 200)["data"] == [{"name": "Other"}]


@pytest.mark.parametrize("key", ["", "a b", "k" * 256])
async def test_a_key_that_is_none_is_refused(server: Server, key: str) -> None:
    problem = checked(await _send(server, "/ai/tools/search/invoke", {"params": {"company": "Acme"}}, key=key), 422)
    assert "1 to 255 visible ASCII characters" in problem["detail"]
    assert await _runs(server) == []


async def test_a_definition_is_created_once_and_a_refusal_may_be_corrected(server: Server) -> None:
    body = body_of(http_tool("crm_deals"))
    refused = await _send(server, "/ai/tools", {**body, "name": "x y"})
    first, again = [await _send(server, "/ai/tools", body) for _ in range(2)]

    assert refused.status_code == 422
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["etag"] == first.headers["etag"] == '"1"'
    assert again.json() == first.json()


async def test_decisions_forks_and_workflow_runs_count_once(server: Server) -> None:
    await server.post("/ai/workflows/find/publish", {"definition": FIND})
    started = [await _send(server, "/ai/workflows/find/run", {"input": {"company": "Acme"}}, "w") for _ in range(2)]
    source = started[0].json()["run_id"]
    forks = [await _send(server, f"/executions/{source}/fork", {}, "f") for _ in range(2)]
    waiting = await server.post("/ai/tools/update/invoke", {"params": {"stage": "Won"}}, status=202)
    [approval] = (await server.get("/approvals"))["items"]
    async with server.client_of("boss") as boss:
        path = f"/api/v1/approvals/{approval['approval_id']}/decide"
        decided = [await boss.post(path, json={"approved": True}, headers=KEY) for _ in range(2)]
        late = await boss.post(path, json={"approved": True})

    assert started[0].json() == started[1].json()
    assert forks[0].json() == forks[1].json()
    assert [answer.status_code for answer in decided] == [200, 200]
    assert late.status_code == 409
    assert len(await _runs(server)) == 3
    assert (await server.finished(waiting["meta"]["run_id"]))["run"]["output"] == {"stage": "Won"}


async def test_a_turn_of_a_conversation_is_sent_once(server: Server) -> None:
    await server.post("/ai/agents", DESK, status=201)
    first = await server.post("/ai/agents/desk/execute", {"message": "Hello"})
    path = f"/ai/conversations/{first['conversation_id']}"
    again = [(await _send(server, f"{path}/continue", {"message": "And?"})).json() for _ in range(2)]

    assert again[0]["run_id"] == again[1]["run_id"]
    assert len((await server.get(path))["turns"]) == 2


async def test_a_stream_that_is_begun_again_follows_the_same_run(server: Server) -> None:
    await server.post("/ai/agents", DESK, status=201)
    texts = [(await _send(server, "/ai/agents/desk/execute/stream", {"message": "Hi"})).text for _ in range(2)]
    ends = [text[text.index("event: done") :] for text in texts]
    assert ends[0] == ends[1]
    assert len(await _runs(server)) == 1


class _Gate:
    """A tool whose calls wait until they are let through, and are counted."""

    def __init__(self) -> None:
        self.calls = 0
        self.called = asyncio.Event()
        self.open = asyncio.Event()

    def tool(self) -> Any:
        @tool(name="pay", side_effects="writes", idempotent=True)
        async def pay(amount: int) -> dict[str, int]:
            """Pay."""
            self.calls += 1
            self.called.set()
            await self.open.wait()
            return {"paid": amount}

        return pay


@pytest.fixture
def gate() -> _Gate:
    return _Gate()


def _with(gate: _Gate) -> Any:
    def make(*args: Any, **options: Any) -> Crib:
        crib = Crib(*args, **options)
        crib.add(gate.tool())
        return crib

    return make


async def test_a_request_at_the_same_time_waits_for_the_run_of_the_first(gate: _Gate, store_url: str) -> None:
    async with serving(store_url, make_crib=_with(gate)) as server:
        first = asyncio.create_task(_send(server, "/ai/tools/pay/invoke", {"params": {"amount": 5}}))
        await gate.called.wait()
        others = [
            asyncio.create_task(_send(server, "/ai/tools/pay/invoke", {"params": {"amount": 5}})) for _ in range(3)
        ]
        await asyncio.sleep(0)
        gate.open.set()
        answers = [await each for each in (first, *others)]

        assert {answer.status_code for answer in answers} == {200}
        assert {answer.json()["meta"]["run_id"] for answer in answers} == set(await _runs(server))
        assert gate.calls == 1


async def test_a_request_that_is_sent_again_after_a_restart_gets_its_run(gate: _Gate, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/crib.db"
    body = {"params": {"amount": 5}}
    async with AsyncExitStack() as life:
        server = await life.enter_async_context(serving(url, make_crib=_with(gate)))
        lost = asyncio.create_task(_send(server, "/ai/tools/pay/invoke", body))
        await gate.called.wait()
        lost.cancel()  # the client is gone, then the server stops in the middle of the call
        await asyncio.gather(lost, return_exceptions=True)
        [begun] = await _runs(server)
        gate.open.set()
    async with serving(url, make_crib=_with(gate)) as server:
        answer = await _send(server, "/ai/tools/pay/invoke", body)
        kept = await _send(server, "/ai/tools/pay/invoke", body)
        assert checked(answer, 200)["meta"]["run_id"] == begun
        assert kept.json() == answer.json()
        assert await _runs(server) == [begun]
    async with serving(url, make_crib=_with(gate)) as server:
        assert (await _send(server, "/ai/tools/pay/invoke", body)).json() == answer.json()


class _Clock(QuickClock):
    ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead


async def test_a_request_without_a_run_is_carried_out_by_one_at_a_time_and_taken_over_after_a_crash(
    store_url: str,
) -> None:
    clock = _Clock()
    crib = Crib(store_url, clock=clock)
    async with crib:
        one, two = (KeyedRequest(crib, BOSS, "k", "body") for _ in range(2))
        assert await one.known() is None
        with pytest.raises(Exception, match="is being carried out"):
            await two.known()
        clock.ahead = timedelta(seconds=61)  # the process of the first has died
        assert await two.known() is None
        await two.begin("run_lost")  # and dies before the run is created
        assert await two.earlier() is None
        clock.ahead = timedelta(days=2)
        assert await KeyedRequest(crib, BOSS, "k", "another body").known() is None
