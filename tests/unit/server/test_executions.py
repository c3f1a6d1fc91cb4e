import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.twins import ManualClock
from tests.unit.server.client import QuickClock, Server, checked, serving
from toolcrib.contracts import JsonObject, Signal, Unavailable
from toolcrib.core.engines import LocalEngine
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.interfaces.server.http.streaming import KEEP_ALIVE_S, POLL_S, follow

ACME = {"params": {"company": "Acme"}}
WON = {"params": {"stage": "won"}}


def parse(stream: str) -> list[tuple[int, str, Any]]:
    """Number, type and data of each message."""
    messages: list[tuple[int, str, Any]] = []
    for block in stream.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        messages.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return messages


async def waiting(server: Server, tool: str = "update", body: JsonObject = WON) -> str:
    """The id of a run that waits."""
    run_id: str = (await server.post(f"/ai/tools/{tool}/invoke", body, status=202))["meta"]["run_id"]
    return run_id


@pytest.mark.requirement("server.executions")
async def test_runs_are_listed_newest_first_by_tool_and_status(server: Server) -> None:
    for company in ("A", "Broken", "C"):
        await server.post("/ai/tools/search/invoke", {"params": {"company": company}})
    await waiting(server)
    first = await server.get("/executions", {"tool": "search", "limit": 2})
    assert [run["request"]["input"]["company"] for run in first["items"]] == ["C", "Broken"]
    second = await server.get("/executions", {"tool": "search", "limit": 2, "before": first["next"]})
    assert [run["request"]["input"]["company"] for run in second["items"]] == ["A"]
    assert second["next"] is None
    assert len((await server.get("/executions", {"status": "awaiting_approval"}))["items"]) == 1
    wrong = await server.get("/executions", {"status": "asleep"}, status=422)
    assert "query.status" in wrong["detail"]


@pytest.mark.requirement("server.executions")
async def test_a_run_is_read_with_its_trace_and_what_it_waits_for(server: Server) -> None:
    run_id = await waiting(server)
    view = await server.get(f"/executions/{run_id}")
    assert view["run"]["status"] == view["trace"]["status"] == "awaiting_approval"
    assert [request["position"] for request in view["pending_approvals"]] == ["call"]


@pytest.mark.requirement("executor.tracebacks")
async def test_events_have_no_tracebacks(server: Server) -> None:
    run_id = (await server.post("/ai/tools/search/invoke", {"params": {"company": "Broken"}}))["meta"]["run_id"]
    assert await server.crib.executions.tracebacks(run_id)
    page = await server.get(f"/executions/{run_id}/events")
    assert [item["event"]["traceback"] for item in page["items"] if item["event"]["type"] == "call_finished"] == [None]
    assert "Traceback" not in (await server.client.get(f"/api/v1/executions/{run_id}/events/stream")).text


@pytest.mark.requirement("server.executions")
async def test_events_are_read_after_a_number(server: Server) -> None:
    run_id = (await server.post("/ai/tools/search/invoke", ACME))["meta"]["run_id"]
    page = await server.get(f"/executions/{run_id}/events", {"after": 1, "limit": 2})
    assert [(item["number"], item["event"]["type"]) for item in page["items"]] == [
        (2, "call_started"),
        (3, "call_finished"),
    ]


@pytest.mark.requirement("server.realms")
async def test_a_run_of_another_realm_cannot_be_told_from_none(server: Server) -> None:
    run_id = await waiting(server)
    async with server.client_of("stranger") as stranger:
        paths = ["", "/events", "/events/stream"]
        answers = [await stranger.get(f"/api/v1/executions/{run_id}{path}") for path in paths]
        for path, body in (("resume", {}), ("approvals/call", {"approved": True}), ("client-results/call", {})):
            answers.append(await stranger.post(f"/api/v1/executions/{run_id}/{path}", json=body))
        none = checked(await stranger.get("/api/v1/executions/run_0"), 404)["detail"]
        assert checked(await stranger.get("/api/v1/executions"), 200)["items"] == []
    messages = {checked(answer, 404)["detail"] for answer in answers}
    assert messages == {none.replace("run_0", run_id)}
    assert (await server.get(f"/executions/{run_id}"))["run"]["status"] == "awaiting_approval"


