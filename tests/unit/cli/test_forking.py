"""`toolcrib run fork` and `toolcrib run diff`."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from toolcrib import Crib
from toolcrib.contracts.workflows import WorkflowDefinition

pytestmark = pytest.mark.requirement("forks.surfaces")

STEPS = (
    {"name": "first", "output": {"seen": "${input.item}"}},
    {"name": "last", "output": "${first.seen} and ${input.other}"},
)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'crib.db'}"


async def run(store: str) -> str:
    """A run of a workflow that calls nothing."""
    async with Crib(store) as crib:
        definition = WorkflowDefinition.model_validate({"name": "say", "steps": STEPS, "output": "${last}"})
        await crib.workflows.publish(definition)
        return (await crib.instances.start("say", {"item": "a", "other": "b"})).run_id


def test_a_run_is_forked_with_another_input_and_what_differs_is_shown(store: str, tmp_path: Path):
    run_id = asyncio.run(run(store))
    (tmp_path / "other.txt").write_text("c", encoding="utf-8")

    same = toolcrib("run", "fork", run_id, "--at", "2", store=store)
    other = toolcrib("run", "fork", run_id, "--set", f"input.other=@{tmp_path}/other.txt", "--json", store=store)
    found = json.loads(other.stdout)
    diff = toolcrib("run", "diff", run_id, found["run"]["run_id"], store=store)
    told = toolcrib("run", "diff", run_id, found["run"]["run_id"], "--json", store=store)

    assert (same.exit_code, "They went the same way." in same.stdout) == (0, True)
    assert (other.exit_code, found["run"]["output"]) == (0, "a and c")
    assert found["diff"]["output"] == [{"path": "", "before": "a and b", "after": "a and c"}]
    assert (diff.exit_code, "a and c" in diff.stdout) == (0, True)
    assert json.loads(told.stdout) == found["diff"]
    assert found["diff"]["input"] == [{"path": "/other", "before": "b", "after": "c"}]
    words = " ".join(diff.stdout.split())
    assert f"is a fork of {run_id} at event 1. It changes: input (below)." in words
    assert "/other b c" in words


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ('policy={"limits": {"timeout_s": 5}}', "policy.limits.timeout_s 5"),
        (None, "It changes: nothing."),
    ],
)
def test_run_diff_names_what_a_fork_changed(store: str, change: str | None, said: str):
    run_id = asyncio.run(run(store))
    options = ("--set", change) if change else ()
    fork = json.loads(toolcrib("run", "fork", run_id, *options, "--json", store=store).stdout)["run"]["run_id"]

    words = " ".join(toolcrib("run", "diff", run_id, fork, store=store).stdout.split())

    assert f"{fork} is a fork of {run_id} at event 1. It changes: " in words
    assert said in words


def test_a_fork_that_fails_is_told_and_what_cannot_be_read_is_refused(store: str):
    run_id = asyncio.run(run(store))

    failed = toolcrib("run", "fork", run_id, "--set", "input=[]", store=store)
    unreadable = toolcrib("run", "fork", run_id, "--set", "input", store=store)
    policy = toolcrib("run", "fork", run_id, "--set", 'policy={"limits": {"timeout_s": 5}}', store=store)

    assert (failed.exit_code, "JSON object" in failed.stderr) == (2, True)
    assert (unreadable.exit_code, "NAME=VALUE" in unreadable.stderr) == (2, True)
    assert policy.exit_code == 0
