"""The page of queries has the fields of today."""

from pathlib import Path

import pytest

from toolcrib.crib.tools.resources import RESOURCES
from tools.docs import query_fields

PAGE = Path(__file__).parents[2] / query_fields.PAGE


@pytest.mark.requirement("queries.docs")
def test_the_page_of_queries_has_every_field_of_every_resource_as_queries_read_it():
    text = PAGE.read_text(encoding="utf-8")

    assert query_fields.page(text) == text
    for name, resource in RESOURCES.items():
        section = next(part for part in text.split("### ")[1:] if f"`{name}`" in part.partition("\n")[0])
        assert all(f"| `{field}` |" in section for field in resource.fields)
