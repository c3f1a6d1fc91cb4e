"""What a subscriber is told of a workflow's steps."""

from datetime import UTC, datetime

import pytest

from toolcrib.contracts import ErrorCode, Json, JsonObject, ProgressMade, RunEvent, ToolError
from toolcrib.contracts.workflows import STEP_SETTLED, StepEnded
from toolcrib.core.runs.views.stream import MessageProjector

pytestmark = pytest.mark.requirement("workflow_server.steps_streamed")


def settled(number: int, kind: str = STEP_SETTLED, **data: Json) -> RunEvent:
    """A step that has ended, as the journal has it."""
    event = ProgressMade(key=f"step:{data.get('step')}", kind=kind, data=data)
    return RunEvent(
        run_id="run_1", number=number, at=datetime(2026, 1, 31, tzinfo=UTC), realm="default", made_by="ann", event=event
    )


def told(*entries: RunEvent, place: str = "0") -> list[StepEnded]:
    """What a subscriber hears who is at a place."""
    narration = MessageProjector([entry for entry in entries if entry.number <= int(place)], place)
    messages = [message for entry in entries if entry.number > int(place) for message in narration.tell(entry)]
    return [message.event for message in messages if isinstance(message.event, StepEnded)]


def test_each_step_is_told_with_what_has_become_of_it_and_without_its_output():
    failure: JsonObject = ToolError(code=ErrorCode.TIMEOUT, message="no stock").model_dump(
        mode="json", exclude_defaults=True
    )
    entries = [
        settled(1, step="find", status="succeeded", positions=["find"], output={"id": 1}),
        settled(2, step="ship", status="partial", items=3, failed=1, error=failure),
        settled(3, step="tell", status="cut_off", reason="step 'ship' is failed"),
    ]

    assert [event.model_dump(mode="json", exclude_defaults=True) for event in told(*entries)] == [
        {"number": 1, "step": "find", "status": "succeeded"},
        {"number": 2, "step": "ship", "status": "partial", "items": 3, "failed": 1, "error": failure},
        {"number": 3, "step": "tell", "status": "cut_off", "reason": "step 'ship' is failed"},
    ]


def test_who_comes_back_is_told_the_steps_that_follow():
    entries = [settled(number, step=f"s{number}", status="succeeded") for number in (1, 2, 3)]

    assert [event.step for event in told(*entries, place="2")] == ["s3"]


def test_other_progress_is_not_told_as_a_step():
    assert told(settled(1, kind="half_way", step="a")) == []
