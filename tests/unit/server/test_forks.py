"""Forks and comparisons over HTTP."""

import pytest

from tests.unit.server.client import Server, checked
from toolcrib import Crib, LLMConfig
from toolcrib.contracts import AgentDefinition

pytestmark = pytest.mark.requirement("forks.surfaces")


async def begun(crib: Crib) -> str:
    """A run of an agent."""
    await crib.save(AgentDefinition(name="a", llm=LLMConfig(model="scripted:free")).tool())
    return (await crib.invoke("a", {"message": "go"})).run_id


async def test_a_run_is_forked_and_held_against_its_fork(server: Server) -> None:
    run_id = await begun(server.crib)

    same = await server.post(f"/executions/{run_id}/fork")
    other = await server.post(f"/executions/{run_id}/fork", {"changes": {"prompt": "Be brief."}})
    diff = await server.get(f"/executions/{run_id}/diff/{other['run_id']}")
    later = await server.client.post(f"/api/v1/executions/{run_id}/fork", json={"wait": False})

    assert (same["status"], same["output"]) == ("completed", {"response": "nothing to do"})
    assert other["request"]["fork"]["run_id"] == run_id
    assert (diff["before"]["run_id"], diff["after"]["run_id"]) == (run_id, other["run_id"])
    assert (diff["parting"], diff["after"]["taken"], diff["after"]["model_calls"]) == (None, 0, 1)
    assert later.status_code == 202
    assert later.headers["location"] == f"/api/v1/executions/{later.json()['run_id']}"


async def test_what_is_wrong_with_a_fork_is_told(server: Server) -> None:
    run_id = await begun(server.crib)

    unknown = await server.post(f"/executions/{run_id}/fork", {"changes": {"modle": "x"}}, status=422)
    gone = await server.post("/executions/run_none/fork", status=404)
    local = await server.post(f"/executions/{run_id}/fork", {"changes": {"model": "ollama:x"}}, status=403)

    assert "did you mean 'model'" in unknown["detail"]
    assert "run_none" in gone["detail"]
    assert "local" in local["detail"]


async def test_forking_needs_to_read_the_run_and_comparing_both(server: Server) -> None:
    run_id = (await server.post("/ai/tools/search/invoke", {"params": {"company": "Acme"}}))["meta"]["run_id"]
    async with server.client_of("reader") as reader:
        refused = checked(await reader.post(f"/api/v1/executions/{run_id}/fork", json={}), 403)
        unseen = checked(await reader.get(f"/api/v1/executions/{run_id}/diff/{run_id}"), 403)
    async with server.client_of("stranger") as stranger:
        checked(await stranger.post(f"/api/v1/executions/{run_id}/fork", json={}), 404)

    assert "ai://runs/search/read" in refused["detail"]
    assert "ai://runs/search/read" in unseen["detail"]
