"""Calls that wait for a person: asked at the client if it shows forms, else told."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
import orjson
import pytest
from mcp.client.context import ClientRequestContext

from tests.unit.agents.crm import DONE, Crm
from tests.unit.agents.test_planning import LIVE
from tests.unit.agents.test_small_models import ACME, SMALL, outline, said_of
from tests.unit.mcp_server.served import REVISIONS, client_of, mcp_server, on_a_port
from tests.unit.mcp_server.test_tools import text_of
from tests.unit.server.client import authenticate, checked
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import JsonObject
from toolcrib.interfaces.server import create_app

both = pytest.mark.parametrize("mode", REVISIONS)


class Person:
    """Fills in each form with the next answer, and keeps the forms."""

    def __init__(self, *answers: types.ElicitResult) -> None:
        self.answers = list(answers)
        self.forms: list[types.ElicitRequestFormParams] = []

    async def __call__(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        self.forms.append(params)
        return self.answers.pop(0)


def decides(decision: str, reason: str = "") -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"decision": decision, "reason": reason})


@both
@pytest.mark.requirement("mcp_server.approvals")
async def test_a_person_may_approve_at_the_client_if_the_operator_lets_them(mode: str) -> None:
    approves, rejects = Person(decides("approve")), Person(decides("reject", "not yet"))
    async with mcp_server() as (server, url):
        server.app.state.mcp.self_approval = True
        async with client_of(url, mode, answer=approves) as client:
            done = await client.call_tool("update", {"stage": "won"})
        async with client_of(url, mode, answer=rejects) as client:
            rejected = await client.call_tool("update", {"stage": "lost"})
        async with client_of(url, mode, answer=Person(types.ElicitResult(action="decline"))) as client:
            declined = await client.call_tool("update", {"stage": "lost"})

    assert done.structured_content == {"stage": "won"}
    [form] = approves.forms
    assert "May update run?" in form.message
    assert '{"stage":"won"}' in form.message
    assert rejected.is_error
    assert "not yet" in text_of(rejected)
    assert declined.is_error


@both
@pytest.mark.requirement("mcp_server.approvals", "mcp_server.waiting")
async def test_without_that_a_call_waits_in_the_inbox_and_its_result_is_a_resource(mode: str) -> None:
    async with mcp_server() as (server, url), client_of(url, mode, answer=Person()) as client:
        waits = await client.call_tool("update", {"stage": "won"})
        [waiting] = (await server.get("/approvals", {"status": "waiting"}))["items"]
        path = f"/api/v1/approvals/{waiting['approval_id']}/decide"
        checked(await server.client_of("boss").post(path, json={"approved": True}), 200)
        run_id = str((waits.meta or {})["toolcrib/run_id"])
        await server.finished(run_id)
        [read] = (await client.read_resource(f"toolcrib://runs/{run_id}")).contents

    assert waits.is_error
    assert waiting["approval_id"] in text_of(waits)
    assert f"toolcrib://runs/{run_id}" in text_of(waits)
    assert isinstance(read, types.TextResourceContents)
    assert '"status":"completed"' in read.text
    assert '"stage":"won"' in read.text


@pytest.mark.requirement("mcp_server.waiting")
async def test_a_client_that_closes_the_form_finds_the_run_later() -> None:
    async with mcp_server() as (server, url):
        server.app.state.mcp.self_approval = True
        closes = Person(types.ElicitResult(action="cancel"))
        async with client_of(url, "legacy", answer=closes) as client:
            waits = await client.call_tool("update", {"stage": "won"})
            listed = (await client.list_resources()).resources
    assert waits.is_error
    assert [each.uri for each in listed] == [f"toolcrib://runs/{(waits.meta or {})['toolcrib/run_id']}"]
    assert listed[0].title == "update, awaiting approval"


@asynccontextmanager
async def asking() -> AsyncGenerator[tuple[Crm, str]]:
    """A system, and the address of a server whose tool asks which deals are meant."""
    crm = Crm(1)
    answers = [{"wants": "other", "question": "Which deals?"}, outline(ACME), said_of("Move them"), DONE]
    model = ScriptedModel([orjson.dumps(one).decode() for one in answers])
    model.name = SMALL
    crib = Crib("memory://", models={SMALL: model})
    crib.add(*crm.tools)
    crib.agentic_tool("deals", mode="deterministic", model=SMALL, steps=["search_deals", "update_deals"], context=LIVE)
    app = create_app(crib, authenticate)
    async with app.router.lifespan_context(app), on_a_port(app) as url:
        yield crm, url


@both
@pytest.mark.requirement("mcp_server.questions")
async def test_a_tool_asks_the_person_at_the_client(mode: str) -> None:
    says = Person(types.ElicitResult(action="accept", content={"answer": "those of Acme"}))
    async with asking() as (crm, url), client_of(url, mode, answer=says) as client:
        done = await client.call_tool("deals", {"task": "Move them to Negotiation"})
    assert not done.is_error
    assert crm.updates == [(["d0"], "3003")]
    assert [form.message for form in says.forms] == ["Which deals?"]


@both
@pytest.mark.requirement("mcp_server.questions", "mcp_server.waiting")
async def test_a_person_who_does_not_want_to_answer_ends_the_run(mode: str) -> None:
    declines = Person(types.ElicitResult(action="decline"))
    async with asking() as (crm, url), client_of(url, mode, answer=declines) as client:
        ended = await client.call_tool("deals", {"task": "Move them to Negotiation"})
    assert ended.is_error
    assert (ended.meta or {})["toolcrib/status"] == "cancelled"
    assert not crm.updates


@pytest.mark.requirement("mcp_server.waiting")
async def test_a_client_without_forms_reads_what_is_asked() -> None:
    async with asking() as (_, url), client_of(url) as client:
        waits = await client.call_tool("deals", {"task": "Move them to Negotiation"})
    assert waits.is_error
    assert "The tool asks: Which deals?" in text_of(waits)
    assert (waits.meta or {})["toolcrib/status"] == "awaiting_answer"


@pytest.mark.requirement("mcp_server.state")
async def test_a_state_names_only_a_run_of_the_same_tool_and_caller() -> None:
    async with mcp_server() as (server, url):
        server.app.state.mcp.self_approval = True
        mine = (await server.post("/ai/tools/update/execute", {"params": {"stage": "won"}}, status=202))["run_id"]
        for key, name, state in (
            ("owner", "search", mine),
            ("reader", "search", mine),
            ("owner", "update", "run_of_nobody"),
            ("owner", "update", "../../etc/passwd"),
        ):
            answered = await raw(url, key, name, state)
            assert answered["error"]["code"] == types.INVALID_PARAMS
            assert "request_state" in answered["error"]["message"]
        run = await server.crib.store.journal.run(mine)
    assert run.status == "awaiting_approval"


async def raw(url: str, key: str, name: str, state: str) -> Any:
    """What the server answers a call that goes on with a state."""
    meta: JsonObject = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    params: JsonObject = {"name": name, "arguments": {"stage": "won"}, "requestState": state, "_meta": meta}
    headers = {
        "Authorization": f"Bearer {key}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }
    async with httpx2.AsyncClient(trust_env=False) as http:
        body: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return (await http.post(url, json=body, headers=headers)).json()
