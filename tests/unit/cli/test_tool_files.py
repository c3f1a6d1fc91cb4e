"""Tools from files, their removal, the summary of a run, ids in options, and progress."""

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.command import toolcrib
from tests.unit.cli.test_commands import waiting_run
from toolcrib import Crib
from toolcrib.interfaces.cli.render.console import JSON_ONLY
from toolcrib.interfaces.cli.render.progress import progress
from toolcrib.interfaces.cli.support import session

QUOTE = """
name: quote
description: Quotes a price.
side_effects: reads
implementation: {kind: http, method: GET, url: "https://shop.example/quote"}
"""
FLOW: dict[str, Any] = {"name": "flow", "steps": [{"name": "ask", "tool": "quote", "input": {}}]}


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'crib.db'}"


@pytest.mark.requirement("cli.files")
def test_a_tool_is_added_from_a_file_with_or_without_its_kind(store: str, tmp_path: Path) -> None:
    for number, text in enumerate((QUOTE, f"kind: tool\n{QUOTE}version: 1.1.0\n"), 1):
        (tmp_path / "quote.yaml").write_text(text, encoding="utf-8")
        added = toolcrib("tool", "add", tmp_path / "quote.yaml", store=store)
        assert added.stdout == f"tool quote@1.{number - 1}.0 is saved as revision {number}\n", added.stderr


@pytest.mark.requirement("cli.files")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: agent\nname: desk\n", "is of kind 'agent', not tool; use toolcrib agent add"),
        ("kind: workflow\nname: desk\n", "is of kind 'workflow', not tool; use toolcrib apply FOLDER"),
        ("name: quote\n", "implementation: Field required"),
    ],
)
def test_a_file_that_defines_no_tool_is_refused_with_what_to_do(
    store: str, tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "quote.yaml").write_text(text, encoding="utf-8")
    refused = toolcrib("tool", "add", tmp_path / "quote.yaml", store=store)

    assert (refused.exit_code, problem in refused.stderr) == (2, True), refused.stderr


@pytest.mark.requirement("cli.files")
def test_a_tool_that_something_uses_is_removed_only_after_a_question(store: str, tmp_path: Path) -> None:
    (tmp_path / "quote.yaml").write_text(QUOTE, encoding="utf-8")
    (tmp_path / "flow.yaml").write_text(json.dumps(FLOW), encoding="utf-8")
    toolcrib("tool", "add", tmp_path / "quote.yaml", store=store)
    toolcrib("workflow", "publish", tmp_path / "flow.yaml", "--yes", store=store)

    asked = toolcrib("tool", "remove", "quote", store=store)
    removed = toolcrib("tool", "remove", "quote", "--yes", store=store)
    gone = toolcrib("tool", "remove", "quote", store=store)

    assert (asked.exit_code, "quote is used by 1: flow@1.0.0. Remove it?" in asked.stderr) == (2, True)
    assert "no terminal is there to ask; add --yes" in asked.stderr
    assert removed.stdout == "tool quote is removed\n"
    assert gone.exit_code == 1


@pytest.mark.requirement("cli.files")
def test_a_provider_whose_tools_are_there_is_removed_only_after_a_question(store: str, tmp_path: Path) -> None:
    document = {
        "openapi": "3.1.0",
        "info": {"title": "CRM", "version": "1"},
        "servers": [{"url": "https://crm.example"}],
        "paths": {"/deals": {"get": {"operationId": "list_deals", "responses": {"200": {"description": "Deals."}}}}},
    }
    (tmp_path / "crm.json").write_text(json.dumps(document), encoding="utf-8")
    toolcrib("tool", "import", tmp_path / "crm.json", "--name", "crm", store=store)

    asked = toolcrib("provider", "remove", "crm", store=store)
    removed = toolcrib("provider", "remove", "crm", "-y", store=store)

    assert "Provider crm is in use by list_deals@1.0.0. Remove it?" in asked.stderr
    assert (removed.exit_code, removed.stdout) == (0, "provider crm is removed\n")


