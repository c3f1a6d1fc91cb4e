"""Workflows from the command line: checked line by line, drafted, published, drawn, exported, taken back."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from tests.unit.cli.command import invalid, toolcrib
from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import AgentDefinition
from toolcrib.interfaces.cli.app import app
from toolcrib.llm import Message, Request, ToolCall

GREET = """\
name: greet
description: Greets somebody.
input_schema: {type: object, properties: {name: {type: string}}, required: [name]}
steps:
  - name: words
    output: ["hello", "${input.name}"]
  - name: line
    output: "${words.join(' ')}"
output: {line: "${line}"}
"""
BAD = """\
name: greet
steps:
  - name: words
    tool: no_such_tool
  - name: line
    output: "${wods.length}"
"""


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/crib.db"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The definition of a workflow."""
    file = tmp_path / "greet.yaml"
    file.write_text(GREET, encoding="utf-8")
    return file


def published(store: str, file: Path) -> None:
    """Publish it."""
    done = toolcrib("workflow", "publish", file, "--yes", store=store)
    assert done.exit_code == 0, done.stderr


@pytest.mark.requirement("workflow_cli.check")
def test_everything_that_is_wrong_is_told_with_its_line(store: str, file: Path):
    published(store, file)
    file.write_text(BAD, encoding="utf-8")
    found = toolcrib("workflow", "check", file, store=store)

    assert found.exit_code == 1
    assert [line.split(": ")[:3] for line in found.stdout.splitlines()] == [
        [f"{file}:4", "error", "/steps/0/tool"],
        [f"{file}:6", "error", "/steps/1/output"],
    ]
    assert "did you mean 'words'" in found.stdout
    told = json.loads(toolcrib("workflow", "check", file, "--json", store=store).stdout)
    assert [problem["step"] for problem in told["problems"]] == ["words", "line"]
    for command in (("workflow", "publish", "--yes"), ("draft", "add")):
        refused = toolcrib(*command, file, store=store)
        assert (refused.exit_code, refused.stdout) == (1, found.stdout)


@pytest.mark.requirement("workflow_cli.check")
def test_what_is_wrong_in_a_file_of_json_is_told_with_its_line(store: str, file: Path, tmp_path: Path):
    published(store, file)
    other = tmp_path / "greet.json"
    other.write_text(json.dumps({**yaml.safe_load(BAD), "colour": "red"}, indent=1), encoding="utf-8")
    found = toolcrib("workflow", "check", other, store=store)

    lines = other.read_text(encoding="utf-8").splitlines()
    (line,) = (number for number, text in enumerate(lines, start=1) if "colour" in text)
    assert found.stdout.startswith(f"{other}:{line}: error: /colour: there is no field 'colour' here")


@pytest.mark.requirement("workflow_cli.check")
def test_a_moment_that_is_written_without_quotes_is_text_as_it_is_in_json(store: str, file: Path):
    published(store, file)
    file.write_text("name: late\nsteps:\n- name: pause\n  wait: {until: 2026-01-31T12:00:00Z}\n", encoding="utf-8")

    done = toolcrib("workflow", "check", file, store=store)

    assert done.exit_code == 0, done.stderr


@pytest.mark.requirement("workflow_cli.check")
def test_nothing_wrong_is_said_as_well(store: str, file: Path):
    published(store, file)

    assert toolcrib("workflow", "check", file, store=store).stdout == f"{file}: nothing is wrong with greet@1.0.0\n"


@pytest.mark.requirement("workflow_cli.publish")
def test_publishing_tells_whom_it_concerns_and_asks(store: str, file: Path):
    published(store, file)
    outer = file.with_name("outer.yaml")
    outer.write_text("name: outer\nsteps: [{name: a, workflow: greet, input: {name: Ann}}]\n", encoding="utf-8")
    published(store, outer)
    file.write_text(GREET.replace("Greets somebody", "Says hello"), encoding="utf-8")

    answers = {"TOOLCRIB_STORE": store}
    asked = CliRunner().invoke(app, ["workflow", "publish", str(file)], env=answers, input="n\n")
    assert (asked.exit_code, "outer@1.0.0" in asked.stdout, "Publish it?" in asked.stderr) == (1, True, True)
    assert "Greets" in toolcrib("workflow", "show", "greet", store=store).stdout
    agreed = CliRunner().invoke(app, ["workflow", "publish", str(file)], env=answers, input="y\n")
    assert "workflow greet@1.0.0 is published as revision 2" in agreed.stdout
    assert "outer@1.0.0" in toolcrib("workflow", "impact", "greet", store=store).stdout
    (dependent,) = json.loads(toolcrib("workflow", "impact", "greet", "--json", store=store).stdout)["dependents"]
    assert dependent["name"] == "outer@1.0.0"


@pytest.mark.requirement("workflow_cli.publish")
def test_a_draft_is_kept_listed_taken_back_discarded_and_published(store: str, file: Path):
    kept = toolcrib("draft", "add", file, "--note", "look at it", store=store)
    assert kept.stdout == "draft greet is saved as revision 1\n"
    assert "look at it" in toolcrib("draft", "list", store=store).stdout
    file.write_text(GREET.replace("hello", "good day"), encoding="utf-8")
    toolcrib("draft", "add", file, store=store)
    undone = toolcrib("draft", "undo", "greet", store=store)
    assert undone.stdout == "the last change of draft greet is undone; it is as it was, in revision 3\n"
    (draft,) = json.loads(toolcrib("draft", "list", "--json", store=store).stdout)
    assert draft["definition"]["steps"][0]["output"][0] == "hello"

    done = toolcrib("workflow", "publish", "greet", "--yes", store=store)
    assert done.stdout.splitlines() == [
        "draft greet is by owner",
        "look at it",
        "greet@1.0.0: ok",
        "├── words  value",
        "└── line  value",
        "workflow greet@1.0.0 is published as revision 1",
    ]
    gone = toolcrib("draft", "remove", "greet", store=store)
    assert (gone.exit_code, "no draft 'greet'" in gone.stderr) == (1, True)
    toolcrib("draft", "add", file, store=store)
    assert toolcrib("draft", "remove", "greet", store=store).stdout == "draft greet is removed\n"


