"""The page about exports: its Python runs as it stands there, and its table names every form."""

import re
from pathlib import Path

import pytest

from tests.docs.test_snippets import DOCS, search_deals, shown
from toolcrib import Crib
from toolcrib.core.export import FORMATS

pytestmark = pytest.mark.requirement("docs.snippets")


async def test_the_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    async with Crib("memory://") as crib:
        crib.add(search_deals)
        await crib.open()
        names = await shown("exports", crib, search_deals=search_deals)

    assert names["described"]["function"]["name"] == "search_deals"
    assert names["portable"].lost == ("properties.amount: multipleOf 5",)
    assert names["portable"].schema["properties"]["amount"] == {"type": "INTEGER", "description": "(multipleOf: 5)"}
    assert names["arguments"] == {"amount": 10}
    assert [tool.name for tool in (*names["for_langchain"], *names["for_openai"])] == ["search_deals", "search_deals"]
    assert (tmp_path / "skills" / "search-deals" / "SKILL.md").is_file()


def test_the_page_names_every_form():
    table = (DOCS / "exports.md").read_text().split("## Schemas")[0]

    assert re.findall(r"(?m)^\| `(\w+)` \|", table) == list(FORMATS)