@pytest.mark.requirement("server.stream")
async def test_a_stream_has_every_event_once_and_ends_with_done(server: Server) -> None:
    run_id = (await server.post("/ai/tools/search/invoke", ACME))["meta"]["run_id"]
    response = await server.client.get(f"/api/v1/executions/{run_id}/events/stream")
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    messages = parse(response.text)
    assert [(number, kind) for number, kind, _ in messages] == [
        (1, "run_started"),
        (2, "call_started"),
        (3, "call_finished"),
        (4, "run_finished"),
        (4, "done"),
    ]
    assert messages[-1][2]["result"]["output"] == [{"name": "Acme"}]


@pytest.mark.requirement("server.stream")
async def test_a_subscriber_re_attaches_with_the_last_number_it_saw(server: Server) -> None:
    run_id = (await server.post("/ai/tools/search/invoke", ACME))["meta"]["run_id"]
    path = f"/api/v1/executions/{run_id}/events/stream"
    again = await server.client.get(path, params={"after": 0}, headers={"Last-Event-ID": "2"})
    assert [kind for _, kind, _ in parse(again.text)] == ["call_finished", "run_finished", "done"]
    at_end = await server.client.get(path, params={"after": 4})
    assert [kind for _, kind, _ in parse(at_end.text)] == ["done"]
    wrong = await server.client.get(path, headers={"Last-Event-ID": "soon"})
    assert "header.last-event-id" in checked(wrong, 422)["detail"]


@pytest.mark.requirement("server.stream")
async def test_a_stream_ends_where_the_run_waits_and_goes_on_after_the_decision(server: Server) -> None:
    run_id = await waiting(server)
    path = f"/api/v1/executions/{run_id}/events/stream"
    before = parse((await server.client.get(path)).text)
    assert (before[-2][1], before[-1][1]) == ("run_suspended", "done")
    assert before[-1][2]["result"]["status"] == "awaiting_approval"
    await server.decide(run_id, "call", {"approved": True}, status=202)
    after = parse((await server.client.get(path, headers={"Last-Event-ID": str(before[-1][0])})).text)
    assert after[0][1] == "run_resumed"
    assert after[-1][2]["result"]["status"] == "completed"


@pytest.mark.requirement("server.stream")
async def test_the_run_of_another_process_is_followed_too() -> None:
    store = MemoryStore()
    async with serving(store, driven=False) as server:
        run_id = (await server.post("/ai/tools/search/invoke", {**ACME, "wait": False}, status=202))["meta"]["run_id"]
        stream = follow(store.journal, QuickClock(), run_id, 0)
        assert "event: run_started" in await anext(stream)
        async with serving(store):
            rest = [message async for message in stream]
    assert [kind for _, kind, _ in parse("".join(rest))] == ["call_started", "call_finished", "run_finished", "done"]


@pytest.mark.requirement("server.stream")
async def test_silence_is_broken_by_comments() -> None:
    store, clock = MemoryStore(), ManualClock()
    async with serving(store, driven=False) as server:
        run_id = (await server.post("/ai/tools/search/invoke", {**ACME, "wait": False}, status=202))["meta"]["run_id"]
        stream = follow(store.journal, clock, run_id, 1)
        assert await anext(stream) == ": keep-alive\n\n"
        assert KEEP_ALIVE_S <= clock.elapsed < KEEP_ALIVE_S + 2 * POLL_S
        await server.crib.resume(run_id)
        assert [kind for _, kind, _ in parse("".join([message async for message in stream]))][-1] == "done"


@pytest.mark.requirement("server.decisions")
@pytest.mark.parametrize(
    ("decision", "status", "output"),
    [
        ({"approved": True}, "completed", {"stage": "won"}),
        ({"approved": True, "edited_input": {"stage": "lost"}}, "completed", {"stage": "lost"}),
        ({"approved": False, "reason": "too early"}, "failed", None),
    ],
)
async def test_a_decision_carries_the_run_on(server: Server, decision: JsonObject, status: str, output: Any) -> None:
    run_id = await waiting(server)
    await server.decide(run_id, "call", decision, status=202)
    run = (await server.finished(run_id))["run"]
    assert (run["status"], run["output"]) == (status, output)
    if status == "failed":
        assert "too early" in run["error"]["message"]


