"""What the README shows: its example runs, its commands exist, its files are there, and it fits two screens."""

import io
import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Final

import pytest
from rich.console import Console
from rich.markdown import Markdown

import toolcrib
from toolcrib.llm import Message, Request, ToolCall
from tools.docs import commands, picture

ROOT: Final = Path(__file__).parents[2]
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
FEATURES: Final = (ROOT / "docs/features.md").read_text(encoding="utf-8")
SNIPPETS: Final = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
MODEL: Final = "anthropic:claude-sonnet-4"
COLUMNS: Final = 120
SCREEN: Final = 50
"""Lines of a screen: 1,200 pixels with lines of 24."""
LINE: Final = 24
PIXELS: Final = 900
"""Width of the page, which a picture is scaled to, as wide as 120 columns."""


def desk(request: Request) -> Message | str:
    """What a model would say in the README's example."""
    last = request.messages[-1]
    if last.text:
        return Message("assistant", (ToolCall("a", "search_deals", '{"company": "Acme"}'),))
    return "Acme has the deals d1 and d2."


def deals(request: Request) -> str:
    """What a model would say in the example of the features."""
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


def printed_by(snippet: str, **options: Any) -> str:
    """What a snippet prints, whose crib is in memory."""

    def crib() -> toolcrib.Crib:
        return toolcrib.Crib("memory://", **options)

    assert "Crib()" in snippet
    names: dict[str, Any] = {"__name__": "readme", "prepared_crib": crib}
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(snippet.replace("Crib()", "prepared_crib()"), "README.md", "exec"), names)
    return printed.getvalue()


@pytest.mark.requirement("readme.snippets")
def test_the_example_runs_and_there_is_one() -> None:
    [snippet] = SNIPPETS
    printed = printed_by(snippet, models={MODEL: toolcrib.ScriptedModel(desk, name="readme")})
    assert printed == "Acme has the deals d1 and d2.\n"


@pytest.mark.requirement("readme.snippets")
def test_without_a_key_the_example_prints_which_variable_to_set() -> None:
    assert printed_by(SNIPPETS[0], environment={}).startswith("ANTHROPIC_API_KEY is not set")


@pytest.mark.requirement("readme.snippets")
def test_the_example_of_the_features_runs() -> None:
    [snippet] = re.findall(r"^```python\n(.*?)^```$", FEATURES, re.DOTALL | re.MULTILINE)
    printed = printed_by(snippet, models={MODEL: toolcrib.ScriptedModel(deals, name="features")})
    assert printed == (
        "{'summary': 'Moved 2 deals.'} 0 ['llm_call', 'progress', 'tool_call', 'tool_call', 'llm_call']\n"
        "{'moved': {'updated': 2}}\n"
    )


@pytest.mark.requirement("readme.commands")
@pytest.mark.parametrize(("page", "least"), [(README, 2), (FEATURES, 30)], ids=["README", "features"])
def test_every_command_and_option_exists(page: str, least: int) -> None:
    lines = re.findall(r"(?:^    (?:uvx )?|`(?:uvx )?)toolcrib ([^`#\n]+)", page, re.MULTILINE)
    assert len(lines) >= least
    for line in lines:
        found = commands.find(line.split())
        assert found is not None, f"toolcrib {line}"
        assert set(re.findall(r"--[a-z-]+", line)) <= found.options, f"toolcrib {line}"


@pytest.mark.requirement("readme.commands")
def test_make_knows_its_targets_and_linked_files_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"`make (\w+)`", README)
    assert targets == ["demo", "test"]
    assert all(f"\n{target}:" in makefile for target in targets)


@pytest.mark.requirement("readme.commands")
def test_the_package_is_installed_under_the_name_that_the_readme_says() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '\nname = "toolcrib"\n' in project
    assert '\ntoolcrib = "toolcrib.interfaces.cli:main"\n' in project
    assert "    pip install toolcrib " in README


@pytest.mark.requirement("readme.size")
def test_the_readme_fits_two_screens() -> None:
    console = Console(file=io.StringIO(), width=COLUMNS, record=True)
    console.print(Markdown(README))
    lines = len(console.export_text().splitlines())
    svg = (ROOT / picture.PICTURE).read_text(encoding="utf-8")
    width, height = map(float, re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[0])
    shown = lines + height * PIXELS / width / LINE
    assert shown <= 2 * SCREEN, f"the README has {shown:.0f} lines of {COLUMNS} columns; move something to docs"


@pytest.mark.requirement("readme.picture")
async def test_the_picture_is_what_the_demonstration_draws_and_it_loads_nothing() -> None:
    svg = (ROOT / picture.PICTURE).read_text(encoding="utf-8")
    assert f"]({picture.PICTURE})" in README
    assert svg == picture.svg_of(await picture.run()), "draw it again: python -m tools.docs.picture"
    assert re.findall(r"https?://[^\"' ]+", svg) == ["http://www.w3.org/2000/svg"]