@pytest.mark.requirement("workflow_cli.publish")
def test_a_draft_of_an_agent_says_so_before_it_is_published(store: str):
    async def write() -> None:
        async with Crib(store) as crib:
            await crib.workflows.draft(
                yaml.safe_load(GREET), authored_by="scribe", run_id="run_1", tainted_by="read_mail"
            )

    asyncio.run(write())
    told = toolcrib("workflow", "publish", "greet", "--yes", store=store).stdout.splitlines()
    assert told[:2] == [
        "draft greet was written by agent scribe, in run run_1",
        "before that the run had read untrusted content: read_mail",
    ]


@pytest.mark.requirement("workflow_cli.publish")
def test_an_older_revision_comes_back_and_a_workflow_goes(store: str, file: Path):
    published(store, file)
    file.write_text(GREET.replace("hello", "good day"), encoding="utf-8")
    published(store, file)

    told = toolcrib("workflow", "revert", "greet", "1", store=store).stdout
    assert told == "revision 1 of workflow greet is published again, as revision 3\n"
    assert "hello" in toolcrib("workflow", "export", "greet", store=store).stdout
    assert toolcrib("workflow", "remove", "greet", store=store).stdout == "workflow greet is removed\n"
    assert toolcrib("workflow", "show", "greet", store=store).exit_code == 1


@pytest.mark.requirement("workflow_cli.show")
def test_a_workflow_is_listed_drawn_and_exported(store: str, file: Path):
    published(store, file)

    assert "workflow" in toolcrib("workflow", "list", store=store).stdout
    (listed,) = json.loads(toolcrib("workflow", "list", "--json", store=store).stdout)
    assert listed["definition"]["name"] == "greet"
    tree = "greet@1.0.0: ok\n├── words  value\n└── line  value\n"
    assert toolcrib("workflow", "graph", "greet", store=store).stdout == tree
    assert toolcrib("workflow", "show", "greet", store=store).stdout == f"Greets somebody.\n{tree}"
    graph = json.loads(toolcrib("workflow", "graph", "greet", "--json", store=store).stdout)
    assert [node["name"] for node in graph["nodes"]] == ["words", "line"]
    document = json.loads(toolcrib("workflow", "show", "greet", "--json", store=store).stdout)
    assert document == yaml.safe_load(GREET)
    for form, read in (((), yaml.safe_load), (("--json",), json.loads)):
        exported = read(toolcrib("workflow", "export", "greet", *form, store=store).stdout)
        assert (exported, next(iter(exported))) == (document, "name")


@tool(side_effects="reads")
async def search(company: str) -> list[dict[str, str]]:
    """Find deals."""
    return [{"name": company}]


def desk(request: Request) -> Message | str:
    """Looks once, then answers."""
    if len(request.messages) == 1:
        return Message("assistant", (ToolCall("a", "search", '{"company": "Acme"}'),))
    return "One deal."


@pytest.mark.requirement("workflow_cli.show")
def test_a_deterministic_agentic_tool_is_drawn_and_exported_as_a_workflow(store: str):
    async def make() -> None:
        async with Crib(store, models={"scripted:plan": ScriptedModel(["{}"])}) as crib:
            crib.add(search)
            crib.agentic_tool("deals", mode="deterministic", model="scripted:plan", steps=["search"])
            await crib.workflows.of("deals")

    asyncio.run(make())
    assert toolcrib("workflow", "show", "deals", store=store).stdout.startswith("deals-workflow@1.0.0: ok\n├── plan")
    exported = yaml.safe_load(toolcrib("workflow", "export", "deals", store=store).stdout)
    assert exported["steps"][0]["name"] == "plan"


@pytest.mark.requirement("workflow_cli.publish")
def test_a_call_of_an_agent_becomes_a_step(store: str):
    ask: dict[str, Any] = {
        "name": "ask",
        "agent": "desk",
        "input": {"message": "Find Acme."},
        "pins": [{"name": "deals", "selector": {"tool": "search"}}],
    }
    steps = [
        ask,
        {"name": "count", "output": "${ask.handles.deals.length}"},
        {"name": "all", "output": "${ask.handles}"},
    ]

    async def run() -> str:
        async with Crib(store, models={"scripted:desk": ScriptedModel(desk)}) as crib:
            crib.add(search)
            agent = {"name": "desk", "llm": {"model": "scripted:desk"}, "system_prompt": "Look.", "tools": ["search"]}
            await crib.agents.save(AgentDefinition.model_validate(agent))
            await crib.workflows.publish({"name": "follow", "steps": steps})
            return (await crib.instances.start("follow", {})).run_id

    options = ("--run", asyncio.run(run()), "--pin", "deals", "--step", "find")
    made = toolcrib("workflow", "materialize", "follow", *options, store=store)
    assert made.exit_code == 0, made.stderr
    assert "/steps/1/output reads find now" in made.stdout
    assert "/steps/2/output reads handles as before" in made.stdout
    back = toolcrib("draft", "undo", "follow", store=store).stdout
    assert back == "the last change of draft follow is undone; there was none before\n"
    again = toolcrib("workflow", "materialize", "follow", *options, "--json", store=store)
    assert invalid("workflow materialize", json.loads(again.stdout)) == []
