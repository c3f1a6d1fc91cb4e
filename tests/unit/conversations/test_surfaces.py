"""Conversations over REST and from the command line."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.unit.conversations.talk import MODEL, TOOLS, echo, helper
from tests.unit.server.client import PRINCIPALS, Server, checked, serving
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import AgentRequest, AgentResponse, Principal
from toolcrib.interfaces.cli.app import app

pytestmark = pytest.mark.requirement("conversations.surfaces")


def make_crib(*given: Any, **options: Any) -> Crib:
    models = {**options.pop("models", {}), MODEL: ScriptedModel(echo)}
    crib = Crib(*given, models=models, **options)
    crib.add(*TOOLS, helper())
    return crib


@pytest.fixture
async def server() -> AsyncGenerator[Server]:
    async with serving(make_crib=make_crib) as started:
        yield started


async def say(server: Server, message: str, conversation_id: str | None = None) -> AgentResponse:
    request = AgentRequest(message=message, conversation_id=conversation_id)
    return await server.crib.acting_as(PRINCIPALS["owner"]).executions.execute("helper", request)


async def test_conversations_are_listed_read_changed_and_deleted_over_rest(server: Server):
    first = await say(server, "Hello there.")
    await say(server, "And again.", first.conversation_id)
    other = await say(server, "Other.")
    path = f"/ai/conversations/{first.conversation_id}"

    page = await server.get("/ai/conversations", {"limit": 1})
    rest = await server.get("/ai/conversations", {"before": page["next"], "agent": "helper", "status": "active"})
    detail = await server.get(path, {"limit": 1})
    more = await server.get(path, {"after": detail["next"]})
    changed = checked(await server.client.patch(f"/api/v1{path}", json={"title": "Greetings"}), 200)

    assert [item["conversation_id"] for item in page["items"]] == [other.conversation_id]
    assert [item["conversation_id"] for item in rest["items"]] == [first.conversation_id]
    assert rest["next"] is None
    assert (detail["conversation"]["title"], detail["conversation"]["turn_count"]) == ("Hello there", 2)
    assert [turn["message"] for turn in (*detail["turns"], *more["turns"])] == ["Hello there.", "And again."]
    assert more["next"] is None
    assert (changed["title"], changed["status"]) == ("Greetings", "active")
    assert (await server.client.patch(f"/api/v1{path}", json={"status": "gone"})).status_code == 422
    assert (await server.client.delete(f"/api/v1{path}")).status_code == 204
    assert (await server.client.get(f"/api/v1{path}")).status_code == 404


async def test_others_see_nothing_of_it_and_learn_nothing_from_it(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(PRINCIPALS, "ann", Principal(id="ann", grants=("ai://conversations/own/*",)))
    monkeypatch.setitem(PRINCIPALS, "boss", Principal(id="boss", grants=("ai://conversations/all/read",)))
    mine = await say(server, "Hello there.")
    known, unknown = f"/api/v1/ai/conversations/{mine.conversation_id}", "/api/v1/ai/conversations/conv_x"
    ann = {"Authorization": "Bearer ann"}

    for method, body in (("GET", None), ("PATCH", {"title": "x"}), ("DELETE", None)):
        told = [await server.client.request(method, path, json=body, headers=ann) for path in (known, unknown)]
        assert [answer.status_code for answer in told] == [404, 404]
        assert told[0].text.replace(str(mine.conversation_id), "conv_x") == told[1].text
    assert checked(await server.client.get("/api/v1/ai/conversations", headers=ann), 200)["items"] == []
    everybody = await server.client.get("/api/v1/ai/conversations?everybody=true", headers=ann)
    assert everybody.status_code == 403
    boss = {"Authorization": "Bearer boss"}
    assert (await server.client.get(known, headers=boss)).status_code == 200
    assert (await server.client.post(f"{known}/continue", json={"message": "x"}, headers=boss)).status_code == 404
    assert (await server.client.delete(known, headers=boss)).status_code == 404
    assert (await server.client.get(known, headers={"Authorization": "Bearer stranger"})).status_code == 404


def run(*arguments: str, store: str) -> Any:
    return CliRunner().invoke(app, ["conversation", *arguments], env={"TOOLCRIB_STORE": store}, catch_exceptions=False)


def test_conversations_are_listed_shown_and_deleted_from_the_command_line(tmp_path: Path):
    store = f"sqlite:///{tmp_path}/crib.db"

    async def talk() -> str:
        async with make_crib(store) as crib:
            answer = await crib.executions.execute("helper", AgentRequest(message="Hello there."))
            return answer.conversation_id or ""

    conversation_id = asyncio.run(talk())

    listed = run("list", store=store).stdout
    assert "Hello there" in listed
    assert json.loads(run("list", "--json", store=store).stdout)[0]["conversation_id"] == conversation_id
    shown = run("show", conversation_id, store=store).stdout
    assert "> Hello there.\nYou said: Hello there." in shown
    told = json.loads(run("show", conversation_id, "--json", store=store).stdout)
    assert [turn["message"] for turn in told["turns"]] == ["Hello there."]
    assert run("remove", conversation_id, store=store).stdout == f"conversation {conversation_id} is removed\n"
    gone = run("show", conversation_id, store=store)
    assert (gone.exit_code, f"there is no conversation '{conversation_id}'" in gone.stderr) == (1, True)
