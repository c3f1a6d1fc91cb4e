"""How commands print what they found: as a table, as a sentence, or as one JSON document."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.unit.cli.command import toolcrib
from toolcrib.contracts import PromptFragment
from toolcrib.interfaces.cli.support.commands import Table, print_json, prints

pytestmark = pytest.mark.requirement("cli.output")


def test_what_is_kept_by_name_is_shown_as_text_or_json_in_any_language(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    (tmp_path / "ton.md").write_text("Sei nett, ééé.\n", encoding="utf-8")
    toolcrib("fragment", "set", "ton", tmp_path / "ton.md", store=store)

    assert toolcrib("fragment", "show", "ton", store=store).stdout == "Sei nett, ééé.\n"
    shown = toolcrib("fragment", "show", "ton", "--json", store=store).stdout
    assert (json.loads(shown)["text"], "ééé" in shown) == ("Sei nett, ééé.", True)
    assert toolcrib("fragment", "remove", "ton", store=store).stdout == "fragment ton is removed\n"


def test_cells_say_yes_or_no_times_in_utc_and_nothing_for_null(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2026, 1, 31, 12, 0, 7, tzinfo=UTC)
    Table[Any]({"On": lambda _: True, "Off": lambda _: False, "At": lambda _: at, "None": lambda _: None})([0])

    titles, cells = capsys.readouterr().out.splitlines()
    assert titles.split() == ["On", "Off", "At", "None"]
    assert cells.split() == ["yes", "no", "2026-01-31", "12:00:07"]


def test_json_has_contracts_anywhere_and_refuses_what_is_no_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"fragment": PromptFragment(name="tone", text="Be kind.")})
    assert json.loads(capsys.readouterr().out)["fragment"]["text"] == "Be kind."
    with pytest.raises(TypeError, match="Path is not JSON"):
        print_json([Path()])


def test_a_function_keeps_its_help_and_its_options() -> None:
    def count(to: int = 3) -> list[int]:
        """Count."""
        return list(range(to))

    command = prints(print, data=len, fails=lambda found: not found)(count)

    assert (command.__name__, command.__doc__) == ("count", "Count.")
    assert list(command.__annotations__) == ["to", "as_json"]
    with pytest.raises(typer.Exit):
        command(to=0, as_json=True)