@pytest.mark.requirement("cli.summary")
def test_a_run_is_summed_up_with_what_to_do(store: str) -> None:
    run_id = waiting_run(store)
    [waiting] = json.loads(toolcrib("approval", "list", "--json", store=store).stdout)
    shown = toolcrib("run", "show", "latest", store=store).stdout
    found = json.loads(toolcrib("run", "show", run_id[:20], "--json", store=store).stdout)

    assert f"Run            {run_id}\nTool           deals@1.0.0\nStatus         awaiting approval\n" in shown
    approve = f"toolcrib approval approve {waiting['approval_id']}"
    assert found["next_steps"] == [approve, f"toolcrib run resume {run_id}"]
    assert f"Next           {approve}" in shown


@pytest.mark.requirement("cli.ids")
def test_the_latest_approval_is_the_only_one_that_waits(store: str) -> None:
    nothing = toolcrib("approval", "show", "latest", store=store)
    waiting_run(store)
    only = toolcrib("approval", "show", "latest", store=store)
    waiting_run(store)
    several = toolcrib("approval", "approve", "latest", store=store)

    assert nothing.exit_code == 1
    assert only.exit_code == 0
    assert (several.exit_code, "several approvals wait: apr_" in several.stderr) == (1, True)


@pytest.mark.requirement("cli.ids")
def test_a_conversation_is_continued_by_a_prefix_or_as_the_latest(store: str) -> None:
    async def make() -> None:
        async with Crib(store) as crib:
            await crib.open()

    asyncio.run(make())
    refused = toolcrib("agent", "run", "desk", "hi", "--conversation", "latest", store=store)

    assert (refused.exit_code, "there is no conversation yet, so none is the latest" in refused.stderr) == (1, True)


@pytest.mark.requirement("cli.completion")
def test_names_of_every_kind_and_ids_are_completed(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting_run(store)
    monkeypatch.setenv("TOOLCRIB_STORE", store)
    toolcrib("account", "set", "billing", "--grant", "ai://tools/crm/*", store=store)
    (tmp_path / "flow.yaml").write_text(json.dumps({"name": "flow", "steps": [{"name": "a", "output": 1}]}))
    toolcrib("workflow", "publish", tmp_path / "flow.yaml", "--yes", store=store)
    toolcrib("draft", "add", tmp_path / "flow.yaml", store=store)
    (tmp_path / "crm.yaml").write_text("name: crm\nbase_url: https://crm.example\n")
    toolcrib("provider", "add", tmp_path / "crm.yaml", store=store)

    found = {
        kind: session.names_of(kind)("") for kind in ("account", "workflow", "draft", "provider", "agent", "secret")
    }
    assert found == {
        "account": ["billing"],
        "workflow": ["flow"],
        "draft": ["flow"],
        "provider": ["crm"],
        "agent": [],
        "secret": [],
    }
    [approval] = session.approval_ids("apr_")
    assert session.approval_ids(approval[:12]) == [approval]
    assert (session.conversation_ids(""), session.conversation_ids("conv_"), session.key_ids("")) == ([], [], [])


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


@pytest.mark.requirement("cli.progress")
def test_progress_is_a_line_now_and_then_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)
    with progress("Importing", total=25, every=10) as done:
        for number in range(1, 26):
            done(number)
    with progress("Waiting"):
        pass

    assert told.getvalue() == "Importing: 10 of 25\nImporting: 20 of 25\n"


@pytest.mark.requirement("cli.progress")
def test_progress_is_a_bar_at_a_terminal_and_nothing_with_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    told = Terminal()
    monkeypatch.setattr(sys, "stderr", told)
    with progress("Importing", total=2) as done:
        done(1)
    shown = told.getvalue()
    token = JSON_ONLY.set(True)
    with progress("Exporting", total=2) as done:
        done(2)
    JSON_ONLY.reset(token)

    assert "Importing" in shown
    assert told.getvalue() == shown
