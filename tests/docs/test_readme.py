"""What the README shows: its examples run, its commands exist, its files are there."""

import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer

import toolcrib
from toolcrib.interfaces.cli.app import app
from toolcrib.llm import Request

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
MODEL = "anthropic:claude-sonnet-4"


def script(request: Request) -> str:
    """What a model would answer to the README's example."""
    if request.output_name != "plan":
        return json.dumps({"summary": "Moved 2 deals."})
    reading = [
        {"words": "Update all", "use": "request"},
        {"words": "Acme Corp", "use": "condition", "value": "Acme Corp"},
        {"words": "deals", "use": "request"},
        {"words": "to Negotiation", "use": "change", "value": "Negotiation"},
    ]
    search = {"input": {"company": "Acme Corp"}}
    update = {"for_each": "${search_deals}", "input": {"ids": ["${item.id}"], "stage": "Negotiation"}}
    plan = {"reasoning": "Search, then update.", "search_deals": search, "update_deals": update}
    return json.dumps({"reading": reading, **plan})


@pytest.mark.requirement("readme.snippets")
@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.split()[1])
def test_an_example_runs(snippet: str) -> None:
    def crib() -> toolcrib.Crib:
        return toolcrib.Crib("memory://", models={MODEL: toolcrib.ScriptedModel(script, name="readme")})

    assert "Crib()" in snippet
    names: dict[str, Any] = {"__name__": "readme", "scripted_crib": crib}
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(snippet.replace("Crib()", "scripted_crib()"), "README.md", "exec"), names)
    assert printed.getvalue() == (
        "{'summary': 'Moved 2 deals.'} 0 ['llm_call', 'progress', 'tool_call', 'tool_call', 'llm_call']\n"
        "{'moved': {'updated': 2}}\n"
    )


@pytest.mark.requirement("readme.snippets")
def test_there_is_one_example() -> None:
    assert len(SNIPPETS) == 1


@pytest.mark.requirement("readme.commands")
def test_every_command_and_option_exists() -> None:
    group = typer.main.get_command(app)
    found = re.findall(r"(?:^    |`)toolcrib ((?:[a-z]+ ?)+)(.*?)(?:`|#|$)", README, re.MULTILINE)
    assert len(found) > 5
    for words, rest in found:
        command: Any = group
        for word in words.split():
            command = getattr(command, "commands", {}).get(word, command)
        assert command is not group, f"toolcrib {words}"
        options = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= options, f"toolcrib {words}{rest}"


@pytest.mark.requirement("readme.commands")
def test_make_knows_its_targets_and_linked_files_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^    make (\w+)", README, re.MULTILINE)
    assert targets == ["demo", "test"]
    assert all(f"\n{target}:" in makefile for target in targets)
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.requirement("docs.index")
def test_the_readme_leads_to_every_page_and_no_link_of_a_page_is_broken() -> None:
    pages = sorted((ROOT / "docs").glob("*.md"))
    assert [page.name for page in pages if f"](docs/{page.name})" not in README] == []
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", page.read_text("utf-8"))]
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []
