"""Replays of runs that wait, of nested runs by themselves, and of runs that lie in a database."""

import io
from importlib import metadata
from pathlib import Path

import pytest

from tests.unit.agents.crm import MODEL, asks
from tests.unit.bundles.corpus import pay
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import Conflict
from toolcrib.crib.runs.bundles import replay_file


def crib_at(store: str) -> Crib:
    """A crib whose agent asks another one, which wants to pay."""
    outer, inner = [asks(("inner", {"task": "pay it"})), "Done."], [asks(("pay", {"amount": 5})), "Paid."]
    crib = Crib(store, models={"scripted:outer": ScriptedModel(outer), MODEL: ScriptedModel(inner)})
    crib.add(pay)
    crib.agentic_tool("inner", mode="agentic", model=MODEL, tools=["pay"])
    crib.agentic_tool("outer", mode="agentic", model="scripted:outer", tools=["inner"])
    return crib


@pytest.mark.requirement("bundles.parked")
async def test_a_run_that_waits_is_replayed_as_far_as_it_has_come(tmp_path: Path):
    async with crib_at(f"sqlite:///{tmp_path / 'crib.db'}") as crib:
        waiting = await crib.invoke("outer", {"task": "go"})

        with pytest.raises(Conflict, match=f"run {waiting.run_id} has not ended; resume it"):
            await crib.replay(waiting.run_id)
        found = await crib.replay(waiting.run_id, parked=True)

    assert (found.same, found.status, found.output) == (True, "awaiting_approval", None)
    assert [one.status for one in found.nested] == ["awaiting_approval"]
    assert found.events == len(waiting.events)


@pytest.mark.requirement("bundles.nested")
async def test_a_nested_run_is_replayed_with_its_caller_and_told_about_by_itself(tmp_path: Path):
    async with crib_at(f"sqlite:///{tmp_path / 'crib.db'}") as crib:
        waiting = await crib.invoke("outer", {"task": "go"})
        [approval] = (await crib.approvals.page()).items
        await crib.decide(approval.run_id, approval.position, approve=True)
        await crib.resume(waiting.run_id)

        whole, part = await crib.replay(waiting.run_id), await crib.replay(approval.run_id)

    assert (whole.same, part.same) == (True, True)
    assert whole.nested == (part,)
    assert [envelope.name for envelope in part.envelopes] == ["pay"]


@pytest.mark.requirement("bundles.same_events")
@pytest.mark.parametrize("store", ["memory://", "sqlite:///{folder}/crib.db"])
async def test_a_short_wait_before_a_question_is_not_longer_in_a_replay(tmp_path: Path, store: str):
    async with Crib(store.format(folder=tmp_path)) as crib:
        await crib.workflows.publish(
            {
                "name": "rests",
                "steps": [
                    {"name": "wait", "wait": {"seconds": 0.05}},
                    {"name": "asked", "approval": {"message": "go on?"}, "depends_on": ["wait"]},
                ],
            }
        )
        waiting = await crib.invoke("rests", {})
        [approval] = (await crib.approvals.page()).items
        await crib.decide(approval.run_id, approval.position, approve=True)
        await crib.resume(waiting.run_id)

        found = await crib.replay(waiting.run_id)

    assert (found.same, found.divergence) == (True, None)


@pytest.mark.requirement("bundles.alone")
async def test_agent_suites_a_run_is_replayed_where_the_package_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def not_there(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", not_there)
    async with Crib(f"sqlite:///{tmp_path / 'crib.db'}", models={MODEL: ScriptedModel(["Done."])}) as crib:
        crib.add(pay)
        crib.agentic_tool("idle", mode="agentic", model=MODEL, tools=["pay"])
        ended = await crib.invoke("idle", {"task": "go"})
        file = io.BytesIO()
        manifest = await crib.export_run(ended.run_id, file)
        found = await replay_file(file)

    assert (manifest.release, found.same) == ("source", True)