@pytest.mark.requirement("server.decisions")
async def test_a_decision_counts_once_and_only_where_a_call_waits() -> None:
    async with serving(driven=False) as server:
        run_id = await waiting(server)
        elsewhere = await server.decide(run_id, "t1.c1", {"approved": True}, status=409)
        assert "waiting: call" in elsewhere["detail"]
        await server.decide(run_id, "call", {"approved": False}, status=202)
        await server.decide(run_id, "call", {"approved": True}, status=409)
        ended = await server.post(f"/executions/{run_id}/resume")
    assert ended["meta"]["status"] == "failed"


@pytest.mark.requirement("server.grants")
async def test_deciding_needs_a_grant(server: Server) -> None:
    run_id = await waiting(server)
    async with server.client_of("reader") as reader:
        refused = await reader.post(f"/api/v1/executions/{run_id}/approvals/call", json={"approved": True})
    assert "'ai://approvals/update/write'" in checked(refused, 403)["detail"]


@pytest.mark.requirement("server.decisions")
async def test_a_clients_result_is_the_calls_output(server: Server) -> None:
    run_id = await waiting(server, "pick", {"params": {"question": "which?"}})
    [handoff] = (await server.get(f"/executions/{run_id}"))["pending_handoffs"]
    assert (handoff["position"], handoff["output"]) == ("call", {"question": "which?"})
    assert (handoff["is_server_tool"], handoff["was_executed"], handoff["requires_client_execution"]) == (True,) * 3
    path = f"/executions/{run_id}/client-results"
    await server.post(f"{path}/t1.c1", {"output": "x"}, status=409)
    await server.post(f"{path}/call", {"output": {"answer": "this one"}}, status=202)
    view = await server.finished(run_id)
    assert (view["run"]["status"], view["run"]["output"]) == ("completed", {"answer": "this one"})
    await server.post(f"{path}/call", {"output": "late"}, status=409)


@pytest.mark.requirement("server.decisions")
@pytest.mark.parametrize(
    ("tool", "body", "path", "answer"),
    [
        ("update", WON, "approvals", {"approved": True}),
        ("pick", {"params": {"question": "which?"}}, "client-results", {"output": {"answer": "a"}}),
    ],
)
async def test_of_two_answers_at_the_same_moment_the_first_counts(
    tool: str, body: JsonObject, path: str, answer: JsonObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none_yet(_: str) -> Mapping[str, Signal]:
        return {}

    async with serving(driven=False) as server:
        run_id = await waiting(server, tool, body)
        monkeypatch.setattr(server.crib.store.journal, "signals", none_yet)  # as both looked before either wrote
        client = server.client_of("boss") if path == "approvals" else server.client
        route = f"/api/v1/executions/{run_id}/{path}/call"
        checked(await client.post(route, json=answer), 202)
        second = checked(await client.post(route, json=answer), 409)
    assert re.search("the first (one|answer) counts", second["detail"])


@pytest.mark.requirement("server.resume")
async def test_a_run_is_carried_on_by_request() -> None:
    async with serving(driven=False) as server:
        run_id = (await server.post("/ai/tools/search/invoke", {**ACME, "wait": False}, status=202))["meta"]["run_id"]
        answer = await server.post(f"/executions/{run_id}/resume")
        assert (answer["success"], answer["data"]) == (True, [{"name": "Acme"}])
        assert await server.post(f"/executions/{run_id}/resume") == answer
        still = await server.post(f"/executions/{await waiting(server)}/resume", status=202)
    assert (still["success"], still["meta"]["status"]) == (False, "awaiting_approval")


@pytest.mark.requirement("server.resume")
async def test_runs_that_another_process_left_are_carried_on_after_the_start() -> None:
    store = MemoryStore()
    async with serving(store, driven=False) as server:
        run_id = (await server.post("/ai/tools/search/invoke", {**ACME, "wait": False}, status=202))["meta"]["run_id"]
    async with serving(store) as restarted:
        assert (await restarted.finished(run_id))["run"]["status"] == "completed"


@pytest.mark.requirement("server.resume")
async def test_runs_are_driven_again_once_the_store_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    serve, failed = LocalEngine.serve, list[bool]()

    async def fail_once(engine: LocalEngine) -> None:
        if not failed:
            failed.append(True)
            raise Unavailable("the database is being moved")
        await serve(engine)

    monkeypatch.setattr(LocalEngine, "serve", fail_once)
    async with serving() as server:
        run_id = (await server.post("/ai/tools/search/invoke", {**ACME, "wait": False}, status=202))["meta"]["run_id"]
        assert (await server.finished(run_id))["run"]["status"] == "completed"
    assert "trying again" in caplog.text
