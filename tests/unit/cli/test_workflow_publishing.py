"""What a person is shown before a workflow is published."""

from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib

STEPS = """
name: greet
steps:
- {name: line, output: hello}
"""


@pytest.mark.requirement("workflow_cli.publish")
def test_publishing_tells_what_changes_and_nothing_where_nothing_does(tmp_path: Path):
    store = f"sqlite:///{tmp_path}/crib.db"
    file = tmp_path / "greet.yaml"
    file.write_text(STEPS, encoding="utf-8")
    first = toolcrib("workflow", "publish", file, "--yes", store=store).stdout
    same = toolcrib("workflow", "publish", file, "--yes", store=store).stdout
    file.write_text(STEPS.replace("hello", "good day"), encoding="utf-8")
    changed = toolcrib("workflow", "publish", file, "--yes", store=store).stdout

    assert ["Difference" in told for told in (first, same, changed)] == [False, False, True]
    (row,) = [line for line in changed.splitlines() if "implementation" in line]
    assert "line" in row
