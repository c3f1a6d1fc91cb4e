"""What becomes of an output: plain, selected, checked, cut, paid for, kept."""

import asyncio
import json
import math
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import orjson
import pytest

from tests.twins import AT, Rig, make_context, make_tool
from toolcrib.contracts import (
    Attachment,
    CallFinished,
    ErrorCode,
    Json,
    JsonObject,
    Limits,
    Principal,
    Reason,
    ToolEnvelope,
    ToolRevision,
    Unavailable,
)
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.core.executor.envelope import MAX_DEPTH
from toolcrib.kinds.mcp.shape import McpImplementation


class Colour(Enum):
    RED = "red"


def nested(depth: int, leaf: Any = 1) -> Any:
    value = leaf
    for _ in range(depth):
        value = {"in": value}
    return value


def cycle() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def returns(output: Json, **fields: Any) -> Callable[[Dispatch], Outcome]:
    return lambda dispatch: Outcome(output, **fields)


def written(envelope: ToolEnvelope) -> JsonObject:
    """The envelope as the journal writes it and reads it back."""
    event = CallFinished(position=envelope.position, envelope=envelope)
    text = orjson.dumps(event.model_dump(mode="json"))
    assert CallFinished.model_validate_json(text).envelope == envelope
    assert CallFinished.model_validate_json(event.model_dump_json()).envelope == envelope
    return orjson.loads(text)["envelope"]


OFFERED = McpImplementation(provider="crm", name="look", fingerprint={})


@pytest.mark.requirement("executor.one_envelope")
@pytest.mark.parametrize(
    "output",
    [
        {1, 2},
        b"bytes",
        object(),
        2**70,
        ["\ud800"],
        {"\udc00": 1},
        {1: 2},
        cycle(),
        nested(5000),
        nested(MAX_DEPTH + 1),
    ],
    ids=["set", "bytes", "object", "big", "surrogate", "bad key", "number key", "cycle", "deep", "a level too deep"],
)
async def test_an_output_that_is_not_json_is_a_bad_response(output: Any):
    rig = Rig(make_tool(), behaviour=returns(output))

    envelope = await rig.run()

    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.PROVIDER_ERROR
    assert envelope.error.reason is Reason.BAD_RESPONSE
    assert envelope.error.message.startswith("tool 'look_up' ran, but its output is not JSON: ")
    assert written(envelope)["output"] is None


@pytest.mark.requirement("executor.one_envelope")
async def test_what_has_a_usual_form_in_json_takes_it():
    output = {
        "moment": AT,
        "id": UUID(int=1),
        "enum": Colour.RED,
        "tuple": (1, 2),
        "no number": math.nan,
        "deep": nested(MAX_DEPTH - 2, [1] * MAX_DEPTH),
    }
    rig = Rig(make_tool(), behaviour=returns(output))

    envelope = await rig.run()

    assert envelope.ok
    assert envelope.output["moment"] == "2026-01-31T12:00:00+00:00"
    assert envelope.output["id"] == "00000000-0000-0000-0000-000000000001"
    assert envelope.output["enum"] == "red"
    assert envelope.output["tuple"] == [1, 2]
    assert envelope.output["no number"] is None
    assert written(envelope)


@pytest.mark.requirement("executor.isolation")
async def test_an_output_that_its_owner_changes_later_stays_what_it_was():
    mine = [1, 2]
    rig = Rig(make_tool(), behaviour=returns(mine, metadata={"mine": mine}))

    envelope = await rig.run()
    mine.append(3)

    assert envelope.output == envelope.metadata["mine"] == [1, 2]


