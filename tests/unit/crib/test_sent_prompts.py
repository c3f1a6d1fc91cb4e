"""Whole prompts of past runs whose journals do not say what today's code would send."""

import sqlite3
from pathlib import Path

import pytest

from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import Conflict, PermissionDenied, Principal

pytestmark = pytest.mark.requirement("views.sent_prompts")


@tool(side_effects="reads")
async def look() -> str:
    """Look."""
    return "seen"


def opened(file: Path) -> Crib:
    return Crib(f"sqlite:///{file}", models={"scripted:x": ScriptedModel(lambda _: "Done.")}, environment={})


async def test_a_request_that_is_not_the_recorded_one_is_not_shown(tmp_path: Path):
    file = tmp_path / "crib.db"
    async with opened(file) as crib:
        crib.add(look)
        desk = crib.agentic_tool("desk", mode="agentic", model="scripted:x", tools=["look"])
        run_id = (await desk("go")).run_id
        [sent] = await crib.sent_prompts(run_id)
    with sqlite3.connect(file) as database:
        changed = "UPDATE events SET body = replace(body, 'sha256:', 'sha256:0') WHERE type = 'model_started'"
        assert database.execute(changed).rowcount == 1
    database.close()

    async with opened(file) as crib:
        with pytest.raises(Conflict, match="differs at event"):
            await crib.sent_prompts(run_id)

    assert (sent.position, sent.attempt, sent.settings["max_tokens"]) == ("t1.llm", 1, 4000)


async def test_prompts_of_others_are_refused():
    models = {"scripted:x": ScriptedModel(lambda _: "Done.")}
    async with Crib("memory://", models=models, environment={}) as crib:
        crib.add(look)
        run_id = (await crib.agentic_tool("desk", mode="agentic", model="scripted:x", tools=["look"])("go")).run_id
        with pytest.raises(PermissionDenied):
            await crib.acting_as(Principal(id="ann", grants=())).sent_prompts(run_id)
