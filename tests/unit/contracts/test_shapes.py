"""The shapes themselves: strictness, time, money, names on the wire, bounds, and the little that they compute."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from toolcrib.contracts import (
    ENDED,
    Limits,
    LLMConfig,
    Principal,
    RateLimit,
    RetryPolicy,
    Run,
    RunRequest,
    RunStatus,
    Signal,
    Timings,
    ToolDefinition,
    ToolEnvelope,
    ToolRevision,
    Usage,
    format_timestamp,
    tool_uri,
)
from toolcrib.kinds.python.shape import PythonImplementation

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
CODE = PythonImplementation(function="crm:search")


def envelope(**fields: Any) -> ToolEnvelope:
    base: dict[str, Any] = {
        "call_id": "c",
        "name": "search",
        "version": "1.0.0",
        "status": "success",
        "t_start": NOON,
        "t_end": NOON,
    }
    return ToolEnvelope.model_validate(base | fields)


def run(status: RunStatus) -> Run:
    request = RunRequest(kind="tool", tool="search@1.0.0", content_hash="sha256:0", principal=Principal(id="ann"))
    return Run(
        run_id="r", realm="default", made_by="ann", status=status, request=request, created_at=NOON, updated_at=NOON
    )


@pytest.mark.requirement("contracts.timestamps")
@pytest.mark.parametrize(
    "moment",
    [
        NOON,
        datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2))),
        "2026-01-31T12:00:00Z",
        "2026-01-31T06:00:00-06:00",
    ],
)
def test_a_moment_of_any_zone_is_written_in_utc_with_microseconds(moment: object):
    signal = Signal.model_validate({"name": "s", "payload": {}, "made_by": "ann", "at": moment})

    assert signal.at == NOON
    assert signal.at.utcoffset() == timedelta(0)
    assert signal.model_dump(mode="json")["at"] == "2026-01-31T12:00:00.000000Z"
    assert signal.model_dump()["at"] == NOON


@pytest.mark.requirement("contracts.timestamps")
def test_a_moment_without_a_zone_is_refused_with_the_spelling_to_use():
    with pytest.raises(ValidationError, match=r"has no time zone; write it in UTC, e\.g\. 2026-01-31T12:00:00Z"):
        Signal(name="s", payload={}, made_by="ann", at=NOON.replace(tzinfo=None))


@pytest.mark.requirement("contracts.timestamps")
def test_a_formatted_timestamp_keeps_microseconds():
    assert format_timestamp(NOON.replace(microsecond=7)) == "2026-01-31T12:00:00.000007Z"


@pytest.mark.requirement("contracts.strict")
def test_unknown_fields_are_refused_and_instances_do_not_change():
    limits, field = Limits(), "max_iterations"

    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Limits.model_validate({"max_steps": 3})
    with pytest.raises(ValidationError, match="Instance is frozen"):
        setattr(limits, field, 3)


@pytest.mark.requirement("contracts.wire_names")
def test_the_validation_span_is_called_validate_on_the_wire_and_by_name():
    written = Timings(validate_=0.5).model_dump(mode="json")

    assert written["validate"] == 0.5
    assert Timings.model_validate(written) == Timings.model_validate({"validate_": 0.5})


@pytest.mark.requirement("contracts.wire_names")
def test_money_is_an_exact_decimal_in_python_and_a_number_in_json():
    receipt = envelope(cost_usd="0.0125")

    assert receipt.cost_usd == Decimal("0.0125")
    assert receipt.model_dump(mode="json")["cost_usd"] == 0.0125
    assert receipt.model_dump()["cost_usd"] == Decimal("0.0125")


@pytest.mark.requirement("contracts.wire_names")
@pytest.mark.parametrize(("status", "ok"), [("success", True), ("error", False), ("skipped", False), ("denied", False)])
def test_only_a_successful_call_is_ok(status: str, ok: bool):
    assert envelope(status=status).ok is ok


@pytest.mark.requirement("contracts.run_state")
@pytest.mark.parametrize("status", get_args(RunStatus))
def test_a_run_has_ended_in_its_five_final_statuses_only(status: RunStatus):
    assert run(status).ended is (status in {"completed", "incomplete", "failed", "timed_out", "cancelled"})
    assert run(status).ended is (status in ENDED)


@pytest.mark.requirement("contracts.usage")
def test_tokens_add_up_field_by_field_and_an_estimate_makes_the_sum_one():
    one = Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4, reasoning_tokens=5)
    other = Usage(input_tokens=10, output_tokens=20, cache_read_tokens=30, cache_write_tokens=40, estimated=True)

    assert one + other == Usage(
        input_tokens=11,
        output_tokens=22,
        cache_read_tokens=33,
        cache_write_tokens=44,
        reasoning_tokens=5,
        estimated=True,
    )
    assert (one + other).total_tokens == 33
    assert not (one + one).estimated


@pytest.mark.requirement("contracts.definition_refused")
@pytest.mark.parametrize(
    ("model", "fields", "place"),
    [
        (ToolDefinition, {"name": "1st", "implementation": CODE}, "name"),
        (ToolDefinition, {"name": "a" * 129, "implementation": CODE}, "name"),
        (ToolDefinition, {"name": "search\n", "implementation": CODE}, "name"),
        (ToolDefinition, {"name": "search", "implementation": {"kind": "shell"}}, "implementation"),
        (ToolDefinition, {"name": "search", "implementation": CODE, "timeout_s": 0}, "timeout_s"),
        (ToolDefinition, {"name": "search", "implementation": CODE, "max_output_bytes": 0}, "max_output_bytes"),
        (RetryPolicy, {"count": 11}, "count"),
        (RateLimit, {"count": 0, "per_s": 1}, "count"),
        (Limits, {"max_iterations": 0}, "max_iterations"),
        (Limits, {"max_cost_usd": "-0.01"}, "max_cost_usd"),
        (LLMConfig, {"model": "m", "temperature": 1.1}, "temperature"),
        (Principal, {"id": ""}, "id"),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_the_field(model: Any, fields: dict[str, Any], place: str):
    with pytest.raises(ValidationError) as caught:
        model.model_validate(fields)

    assert {error["loc"][0] for error in caught.value.errors()} == {place}


@pytest.mark.requirement("contracts.content_hash")
def test_a_definition_s_hash_names_its_content_and_its_revision_the_version():
    definition = ToolDefinition(
        name="search", version="1.2.0", input_schema={"type": "object", "properties": {"a": {}}}, implementation=CODE
    )
    reordered = ToolDefinition(
        input_schema={"properties": {"a": {}}, "type": "object"}, version="1.2.0", name="search", implementation=CODE
    )
    revision = ToolRevision(
        definition=definition,
        revision=1,
        content_hash=definition.content_hash(),
        realm="default",
        made_by="ann",
        created_at=NOON,
    )

    assert definition.content_hash() == reordered.content_hash()
    assert definition.content_hash() != definition.model_copy(update={"description": "Find."}).content_hash()
    assert (revision.name, revision.version, revision.ref) == ("search", "1.2.0", "search@1.2.0")
    assert definition.parameter_names() == ("a",)


@pytest.mark.requirement("contracts.content_hash", "contracts.canonical_exact")
def test_a_schema_with_the_bounds_of_int64_can_be_hashed():
    schema = {"type": "object", "properties": {"id": {"type": "integer", "maximum": 2**63 - 1}}}

    assert ToolDefinition(name="get", input_schema=schema, implementation=CODE).content_hash().startswith("sha256:")


@pytest.mark.requirement("contracts.wire_names")
def test_a_tool_s_uri_names_category_tool_and_verb():
    assert tool_uri("crm", "search") == "ai://tools/crm/search/execute"
    assert tool_uri("crm", "search", "read") == "ai://tools/crm/search/read"


@pytest.mark.requirement("contracts.model")
def test_another_model_of_the_same_provider_is_reached_like_the_first_and_one_of_another_provider_is_not():
    own = LLMConfig(model="openai-compatible:one", base_url="https://models.example", api_key_env="KEY", top_p=0.5)

    assert own.asking("openai-compatible:two") == own.model_copy(update={"model": "openai-compatible:two"})
    assert own.asking("ollama:two") == LLMConfig(model="ollama:two", top_p=0.5)


@pytest.mark.requirement("contracts.content_hash")
def test_a_schema_with_a_value_that_is_written_as_json_has_the_hash_of_what_is_written():
    def definition(moment: object) -> ToolDefinition:
        schema = {"type": "object", "properties": {"since": {"default": moment}}}
        return ToolDefinition(name="search", description="Search.", implementation=CODE, input_schema=schema)

    assert definition(NOON).content_hash() == definition("2026-01-31T12:00:00Z").content_hash()
