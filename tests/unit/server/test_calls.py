from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.client import Server, body_of, checked, http_tool, serving
from toolcrib.contracts import JsonObject

ACME = {"params": {"company": "Acme"}}


@pytest.mark.requirement("server.invoke")
async def test_invoking_a_plain_tool_answers_with_its_output_and_trace(server: Server) -> None:
    answer = await server.post("/ai/tools/search/invoke", ACME)
    assert answer["success"] is True
    assert answer["data"] == [{"name": "Acme"}]
    meta = answer["meta"]
    assert (meta["tool"], meta["mode"], meta["status"]) == ("search@1.0.0", None, "completed")
    assert [step["action"] for step in meta["trace"]["steps"]] == ["search"]


@pytest.mark.requirement("server.invoke")
async def test_the_seeds_path_invokes_a_deterministic_tool(server: Server) -> None:
    answer = await server.post("/agentic-tools/invoke", {"tool": "deals", "params": {"task": "find Acme's deals"}})
    assert answer["data"] == {"summary": "one"}
    meta = answer["meta"]
    assert set(meta) == {
        *(
            "run_id",
            "execution_id",
            "tool",
            "agentic_tool",
            "mode",
            "status",
            "stop_reason",
            "total_cost",
            "cost_unknown",
            "total_tokens",
            "duration_ms",
        ),
        *("question", "warnings", "trace"),
    }
    assert meta["question"] is None
    assert (meta["mode"], meta["stop_reason"]) == ("deterministic", "final_answer")
    assert meta["total_tokens"] > 0
    names = {"tool_call": "action", "llm_call": "purpose", "progress": "kind"}
    steps = [(step["type"], step[names[step["type"]]]) for step in meta["trace"]["steps"]]
    assert steps == [
        ("llm_call", "planning"),
        ("progress", "plan_settled"),
        ("tool_call", "search"),
        ("llm_call", "formatting"),
    ]


@pytest.mark.requirement("server.invoke")
async def test_an_agentic_tool_is_invoked_by_name_and_range(server: Server) -> None:
    answer = await server.post("/ai/tools/assistant@1/invoke", {"params": {"task": "nothing"}})
    assert (answer["success"], answer["meta"]["mode"]) == (True, "agentic")


@pytest.mark.requirement("server.invoke")
async def test_a_failed_run_is_data(server: Server) -> None:
    answer = await server.post("/ai/tools/search/invoke", {"params": {"company": "Broken"}})
    assert (answer["success"], answer["data"]) == (False, None)
    assert answer["meta"]["status"] == "failed"
    assert "the CRM is down" in answer["error"]["message"]


@pytest.mark.requirement("server.invoke")
async def test_arguments_that_do_not_fit_end_an_agentic_run_before_it_starts(server: Server) -> None:
    answer = await server.post("/agentic-tools/invoke", {"tool": "deals", "params": {"job": "x"}})
    assert answer["error"]["code"] == "VALIDATION_ERROR"
    assert answer["meta"]["trace"]["steps"] == []


@pytest.mark.requirement("server.invoke")
async def test_a_run_that_is_not_waited_for_goes_on_by_itself(server: Server) -> None:
    response = await server.client.post("/api/v1/ai/tools/search/invoke", json={**ACME, "wait": False})
    accepted = checked(response, 202)
    ended = await server.post("/ai/tools/search/invoke", ACME)
    assert (accepted.keys(), accepted["meta"].keys()) == (ended.keys(), ended["meta"].keys())
    assert (accepted["success"], accepted["data"], accepted["error"]) == (False, None, None)
    assert accepted["meta"]["status"] in {"queued", "running", "completed"}
    run_id = accepted["meta"]["run_id"]
    assert response.headers["location"] == f"/api/v1/executions/{run_id}"
    run = (await server.finished(run_id))["run"]
    assert (run["status"], run["output"]) == ("completed", [{"name": "Acme"}])


@pytest.mark.requirement("server.invoke")
async def test_a_dry_run_and_the_conversation_reach_the_run(server: Server) -> None:
    body = {"params": {"stage": "won"}, "dry_run": True, "conversation_id": "c1", "session_id": "s1"}
    envelope = await server.post("/ai/tools/update/execute", body)
    assert (envelope["status"], envelope["conversation_id"], envelope["session_id"]) == ("skipped", "c1", "s1")


@pytest.mark.requirement("server.execute")
async def test_executing_answers_with_the_envelope(server: Server) -> None:
    envelope = await server.post("/ai/tools/search/execute", ACME)
    assert (envelope["status"], envelope["output"], envelope["attempts"]) == ("success", [{"name": "Acme"}], 1)
    broken = await server.post("/ai/tools/search/execute", {"params": {"company": "Broken"}})
    assert (broken["status"], broken["output"]) == ("error", None)


@pytest.mark.requirement("server.execute")
@pytest.mark.parametrize("name", ["deals", "assistant"])
async def test_one_call_of_an_agentic_tool_has_an_envelope_of_its_own(server: Server, name: str) -> None:
    envelope = await server.post(f"/ai/tools/{name}/execute", {"params": {"task": "find Acme's deals"}})
    assert (envelope["name"], envelope["status"]) == (name, "success")
    assert envelope["output"]["summary"]
    assert envelope["metadata"]["run_id"] != envelope["run_id"]


@pytest.mark.requirement("server.execute")
async def test_a_call_that_waits_is_answered_with_its_run(server: Server) -> None:
    accepted = await server.post("/ai/tools/update/execute", {"params": {"stage": "won"}}, status=202)
    assert accepted["status"] == "awaiting_approval"


