"""docs/settings.md holds what the settings are, and says of every default of the specification what became of it."""

import re
from pathlib import Path
from typing import cast

import pytest

from toolcrib.contracts import Json
from toolcrib.crib.settings import Settings, load_settings, setting_keys, value_of, variable_of

PAGE = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
SPECIFIED = {
    "default-provider": "anthropic",
    "default-model": "claude-sonnet-4-20250514",
    "default-temperature": "0.7",
    "default-max-tokens": "4096",
    "agent.default-max-iterations": "10",
    "agent.default-timeout-seconds": "120",
    "agent.default-durable": "false",
    "tools.auto-generate": "true",
    "tools.auto-generate-on-startup": "true",
    "mcp.enabled": "true",
    "mcp.transport": "sse",
    "mcp.path": "/mcp",
    "restate.enabled": "false",
    "restate.endpoint": "http://restate:8080",
    "guardrails.max-tool-calls-per-execution": "50",
    "guardrails.max-cost-per-execution": "1.00",
}
"""The configuration section of the specification, without its prefix."""

pytestmark = pytest.mark.requirement("settings.documented")


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without the table's own head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def shown(key: str) -> str:
    """A default as the page shows it."""
    value = value_of(Settings(), key)
    values = cast("list[Json]", value) if isinstance(value, list) else [] if value is None else [value]
    return ", ".join(map(str, values)) or "none"


def test_every_setting_has_a_row_with_its_variable_and_default_and_no_row_is_of_something_else() -> None:
    told = [[cell.strip("`") for cell in row[:3]] for row in rows("All settings")]
    assert told == [[key, variable_of(key), shown(key)] for key in setting_keys()]
    assert all(len(row) == 4 and row[3] for row in rows("All settings"))


def test_every_default_of_the_specification_is_told_with_ours_and_the_reason() -> None:
    table = rows("The specification's defaults")
    assert {row[0].strip("`"): row[1].strip("`") for row in table} == SPECIFIED
    ours = [(match[1], match[2]) for row in table if (match := re.fullmatch(r"`(.+)`: (.+)", row[2]))]
    assert len(ours) == 10
    assert [value for _, value in ours] == [shown(key) for key, _ in ours]
    assert all(row[3] for row in table)


def test_the_example_file_can_be_read(tmp_path: Path) -> None:
    example = PAGE.partition("    # toolcrib.toml\n")[2].partition("\n\nIn a variable")[0]
    text = "\n".join(line.removeprefix("    ") for line in example.splitlines())
    (tmp_path / "toolcrib.toml").write_text(text)
    loaded = load_settings(environment={}, folder=tmp_path)
    assert [key for key, origin in loaded.origins.items() if origin == "file"] == [
        "store",
        "model",
        "limits.max_cost_usd",
        "egress.allow",
    ]
