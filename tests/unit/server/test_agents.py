"""Agents over HTTP: their definitions, executions in every form, and conversations that go on."""

import json
from typing import Any

import pytest

from tests.unit.server.client import PRINCIPALS, Server, checked, serving
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import JsonObject, Principal, ServiceAccount
from toolcrib.core.runs import BEGINNING
from toolcrib.interfaces.server.http.streaming import start_stream
from toolcrib.llm import Message, Request, ToolCall

DESK: JsonObject = {
    "name": "desk",
    "description": "Answers questions about deals.",
    "llm": {"model": "scripted:free"},
    "system_prompt": "You answer questions.",
    "tools": ["search"],
}


async def added(server: Server, **fields: Any) -> JsonObject:
    """The desk, saved."""
    return checked(await server.client.post("/api/v1/ai/agents", json={**DESK, **fields}), 201)


def messages(stream: str) -> list[tuple[str, str, Any]]:
    """Id, type and data of each message; comments are left out."""
    found: list[tuple[str, str, Any]] = []
    for block in stream.strip().split("\n\n"):
        if not block.startswith(":"):
            fields = dict(line.split(": ", 1) for line in block.splitlines())
            found.append((fields["id"], fields["event"], json.loads(fields["data"])))
    return found


@pytest.mark.requirement("server.agents")
async def test_an_agent_is_created_read_changed_and_removed(server: Server) -> None:
    made = await server.client.post("/api/v1/ai/agents", json=DESK)
    assert (made.status_code, made.headers["Location"]) == (201, "/api/v1/ai/agents/desk")
    assert [allotted["tool"] for allotted in made.json()["tools"]] == ["search"]
    read = await server.client.get("/api/v1/ai/agents/desk")
    assert (read.json()["revision"], read.headers["ETag"]) == (1, '"1"')
    path = "/api/v1/ai/agents/desk"

    patched = await server.client.patch(path, json={"title": "The desk", "limits": {"max_iterations": 3}})
    assert (patched.json()["title"], patched.json()["limits"]["max_iterations"]) == ("The desk", 3)
    stale = await server.client.put(path, json=DESK, headers={"If-Match": '"1"'})
    assert "has revision 2" in checked(stale, 409)["detail"]
    replaced = await server.client.put(path, json={**DESK, "title": "Desk"}, headers={"If-Match": '"2"'})
    assert (replaced.json()["title"], replaced.json()["limits"]["max_iterations"]) == ("Desk", 10)
    renamed = await server.client.patch(path, json={"name": "table"})
    assert "cannot be renamed" in checked(renamed, 422)["detail"]
    wrong = checked(await server.client.patch(path, json={"limits": {"max_iterations": "many"}}), 422)
    assert wrong["details"]["problems"][0]["path"] == "/limits/max_iterations"

    removal = checked(await server.client.delete(path), 200)
    assert removal["message"].startswith("desk is gone")
    checked(await server.client.get(path), 404)


@pytest.mark.requirement("server.agents")
async def test_a_name_is_taken_by_a_tool_of_any_kind_and_other_tools_are_no_agents(server: Server) -> None:
    taken = await server.client.post("/api/v1/ai/agents", json={**DESK, "name": "search"})
    assert "exists" in checked(taken, 409)["detail"]
    for path in ("", "/tools"):
        await server.get(f"/ai/agents/search{path}", status=404)
    await server.post("/ai/agents/search/execute", {"message": "hello"}, status=404)


@pytest.mark.requirement("server.agents")
async def test_agents_are_found_by_what_they_are(server: Server) -> None:
    await added(server)
    await added(server, name="clerk", tags=["sales"], status="disabled")
    await added(server, name="archivist", category="archive", enabled=False)

    listed = await server.get("/ai/agents", {"limit": 2})
    assert ([item["name"] for item in listed["items"]], listed["next"]) == (["archivist", "clerk"], "clerk")
    rest = await server.get("/ai/agents", {"after": "clerk"})
    assert ([item["name"] for item in rest["items"]], rest["next"]) == (["desk"], None)
    for wanted, names in (
        ({"text": "questions"}, ["archivist", "clerk", "desk"]),
        ({"tag": "sales"}, ["clerk"]),
        ({"category": "archive"}, ["archivist"]),
        ({"status": "disabled"}, ["clerk"]),
        ({"enabled": True}, ["clerk", "desk"]),
        ({"model": "openai:"}, []),
        ({"model": "scripted:", "limit": 1}, ["archivist"]),
    ):
        found = await server.post("/ai/agents/query", wanted)
        assert [item["name"] for item in found["items"]] == names, wanted
    assert (await server.get("/ai/agents/count"))["count"] == 3
    assert (await server.get("/ai/agents/count", {"tag": "sales"}))["count"] == 1