@pytest.mark.requirement("executor.one_envelope")
async def test_metadata_and_details_that_are_not_json_are_named_and_left_out():
    def fail(dispatch: Dispatch) -> Outcome:
        failure = error(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, "gone")
        failure = failure.model_copy(update={"details": {"bad": {1}, "reason": Reason.TOOL_FAILED}})
        raise CallFailed(failure, http_status=503, metadata={"fine": 1, "bad": b""})

    rig = Rig(make_tool(), behaviour=returns(1, metadata={"fine": 1, "bad": object(), "\ud800": 1}))

    success = await rig.run()
    rig.dispatcher.behaviour = fail
    failure = await rig.run()

    assert success.metadata == {"fine": 1, "bad": "(left out: Type is not JSON serializable: object)", "?": 1}
    assert failure.error is not None
    assert failure.error.details == {
        "bad": "(left out: Type is not JSON serializable: set)",
        "reason": "tool_failed",
    }
    assert failure.metadata == {"fine": 1, "bad": "(left out: Type is not JSON serializable: bytes)"}
    assert failure.http_status == 503
    assert written(success)
    assert written(failure)


@pytest.mark.requirement("executor.response_mapping")
@pytest.mark.parametrize(
    ("path", "selected"), [("$.items[*].id", [1, 2]), ("$.items[0]", {"id": 1}), ("$.none", None), ("$.total", 2)]
)
async def test_the_path_selects_the_output(path: str, selected: Json):
    answer = {"items": [{"id": 1}, {"id": 2}], "total": 2}
    rig = Rig(make_tool(select=path), behaviour=returns(answer))

    assert (await rig.run()).output == selected


@pytest.mark.requirement("executor.response_mapping")
async def test_a_path_that_cannot_be_applied_is_a_bad_response():
    rig = Rig(make_tool(select="$["), behaviour=returns({}))

    envelope = await rig.run()

    assert envelope.error is not None
    assert envelope.error.reason is Reason.BAD_RESPONSE
    assert "response mapping failed" in envelope.error.message


@pytest.mark.requirement("executor.output_schema")
async def test_our_own_tools_output_must_meet_its_schema():
    rig = Rig(make_tool(output_schema={"type": "string"}), behaviour=returns(7))

    wrong = await rig.run()
    rig.dispatcher.behaviour = returns("seven")

    assert wrong.error is not None
    assert wrong.error.code is ErrorCode.PROVIDER_ERROR
    assert wrong.error.reason is Reason.OUTPUT_SCHEMA_MISMATCH
    assert (await rig.run()).output == "seven"


@pytest.mark.requirement("executor.output_schema")
@pytest.mark.parametrize(("earlier", "before"), [({}, []), ({"warnings": ["slow"]}, ["slow"]), ({"warnings": 1}, [1])])
async def test_an_imported_tools_mismatch_is_one_warning_more(earlier: JsonObject, before: list[Json]):
    tool = make_tool(source="imported", output_schema={"type": "string"})
    rig = Rig(tool, behaviour=returns(7, metadata=earlier))

    envelope = await rig.run()

    assert envelope.output == 7
    assert envelope.metadata["warnings"][:-1] == before
    assert "does not match its output_schema" in envelope.metadata["warnings"][-1]


@pytest.mark.requirement("executor.truncation")
@pytest.mark.parametrize(
    ("output", "kept"),
    [
        ("é" * 100, "é" * 24),
        (["abc"] * 20, ["abc"] * 8),
        (["x" * 100], '["' + "x" * 45),
        ({"key": "x" * 100}, None),
        ('"' * 100, '"' * 24),
        ("\0" * 40 + "x" * 40, "\0" * 8),
    ],
    ids=["text", "list", "list of one", "object", "quotes", "controls"],
)
async def test_an_output_that_is_too_large_is_cut_to_fit_and_kept_whole(output: Json, kept: Json):
    rig = Rig(make_tool(max_output_bytes=50), behaviour=returns(output))

    envelope = await rig.run()

    assert envelope.truncated
    assert len(orjson.dumps(envelope.output)) <= 50
    if kept is not None:
        assert envelope.output == kept
    [whole] = envelope.attachments
    data = await rig.store.blobs.get("default", whole.url.removeprefix("blob:sha256:"))
    assert json.loads(data) == output
    assert (whole.bytes, whole.content_type) == (len(data), "application/json")


