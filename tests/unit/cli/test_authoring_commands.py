"""An author's commands, on a store in a file."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.command import toolcrib
from toolcrib import AgenticStep, Crib, ScriptedModel
from toolcrib.contracts import ToolDefinition
from toolcrib.kinds.http.shape import HttpImplementation

SEARCH = ToolDefinition(
    name="search_deals",
    description="Search deals.",
    side_effects="reads",
    implementation=HttpImplementation(method="GET", url="https://example.org/deals"),
)

pytestmark = pytest.mark.requirement("cli.authoring")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    url = f"sqlite:///{tmp_path / 'crib.db'}"

    async def fill() -> None:
        async with Crib(url, models={"openai:gpt-4o": ScriptedModel([])}) as crib:
            crib.add(SEARCH)
            for prompt in ("Find: {{user_task}}", "Look for: {{user_task}}"):
                crib.agentic_tool(
                    "deals",
                    mode="deterministic",
                    model="openai:gpt-4o",
                    steps=[AgenticStep(id="search", tool="search_deals", purpose="Find the deals")],
                    description="Manage deals.",
                    system_prompt=prompt,
                )
            await crib.open()

    asyncio.run(fill())
    return url


def said(*command: str, store: str, status: int = 0) -> str:
    done = toolcrib(*command, "--store", store)
    assert done.exit_code == status, done.stderr
    return done.stdout


def read(*command: str, store: str, status: int = 0) -> Any:
    return json.loads(said(*command, store=store, status=status))


def test_a_tool_and_its_prompt_are_shown(store: str) -> None:
    assert read("tool", "show", "deals", store=store)["definition"]["name"] == "deals"
    assert said("tool", "prompt", "deals", store=store) == "Look for: {{user_task}}\n"
    assert read("tool", "prompt", "deals", "--json", store=store)["revision"] == 2


def test_revisions_are_listed_compared_and_rolled_back(store: str) -> None:
    assert "changed current" in said("tool", "revisions", "deals", store=store)
    assert [entry["revision"] for entry in read("tool", "revisions", "deals", "--json", store=store)] == [1, 2]
    assert "-Find: {{user_task}}" in said("tool", "revisions", "deals", "--compare", "1", "2", store=store)
    assert said("tool", "revisions", "deals", "--compare", "1", "1", store=store) == "the prompts are equal\n"
    compared = read("tool", "revisions", "deals", "--compare", "1", "2", "--json", store=store)
    assert compared["newer"] == 2
    assert said("tool", "revert", "deals", "1", store=store) == "revision 1 of deals is now 3\n"
    assert read("tool", "revert", "deals", "2", "--json", store=store)["revision"] == 4


def test_a_prompt_is_proposed_and_stored_only_when_it_is_accepted(store: str) -> None:
    assert "nothing is stored; add --accept" in said("tool", "regenerate", "deals", store=store)
    assert "+1. search (search_deals): Find the deals" in said("tool", "regenerate", "deals", "--accept", store=store)
    assert "the system_prompt stays as it is" in said("tool", "regenerate", "deals", store=store)
    assert read("tool", "regenerate", "deals", "--json", store=store)["diff"] == ""
    description = read("tool", "regenerate", "deals", "--description", "--json", store=store)
    assert description["proposed"].startswith("Use this tool to manage deals.")


def test_a_prompt_is_tried_with_a_sample(store: str, tmp_path: Path) -> None:
    other = tmp_path / "prompt.txt"
    other.write_text("Try: {{user_task}}")

    shown = said("tool", "test-prompt", "deals", "find Acme", store=store, status=1)
    tried = read(
        *("tool", "test-prompt", "deals", '{"task": "find Acme"}', "--prompt", str(other), "--json"),
        *("--model", "openai:gpt-4o-mini"),
        store=store,
        status=1,
    )

    assert "Look for: find Acme" in shown
    assert "problem: " in shown
    assert "OPENAI_API_KEY" in shown
    assert (tried["system_prompt"], tried["model"]) == ("Try: find Acme", "openai:gpt-4o-mini")


@pytest.mark.parametrize(
    ("command", "said_so"),
    [
        (("tool", "test-prompt", "deals", "{oops"), "not JSON"),
        (("tool", "test-prompt", "deals", "x", "--prompt", "none.txt"), "none.txt cannot be read"),
        (("tool", "test-prompt", "search_deals", "x"), "has no prompt"),
        (("tool", "prompt", "search_deals"), "has no prompt"),
    ],
    ids=str,
)
def test_what_cannot_be_tried_is_said(store: str, command: tuple[str, ...], said_so: str) -> None:
    done = toolcrib(*command, "--store", store)

    assert done.exit_code == 2
    assert said_so in done.stderr


def test_tools_are_exported(store: str) -> None:
    assert read("tool", "export", "deals", "--as", "mcp", store=store)["annotations"]["readOnlyHint"] is True
    assert [tool["name"] for tool in read("tool", "export", store=store)] == ["deals", "search_deals"]
    assert len(read("tool", "export", "deals", "search_deals", "--as", "openai", store=store)) == 2
