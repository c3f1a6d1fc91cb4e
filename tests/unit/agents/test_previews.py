"""What a model is told about the result of a call."""

from typing import Any

import pytest

from tests.twins import AT
from toolcrib.agents.model.tool_calls import result_text
from toolcrib.contracts import ToolEnvelope

CUT = "the list is not complete: 4 items of 2 pages were read"


def envelope(**metadata: Any) -> ToolEnvelope:
    return ToolEnvelope(
        call_id="c",
        name="list",
        version="1.0.0",
        status="success",
        output=[1],
        t_start=AT,
        t_end=AT,
        metadata=metadata,
    )


@pytest.mark.requirement("agents.incomplete_lists")
@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({"paging": {"complete": False}, "warnings": [CUT]}, f"[1]\n{CUT}"),
        ({"paging": {"complete": False}}, "[1]"),
        ({"paging": {"complete": True}, "warnings": ["its output does not match its output_schema"]}, "[1]"),
        ({"warnings": ["its output does not match its output_schema"]}, "[1]"),
        ({}, "[1]"),
    ],
)
def test_a_model_is_told_that_a_list_is_not_complete(metadata: Any, text: str) -> None:
    assert result_text(envelope(**metadata)) == text


@pytest.mark.requirement("agents.cut_outputs")
def test_a_model_is_told_that_an_output_is_only_the_beginning_of_one() -> None:
    cut = envelope().model_copy(update={"truncated": True})

    assert result_text(cut).startswith("[1]\nthis is the beginning of a larger output")
