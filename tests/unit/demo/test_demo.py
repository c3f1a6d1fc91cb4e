"""The demonstration, against the real CRM process."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from examples.crm.demo import SCRIPTED, TASK, Outcome, demonstrate, judge, running_crm
from examples.crm.planner import answer
from tests.unit.cli.command import toolcrib
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import LLMStep, ToolStep, Unavailable
from toolcrib.interfaces.cli.demo.reports import Files, document
from toolcrib.llm import Request

ROOT = Path(__file__).parents[3]
PROGRAM = str(Path(sys.executable).with_name("toolcrib"))
QUIET = {"TOOLCRIB_MODEL": "", "TOOLCRIB_BASE_URL": ""}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command makes its own folders."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def updates(outcome: Outcome) -> list[ToolStep]:
    return [step for step in outcome.trace.steps if isinstance(step, ToolStep) and step.action == "batch_update_deals"]


@pytest.mark.requirement("demo.all_and_only")
async def test_all_deals_of_the_company_and_only_they_are_changed(tmp_path: Path) -> None:
    outcome = await demonstrate(TASK, folder=tmp_path)

    assert outcome.ok
    assert outcome.verdict is not None
    total, before = outcome.verdict.total, outcome.verdict.already_in_stage
    [search] = [step for step in outcome.trace.steps if isinstance(step, ToolStep) and step.action == "search_deals"]
    assert search.metadata["paging"] == {"pages": -(-total // 100), "items": total, "complete": True}
    assert [len(step.parameters["inputs"]) for step in updates(outcome)] == [100, 100, total - 200]
    assert outcome.result.output["deals_affected"] == total - before
    assert outcome.result.cost_usd == 0


@pytest.mark.requirement("demo.rate_limit")
async def test_a_crm_that_refuses_haste_gets_all_requests_in_the_end(tmp_path: Path) -> None:
    outcome = await demonstrate(TASK, folder=tmp_path, rate="5/1")

    assert outcome.ok
    assert max(step.attempts for step in updates(outcome)) > 1
    with sqlite3.connect(tmp_path / "crm.db") as connection:
        [(refused,)] = connection.execute("SELECT count(*) FROM request_log WHERE status = 429")
    connection.close()
    assert refused > 0


def literal(request: Request) -> str:
    """A planner that wants the company's name in the name of the deal too, and reports as if nothing was missing."""
    said = json.loads(answer(request))
    if request.output_name == "plan":
        filters = said["search_deals"]["input"]["filter_groups"][0]["filters"]
        filters.append({**filters[0], "property": "name", "operator": "CONTAINS"})
    return json.dumps(said)


def hasty(request: Request) -> str:
    """A planner that limits the search to the first page, which nobody asked for, until it is told so."""
    said = json.loads(answer(request))
    if request.output_name == "plan" and len(request.messages) == 1:
        said["search_deals"]["input"]["limit"] = 100
    return json.dumps(said)


@pytest.mark.requirement("demo.all_and_only", "agents.second_reading")
async def test_a_limit_that_nobody_asked_for_is_denied_by_a_second_reading_and_left_out(tmp_path: Path) -> None:
    outcome = await demonstrate(TASK, folder=tmp_path, script=ScriptedModel(hasty, name="crm-planner"))

    assert outcome.ok
    asked = [step for step in outcome.trace.steps if isinstance(step, LLMStep)]
    assert [step.purpose for step in asked] == ["planning", "verification", "error_recovery", "formatting"]
    assert "search_deals: condition limit '100' is not what the task says" in asked[2].input
    assert outcome.result.summary.warnings == ()


@pytest.mark.requirement("demo.wrong_data")
async def test_a_planner_that_selects_too_little_is_found_out(tmp_path: Path) -> None:
    outcome = await demonstrate(TASK, folder=tmp_path, script=ScriptedModel(literal, name="crm-planner"))

    assert outcome.result.ok
    assert not outcome.ok
    assert outcome.verdict is not None
    assert updates(outcome)
    assert len(outcome.verdict.missing) > 100
    assert document(outcome, Files(tmp_path, db=None, store=None)).success is False


def holders(folder: Path, text: bytes) -> list[Path]:
    """Files of the journal that have the text in them."""
    return [file for file in folder.rglob("toolcrib*") if file.is_file() and text in file.read_bytes()]


@pytest.mark.requirement("demo.secret")
async def test_the_token_is_in_no_definition_and_no_event(tmp_path: Path) -> None:
    async with running_crm(tmp_path / "crm.db", log=tmp_path / "crm.log") as crm:
        token = crm.token
    assert token.startswith("crm_")
    outcome = await demonstrate(TASK, folder=tmp_path)

    told = outcome.trace.model_dump_json() + "".join(event.model_dump_json() for event in outcome.result.events)
    assert "crm_" not in told
    assert holders(tmp_path, b"list_pipelines")
    assert holders(tmp_path, b"crm_") == []