@pytest.mark.requirement("executor.truncation")
@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ({"title": "t", "text": "x" * 1_000}, {"title": "t", "text": "x" * 177}),
        ({"page": {"n": 1, "rows": [[1, 2]] * 100}}, {"page": {"n": 1, "rows": [[1, 2]] * 29}}),
        ({"a": "x" * 190, "b": "x" * 190}, '{"a":"' + "x" * 188),
        ({f"n{n}": n for n in range(100)}, None),
    ],
    ids=["text", "list further down", "two large members", "many small members"],
)
async def test_an_object_that_is_cut_is_still_one_if_that_leaves_something_worth_reading(output: Json, shown: Json):
    rig = Rig(make_tool(max_output_bytes=200), behaviour=returns(output))

    envelope = await rig.run()

    assert len(orjson.dumps(envelope.output)) <= 200
    assert envelope.truncated
    if shown is not None:
        assert envelope.output == shown


@pytest.mark.requirement("executor.truncation")
async def test_an_output_of_exactly_the_limit_is_left_alone():
    rig = Rig(make_tool(max_output_bytes=4), behaviour=returns("ab"))

    envelope = await rig.run()

    assert (envelope.output, envelope.truncated, envelope.attachments) == ("ab", False, ())


@pytest.mark.requirement("executor.truncation")
@pytest.mark.parametrize("output", [{"a": 1}, []])
async def test_a_limit_that_leaves_no_room_keeps_nothing_but_the_blob(output: Json):
    rig = Rig(make_tool(max_output_bytes=1), behaviour=returns(output))

    envelope = await rig.run()

    assert (envelope.output, envelope.truncated, len(envelope.attachments)) == ("", True, 1)


class Gone:
    """A store that is not there."""

    async def get(self, *_: Any, **__: Any) -> Any:
        raise Unavailable("no store")

    put = get


@pytest.mark.requirement("executor.outcome_kept")
async def test_the_outcome_survives_a_blob_store_that_is_not_there():
    rig = Rig(make_tool(max_output_bytes=20, side_effects="writes"), behaviour=returns("x" * 100), attic=Gone())

    envelope = await rig.run()

    assert (envelope.output, envelope.truncated, envelope.attachments) == ("x" * 18, True, ())
    assert envelope.metadata["warnings"] == ["the whole output (102 bytes) could not be kept: no store"]


@pytest.mark.requirement("executor.outcome_kept", "executor.cache")
async def test_a_cache_that_is_not_there_is_a_miss_and_loses_nothing():
    rig = Rig(make_tool(cache="forever"), behaviour=returns(1), results=Gone())

    first, second = await rig.run(), await rig.run()

    assert (first.output, second.output, second.cached) == (1, 1, False)


@pytest.mark.requirement("executor.cost")
async def test_what_a_call_costs_is_counted_once_the_tool_has_run_even_if_its_output_is_unusable():
    rig = Rig(make_tool(cost_usd_per_call=Decimal("0.25"), output_schema={"type": "string"}), behaviour=returns(1))

    unusable = await rig.run()
    rig.dispatcher.behaviour = returns("x", cost_usd=Decimal("0.30"))
    reported = await rig.run()

    assert unusable.cost_usd == Decimal("0.25")
    assert unusable.error is not None
    assert reported.cost_usd == Decimal("0.30")
    assert rig.budget.cost_usd == Decimal("0.50")


@pytest.mark.requirement("executor.cost", "executor.budget_returned")
async def test_calls_beside_each_other_cannot_spend_the_same_money():
    async def slow(dispatch: Dispatch) -> Outcome:
        await asyncio.sleep(0)
        return Outcome(1)

    rig = Rig(make_tool(cost_usd_per_call=Decimal("0.4")), behaviour=slow, limits=Limits(max_cost_usd=Decimal(1)))

    envelopes = await asyncio.gather(*(rig.run(position=f"t1.c{number}") for number in range(4)))

    assert [envelope.status for envelope in envelopes] == ["success", "success", "denied", "denied"]
    assert rig.budget.cost_usd == Decimal("0.8")


