"""What a model is not offered, because the crib does it better."""

from typing import Any

import pytest

from toolcrib.agents.toolset.schema_narrowing import schema_for_models, without_cursor
from toolcrib.contracts import ToolDefinition
from toolcrib.kinds.http.shape import CursorPaging, HttpImplementation
from toolcrib.kinds.python.shape import PythonImplementation

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}, "after": {"type": "string"}}}


@pytest.mark.requirement("agents.lean_schemas")
def test_the_cursor_of_a_paged_tool_is_not_offered():
    paging = CursorPaging(cursor_in="after", cursor_out="$.next", items="results")
    implementation = HttpImplementation(method="GET", url="https://example.org/deals", paging=paging)
    paged = ToolDefinition(name="search", input_schema=SCHEMA, implementation=implementation)

    assert without_cursor(paged)["properties"] == {"query": {"type": "string"}}
    assert paged.input_schema == SCHEMA


@pytest.mark.requirement("agents.lean_schemas")
@pytest.mark.parametrize(
    "implementation",
    [PythonImplementation(function="m:f"), HttpImplementation(method="GET", url="https://example.org/deals")],
)
def test_an_argument_of_that_name_is_offered_where_nothing_pages(
    implementation: PythonImplementation | HttpImplementation,
):
    tool = ToolDefinition(name="search", input_schema=SCHEMA, implementation=implementation)

    assert without_cursor(tool) is tool.input_schema


@pytest.mark.requirement("agents.live_enums")
def test_a_long_list_is_shown_by_its_types_and_how_many_values_it_has():
    values: list[Any] = [*range(400), *map(str, range(400)), True, None, 1.5]
    schema = {"description": "Which one.", "enum": values}

    assert schema_for_models(schema) == {
        "description": "Which one. One of 803 values; another is refused with the closest.",
        "type": ["boolean", "null", "number", "string"],
    }
