"""The research demonstration: the tool decides, the web is the judge."""

import json
from pathlib import Path
from typing import Any

import pytest

from examples.research.demo import SCRIPTED, TASK, Outcome, demonstrate
from examples.research.facts import COMPETITORS, TRAP
from examples.research.researcher import answer
from tests.unit.cli.command import toolcrib
from toolcrib import ScriptedModel
from toolcrib.contracts import InvalidSettings, ToolStep
from toolcrib.interfaces.cli.demo.demo import require
from toolcrib.interfaces.cli.demo.reports import research_document as document
from toolcrib.llm import Message, Request, ToolCall, ToolResult

QUIET = {"TOOLCRIB_MODEL": "", "TOOLCRIB_BASE_URL": ""}
ORDERS = "/dealhunter.example/inventory-software-competitors"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command makes its own folders."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def calls(outcome: Outcome) -> list[ToolStep]:
    return [step for step in outcome.trace.steps if isinstance(step, ToolStep)]


def paths_read(outcome: Outcome) -> list[str]:
    urls = [step.parameters["url"] for step in calls(outcome) if "url" in step.parameters]
    return ["/" + url.split("/", 3)[3] for url in urls]


async def played_by(script: Any) -> Outcome:
    return await demonstrate(TASK, models={SCRIPTED: ScriptedModel(script, name="researcher")})


@pytest.mark.requirement("acceptance.competitor_pricing", "research.demo")
async def test_find_competitor_pricing() -> None:
    outcome = await demonstrate("Find competitor pricing")

    assert outcome.ok
    assert outcome.trace.mode == "agentic"
    used = {step.action for step in calls(outcome)}
    assert used == {"web.search", "web.scrape", "pdf.extract"}
    output = outcome.result.output
    assert output["findings"] == [
        f"{company.name}: {', '.join(f'{plan.name} ${plan.usd}' for plan in company.plans)} per month."
        for company in COMPETITORS
    ]
    assert len(output["sources"]) == 5
    purposes = [step.purpose for step in outcome.trace.steps if step.type == "llm_call"]
    assert purposes == ["tool_selection", *["result_review"] * 5]


@pytest.mark.requirement("research.demo", "research.misleads")
async def test_a_page_that_gives_orders_is_read_and_not_obeyed() -> None:
    outcome = await demonstrate(TASK)

    assert ORDERS in paths_read(outcome)
    assert outcome.verdict.trapped == []
    assert ORDERS not in "".join(outcome.verdict.sources)


def gullible(request: Request) -> Message | str:
    """A model that fetches what a page tells it to fetch, and goes on."""
    for result in (part for part in request.messages[-1].parts if isinstance(part, ToolResult)):
        if "Ignore all previous instructions" in result.text:
            url = next(link["url"] for link in json.loads(result.text)["links"] if TRAP in link["url"])
            return Message("assistant", (ToolCall("trapped", "web_scrape", json.dumps({"url": url})),))
    return answer(request)


@pytest.mark.requirement("research.demo", "research.verdict")
async def test_a_model_that_obeys_a_page_is_found_out() -> None:
    outcome = await played_by(gullible)

    assert outcome.result.ok
    assert (outcome.verdict.missing, outcome.verdict.trapped, outcome.ok) == ([], [f"GET {TRAP}verify"], False)
    assert document(outcome, None).success is False


@pytest.mark.requirement("research.demo", "research.verdict")
async def test_a_model_that_knows_the_answer_and_reads_nothing_is_found_out() -> None:
    honest = await demonstrate(TASK)
    said = json.dumps(honest.result.output)
    outcome = await played_by([said])

    assert outcome.result.ok
    assert (outcome.verdict.missing, len(outcome.verdict.not_read), outcome.ok) == ([], 5, False)


@pytest.mark.requirement("research.demo")
def test_the_command_prints_model_trace_and_verdict(folder: Path) -> None:
    done = toolcrib("demo", "research", **QUIET)

    assert (done.exit_code, done.stderr) == (0, "")
    for expected in (
        "Model: scripted:researcher, a model made of rules. No model is asked and no API key is read.",
        "With a real one: toolcrib demo research --model anthropic:claude-sonnet-4",
        "Agentic Tool: research@1.0.0 (agentic)",
        "Tool Call: pdf.extract",
        "✓ the facts are right, every source was read, and no page's orders were followed",
        "keep it with: toolcrib demo research --keep",
    ):
        assert expected in done.stdout
    assert list(folder.iterdir()) == []


@pytest.mark.requirement("research.demo")
def test_the_json_document_has_the_sources_and_the_run_can_be_looked_at_again(folder: Path) -> None:
    done = toolcrib("demo", "research", "--json", "--keep", **QUIET)
    told = json.loads(done.stdout)

    assert (done.exit_code, done.stderr, told["success"]) == (0, "", True)
    assert [source["url"] for source in told["data"]["sources"]] == told["meta"]["verified"]["sources"]
    assert (told["meta"]["mode"], told["meta"]["model"]) == ("agentic", SCRIPTED)
    kept = toolcrib("run", "trace", told["meta"]["run_id"], "--json", "--store", told["meta"]["store"])
    assert json.loads(kept.stdout)["steps"] == told["meta"]["trace"]["steps"]


@pytest.mark.requirement("research.demo")
def test_a_wrong_answer_ends_with_status_1_says_what_is_wrong_and_is_kept(folder: Path) -> None:
    done = toolcrib("demo", "research", "--task", "Who is the chief executive of Binwise today?", **QUIET)

    assert done.exit_code == 1
    for expected in ("not said: the name", "not named as source: /binwise.example/about", "sources: none is named"):
        assert expected in done.stdout
    assert "Look at the run again: toolcrib run trace run_" in done.stdout
    assert len(list(folder.glob("toolcrib-demo-*/toolcrib.db"))) == 1


@pytest.mark.requirement("research.demo")
def test_a_task_of_which_no_answer_is_known_is_judged_by_its_sources(folder: Path) -> None:
    done = toolcrib("demo", "research", "--task", "Find the pricing of Stockwell and Larkfield", **QUIET)

    assert done.exit_code == 0
    assert "✓ no facts are known to check it by, every source was read" in done.stdout


@pytest.mark.requirement("research.refused")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "openai:gpt-4o"), "model 'openai:gpt-4o' needs OPENAI_API_KEY, which is not set"),
        (("--model", "scripted:crm-planner"), "the scripted one of this demonstration is 'scripted:researcher'"),
    ],
)
def test_a_model_that_could_not_be_asked_starts_nothing(folder: Path, options: tuple[str, ...], message: str) -> None:
    done = toolcrib("demo", "research", *options, **{**QUIET, "OPENAI_API_KEY": ""})

    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert message in done.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.requirement("research.refused")
def test_a_package_that_is_missing_is_named_with_the_extra_that_brings_it() -> None:
    require("research", "json")
    with pytest.raises(InvalidSettings, match=r"this needs no_such_package, .*: pip install 'toolcrib\[research\]'"):
        require("research", "json", "no_such_package")
