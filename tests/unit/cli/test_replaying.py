"""`toolcrib run replay`: whether a run goes the same way on its journal, and where it does not."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from toolcrib import Crib, LLMConfig, ScriptedModel
from toolcrib.contracts import AgentDefinition, ServiceAccount

pytestmark = pytest.mark.requirement("cli.replay")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'crib.db'}"


async def run_as_an_account(store: str) -> str:
    async with Crib(store, models={"scripted:m": ScriptedModel(["Hello."])}) as crib:
        await crib.accounts.save(ServiceAccount(name="bot", grants=("ai://*",)))
        agent = AgentDefinition(name="greeter", llm=LLMConfig(model="scripted:m"), principal_ref="bot")
        await crib.save(agent.tool())
        return (await crib.invoke("greeter", {"message": "Hi?"})).run_id


def test_a_replay_tells_that_all_is_as_it_was_or_where_it_is_not(store: str):
    run_id = asyncio.run(run_as_an_account(store))

    same = toolcrib("run", "replay", run_id, store=store)
    told = toolcrib("run", "replay", run_id, "--json", store=store)
    toolcrib("account", "remove", "bot", store=store)
    other = toolcrib("run", "replay", run_id, store=store)

    said = f"run {run_id} goes the same way: 5 events, 0 tool calls, 1 model calls, 0 nested runs, completed"
    assert (same.exit_code, same.stdout.splitlines()[0]) == (0, said)
    assert (told.exit_code, json.loads(told.stdout)["same"]) == (0, True)
    assert other.exit_code == 1
    assert f"run {run_id} goes another way at event" in other.stdout
    assert "expected null" in other.stdout


@pytest.mark.requirement("bundles.command_line")
def test_a_run_is_exported_and_its_file_replays_without_a_store(store: str, tmp_path: Path):
    run_id = asyncio.run(run_as_an_account(store))
    file = tmp_path / "a.bundle"

    written = toolcrib("run", "export", run_id, "-o", file, store=store)
    listed = toolcrib("run", "export", run_id, "-o", file, "--json", store=store)
    same = toolcrib("replay", file)
    told = toolcrib("replay", file, "--json")
    file.write_bytes(file.read_bytes()[:-100])
    damaged = toolcrib("replay", file)

    assert (written.exit_code, written.stdout.split(":")[0]) == (0, f"wrote {file}")
    assert json.loads(listed.stdout)["run_id"] == run_id
    assert (same.exit_code, same.stdout.split(":")[0]) == (0, f"run {run_id} goes the same way")
    assert json.loads(told.stdout)["digest"] == json.loads(told.stdout)["recorded_digest"]
    assert (damaged.exit_code, "is not a bundle, or is damaged" in damaged.stderr) == (2, True)


@pytest.mark.requirement("bundles.command_line")
def test_an_export_that_fails_leaves_no_file(store: str, tmp_path: Path):
    file = tmp_path / "a.bundle"

    failed = toolcrib("run", "export", "run_none", "-o", file, store=store)

    assert failed.exit_code == 1
    assert list(tmp_path.glob("*.bundle*")) == []


@pytest.mark.requirement("bundles.command_line")
def test_an_export_that_fails_leaves_the_file_that_was_there(store: str, tmp_path: Path):
    run_id = asyncio.run(run_as_an_account(store))
    file = tmp_path / "a.bundle"
    toolcrib("run", "export", run_id, "-o", file, store=store)
    before = file.read_bytes()

    failed = toolcrib("run", "export", "run_none", "-o", file, store=store)

    assert failed.exit_code == 1
    assert (file.read_bytes(), list(tmp_path.glob("*.part"))) == (before, [])


@pytest.mark.requirement("bundles.command_line")
def test_an_export_that_cannot_be_written_names_the_file(store: str, tmp_path: Path):
    run_id = asyncio.run(run_as_an_account(store))
    file = tmp_path / "nowhere" / "a.bundle"

    refused = toolcrib("run", "export", run_id, "-o", file, store=store)

    said = f"toolcrib: {file} cannot be written: No such file or directory; name another file with -o\n"
    assert (refused.exit_code, refused.stderr) == (2, said)
