"""What is called instead of a tool that failed, and when nothing is."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from tests.twins import Rig, make_tool
from tests.unit.executor.test_failures import fails, in_turn, outcome, raises
from toolcrib.contracts import (
    Attachment,
    ErrorCode,
    ErrorRule,
    FailedCall,
    Reason,
    RetryPolicy,
    RunResult,
    SecretReference,
    ToolRevision,
    Usage,
)
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.kinds.composite.shape import CompositeImplementation, CompositeRoute

FALLS_BACK = (ErrorRule(when="5xx", action="fallback", tool="other", message="the search is down"),)
OTHER = make_tool("other")
SEARCH = make_tool("search", error_handling=FALLS_BACK)


def down() -> CallFailed:
    return fails(ErrorCode.PROVIDER_ERROR, http_status=503)


def rig(tool: ToolRevision = SEARCH, *others: ToolRevision, failure: CallFailed | None = None, **child: Any) -> Rig:
    """A tool that fails, and what comes back from its fallback."""
    made = Rig(
        tool, *(others or (OTHER,)), behaviour=raises(failure or down()), secrets={"${env:KEY}": "hunter2-but-longer"}
    )
    fields: dict[str, Any] = {"run_id": "child", "status": "completed", "output": ["a"], **child}
    made.journal.child = RunResult(**fields)
    return made


@pytest.mark.requirement("fallbacks.called")
async def test_the_output_of_the_fallback_counts_and_the_metadata_says_what_failed():
    picture = Attachment(kind="image", url="blob:sha256:1")
    house = rig(attachments=(picture,), warnings=("slow",), tool_calls=1, cost_usd=Decimal("0.20"))

    envelope = await house.run("search", {"text": "x"})

    assert (envelope.status, envelope.output, envelope.attempts) == ("success", ["a"], 1)
    assert envelope.metadata["fallback"]["tool"] == "other@1.0.0"
    assert envelope.metadata["fallback"]["error"]["code"] == "PROVIDER_ERROR"
    assert envelope.metadata["fallback"]["error"]["message"] == "the search is down (it failed)"
    assert (envelope.metadata["run_id"], envelope.metadata["warnings"]) == ("child", ["slow"])
    assert envelope.attachments == (picture,)
    assert envelope.cost_usd == Decimal("0.20")
    assert house.journal.spawned == [("t1.c1", "other", {"text": "x"})]
    assert house.journal.failed[0].tool == "search@1.0.0"


@pytest.mark.requirement("fallbacks.called")
async def test_retries_come_first_and_another_error_has_no_fallback():
    tool = make_tool("search", error_handling=FALLS_BACK, retry=RetryPolicy(count=1, base_s=0))
    house = rig(tool)

    assert (await house.run("search")).attempts == 2
    assert outcome(await rig(failure=fails(ErrorCode.TIMEOUT)).run("search")) == ("TIMEOUT", "tool_failed")
    assert (await Rig(tool, behaviour=in_turn(down(), Outcome("ok"))).run("search")).output == "ok"


@pytest.mark.requirement("fallbacks.writes")
@pytest.mark.parametrize(
    ("code", "called"),
    [
        (ErrorCode.RATE_LIMIT, True),
        (ErrorCode.AUTH_REQUIRED, True),
        (ErrorCode.VALIDATION_ERROR, True),
        (ErrorCode.TIMEOUT, False),
        (ErrorCode.NETWORK_ERROR, False),
        (ErrorCode.PROVIDER_ERROR, False),
        (ErrorCode.UNKNOWN, False),
    ],
)
async def test_after_a_write_whose_outcome_is_unknown_nothing_is_called_instead(code: ErrorCode, called: bool):
    rules = (ErrorRule(when=code.value, action="fallback", tool="other"),)
    house = rig(make_tool("search", side_effects="writes", idempotent=True, error_handling=rules), failure=fails(code))

    assert (await house.run("search")).ok is called
    assert bool(house.journal.spawned) is called


@pytest.mark.requirement("fallbacks.writes")
@pytest.mark.parametrize(("calls", "called"), [({"tool_calls": 0}, True), ({"tool_calls": 1}, False), ({}, False)])
async def test_a_run_that_could_write_is_replaced_only_if_it_has_called_nothing(calls: Any, called: bool):
    routes = (CompositeRoute(id="only", tool="other"),)
    rules = (ErrorRule(when="VALIDATION_ERROR", action="fallback", tool="other"),)
    tool = make_tool(
        "search",
        side_effects="writes",
        error_handling=rules,
        implementation=CompositeImplementation(routes=routes),
    )
    refused = error(ErrorCode.VALIDATION_ERROR, Reason.NO_ROUTE, "no route")

    assert (await rig(tool, failure=CallFailed(refused, metadata=calls)).run("search")).ok is called


@pytest.mark.requirement("fallbacks.failed")
async def test_if_the_fallback_fails_too_the_error_is_that_of_the_tool_and_names_both():
    late = error(ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT, "too late")
    house = rig(error=late, status="failed", output=None)

    envelope = await house.run("search")

    assert envelope.error is not None
    assert (envelope.error.code, envelope.http_status) == (ErrorCode.PROVIDER_ERROR, 503)
    assert envelope.error.message == "the search is down (it failed); its fallback 'other' failed too: too late"
    assert envelope.metadata["fallback"]["tool"] == "other@1.0.0"


@pytest.mark.requirement("fallbacks.failed")
@pytest.mark.parametrize(
    ("others", "said"),
    [
        ((make_tool("another"),), "there is no tool 'other'"),
        ((make_tool("other", side_effects="writes"),), "'other@1.0.0' writes, which 'search' does not"),
    ],
)
async def test_a_fallback_that_is_gone_or_does_more_by_now_is_not_called(others: Any, said: str):
    house = rig(SEARCH, *others)

    envelope = await house.run("search")

    assert envelope.error is not None
    assert said in envelope.error.message
    assert house.journal.spawned == []


@pytest.mark.requirement("fallbacks.failed", "callees.depth", "callees.circles_at_run")
async def test_a_fallback_is_nested_no_deeper_and_in_no_other_circle_than_any_run():
    deep, cycle = rig(), rig()
    deep.context = msgspec.structs.replace(deep.context, depth=5)
    cycle.context = msgspec.structs.replace(cycle.context, callers={OTHER.content_hash: OTHER.ref})

    for house, said in ((deep, "nested 6 deep, and 5 is the most"), (cycle, "other@1.0.0 -> other@1.0.0")):
        envelope = await house.run("search")
        assert envelope.error is not None
        assert said in envelope.error.message
        assert house.journal.spawned == []


@pytest.mark.requirement("fallbacks.failed")
async def test_a_crash_in_starting_the_fallback_is_an_error_too():
    house = rig()

    async def crash(*_: object, **__: object) -> RunResult:
        raise RuntimeError("no store")

    house.journal.spawn = crash

    envelope = await house.run("search")

    assert envelope.error is not None
    assert "fallback 'other' failed too: tool 'other' raised RuntimeError: no store" in envelope.error.message


@pytest.mark.requirement("fallbacks.called")
async def test_the_fallbacks_output_must_be_what_the_tool_promises():
    promising = make_tool("search", error_handling=FALLS_BACK, output_schema={"type": "object"})

    assert outcome(await rig(promising).run("search")) == ("PROVIDER_ERROR", "output_schema_mismatch")


@pytest.mark.requirement("fallbacks.called")
async def test_secrets_stay_out_of_what_the_journal_keeps_of_the_failure():
    def leaks(dispatch: Dispatch) -> Outcome:
        raise CallFailed(error(ErrorCode.TIMEOUT, Reason.TOOL_FAILED, f"{dispatch.auth['key']} and token-123456"))

    tool = make_tool(
        "search",
        error_handling=(ErrorRule(when="TIMEOUT", action="fallback", tool="other"),),
        secrets=(SecretReference(name="key", reference="${env:KEY}"),),
    )
    house = rig(tool)
    house.dispatcher.behaviour = leaks

    envelope = await house.run("search")

    assert "hunter2" not in house.journal.failed[0].error.message
    assert "hunter2" not in envelope.model_dump_json()


@pytest.mark.requirement("fallbacks.resumed", "fallbacks.accounting")
async def test_a_call_that_is_known_to_have_failed_is_not_dispatched_again():
    house = rig(usage=Usage(input_tokens=5), tool_calls=1, cost_usd=Decimal("0.20"))
    refused = error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, "it was down")
    house.journal.failures["t1.c1"] = FailedCall(
        tool=SEARCH.ref,
        content_hash=SEARCH.content_hash,
        error=refused,
        http_status=503,
        tool_calls=2,
        tokens=10,
        cost_usd=Decimal("0.10"),
    )

    envelope = await house.run("search")

    assert envelope.output == ["a"]
    assert house.dispatcher.dispatched == []
    assert envelope.metadata["fallback"]["error"]["message"] == "it was down"
    assert (envelope.metadata["tool_calls"], envelope.metadata["tokens"]) == (3, 15)
    assert (envelope.attempts, envelope.cost_usd) == (1, Decimal("0.30"))


@pytest.mark.requirement("fallbacks.resumed")
@pytest.mark.parametrize("tainted", [True, False])
async def test_what_a_failed_call_had_read_marks_its_fallback_also_after_a_crash(tainted: bool):
    failed = CallFailed(
        error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, "it is down"), http_status=503, tainted=tainted
    )

    async def is_down(dispatch: Dispatch) -> Outcome:
        raise failed

    first, again = rig(), rig()
    first.dispatcher.behaviour = is_down
    told = await first.run("search")
    again.journal.failures["t1.c1"] = first.journal.failed[0]

    assert [told.tainted, (await again.run("search")).tainted] == [tainted, tainted]
    assert again.dispatcher.dispatched == []


@pytest.mark.requirement("fallbacks.accounting")
async def test_costs_that_nobody_knows_stay_unknown_and_the_tools_own_price_is_given_back():
    house = rig(make_tool("search", error_handling=FALLS_BACK, cost_usd_per_call=Decimal("0.50")))

    assert (await house.run("search")).cost_usd is None
    assert house.budget.cost_usd == 0
