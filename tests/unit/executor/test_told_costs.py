"""Usage-priced tools: the output says what the call cost."""

from decimal import Decimal
from typing import Any

import pytest

from tests.twins import Rig, make_context, make_tool
from toolcrib.contracts import ErrorCode, InvalidDefinition, Json, Limits, Reason
from toolcrib.core.executor import CallFailed, CallRequest, Dispatch, Outcome, error
from toolcrib.core.executor.envelope import EnvelopeBuilder
from toolcrib.kinds.dispatch import check_tool

pytestmark = pytest.mark.requirement("agentic.told_cost")


def metered(output: Json, *, price: str | None = None, limit: str = "1.00", **changes: Any) -> Rig:
    """A tool whose output has its cost in `usage.usd`."""

    def run(_: Dispatch) -> Outcome:
        return Outcome(output)

    fields: Any = {"cost_from": "$.usage.usd", **changes}
    if price is not None:
        fields["cost_usd_per_call"] = Decimal(price)
    return Rig(make_tool(**fields), behaviour=run, limits=Limits(max_cost_usd=Decimal(limit)))


@pytest.mark.parametrize("amount", [0.25, "0.25", 0])
async def test_a_call_costs_what_its_output_says_instead_of_its_price(amount: Json):
    rig = metered({"usage": {"usd": amount}}, price="0.40")

    envelope = await rig.run()

    assert envelope.cost_usd == rig.budget.cost_usd == Decimal(str(amount))


@pytest.mark.parametrize("amount", [None, "much", True, -1, "Infinity", "NaN", [0.25]])
async def test_a_call_whose_output_names_no_amount_costs_its_price(amount: Json):
    rig = metered({"usage": {"usd": amount}}, price="0.40")

    envelope = await rig.run()

    assert envelope.cost_usd == rig.budget.cost_usd == Decimal("0.40")


async def test_the_cost_may_stand_in_what_the_response_mapping_leaves_out():
    rig = metered({"usage": {"usd": 0.1}, "data": [1]}, select="$.data")

    envelope = await rig.run()

    assert (envelope.output, envelope.cost_usd) == ([1], Decimal("0.1"))


async def test_no_further_call_is_made_once_the_told_costs_have_crossed_the_limit():
    rig = metered({"usage": {"usd": 0.7}}, limit="0.50")
    first, second = await rig.run(), await rig.run(position="t1.c2")

    assert first.ok
    assert second.error is not None
    assert second.error.reason is Reason.MAX_COST_EXCEEDED
    assert rig.budget.cost_usd == Decimal("0.7")


@pytest.mark.parametrize("field", ["cost_from", "select"])
def test_a_path_that_is_none_is_refused_when_the_tool_is_saved(field: Any):
    broken: Any = {field: "usage["}
    definition = make_tool(**broken).definition

    with pytest.raises(InvalidDefinition, match=f"{field} 'usage\\['"):
        check_tool(definition)


@pytest.mark.requirement("costs.unknown", "costs.lines")
def test_what_failed_attempts_do_not_know_of_their_costs_is_the_call_s_too():
    rig = Rig(make_tool())
    builder = EnvelopeBuilder(CallRequest("t1.c1", "look", {}), make_context(), rig.clock)
    failure = error(ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT, "too late")
    builder.add_failed_attempt(CallFailed(failure, metadata={"run_id": "a", "cut_off_usd": "0.10"}))
    builder.add_failed_attempt(CallFailed(failure, metadata={"run_id": "b", "cut_off_usd": "0.20", "tokens": 7}))

    envelope = builder.build("success", metadata={"run_id": "c", "cost_unknown": True, "tokens": 5})

    told = {"run_id": "c", "cost_unknown": True, "tokens": 12, "tool_calls": 0, "cut_off_usd": "0.30"}
    assert envelope.metadata == told
