"""Arguments: JSON, valid, filled in, and the identity that follows from them."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.twins import Rig, make_context, make_tool
from toolcrib.contracts import CallFinished, ErrorCode, Reason, call_id
from toolcrib.core.executor import Dispatch, Outcome
from toolcrib.core.executor.plans import CompiledSchemas
from toolcrib.core.policy import CallPolicy

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "stage": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}, "default": []},
    },
    "additionalProperties": False,
}


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.requirement("executor.arguments", "executor.one_envelope")
@pytest.mark.parametrize(
    "arguments",
    [
        '{"stage": "wo',
        "\ud800",
        7,
        None,
        [1],
        {"stage": {1, 2}},
        {"stage": "\udfff"},
        {1: 2},
        {"n": 2**70},
        nested(5000),
    ],
    ids=["cut text", "surrogate", "number", "null", "list", "set", "surrogate inside", "key", "big", "deep"],
)
async def test_what_is_not_one_json_object_is_refused_and_the_envelope_is_still_json(arguments: Any):
    rig = Rig(make_tool())

    envelope = await rig.run(arguments=[None] if arguments is None else arguments)

    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.VALIDATION_ERROR
    assert envelope.error.reason is Reason.INVALID_ARGUMENTS_JSON
    assert CallFinished.model_validate_json(CallFinished(position="", envelope=envelope).model_dump_json())
    assert rig.untouched


@pytest.mark.requirement("executor.arguments")
async def test_text_that_is_no_json_object_stays_what_the_model_wrote():
    rig = Rig(make_tool())

    envelope = await rig.run(arguments='{"stage": "wo')

    assert envelope.input == '{"stage": "wo'


@pytest.mark.requirement("executor.arguments")
async def test_invalid_arguments_name_every_place_and_the_tool_does_not_run():
    rig = Rig(make_tool(input_schema=SCHEMA))

    envelope = await rig.run(arguments={"stage": 3, "tags": [1]})

    assert envelope.error is not None
    assert envelope.error.details is not None
    assert {problem["path"] for problem in envelope.error.details["problems"]} == {"/stage", "/tags/0"}
    assert "Correct them and call again" in envelope.error.message
    assert envelope.input == {"stage": 3, "tags": [1]}
    assert rig.untouched


@pytest.mark.requirement("executor.arguments", "executor.identity")
async def test_defaults_are_filled_in_before_the_call_is_named():
    tool = make_tool(input_schema=SCHEMA)
    rig = Rig(tool)

    bare, full = await rig.run(arguments={}), await rig.run(arguments={"tags": []})

    assert bare.input == full.input == bare.output == {"tags": []}
    assert bare.call_id == full.call_id == call_id("look_up", "1.0.0", {"tags": []}, "t1.c1")


@pytest.mark.requirement("executor.arguments")
async def test_a_narrowed_schema_is_held_besides_the_tools_own():
    rig = Rig(make_tool(input_schema=SCHEMA))
    narrowed = {"properties": {"stage": {"enum": ["won", "lost"]}}}
    context = make_context(policy=CallPolicy(narrowed={"look_up": narrowed}), journal=rig.journal, budget=rig.budget)

    wrong = await rig.run(arguments={"stage": "wonn"}, context=context)

    assert wrong.error is not None
    assert "nearest: 'won'" in wrong.error.message
    assert rig.untouched
    assert (await rig.run(arguments={"stage": "won"}, context=context)).ok
    assert (await rig.run(arguments={"stage": "won", "x": 1}, context=context)).error is not None


@pytest.mark.requirement("executor.arguments", "executor.one_envelope")
async def test_a_schema_that_is_none_refuses_the_call():
    rig = Rig(make_tool())
    context = make_context(policy=CallPolicy(narrowed={"look_up": {"type": "nonsense"}}), journal=rig.journal)

    envelope = await rig.run(context=context)

    assert envelope.error is not None
    assert envelope.error.reason is Reason.INPUT_SCHEMA_MISMATCH
    assert "a schema is not usable" in envelope.error.message
    assert rig.untouched


@pytest.mark.requirement("executor.arguments", "executor.one_envelope")
async def test_a_default_that_no_envelope_can_hold_refuses_the_call():
    rig = Rig(make_tool(input_schema={"type": "object", "properties": {"a": {"default": nested(110)}}}))

    envelope = await rig.run()

    assert envelope.error is not None
    assert "nested more than 100 levels deep" in envelope.error.message
    assert rig.untouched


@pytest.mark.requirement("executor.arguments", "executor.isolation")
async def test_a_schema_is_compiled_once_per_content_and_not_for_ever():
    schemas, tool = CompiledSchemas(), make_tool()
    first = schemas.of(tool)
    assert schemas.of(make_tool(output_schema={"type": "string"})) != first

    assert schemas.of(tool) is first
    for number in range(4096):
        schemas.of(tool.model_copy(update={"content_hash": f"sha256:{number}"}))

    assert schemas.of(tool) == first
    assert schemas.of(tool) is not first


@pytest.mark.requirement("executor.arguments")
async def test_moments_become_text():
    rig = Rig(make_tool())

    envelope = await rig.run(arguments={"at": datetime(2026, 1, 31, tzinfo=UTC)})

    assert envelope.output == {"at": "2026-01-31T00:00:00+00:00"}


@pytest.mark.requirement("executor.identity")
async def test_a_call_id_is_the_same_in_another_process_and_differs_by_position_version_and_arguments():
    first = await Rig(make_tool()).run(arguments={"b": 1.0, "a": "é"})

    assert first.call_id == call_id("look_up", "1.0.0", {"a": "é", "b": 1}, "t1.c1")
    others = [
        await Rig(make_tool()).run(arguments={"b": 1, "a": "é"}, position="t1.c2"),
        await Rig(make_tool(version="1.0.1")).run(arguments={"b": 1, "a": "é"}),
        await Rig(make_tool()).run(arguments={"b": 2, "a": "é"}),
    ]
    assert len({first.call_id, *(other.call_id for other in others)}) == 4


@pytest.mark.requirement("executor.identity")
async def test_an_integer_that_has_no_canonical_form_is_passed_on_exactly():
    rig = Rig(make_tool(requires_confirmation=True))

    one = await rig.run(arguments={"id": 2**53 + 1, "a": 1})
    same = await rig.run(arguments={"a": 1, "id": 2**53 + 1})

    assert one.output == {"id": 2**53 + 1, "a": 1}
    assert one.call_id == same.call_id


@pytest.mark.requirement("executor.isolation")
async def test_what_a_tool_does_to_its_arguments_is_seen_by_nobody():
    def vandal(dispatch: Dispatch) -> Outcome:
        seen.append(deepcopy(dispatch.input))
        dispatch.input["tags"].append("mine")
        dispatch.input.clear()
        return Outcome(len(seen))

    seen: list[Any] = []
    rig = Rig(make_tool(input_schema=SCHEMA), behaviour=vandal)
    given = {"stage": "won"}

    first, second = await rig.run(arguments=given), await rig.run(arguments=given)

    assert first.input == second.input == rig.journal.intents[1].input == {"stage": "won", "tags": []}
    assert seen == [first.input, second.input]
    assert given == {"stage": "won"}


@pytest.mark.requirement("executor.timings")
async def test_the_spans_add_up_to_the_whole_time():
    def slow(dispatch: Dispatch) -> Outcome:
        rig.clock.advance(2.5)
        return Outcome(None)

    rig = Rig(make_tool(requires_confirmation=True), behaviour=slow)
    decide = rig.journal.decide

    def think(request: Any) -> Any:
        rig.clock.advance(30)
        return decide(request)

    rig.journal.decide = think
    envelope = await rig.run()

    spans = envelope.timings
    assert (spans.wait, spans.execute) == (30, 2.5)
    assert (envelope.t_end - envelope.t_start).total_seconds() == 32.5
    assert sum(spans.model_dump().values()) == 32.5
