"""Instances of workflows from the command line: run, shown, told, resumed, run anew from a step, cancelled."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.command import toolcrib

STEPS: list[dict[str, Any]] = [
    {"name": "each", "for_each": "${[1, 2, 3]}", "output": "${item * input.factor}"},
    {"name": "paid", "wait": {"signal": "paid"}},
    {"name": "sign", "approval": {"message": "Go on?", "show": {"sum": "${each.sum()}"}}},
    {"name": "rest", "wait": {"seconds": 100000}, "condition": "${input.factor > 5}"},
]
SCHEMA = {"type": "object", "properties": {"factor": {"type": "integer"}}, "required": ["factor"]}


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with a workflow that waits for everybody."""
    store = f"sqlite:///{tmp_path}/crib.db"
    publish(store, tmp_path, STEPS)
    return store


def publish(store: str, folder: Path, steps: list[dict[str, Any]]) -> None:
    """Publish a workflow."""
    definition = {"name": "sums", "input_schema": SCHEMA, "steps": steps, "output": {"sum": "${each.sum()}"}}
    (folder / "sums.json").write_text(json.dumps(definition), encoding="utf-8")
    done = toolcrib("workflow", "publish", folder / "sums.json", "--yes", store=store)
    assert done.exit_code == 0, done.stdout + done.stderr


def started(store: str, factor: int = 2) -> dict[str, Any]:
    """An instance that waits."""
    begun = toolcrib("workflow", "run", "sums", "--input", json.dumps({"factor": factor}), "--json", store=store)
    assert begun.exit_code == 0, begun.stderr
    return json.loads(begun.stdout)


@pytest.mark.requirement("workflow_cli.instances")
def test_an_instance_says_what_it_waits_for_and_ends_when_it_is_told(store: str):
    waiting = toolcrib("workflow", "run", "sums", "--input", '{"factor": 2}', store=store)
    (listed,) = json.loads(toolcrib("instance", "list", "--workflow", "sums", "--json", store=store).stdout)
    run_id = listed["run_id"]
    (asked,) = json.loads(toolcrib("approval", "list", "--json", store=store).stdout)
    assert (waiting.exit_code, waiting.stdout) == (0, "")
    assert waiting.stderr.splitlines() == [
        f"instance {run_id} is awaiting approval",
        f"toolcrib: step paid waits for a signal: toolcrib instance signal {run_id} paid",
        f"toolcrib: step sign waits for a person: toolcrib approval approve {asked['approval_id']}",
    ]

    told = toolcrib("instance", "signal", run_id, "paid", "--payload", '{"amount": 1}', store=store)
    assert told.stdout == f"{run_id} has signal paid; resume it with: toolcrib instance resume {run_id}\n"
    assert toolcrib("instance", "signal", run_id, "paid", store=store).exit_code == 1
    toolcrib("approval", "approve", asked["approval_id"], "--as", "boss", store=store)
    ended = toolcrib("instance", "resume", run_id, store=store)
    assert (ended.exit_code, json.loads(ended.stdout)) == (0, {"sum": 12})


@pytest.mark.requirement("workflow_cli.instances")
def test_an_instance_is_shown_step_by_step(store: str):
    run_id = started(store, 9)["run_id"]
    shown = toolcrib("instance", "show", run_id, store=store)
    rows = {line.split()[0]: line for line in shown.stdout.splitlines()[3:]}

    assert shown.stdout.startswith('sums@1.0.0: awaiting approval\ninput: {"factor": 9}\n')
    assert list(rows) == ["each", "paid", "sign", "rest"]
    assert ("3 of 3" in rows["each"], "waits for signal paid" in rows["paid"]) == (True, True)
    assert "step rest waits until " in shown.stderr
    assert json.loads(toolcrib("instance", "show", run_id, "--json", store=store).stdout)["run_id"] == run_id
    assert run_id in toolcrib("instance", "list", store=store).stdout


@pytest.mark.requirement("workflow_cli.instances")
def test_one_that_was_cancelled_is_resumed_and_one_that_has_ended_run_anew(store: str, tmp_path: Path):
    run_id = started(store)["run_id"]
    assert toolcrib("instance", "cancel", run_id, store=store).stdout == f"{run_id} is cancelled\n"
    publish(store, tmp_path, STEPS[:1])

    resumed = toolcrib("instance", "resume", run_id, "--json", store=store)
    instance = json.loads(resumed.stdout)
    assert (instance["status"], instance["rerun"]["run_id"]) == ("completed", run_id)
    shown = toolcrib("instance", "show", instance["run_id"], store=store).stdout
    assert (f"taken over from {run_id}" in shown, shown.splitlines()[-1]) == (True, 'output: {"sum": 12}')
    nothing = toolcrib("instance", "resume", instance["run_id"], store=store)
    assert (nothing.exit_code, "has succeeded" in nothing.stderr) == (1, True)
    anew = toolcrib("instance", "rerun", instance["run_id"], "--from", "each", store=store)
    assert (anew.exit_code, json.loads(anew.stdout)) == (0, {"sum": 12})


@pytest.mark.requirement("workflow_cli.instances")
def test_one_that_fails_ends_with_status_1_and_says_what_to_do(store: str, tmp_path: Path):
    broken = [{"name": "each", "output": "${[input.factor][1]}"}]
    publish(store, tmp_path, broken)
    failed = toolcrib("workflow", "run", "sums", "--input", '{"factor": 2}', store=store)
    (listed,) = json.loads(toolcrib("instance", "list", "--json", store=store).stdout)

    assert (failed.exit_code, failed.stdout) == (1, "")
    assert "VALIDATION_ERROR" in failed.stderr
    assert f"when the cause is fixed: toolcrib instance resume {listed['run_id']}" in failed.stderr
    assert "VALIDATION_ERROR" in toolcrib("instance", "show", listed["run_id"], store=store).stdout


@pytest.mark.requirement("workflow_cli.instances")
def test_one_that_got_the_wrong_input_is_to_be_begun_anew(store: str):
    failed = toolcrib("workflow", "run", "sums", store=store)

    assert failed.exit_code == 1
    assert failed.stderr.endswith(
        "no step has begun; start another one with: toolcrib workflow run sums --input JSON\n"
    )


@pytest.mark.requirement("workflow_cli.instances")
def test_a_dry_run_says_what_it_has_not_done(store: str, tmp_path: Path):
    publish(store, tmp_path, STEPS[:2])
    done = toolcrib("workflow", "run", "sums", "--dry-run", "--input", '{"factor": 2}', store=store)
    (listed,) = json.loads(toolcrib("instance", "list", "--json", store=store).stdout)

    assert (json.loads(done.stdout), listed["dry_run"]) == ({"sum": 12}, True)
    assert "toolcrib: step paid: dry run: would wait for the signal 'paid'\n" in done.stderr
    shown = toolcrib("instance", "show", listed["run_id"], store=store)
    assert shown.stdout.startswith("sums@1.0.0: completed, a dry run\n")


@pytest.mark.requirement("workflow_cli.instances")
def test_what_is_asked_of_a_person_stands_in_the_inbox(store: str):
    started(store)
    (asked,) = json.loads(toolcrib("approval", "list", "--json", store=store).stdout)

    assert "Go on?" in toolcrib("approval", "list", store=store).stdout
    shown = dict(
        line.split(maxsplit=1)
        for line in toolcrib("approval", "show", asked["approval_id"], store=store).stdout.splitlines()
    )
    assert (shown["Step"].strip(), shown["Asks"].strip()) == ("sign", "Go on?")