@pytest.mark.requirement("server.agents")
async def test_the_tools_that_an_agent_would_have_are_told(server: Server) -> None:
    await added(server, excluded_tools=["update"], tools=["search", "update"])

    found = (await server.get("/ai/agents/desk/tools", {"message": "deals"}))["items"]

    told = {item["tool"].partition("@")[0]: item["reason"] for item in found}
    assert told["search"] is None
    assert told["update"]


@pytest.mark.requirement("server.agents", "server.grants")
async def test_what_an_agent_reaches_by_a_pattern_is_told_to_those_who_may_see_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.crib.accounts.save(ServiceAccount(name="bot", grants=("ai://tools/*",)))
    await added(server, tools=["update", "*"], principal_ref="bot")
    visitor = Principal(id="visitor", grants=("ai://agents/desk/execute", "ai://tools/utility/search/read"))
    monkeypatch.setitem(PRINCIPALS, "visitor", visitor)

    all_of_them = (await server.get("/ai/agents/desk/tools"))["items"]
    async with server.client_of("visitor") as client:
        found = checked(await client.get("/api/v1/ai/agents/desk/tools"), 200)["items"]

    assert {"pick@1.0.0", "search@1.0.0", "update@1.0.0"} <= {item["tool"] for item in all_of_them}
    assert {item["tool"] for item in found} == {"search@1.0.0", "update@1.0.0"}


@pytest.mark.requirement("server.agents", "server.realms", "server.grants")
async def test_who_may_not_sees_and_changes_no_agent(server: Server) -> None:
    await added(server)
    async with server.client_of("stranger") as stranger:
        for path in ("", "/tools"):
            checked(await stranger.get(f"/api/v1/ai/agents/desk{path}"), 404)
        for form in ("", "/stream", "/durable"):
            checked(await stranger.post(f"/api/v1/ai/agents/desk/execute{form}", json={"message": "x"}), 404)
        assert checked(await stranger.get("/api/v1/ai/agents/count"), 200) == {"count": 0}
    async with server.client_of("reader") as reader:
        checked(await reader.get("/api/v1/ai/agents/desk"), 403)
        checked(await reader.delete("/api/v1/ai/agents/desk"), 403)
        checked(await reader.post("/api/v1/ai/agents", json={**DESK, "name": "mine"}), 403)
        assert checked(await reader.get("/api/v1/ai/agents"), 200)["items"] == []


@pytest.mark.requirement("server.agents")
async def test_an_agent_over_http_names_no_local_model(server: Server) -> None:
    refused = await server.client.post("/api/v1/ai/agents", json={**DESK, "llm": {"model": "ollama:qwen3"}})

    assert "only if the operator allows local models" in checked(refused, 403)["detail"]


@pytest.mark.requirement("server.agent_executions")
async def test_an_agent_is_asked_and_its_execution_can_be_read_again(server: Server) -> None:
    await added(server)

    answer = await server.post("/ai/agents/desk/execute", {"message": "anything new?"})

    assert (answer["status"], answer["response"], answer["agent"]) == ("completed", "nothing to do", "desk@1.0.0")
    again = await server.get(f"/ai/agents/desk/executions/{answer['run_id']}")
    assert again == answer
    assert await server.get(f"/ai/agents/desk@^1/executions/{answer['run_id']}") == answer
    await added(server, name="clerk")
    await server.get(f"/ai/agents/clerk/executions/{answer['run_id']}", status=404)


@pytest.mark.requirement("server.agent_executions")
@pytest.mark.parametrize("durable", [False, True])
async def test_a_durable_execution_is_answered_at_once_and_ends_by_itself(server: Server, durable: bool) -> None:
    await added(server, durable=durable)
    form = "execute" if durable else "execute/durable"

    accepted = await server.client.post(f"/api/v1/ai/agents/desk/{form}", json={"message": "anything new?"})

    run_id = checked(accepted, 202)["run_id"]
    assert accepted.headers["Location"] == f"/api/v1/ai/agents/desk/executions/{run_id}"
    await server.finished(run_id)
    assert checked(await server.client.get(accepted.headers["Location"]), 200)["response"] == "nothing to do"


@pytest.mark.requirement("server.agent_executions")
async def test_a_conversation_is_continued(server: Server) -> None:
    await added(server)
    first = await server.post("/ai/agents/desk/execute", {"message": "anything new?"})
    conversation = first["conversation_id"]

    following = {"message": "and now?", "context": {"region": "EU"}}
    second = await server.post(f"/ai/conversations/{conversation}/continue", following)

    assert (second["conversation_id"], second["status"]) == (conversation, "completed")
    detail = await server.get(f"/ai/conversations/{conversation}")
    assert [turn["message"] for turn in detail["turns"]] == ["anything new?", "and now?"]
    assert detail["conversation"]["shared_context"] == {"region": "EU"}
    large = {"message": "more", "context": {"notes": "x" * 70_000}}
    refused = await server.post(f"/ai/conversations/{conversation}/continue", large, status=422)
    assert "at most 65536 are kept" in refused["detail"]
    await server.post("/ai/conversations/conv_none/continue", {"message": "and now?"}, status=404)


