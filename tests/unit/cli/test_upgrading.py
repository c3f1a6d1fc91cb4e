"""`toolcrib upgrade rehearse`."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from toolcrib import Crib, tool

pytestmark = pytest.mark.requirement("rehearsal.cli")

FLOW = {
    "name": "flow",
    "steps": [
        {"name": "ask", "approval": {"message": "Go on?"}},
        {"name": "last", "tool": "look", "input": {"item": "hat"}, "depends_on": ["ask"]},
    ],
}
APPLICATION = """
from tests.unit.cli.test_upgrading import crib_of
crib = crib_of({url!r})
"""


@tool(side_effects="reads")
async def look(item: str) -> str:
    """Looks something up."""
    return f"{item} is here"


def crib_of(url: str) -> Crib:
    crib = Crib(url)
    crib.add(look)
    return crib


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite:///{tmp_path / 'crib.db'}"
    (tmp_path / "upgraded_shop.py").write_text(APPLICATION.format(url=url))
    monkeypatch.chdir(tmp_path)

    async def park() -> None:
        async with crib_of(url) as crib:
            await crib.workflows.publish(FLOW)
            await crib.invoke("flow", {})

    asyncio.run(park())
    return url


def test_a_change_that_strands_nobody_ends_well_and_one_that_does_tells_so(store: str) -> None:
    calm = toolcrib("upgrade", "rehearse", store=store)
    table = toolcrib("upgrade", "rehearse", "--block", "look", store=store)
    report = toolcrib("upgrade", "rehearse", "--block", "look", "--json", store=store)

    assert (calm.exit_code, calm.stdout.strip()) == (0, "1 safe, 0 needs attention, 0 will strand")
    assert (table.exit_code, table.stdout.splitlines()[-1]) == (1, "0 safe, 0 needs attention, 1 will strand")
    (run,) = json.loads(report.stdout)["runs"]
    assert (run["tool"], run["verdict"], run["reasons"][0]["code"]) == (
        "flow@1.0.0",
        "will_strand",
        "later_call_refused",
    )


def test_an_application_brings_its_functions(store: str) -> None:
    done = toolcrib("upgrade", "rehearse", "upgraded_shop:crib", store=store)

    assert done.exit_code == 0, done.stderr
    assert done.stdout.strip() == "1 safe, 0 needs attention, 0 will strand"


def test_a_folder_of_definitions_is_rehearsed_and_not_saved(store: str, tmp_path: Path) -> None:
    folder = tmp_path / "definitions"
    folder.mkdir()
    agent = {"kind": "agent", "name": "clerk", "llm": {"model": "ollama:tiny"}, "tools": ["look"]}
    steps = [{"name": "ask", "agent": "clerk", "input": {"message": "go"}}]
    (folder / "a_flow.json").write_text(json.dumps({"kind": "workflow", "name": "flow", "steps": steps}))
    (folder / "clerk.json").write_text(json.dumps(agent))

    done = toolcrib("upgrade", "rehearse", "--apply", folder, store=store)
    nothing = toolcrib("upgrade", "rehearse", "--apply", tmp_path / "none", store=store)

    assert done.exit_code == 0, done.stderr
    assert (nothing.exit_code, "there is no folder" in nothing.stderr) == (1, True)
    assert "clerk" not in toolcrib("tool", "list", store=store).stdout
