"""Prompt fragments and service accounts from the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolcrib.interfaces.cli.app import app


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'crib.db'}"


def run(*arguments: str, store: str, given: str | None = None) -> Any:
    return CliRunner().invoke(app, list(arguments), env={"TOOLCRIB_STORE": store}, input=given, catch_exceptions=False)


@pytest.mark.requirement("cli.named")
def test_a_fragment_is_set_from_a_file_or_stdin_shown_listed_and_removed(store: str, tmp_path: Path) -> None:
    (tmp_path / "tone.md").write_text("Answer briefly.\n", encoding="utf-8")
    assert run("fragment", "set", "tone", str(tmp_path / "tone.md"), store=store).stdout == (
        "fragment tone has 15 characters\n"
    )
    run("fragment", "set", "facts", "--description", "About us", store=store, given="We sell tools.\n")
    assert run("fragment", "show", "tone", store=store).stdout == "Answer briefly.\n"
    assert "About us" in run("fragment", "list", store=store).stdout
    told = json.loads(run("fragment", "list", "--json", store=store).stdout)
    assert [each["name"] for each in told] == ["facts", "tone"]
    assert run("fragment", "remove", "tone", store=store).exit_code == 0
    gone = run("fragment", "show", "tone", store=store)
    assert (gone.exit_code, "there is no fragment 'tone'" in gone.stderr) == (1, True)


@pytest.mark.requirement("cli.named")
def test_what_is_no_fragment_and_no_account_is_refused_in_one_line(store: str, tmp_path: Path) -> None:
    for refused in (
        run("fragment", "set", "tone", store=store, given=""),
        run("fragment", "set", "1 tone", store=store, given="x"),
        run("fragment", "set", "tone", str(tmp_path / "none.md"), store=store),
        run("account", "set", "1 bot", "--grant", "ai://*", store=store),
    ):
        assert refused.exit_code == 2, refused.output
        assert len(refused.stderr.strip().splitlines()) == 1


@pytest.mark.requirement("cli.named")
def test_an_account_is_set_with_grants_listed_disabled_and_removed(store: str) -> None:
    made = run("account", "set", "bot", "--grant", "ai://tools/crm/*", "--grant", "ai://agents/*", store=store)
    assert made.stdout == "account bot may use ai://tools/crm/*, ai://agents/*\n"
    assert "ai://tools/crm/*" in run("account", "list", store=store).stdout
    off = run("account", "set", "bot", "--grant", "ai://tools/crm/*", "--disabled", store=store)
    assert "do nothing" in off.stdout
    told = json.loads(run("account", "list", "--json", store=store).stdout)
    assert (told[0]["name"], told[0]["enabled"]) == ("bot", False)
    assert run("account", "remove", "bot", store=store).exit_code == 0
    assert run("account", "remove", "bot", store=store).exit_code == 1