@pytest.mark.requirement("executor.cost", "executor.budget_returned")
async def test_a_call_that_fails_or_is_refused_gives_its_price_back():
    def fail(dispatch: Dispatch) -> Outcome:
        raise ValueError("no")

    rig = Rig(make_tool(cost_usd_per_call=Decimal(1)), behaviour=fail)

    failed, refused = await rig.run(), await rig.run(arguments=[])

    assert (failed.status, failed.cost_usd, refused.status) == ("error", None, "error")
    assert rig.budget.cost_usd == 0


@pytest.mark.requirement("executor.cost")
async def test_a_cost_that_nobody_knows_is_null():
    assert (await Rig(make_tool()).run()).cost_usd is None


@pytest.mark.requirement("executor.one_envelope")
async def test_what_the_runtime_tells_besides_the_output_stands_in_the_envelope():
    image = Attachment(kind="image", url="https://example.org/a.png")
    behaviour = returns(1, http_status=201, metadata={"page": 1}, attachments=(image,))

    envelope = await Rig(make_tool(), behaviour=behaviour).run()

    assert (envelope.http_status, envelope.metadata, envelope.attachments) == (201, {"page": 1}, (image,))
    assert (envelope.run_id, envelope.attempts, envelope.position) == ("run_1", 1, "t1.c1")


@pytest.mark.requirement("executor.cache")
async def test_a_repeated_call_is_served_from_the_cache_as_a_call_of_its_own():
    image = Attachment(kind="image", url="https://example.org/a.png")
    behaviour = returns({"n": 1}, http_status=200, metadata={"page": 1}, attachments=(image,))
    rig = Rig(make_tool(cache="ttl", cache_ttl_s=60), behaviour=behaviour)

    first, second = await rig.run(arguments={"a": 1}), await rig.run(arguments={"a": 1.0}, position="t2.c1")

    assert (first.cached, first.attempts, second.cached, second.attempts) == (False, 1, True, 0)
    assert first.call_id != second.call_id
    same = {"output", "http_status", "metadata", "attachments", "status"}
    assert first.model_dump(include=same) == second.model_dump(include=same)
    assert len(rig.dispatcher.dispatched) == len(rig.journal.intents) == rig.budget.tool_calls == 1


@pytest.mark.requirement("executor.cache")
async def test_a_cached_result_ends_with_its_lifetime():
    rig = Rig(make_tool(cache="ttl", cache_ttl_s=60), make_tool("ever", cache="forever"))
    await rig.run()
    await rig.run("ever")

    rig.clock.advance(60)

    assert not (await rig.run()).cached
    assert (await rig.run("ever")).cached


@pytest.mark.requirement("executor.cache")
@pytest.mark.parametrize(
    ("tool", "behaviour"),
    [
        (make_tool(cache="none"), returns(1)),
        (make_tool(cache="forever", side_effects="writes"), returns(1)),
        (make_tool(cache="forever", max_output_bytes=4), returns("x" * 10)),
        (make_tool(cache="forever", output_schema={"type": "string"}), returns(1)),
    ],
    ids=["not cached", "writes", "truncated", "failed"],
)
async def test_what_must_not_be_cached_runs_again(tool: Any, behaviour: Any):
    rig = Rig(tool, behaviour=behaviour)

    await rig.run()
    again = await rig.run()

    assert not again.cached
    assert len(rig.dispatcher.dispatched) == 2


@pytest.mark.requirement("executor.cache")
@pytest.mark.parametrize(
    ("tool", "shared"),
    [
        (make_tool(cache="forever", side_effects="none"), True),
        (make_tool(cache="forever", side_effects="reads"), False),
        (make_tool(cache="forever", side_effects="none", implementation=OFFERED), False),
    ],
    ids=["computed", "read", "computed by a system that knows who asks"],
)
async def test_what_one_principal_read_is_not_served_to_another(tool: ToolRevision, shared: bool):
    rig = Rig(tool)
    guest = make_context(principal=Principal(id="guest"), budget=rig.budget, journal=rig.journal)

    await rig.run()

    assert (await rig.run(context=guest)).cached is shared
    assert (await rig.run()).cached