@pytest.mark.requirement("server.execute", "server.grants")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/ai/tools/pick/execute", {"params": {"question": "?"}}),
        ("/ai/tools/pick@1/execute", {"params": {"question": "?"}}),
        ("/ai/tools/pick/invoke", {"params": {"question": "?"}}),
        ("/ai/tools/pick/invoke", {"params": {"question": "?"}, "wait": False}),
        ("/agentic-tools/invoke", {"tool": "pick", "params": {"question": "?"}}),
    ],
)
async def test_a_caller_without_the_grant_is_refused_with_403_and_has_no_run(
    server: Server, path: str, body: dict[str, Any]
) -> None:
    async with server.client_of("reader") as reader:
        allowed = checked(await reader.post("/api/v1/ai/tools/search/execute", json=ACME), 200)
        refused = checked(await reader.post(f"/api/v1{path}", json=body), 403)
        runs = checked(await reader.get("/api/v1/executions"), 200)["items"]
    assert allowed["status"] == "success"
    assert refused["code"] == "permission_denied"
    assert "has no grant for 'ai://tools/" in refused["detail"]
    assert [run["request"]["tool"] for run in runs] == ["search@1.0.0"]


@pytest.mark.requirement("server.execute")
async def test_a_call_that_policy_denies_is_an_envelope(server: Server) -> None:
    await server.post("/ai/tools/search/status", {"status": "blocked"})
    denied = await server.post("/ai/tools/search/execute", ACME)
    assert (denied["status"], denied["error"]["details"]["reason"]) == ("denied", "tool_blocked")


@pytest.mark.requirement("server.validate")
@pytest.mark.parametrize(
    ("body", "problems"),
    [
        (ACME, []),
        ({"params": {"company": 5}}, ["/company"]),
        ({"params": {"company": "Acme", "stage": 1}}, [""]),
        ({}, [""]),
    ],
)
async def test_arguments_are_checked_without_running(server: Server, body: Any, problems: list[str]) -> None:
    report = await server.post("/ai/tools/search/validate", body)
    assert report["valid"] is (problems == [])
    assert [found["path"] for found in report["problems"]] == problems
    assert (await server.get("/executions"))["items"] == []


@pytest.mark.requirement("server.validate")
async def test_the_policy_is_checked_too(server: Server) -> None:
    await server.post("/ai/tools/search/status", {"status": "blocked", "message": "leaks", "replacement": "deals"})
    report = await server.post("/ai/tools/search/validate", ACME)
    assert report["error"]["details"]["reason"] == "tool_blocked"
    assert "leaks" in report["problems"][0]["problem"]
    await server.post("/ai/tools/searching/validate", ACME, status=404)


@pytest.mark.requirement("server.realms")
async def test_a_tool_of_another_realm_does_not_exist(server: Server) -> None:
    async with server.client_of("stranger") as stranger:
        for path in ("invoke", "execute", "validate"):
            response = await stranger.post(f"/api/v1/ai/tools/search/{path}", json=ACME)
            assert checked(response, 404)["code"] == "not_found"
        assert checked(await stranger.get("/api/v1/ai/tools"), 200) == {"items": [], "next": None}


@pytest.mark.requirement("server.no_reach")
async def test_a_clients_tool_cannot_open_a_local_address(server: Server) -> None:
    definition = http_tool("peek", "http://127.0.0.1:8000/api/v1/executions")
    await server.post("/ai/tools", body_of(definition), status=201)
    envelope = await server.post("/ai/tools/peek/execute")
    assert (envelope["status"], envelope["error"]["details"]["reason"]) == ("error", "ssrf_blocked")


@pytest.mark.requirement("server.invoke_at_hand")
@pytest.mark.parametrize("store", ["memory://", "sqlite"])
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("search", {"company": "Acme"}),
        ("search", {"company": "Broken"}),
        ("deals", {"task": "find Acme's deals"}),
        ("assistant", {"task": "nothing"}),
        ("update", {"stage": "won"}),
        ("pick", {"question": "?"}),
    ],
)
async def test_what_an_invocation_answers_is_what_the_journal_tells(
    store: str, name: str, params: JsonObject, tmp_path: Path
) -> None:
    async with serving(store if "://" in store else f"sqlite:///{tmp_path}/crib.db") as server:
        response = await server.client.post(f"/api/v1/ai/tools/{name}/invoke", json={"params": params})
        answer = response.json()
        run = await server.get(f"/executions/{answer['meta']['run_id']}")
    assert answer["meta"]["trace"] == run["trace"]
    assert (answer["data"], answer["partial"]) == (run["run"]["output"], run["run"]["partial"])
    assert answer["meta"]["status"] == run["run"]["status"]
    assert response.status_code == (200 if run["run"]["status"] in {"completed", "failed"} else 202)


@pytest.mark.requirement("server.invoke_at_hand")
async def test_an_invocation_reads_nothing_of_the_run_that_it_has_driven(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    journal = server.crib.store.journal
    for name in ("run", "events"):
        monkeypatch.setattr(journal, name, _noting(read, name, getattr(journal, name)))
    answer = await server.post("/ai/tools/search/invoke", ACME)
    assert answer["success"] is True
    assert read == []


def _noting(read: list[str], name: str, method: Any) -> Any:
    async def note(*args: Any, **options: Any) -> Any:
        read.append(name)
        return await method(*args, **options)

    return note
