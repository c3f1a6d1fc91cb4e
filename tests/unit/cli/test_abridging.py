"""Long outputs of runs that did not complete."""

from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib

pytestmark = pytest.mark.requirement("cli.abridged")

STEPS = """
name: long
steps:
- {name: numbers, output: "${[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]}"}
- {name: broken, tool: wget, input: {uri: "http://127.0.0.1:9/none"}}
"""


def test_a_failed_run_is_drawn_with_its_first_lines_and_whole_on_demand(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    file = tmp_path / "long.yaml"
    file.write_text(STEPS, encoding="utf-8")
    toolcrib("tool", "add", "wget", store=store)
    toolcrib("workflow", "publish", file, "--yes", store=store)
    assert toolcrib("workflow", "run", "long", store=store).exit_code == 1

    short = toolcrib("run", "trace", "latest", store=store).stdout
    whole = toolcrib("run", "trace", "latest", "--full", store=store).stdout
    assert "more lines; --full prints all" in short
    assert "more lines" not in whole
    assert len(whole.splitlines()) > len(short.splitlines())
