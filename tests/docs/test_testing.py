"""The tests on the page about testing run and pass."""

import re
from pathlib import Path

import pytest

from tests.unit.testing.test_pytest_plugin import PLUGIN

pytest_plugins = ["pytester"]
PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
BLOCKS = re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.requirement("testing.page")
def test_every_block_of_the_page_runs(pytester: pytest.Pytester):
    options = "asyncio_mode = auto\nasyncio_default_fixture_loop_scope = function"
    pytester.makeini(f"[pytest]\nfilterwarnings = error\npythonpath = .\n{options}")
    for name, block in BLOCKS:
        (pytester.path / name).write_text(block)
    tests = sum(block.count("def test_") for _, block in BLOCKS)

    result = pytester.runpytest_subprocess(*PLUGIN, "-p", "no:xdist", "-p", "no:anyio")

    result.assert_outcomes(passed=tests)
    assert len(BLOCKS) == PAGE.read_text(encoding="utf-8").count("```python")
    assert tests >= 10
