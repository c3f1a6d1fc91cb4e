"""The page of the command line, and what it says of all commands: their verbs, helps and examples."""

import contextlib
import json
import re
import shlex
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from toolcrib.interfaces.cli.app import app
from toolcrib.interfaces.cli.render.outputs import output_schema
from toolcrib.interfaces.cli.support.groups import MOVED, SYNONYMS
from tools.docs import command_line, commands

ROOT: Final = Path(__file__).parents[2]
MOST_LINES: Final = 40
"""Of a help; the root may have more, as long as it is one page."""
MOST_LINES_OF_ROOT: Final = 50
WIDTH: Final = 80
EVERY: Final = list(commands.tree())
LEAVES: Final = [one for one in EVERY if not one.is_group]
GROUPS: Final = {one.words[0]: {each.words[1] for each in EVERY if each.words[:1] == one.words and len(each.words) > 1}
                 for one in EVERY if one.is_group and one.words}  # fmt: skip
NO_WORDS: Final = frozenset({"create", "delete", "get", "ls", "new", "rm", "discard", "revoke", "update", "edit"})
"""Words for acts that have a verb here."""


@pytest.mark.requirement("cli.reference_page")
def test_the_page_is_up_to_date_and_names_every_command_and_option() -> None:
    page = (ROOT / command_line.PAGE).read_text(encoding="utf-8")

    assert page == command_line.page(), "run `python -m tools.docs.command_line`"
    for one in EVERY:
        assert not one.words or f"# toolcrib {' '.join(one.words)}\n" in page
        assert all(re.search(rf"[` ]{option}[`,]", page) for option in one.options)


@pytest.mark.requirement("cli.json_schema")
def test_the_schema_of_the_outputs_is_up_to_date() -> None:
    committed = json.loads((ROOT / "docs" / command_line.SCHEMAS).read_text(encoding="utf-8"))

    assert committed == output_schema(), "run `toolcrib schema --write docs/schemas`"


@pytest.mark.requirement("cli.verbs")
def test_every_group_has_list_and_show_or_a_reason_for_its_exception() -> None:
    assert {name for name, verbs in GROUPS.items() if "list" not in verbs} == command_line.NOT_LISTED.keys()
    assert {name for name, verbs in GROUPS.items() if "show" not in verbs} == command_line.NOT_SHOWN.keys()


@pytest.mark.requirement("cli.verbs")
def test_no_act_has_two_verbs_and_no_kind_two_groups() -> None:
    assert not {word for one in LEAVES for word in one.words} & NO_WORDS
    assert not [name for name in GROUPS if f"{name}s" in GROUPS]
    assert not [(name, verb) for name, verbs in GROUPS.items() for verb in verbs if f"{verb}s" in verbs]
    known = {" ".join(one.words) for one in LEAVES}
    assert set(MOVED.values()) <= known
    assert not MOVED.keys() & known
    assert {verb for verbs in SYNONYMS.values() for verb in verbs} <= {one.words[-1] for one in LEAVES}


@pytest.mark.requirement("cli.help_pages")
@pytest.mark.parametrize("one", EVERY, ids=lambda one: " ".join(one.words) or "toolcrib")
def test_every_help_fits_a_page_of_80_columns(one: commands.Command) -> None:
    for terminal in ("80", "200"):
        lines = CliRunner().invoke(app, [*one.words, "-h"], env={"COLUMNS": terminal}).stdout.splitlines()
        assert max(map(len, lines)) <= WIDTH
        assert len(lines) <= (MOST_LINES if one.words else MOST_LINES_OF_ROOT)


@pytest.mark.requirement("cli.help_pages")
def test_a_summary_takes_one_line_in_the_help_of_its_group() -> None:
    for one in EVERY:
        if one.is_group:
            listed = (
                CliRunner().invoke(app, [*one.words, "-h"], env={"COLUMNS": "80"}).stdout.partition("Commands:\n")[2]
            )
            rows = [line for line in listed.partition("\n\n")[0].splitlines() if line.strip()]
            assert [row for row in rows if row.startswith("    ")] == []


@pytest.mark.requirement("cli.help_pages")
@pytest.mark.parametrize("one", LEAVES, ids=lambda one: " ".join(one.words))
def test_the_example_of_a_command_is_one_that_it_reads(one: commands.Command, tmp_path: Path) -> None:
    line = str(one.command.epilog)
    for file in re.findall(r"[\w-]+\.(?:yaml|py|md|bundle|csv|txt)", line):
        (tmp_path / file).touch()
    words = shlex.split(line.partition(" < ")[0].partition(" > ")[0])
    assert words[: len(one.words) + 1] == ["toolcrib", *one.words]

    context: Any = None
    with contextlib.chdir(tmp_path):
        context = one.command.make_context(one.words[-1], words[len(one.words) + 1 :], resilient_parsing=False)
    assert context.info_name == one.words[-1]
    assert f"Example:\n  {line}\n" in CliRunner().invoke(app, [*one.words, "--help"]).stdout
