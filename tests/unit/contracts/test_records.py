"""Records: structs that are written as they always were, and read from whatever an older release has written."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from toolcrib.contracts import (
    OWNER,
    CallFinished,
    Contract,
    ErrorCode,
    Event,
    Record,
    RunFinished,
    RunRequest,
    RunStarted,
    RunSuspended,
    Timings,
    ToolEnvelope,
    ToolError,
    Usage,
    read_event,
)
from toolcrib.contracts.base.base import to_json
from toolcrib.contracts.runs.runs import CostBounds, RunResult

pytestmark = pytest.mark.requirement("contracts.records")

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


LATER = NOON + timedelta(microseconds=1)


def envelope(start: datetime = LATER, **fields: object) -> ToolEnvelope:
    given = {"call_id": "1", "name": "pay", "version": "1.0.0", "status": "success", "t_start": start, "t_end": LATER}
    return ToolEnvelope(**(given | fields))  # pyright: ignore[reportArgumentType] - the fields of an envelope


class Holder(Contract):
    envelope: ToolEnvelope
    errors: tuple[ToolError, ...] = ()


@pytest.mark.parametrize("micros", [0, 1, 250_000])
def test_moments_are_written_with_six_digits_and_money_as_a_number(micros: int):
    start = NOON + timedelta(microseconds=micros)
    event = CallFinished(position="p", envelope=envelope(start, cost_usd=Decimal("0.000150")))

    shown = json.loads(event.text)["envelope"]

    assert shown["t_start"] == f"2026-01-31T12:00:00.{micros:06d}Z"
    assert shown["cost_usd"] == 0.00015
    assert shown["timings"]["validate"] == 0
    assert read_event(event.text) == event
    assert json.loads(event.text) == TypeAdapter[Event](Event).dump_python(event, mode="json")


def test_a_moment_that_is_not_there_changes_nothing():
    event = RunSuspended(status="awaiting_client", waiting_for=("client:p",))

    assert json.loads(event.text)["wake_at"] is None


def test_a_field_that_no_release_knows_is_refused_by_its_place():
    text = json.dumps({**json.loads(to_json(envelope())), "colour": "blue"})

    with pytest.raises(ValidationError, match=r"colour\n  Extra inputs are not permitted"):
        read_event(json.dumps({"type": "call_finished", "position": "p", "envelope": json.loads(text)}).encode())
    with pytest.raises(ValidationError, match="colour"):
        ToolEnvelope.model_validate_json(text)


@pytest.mark.parametrize("text", [b'{"type": "call_faded"}', b'{"type": []}', b"{}", b"[1]", b"{"])
def test_what_is_no_event_is_refused(text: bytes):
    with pytest.raises(ValidationError):
        read_event(text)


def test_an_event_that_was_read_knows_what_was_written():
    text = b'{"type":"run_finished","status":"completed","stop_reason":"final_answer","output":1}'

    read, made = read_event(text), RunFinished(status="completed", stop_reason="final_answer", output=1)

    assert read == made
    assert read.text == text
    assert read.as_read() == {"type": "run_finished", "status": "completed", "stop_reason": "final_answer", "output": 1}
    assert made.as_read() is None
    assert made.as_written()["cost_usd"] is None
    assert RunFinished.model_validate(json.loads(text)).as_read() == read.as_read()
    assert read.model_copy(update={"output": 2}).as_read() is None  # another event, made by this release


def test_a_request_inside_is_checked_by_its_own_contract():
    started = RunStarted(request=RunRequest(kind="tool", tool="pay@1.0.0", content_hash="sha256:1", principal=OWNER))

    assert read_event(started.text) == started
    with pytest.raises(ValidationError, match=r"request\.kind"):
        read_event(b'{"type":"run_started","request":{"kind":"dance"}}')


def test_a_value_that_is_not_json_is_refused():
    with pytest.raises(PydanticSerializationError):
        to_json(envelope(output=object()))


def test_integers_of_any_size_are_written_and_read():
    event = CallFinished(position="p", envelope=envelope(output=2**70))

    assert read_event(event.text) == event


def test_records_are_used_in_models_as_models_are():
    holder = Holder(envelope=envelope(), errors=(ToolError.model_validate({"code": "TIMEOUT", "message": "slow"}),))

    assert Holder.model_validate_json(holder.model_dump_json()) == holder
    assert holder.model_dump(mode="json", exclude_defaults=True)["errors"] == [{"code": "TIMEOUT", "message": "slow"}]
    with pytest.raises(ValidationError, match=r"envelope\.t_start"):
        Holder.model_validate({"envelope": {"call_id": "1", "name": "pay", "version": "", "status": "success"}})


def test_options_of_pydantic_are_taken():
    error = ToolError.model_validate({"code": "TIMEOUT", "message": "slow", "retry_after_s": 2})

    assert error.model_dump(mode="json", include={"code"}) == {"code": "TIMEOUT"}
    assert error.model_dump(exclude={"code", "details"}) == {"message": "slow", "retry_after_s": 2}
    assert json.loads(error.model_dump_json(exclude_none=True, indent=2)) == {
        "code": "TIMEOUT",
        "message": "slow",
        "retry_after_s": 2,
    }
    assert list(Usage.model_fields)[:2] == ["input_tokens", "output_tokens"]
    assert Timings.model_json_schema()["properties"]["validate"]["default"] == 0


def test_records_are_immutable_and_nothing_for_the_garbage_collector():
    import gc

    usage = Usage(input_tokens=1)

    with pytest.raises(AttributeError):
        setattr(usage, "input_tokens", 2)  # noqa: B010 - what the type forbids
    assert not gc.is_tracked(envelope(output=[1]))
    assert issubclass(Usage, Record)


def test_a_cost_of_which_nothing_is_known_is_null():
    result = RunResult(run_id="r", status="completed", cost_unknown=True, cost_usd=Decimal(0), cut_off=CostBounds())

    assert result.cost_usd is None
    assert RunResult.model_validate_json(result.model_dump_json()) == result


READ_AT_ONCE = """
import sys, threading
from toolcrib.contracts import read_event
texts = sys.stdin.read().splitlines()
sys.setswitchinterval(1e-6)
start = threading.Barrier(6)

def read(first):
    start.wait()
    for text in texts[first:] + texts[:first]:
        read_event(text)

threads = [threading.Thread(target=read, args=(number % len(texts),)) for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_may_be_the_first_to_read_records_at_the_same_time():
    """A decoder that is made while another thread makes one of a record inside it ends the process."""
    failed = ToolError(code=ErrorCode.UNKNOWN, message="no")
    finished = CallFinished(position="p", envelope=envelope(error=failed, attachments=(), cost_usd=Decimal(1)))
    ended = RunFinished(status="failed", stop_reason="error", error=failed, usage=Usage())
    waits = RunSuspended(status="awaiting_client", waiting_for=("client:p",))
    texts = "\n".join(event.text.decode() for event in (finished, ended, waits))

    for _ in range(5):
        read = subprocess.run(
            [sys.executable, "-c", READ_AT_ONCE], input=texts, text=True, capture_output=True, check=False
        )
        assert (read.returncode, read.stderr) == (0, "")