@pytest.mark.requirement("demo.failed_run")
async def test_a_crm_that_does_not_start_is_told_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "crm.db").write_text("no database\n" * 100)
    with pytest.raises(Unavailable, match="the CRM did not start: crm: "):
        await demonstrate(TASK, folder=tmp_path)


@pytest.mark.requirement("demo.wrong_data")
def test_what_cannot_be_judged_is_not_right(tmp_path: Path) -> None:
    assert judge(tmp_path / "crm.db", "Clean up") == (None, "the check does not understand how this task is worded")


@pytest.mark.requirement("demo.text", "demo.kept")
def test_the_command_prints_model_trace_cost_answer_and_verdict(folder: Path) -> None:
    done = toolcrib("demo", "crm", **QUIET)

    assert (done.exit_code, done.stderr) == (0, "")
    for expected in (
        "Model: scripted:crm-planner, a planner made of rules. No model is asked and no API key is read.",
        "toolcrib demo crm --model anthropic:claude-sonnet-4",
        "Embedded LLM Planning (scripted:crm-planner)",
        "Result: total: 237, results: 237 items",
        "Cost: $0",
        '"Moved 210 of the 237 deals of Acme Corp to Negotiation; 27 were there already."',
        "✓ all deals of Acme Corp, and only they, are in Negotiation",
        "keep it with: toolcrib demo crm --keep",
    ):
        assert expected in done.stdout
    assert list(folder.glob("toolcrib-demo-*")) == []


@pytest.mark.requirement("demo.json", "demo.kept")
def test_the_json_document_is_the_only_output_and_what_is_kept_can_be_read(folder: Path) -> None:
    done = toolcrib("demo", "crm", "--json", "--keep", **QUIET)
    told = json.loads(done.stdout)
    meta = told["meta"]

    assert (done.exit_code, done.stderr, told["success"]) == (0, "", True)
    assert told["data"]["deals_affected"] == meta["verified"]["changed"]
    assert (meta["mode"], meta["model"], meta["total_cost"]) == ("deterministic", SCRIPTED, 0)
    assert meta["total_tokens"] > 0
    assert meta["duration_ms"] > 0
    assert meta["verified"]["all_and_only"] is True
    names = {"tool_call": "action", "llm_call": "purpose", "progress": "kind"}
    steps = [(step["type"], step[names[step["type"]]]) for step in meta["trace"]["steps"]]
    assert steps == [
        ("tool_call", "list_pipelines"),
        ("progress", "reference_data"),
        ("llm_call", "planning"),
        ("progress", "plan_settled"),
        ("tool_call", "search_deals"),
        *[("tool_call", "batch_update_deals")] * 3,
        ("llm_call", "formatting"),
    ]
    kept = toolcrib("run", "trace", meta["run_id"], "--json", "--store", meta["store"])
    assert json.loads(kept.stdout)["steps"] == meta["trace"]["steps"]
    assert Path(meta["crm_db"]).is_relative_to(folder)


@pytest.mark.requirement("demo.wrong_data", "demo.json")
@pytest.mark.parametrize(
    ("task", "problem"),
    [
        ("Update all Nobody deals to Negotiation", "no company is named 'Nobody'"),
        ("Sell more", "the check does not understand how this task is worded"),
    ],
)
def test_what_was_not_done_ends_with_status_1(folder: Path, task: str, problem: str) -> None:
    done = toolcrib("demo", "crm", "--task", task, "--json", **QUIET)
    told = json.loads(done.stdout)

    assert (done.exit_code, told["success"]) == (1, False)
    assert told["meta"]["verified"] == {"all_and_only": False, "problem": problem}
    assert told["meta"]["store"] is not None


@pytest.mark.requirement("demo.wrong_data", "demo.text")
def test_data_that_is_not_right_is_counted(folder: Path) -> None:
    done = toolcrib("demo", "crm", "--task", "Update all Acme Corp deals to Qualified", "--keep", **QUIET)

    assert done.exit_code == 1
    assert "'Qualified' is the name of 2 stages; say which by its id." in done.stdout
    assert " deals of Acme Corp are not in Qualified" in done.stdout
    assert "Look at the run again: toolcrib run trace run_" in done.stdout
    unknown = toolcrib("demo", "crm", "--task", "Sell more", **QUIET)
    assert "✗ not checked: the check does not understand how this task is worded" in unknown.stdout


