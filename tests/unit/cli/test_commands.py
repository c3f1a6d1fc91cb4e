"""The commands, on stores in files, in this process and as the installed program."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.command import toolcrib
from tests.unit.runs_trace.test_trace import calls
from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import LossReport, ToolDefinition
from toolcrib.contracts.schemas import contract_schemas
from toolcrib.kinds.http.shape import HttpImplementation
from toolcrib.llm import Message, Request, ToolCall

PROGRAM = str(Path(sys.executable).with_name("toolcrib"))
HEAVY = {"aiohttp", "pydantic", "sqlalchemy", "toolcrib.contracts", "toolcrib.crib"}


def script(request: Request) -> str | Message:
    return "Deleted." if len(request.messages) > 1 else calls(ToolCall("a", "delete", '{"ids":["d1"]}'))


@tool(side_effects="writes", requires_confirmation=True)
def delete(ids: list[str]) -> dict[str, int]:
    """Delete deals."""
    return {"deleted": len(ids)}


REMOTE = ToolDefinition(
    name="remote",
    requires_confirmation=True,
    implementation=HttpImplementation(method="POST", url="https://example.org/remote"),
)
"""A tool that every process could call."""


def waiting_run(store: str) -> str:
    """A run in the store that waits for consent to a call; its tool and its model are in this process only."""

    async def start() -> str:
        async with Crib(store, models={"scripted:m": ScriptedModel(script, name="m")}) as crib:
            crib.add(delete)
            deals = crib.agentic_tool("deals", mode="agentic", model="scripted:m", tools=["delete"])
            return (await deals("Delete d1")).run_id

    return asyncio.run(start())


def carry_on(store: str, run_id: str) -> None:
    """Carry such a run on where its tool and its model are."""

    async def resume() -> None:
        async with Crib(store, models={"scripted:m": ScriptedModel(script, name="m")}) as crib:
            crib.add(delete)
            await crib.resume(run_id)

    asyncio.run(resume())


def waiting_remote_run(store: str) -> str:
    """A run in the store that waits for consent to a call of a foreign system."""

    async def start() -> str:
        async with Crib(store) as crib:
            crib.add(REMOTE)
            return (await crib.invoke("remote", {})).run_id

    return asyncio.run(start())


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'crib.db'}"


@pytest.mark.requirement("cli.help")
def test_help_names_the_commands_and_loads_nothing_heavy() -> None:
    assert all(name in toolcrib("--help").stdout for name in ("demo", "run", "tool", "schema", "up"))
    probe = "import json, sys, toolcrib.interfaces.cli; print(json.dumps(sorted(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert HEAVY & set(json.loads(loaded)) == set()


@pytest.mark.requirement("cli.errors", "cli.looks_only")
def test_the_program_ends_with_one_line_where_there_is_no_store(tmp_path: Path) -> None:
    command = [PROGRAM, "run", "trace", "run_1", "--store", "sqlite:///none.db"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("toolcrib: there is no store at sqlite:///none.db")
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("cli.errors")
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("run", "list", "--store", "mongo://x"), 2, "unknown scheme 'mongo'"),
        (("schema", "Nothing"), 1, "there is no contract 'Nothing'; the contracts are: AgentDefinition"),
        (("tool", "import", "nowhere.yaml", "--name", "x"), 2, "nowhere.yaml cannot be read: No such file"),
        (("demo", "crm", "--model", "gpt-4o"), 2, "did you mean openai:gpt-4o?"),
    ],
)
def test_errors_are_one_line(arguments: tuple[str, ...], status: int, message: str) -> None:
    done = toolcrib(*arguments)

    assert (done.exit_code, done.stdout) == (status, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.requirement("cli.errors")
def test_a_fault_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        toolcrib("schema", "Run", "--write", tmp_path / "file" / "folder")


@pytest.mark.requirement("cli.runs")
def test_a_waiting_run_is_listed_drawn_and_decided(store: str) -> None:
    run_id = waiting_run(store)

    listed = toolcrib("run", "list", store=store)
    assert [run_id in listed.stdout, "awaiting_approval" in listed.stdout] == [True, True]
    [run] = json.loads(toolcrib("run", "list", "--json", "--tool", "deals", store=store).stdout)
    assert (run["run_id"], run["status"]) == (run_id, "awaiting_approval")
    assert "[2] Approval: delete waiting" in toolcrib("run", "trace", run_id, store=store).stdout
    trace = json.loads(toolcrib("run", "trace", run_id, "--json", store=store).stdout)
    assert [step["type"] for step in trace["steps"]] == ["llm_call", "approval", "suspension"]

    wrong = toolcrib("approval", "approve", "apr_of_another_store", store=store)
    assert (wrong.exit_code, "no approval 'apr_of_another_store'" in wrong.stderr) == (1, True)
    approved = toolcrib("approval", "approve", "latest", "--reason", "go", "--edit", '{"ids": []}', store=store)
    assert approved.stdout.startswith("edited apr_")
    assert approved.stdout.endswith(f"; resume the run with: toolcrib run resume {run_id}\n")
    decided = toolcrib("approval", "reject", "latest", store=store)
    assert (decided.exit_code, "no approval waits" in decided.stderr) == (1, True)


@pytest.mark.requirement("cli.runs", "cli.errors")
def test_arguments_that_are_no_json_object_are_refused_before_the_store_is_opened(store: str) -> None:
    for edit, problem in (("{", "is not JSON"), ("[1]", "must be one JSON object")):
        refused = toolcrib("approval", "approve", "latest", "--edit", edit, store=store)
        assert (refused.exit_code, problem in refused.stderr) == (2, True)


@pytest.mark.requirement("cli.runs")
def test_a_rejected_run_is_carried_on_and_its_end_is_the_exit_status(store: str) -> None:
    run_id = waiting_remote_run(store)

    assert toolcrib("approval", "reject", "latest", "--reason", "no", store=store).exit_code == 0
    resumed = toolcrib("run", "resume", run_id, store=store)
    assert (resumed.exit_code, "Status: failed" in resumed.stdout) == (1, True)
    again = toolcrib("run", "resume", run_id, "--json", store=store)
    assert (again.exit_code, json.loads(again.stdout)["status"]) == (1, "failed")
    unknown = toolcrib("run", "resume", "run_of_nobody", store=store)
    assert (unknown.exit_code, unknown.stdout) == (1, "")


@pytest.mark.requirement("cli.runs")
def test_a_run_is_cancelled_once_also_by_a_process_that_could_not_drive_it(store: str) -> None:
    run_id = waiting_run(store)

    cancelled = toolcrib("run", "cancel", run_id, "--reason", "no", store=store)
    assert cancelled.stdout == f"cancelled {run_id}\n"
    again = toolcrib("run", "cancel", run_id, store=store)
    assert (again.exit_code, "cannot be cancelled any more" in again.stderr) == (1, True)


@pytest.mark.requirement("cli.runs")
def test_a_run_that_another_process_drives_is_cancelled_there(store: str) -> None:
    run_id = waiting_run(store)
    asyncio.run(held_elsewhere(store, run_id))

    first = toolcrib("run", "cancel", run_id, store=store)
    assert first.stdout.startswith(f"{run_id} ends as soon as the process that drives it is notified")
    second = toolcrib("run", "cancel", run_id, store=store)
    assert (second.exit_code, "was cancelled before" in second.stderr) == (1, True)


async def held_elsewhere(store: str, run_id: str) -> None:
    """Another process takes the run."""
    async with Crib(store) as crib:
        await crib.decide(run_id, "t1.c1", approve=True)
        assert await crib.store.journal.claim(run_id, owner="elsewhere", now=crib.clock.now(), lease_s=60)


@pytest.mark.requirement("cli.runs", "crib.abilities")
def test_a_run_whose_functions_are_elsewhere_is_left_alone(store: str) -> None:
    run_id = waiting_run(store)
    toolcrib("approval", "approve", "latest", store=store)

    resumed = toolcrib("run", "resume", run_id, store=store)
    assert (resumed.exit_code, resumed.stdout) == (1, "")
    assert "lacks the Python function of delete@1.0.0" in resumed.stderr
    assert json.loads(toolcrib("run", "list", "--json", store=store).stdout)[0]["status"] == "queued"


@pytest.mark.requirement("cli.follow")
def test_following_ends_with_a_run_that_another_process_drives(store: str) -> None:
    run_id = waiting_run(store)
    toolcrib("approval", "reject", "latest", store=store)
    follow = [PROGRAM, "run", "trace", run_id, "--follow", "--store", store]
    watcher = subprocess.Popen(follow, stdout=subprocess.PIPE, text=True)
    carry_on(store, run_id)
    output, _ = watcher.communicate(timeout=60)

    assert watcher.returncode == 0
    assert "Status: completed ✓" in output
    live = toolcrib("run", "trace", run_id, "--follow", store=store, FORCE_COLOR="1")
    assert "\x1b[" in live.stdout
    assert "completed ✓" in live.stdout
    followed = toolcrib("run", "trace", run_id, "--follow", "--json", store=store)
    assert json.loads(followed.stdout)["status"] == "completed"


DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Weather", "version": "1"},
    "paths": {"/now": {"get": {"operationId": "weather_now", "responses": {"200": {"description": "Now."}}}}},
}


@pytest.mark.requirement("cli.tools")
def test_a_document_becomes_tools_that_are_listed(store: str, tmp_path: Path) -> None:
    file = tmp_path / "weather.json"
    file.write_text(json.dumps(DOCUMENT))
    arguments = ("tool", "import", file, "--name", "weather", "--base-url", "https://weather.example")

    imported = toolcrib(*arguments, store=store)
    assert imported.stdout == "weather_now (reads)\nimported 1 tool of provider 'weather'\n"
    assert "weather_now" in toolcrib("tool", "list", store=store).stdout
    [found] = json.loads(toolcrib("tool", "list", "--json", store=store).stdout)
    assert found["definition"]["implementation"]["url"] == "https://weather.example/now"
    assert "weather_now" in toolcrib("tool", "search", "the", "weather", store=store).stdout
    assert json.loads(toolcrib("tool", "search", "invoices", "--json", store=store).stdout) == []


@pytest.mark.requirement("cli.tools")
def test_an_import_names_the_variables_that_hold_the_credentials(store: str, tmp_path: Path) -> None:
    schemes = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}, "login": {"type": "http", "scheme": "basic"}}
    secured: dict[str, Any] = {"components": {"securitySchemes": schemes}, "security": [{"key": []}, {"login": []}]}
    file = tmp_path / "weather.json"
    file.write_text(json.dumps({**DOCUMENT, **secured}))

    imported = toolcrib("tool", "import", file, "--name", "weather", "--base-url", "https://w.example", store=store)
    assert "key reads WEATHER_KEY_TOKEN from the environment" in imported.stderr
    assert "login reads WEATHER_LOGIN_USERNAME and WEATHER_LOGIN_PASSWORD from the environment" in imported.stderr


@pytest.mark.requirement("cli.tools")
def test_what_an_import_could_not_keep_is_told(store: str, tmp_path: Path) -> None:
    form = {"application/xml": {"schema": {"type": "object"}}}
    broken = {"operationId": "send", "requestBody": {"required": True, "content": form}, "responses": {}}
    file = tmp_path / "weather.json"
    file.write_text(json.dumps({**DOCUMENT, "paths": {**DOCUMENT["paths"], "/send": {"post": broken}}}))

    imported = toolcrib("tool", "import", file, "--name", "weather", "--base-url", "https://w.example", store=store)
    assert "POST /send" in imported.stderr
    assert "is taken as it is" in " ".join(imported.stderr.split())
    assert "imported; 2 details dropped, 1 affects calls" in imported.stderr

    told = toolcrib(
        *("tool", "import", file, "--name", "weather", "--base-url", "https://w.example", "--json"), store=store
    )
    document = json.loads(told.stdout)
    outcome = document.pop("outcome")
    assert [(found["tool"], found["adoption"]) for found in outcome["tools"]] == [
        ("weather_now", "unchanged"),
        ("send", "unchanged"),
    ]
    report = LossReport.model_validate(document)
    assert [found.operation for found in report.operations] == ["GET /now", "POST /send"]
    assert [loss.kind for loss in report.operations[1].losses] == ["unsupported"]


@pytest.mark.requirement("cli.tools", "cli.errors")
def test_a_local_url_is_not_fetched_unless_the_operator_allows_it(store: str) -> None:
    refused = toolcrib("tool", "import", "http://127.0.0.1:9/openapi.json", "--name", "x", store=store)
    assert (refused.exit_code, "egress denied" in refused.stderr) == (1, True)
    allowed = toolcrib(
        *("tool", "import", "http://127.0.0.1:9/openapi.json", "--name", "x"),
        store=store,
        TOOLCRIB_EGRESS_ALLOW="127.0.0.1:9",
    )
    assert (allowed.exit_code, "127.0.0.1:9" in allowed.stderr, "egress" in allowed.stderr) == (1, True, False)


@pytest.mark.requirement("cli.schema")
def test_schemas_are_printed_all_or_one_and_written(tmp_path: Path) -> None:
    schemas = contract_schemas()
    assert json.loads(toolcrib("schema").stdout) == schemas
    assert json.loads(toolcrib("schema", "Run").stdout) == schemas["Run"]

    written = toolcrib("schema", "--write", tmp_path / "all")
    assert written.stdout == f"wrote {len(schemas) + 2} schemas to {tmp_path / 'all'}\n"
    assert {file.stem for file in (tmp_path / "all").iterdir()} == schemas.keys() | {"cli", "project"}
    toolcrib("schema", "Run", "--write", tmp_path / "one")
    assert [file.name for file in (tmp_path / "one").iterdir()] == ["Run.json"]


@pytest.mark.requirement("cli.up")
def test_up_serves_until_it_is_told_to_stop(store: str) -> None:
    serving = subprocess.Popen([PROGRAM, "up", "--port", "0", "--store", store], stdout=subprocess.PIPE, text=True)
    assert serving.stdout is not None
    assert serving.stdout.readline().startswith("Toolcrib listens on http://127.0.0.1:")
    serving.terminate()
    serving.communicate(timeout=60)


@pytest.mark.requirement("cli.up", "cli.errors")
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, store: str) -> None:
    for name in [name for name in sys.modules if name.startswith("toolcrib.interfaces.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    refused = toolcrib("up", store=store)
    assert (refused.exit_code, "pip install 'toolcrib[server]'" in refused.stderr) == (2, True)


@pytest.mark.requirement("cli.call")
def test_a_tool_is_called_once_and_its_output_printed(store: str, tmp_path: Path) -> None:
    code = tmp_path / "double.py"
    code.write_text("def main(number):\n    return {'twice': number * 2}\n")
    toolcrib("tool", "add-code", code, "--name", "double", store=store)

    assert json.loads(toolcrib("tool", "call", "double", "--input", '{"number": 21}', store=store).stdout) == {
        "twice": 42
    }
    envelope = json.loads(toolcrib("tool", "call", "double", "--input", '{"number": 4}', "--json", store=store).stdout)
    assert (envelope["status"], envelope["output"]) == ("success", {"twice": 8})


@pytest.mark.requirement("cli.call")
def test_a_call_that_fails_says_why_and_ends_with_a_status(store: str, tmp_path: Path) -> None:
    file = tmp_path / "weather.json"
    file.write_text(json.dumps(DOCUMENT))
    toolcrib("tool", "import", file, "--name", "weather", "--base-url", "http://127.0.0.1:9", store=store)

    refused = toolcrib("tool", "call", "weather_now", store=store)
    malformed = toolcrib("tool", "call", "weather_now", "--input", "{", store=store)

    assert (refused.exit_code, malformed.exit_code) == (1, 2)
    assert refused.stderr.startswith("toolcrib: POLICY_DENIED: ")
    assert "--input is not JSON" in malformed.stderr
