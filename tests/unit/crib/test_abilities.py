"""A process leaves a run alone that it could only fail: another one has the functions."""

from pathlib import Path

import pytest

from toolcrib import Crib, LLMConfig, ScriptedModel, SharingOptions, tool
from toolcrib.contracts import AgentDefinition, Reason, ToolDefinition, Unavailable
from toolcrib.kinds.http.shape import HttpImplementation

pytestmark = pytest.mark.requirement("crib.abilities")


@tool(requires_confirmation=True, idempotent=True)
async def act() -> str:
    """Act."""
    return "acted"


async def waiting_run(url: str) -> str:
    """A run of a Python tool that a person has approved and that no process drives."""
    async with Crib(url) as crib:
        crib.add(act)
        result = await crib.invoke("act", {})
        await crib.decide(result.run_id, "call", approve=True)
    return result.run_id


async def test_a_process_without_the_function_leaves_the_run_to_one_that_has_it(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/crib.db"
    run_id = await waiting_run(url)

    async with Crib(url, sharing=SharingOptions(worker_wait_s=0.1)) as stranger:
        left = await stranger.resume(run_id)
        assert left.status == "queued"
        assert "lacks the Python function of act@1.0.0" in left.warnings[0]
        assert list(await stranger.recover()) == []
        assert (await stranger.store.journal.run(run_id)).status == "queued"

    async with Crib(url) as owner:
        owner.add(act)
        assert (await owner.resume(run_id)).output == "acted"


async def test_a_process_without_a_scripted_model_leaves_the_run_to_one_that_has_it(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/crib.db"
    model = ScriptedModel(["done"], name="here")
    async with Crib(url, models={"scripted:here": model}) as crib:
        crib.add(act)
        crib.agentic_tool("agent", mode="agentic", model="scripted:here", tools=["act"])
        run_id = await crib.submit("agent", {"task": "go"})

    async with Crib(url) as stranger:
        stranger.add(act)
        with pytest.raises(Unavailable, match=r"the model scripted:here of agent@1\.0\.0"):
            await stranger.resume(run_id)


@pytest.mark.requirement("forks.changes")
async def test_a_fork_that_asks_another_model_does_not_need_that_of_the_definition(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/crib.db"
    async with Crib(url, models={"scripted:here": ScriptedModel(["done"], name="here")}) as crib:
        await crib.save(AgentDefinition(name="agent", llm=LLMConfig(model="scripted:here")).tool())
        run_id = (await crib.invoke("agent", {"message": "go"})).run_id

    async with Crib(url, models={"scripted:there": ScriptedModel(["done otherwise"], name="there")}) as stranger:
        fork = await stranger.fork(run_id, changes={"model": "scripted:there"})
        assert fork.output == {"response": "done otherwise"}
        waiting = await stranger.fork(run_id, changes={"model": "scripted:there"}, wait=False)

    async with Crib(url) as other:
        with pytest.raises(
            Unavailable, match=r"the model scripted:there of agent@1\.0\.0; add it, unchanged, or leave"
        ):
            await other.resume(waiting.run_id)


@pytest.mark.requirement("crib.reopen")
async def test_a_tool_that_another_process_saved_is_found_when_it_is_called(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/crib.db"
    definition = ToolDefinition(
        name="late",
        side_effects="reads",
        implementation=HttpImplementation(method="GET", url="http://127.0.0.1:9/nowhere"),
    )
    async with Crib(url) as first, Crib(url) as second:
        await second.save(definition)

        envelope = await first.call("late")

    assert envelope.error is not None
    assert envelope.error.reason is Reason.SSRF_BLOCKED
