"""What an agent puts out, read from journals."""

import pytest

from tests.unit.runs.journals import begun, done, finished, journal
from toolcrib.contracts import AgentOutputs, Json, RunKind
from toolcrib.core.runs import calls_of, outputs_of


@pytest.mark.requirement("outputs.order")
def test_calls_are_in_the_order_in_which_they_began_not_in_which_they_ended():
    log = journal(begun("a"), begun("b"), done("b"), done("denied", status="denied"), begun("a"), done("a"))

    assert [envelope.position for envelope in calls_of(log)] == ["a", "b", "denied"]


@pytest.mark.requirement("outputs.order")
def test_a_call_that_has_not_ended_is_no_output_yet():
    assert calls_of(journal(begun("a"))) == []


@pytest.mark.requirement("outputs.order", "outputs.always")
def test_the_last_tool_is_the_last_in_order_that_succeeded():
    log = journal(begun("a"), begun("b"), begun("c"), done("c", status="error"), done("b"), done("a"))

    outputs = outputs_of(log)

    assert outputs.tool_order == ("#a", "#b", "#c")
    assert list(outputs.tools_by_id) == ["#a", "#b", "#c"]
    assert outputs.last_tool == outputs.tools_by_id["#b"]


@pytest.mark.requirement("outputs.always")
def test_a_run_that_has_only_begun_has_all_outputs_and_they_are_empty():
    assert outputs_of(journal()) == AgentOutputs()
    assert AgentOutputs().model_dump() == {
        "response": "",
        "tools_by_id": {},
        "tool_order": (),
        "last_tool": None,
        "traces_url": None,
    }


@pytest.mark.requirement("outputs.response")
@pytest.mark.parametrize(
    ("kind", "output", "response"),
    [
        ("agent", {"response": "Hello.", "output": {"a": 1}}, "Hello."),
        ("agent", {"response": None, "calls": []}, ""),
        ("agent", {"summary": None, "calls": []}, ""),
        ("agent", None, ""),
        ("agentic", {"summary": "Two deals."}, "Two deals."),
        ("agentic", {"response": "a field"}, '{"response":"a field"}'),
        ("agentic", [1, 2], "[1,2]"),
        ("tool", "text", "text"),
    ],
)
def test_the_answer_is_the_text_of_the_output(kind: RunKind, output: Json, response: str):
    assert outputs_of(journal(finished(output), kind=kind)).response == response