@pytest.mark.requirement("demo.refused", "demo.no_key")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "openai:gpt-4o"), "model 'openai:gpt-4o' needs OPENAI_API_KEY, which is not set"),
        (("--model", "nobody:x"), "'nobody' is not a known provider"),
        (("--model", "scripted:other"), "there is no model 'scripted:other'"),
        (("--model", "openai:x", "--base-url", "nowhere"), "base_url 'nowhere' is not an http or https URL"),
    ],
)
def test_a_model_that_could_not_be_asked_starts_nothing(folder: Path, options: tuple[str, ...], message: str) -> None:
    done = toolcrib("demo", "crm", *options, **{**QUIET, "OPENAI_API_KEY": ""})

    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert message in done.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.requirement("demo.no_key")
def test_a_key_that_merely_exists_changes_nothing(folder: Path) -> None:
    done = toolcrib("demo", "crm", "--json", **QUIET, OPENAI_API_KEY="sk-real", ANTHROPIC_API_KEY="sk-ant-real")
    assert json.loads(done.stdout)["meta"]["model"] == SCRIPTED


@pytest.mark.requirement("demo.failed_run")
def test_a_model_that_is_not_there_leaves_an_ended_run_behind(folder: Path) -> None:
    store, db = f"sqlite:///{folder / 'mine.db'}", folder / "mine-crm.db"
    options = ("--model", "ollama:none", "--base-url", "http://127.0.0.1:9", "--store", store, "--db", str(db))
    done = toolcrib("demo", "crm", *options)

    assert done.exit_code == 1
    assert "Model: ollama:none\n" in done.stdout
    assert "NETWORK_ERROR" in done.stdout
    [run] = json.loads(toolcrib("run", "list", "--json", "--store", store).stdout)
    assert (run["status"], run["run_id"] in done.stdout) == ("failed", True)
    assert db.is_file()


@pytest.mark.requirement("demo.failed_run")
def test_a_crm_that_does_not_start_ends_the_command_with_one_line(folder: Path) -> None:
    db = folder / "notes.db"
    db.write_text("no database\n" * 100)
    done = toolcrib("demo", "crm", "--json", "--db", db, **QUIET)

    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "the CRM did not start" in done.stderr


@pytest.mark.requirement("demo.kept")
def test_a_database_and_a_store_that_were_named_stay(folder: Path) -> None:
    store, db = f"sqlite:///{folder / 'mine.db'}", folder / "mine-crm.db"
    first = json.loads(toolcrib("demo", "crm", "--json", "--store", store, "--db", db, **QUIET).stdout)
    again = json.loads(toolcrib("demo", "crm", "--json", "--store", store, "--db", db, **QUIET).stdout)

    assert [first["success"], again["success"]] == [True, True]
    assert (first["data"]["deals_affected"], again["data"]["deals_affected"]) == (210, 0)
    assert (again["meta"]["store"], again["meta"]["crm_db"]) == (store, str(db))
    assert list(folder.glob("toolcrib-demo-*")) == []


@pytest.mark.requirement("demo.json", "demo.installed")
def test_the_program_prints_one_document_from_any_folder(tmp_path: Path) -> None:
    environment = {**os.environ, **QUIET, "TMPDIR": str(tmp_path)}
    command = [PROGRAM, "demo", "crm", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True)

    told = json.loads(done.stdout)
    assert (told["success"], done.stderr) == (True, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("demo.all_and_only")
async def test_its_tools_are_those_of_the_document(tmp_path: Path) -> None:
    await demonstrate(TASK, folder=tmp_path)
    async with Crib(f"sqlite:///{tmp_path / 'toolcrib.db'}") as crib:
        tools = {tool.name: tool.definition for tool in crib.registry.current(crib.principal.realm)}

    assert tools["search_deals"].side_effects == "reads"
    assert tools["batch_update_deals"].side_effects == "writes"
    assert tools["deal-manager"].implementation.kind == "agentic"


@pytest.mark.requirement("demo.installed")
def test_an_installed_package_brings_its_own_examples(tmp_path: Path) -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    site = tmp_path / "site"
    for included in wheel["only-include"]:
        top, _, rest = included.partition("/")
        source, target = ROOT / included, site / wheel["sources"][top] / rest
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, target)

    assert (site / "toolcrib" / "py.typed").exists()  # type checkers ignore the types of a package without it
    command = [sys.executable, "-c", "from toolcrib.interfaces.cli import main; main()", "demo", "crm", "--json"]
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("COV")
    }  # a copy is not measured
    environment = {**inherited, **QUIET, "TMPDIR": str(tmp_path), "PYTHONPATH": str(site)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True)
    assert json.loads(done.stdout)["success"] is True
    imports = "import toolcrib.interfaces.cli.demo.demo as e; e.make_importable(); import examples.crm"
    probe = f"{imports}; print(examples.crm.__file__)"
    command = [sys.executable, "-c", probe]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True)
    assert Path(found.stdout.strip()).is_relative_to(site)