@pytest.mark.requirement("server.agent_executions")
async def test_a_refused_execution_is_a_run_that_says_why(server: Server) -> None:
    await added(server, enabled=False)

    answer = await server.post("/ai/agents/desk/execute", {"message": "anything new?"})

    assert (answer["status"], answer["stop_reason"]) == ("failed", "policy")


@pytest.mark.requirement("server.agent_stream")
@pytest.mark.parametrize("driven", [True, False])
async def test_an_execution_is_streamed_as_it_goes_on(driven: bool) -> None:
    async with serving(driven=driven) as server:
        await added(server)
        answer = await server.client.post("/api/v1/ai/agents/desk/execute/stream", json={"message": "anything new?"})

    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["Location"].startswith("/api/v1/executions/run_")
    found = messages(answer.text)
    assert "".join(data["text"] for _, kind, data in found if kind == "text_delta") == "nothing to do"
    assert (found[-1][1], found[-1][2]["result"]["status"]) == ("done", "completed")


@pytest.mark.requirement("server.agent_stream")
async def test_a_subscriber_that_was_cut_off_comes_back_with_the_id_that_it_has(server: Server) -> None:
    await added(server)
    answer = await server.client.post("/api/v1/ai/agents/desk/execute/stream", json={"message": "anything new?"})
    path, found = answer.headers["Location"], messages(answer.text)

    for cut, (place, _, _) in enumerate(found, start=1):
        rest = messages((await server.client.get(path, headers={"Last-Event-ID": place})).text)
        text = "".join(data["text"] for _, kind, data in [*found[:cut], *rest] if kind == "text_delta")
        assert text == "nothing to do"
        assert rest[-1] == found[-1]
    assert messages((await server.client.get(path, params={"after": found[0][0]})).text)
    for wrong in ("soon", "99", "1~1.1.1"):
        refused = checked(await server.client.get(path, headers={"Last-Event-ID": wrong}), 422)
        assert " place" in refused["detail"]


@pytest.mark.requirement("server.agent_stream", "server.realms", "server.grants")
async def test_a_stream_is_for_those_who_may_read_the_run(server: Server) -> None:
    await added(server)
    run_id = (await server.post("/ai/agents/desk/execute", {"message": "anything new?"}))["run_id"]
    async with server.client_of("stranger") as stranger:
        checked(await stranger.get(f"/api/v1/executions/{run_id}/stream"), 404)
    async with server.client_of("reader") as reader:
        checked(await reader.get(f"/api/v1/executions/{run_id}/stream"), 403)


@pytest.mark.requirement("server.agent_stream")
async def test_a_stream_begins_with_a_comment_where_there_is_nothing_to_tell_yet() -> None:
    async with serving(driven=False) as server:
        await added(server)
        run_id = (await server.post("/ai/agents/desk/execute/durable", {"message": "new?"}, status=202))["run_id"]
        stream = (await start_stream(server.crib, run_id, BEGINNING)).body_iterator
        assert await anext(aiter(stream)) == ": keep-alive\n\n"
        await server.crib.resume(run_id)
        rest = "".join([str(message) async for message in stream])
    assert messages(rest)[-1][1] == "done"


def asks_the_client(request: Request) -> Message | str:
    """Lets the client choose, and takes what it chose."""
    if any(message.role == "assistant" for message in request.messages):
        return "It is settled."
    return Message("assistant", (ToolCall("1", "pick", '{"question": "which?"}'),))


@pytest.mark.requirement("server.agent_stream")
async def test_who_brings_results_is_told_what_follows() -> None:
    def make(*given: Any, models: dict[str, Any], **more: Any) -> Crib:
        return Crib(*given, models={**models, "scripted:picky": ScriptedModel(asks_the_client)}, **more)

    path = "/api/v1/ai/agents/desk/execute/stream"
    async with serving(make_crib=make) as server:
        await added(server, tools=["pick"], llm={"model": "scripted:picky"})
        first = messages((await server.client.post(path, json={"message": "choose"})).text)
        handed = next(data["envelope"] for _, kind, data in first if kind == "client_handoff")
        results = [{"call_id": handed["call_id"], "output": {"answer": "this"}}]
        body = {"run_id": handed["run_id"], "tool_results": results}
        second = messages((await server.client.post(path, json=body, headers={"Last-Event-ID": first[-1][0]})).text)

    assert first[-1][2]["result"]["status"] == "awaiting_client"
    assert [kind for _, kind, _ in second] == ["tool_call_end", "text_delta", "done"]
    assert second[1][2]["text"] == "It is settled."
