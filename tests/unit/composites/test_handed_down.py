"""What a run hands down to the runs that it starts: its caller, its caps, what is left of its budget and time."""

from decimal import Decimal

import pytest

from tests.twins import AT
from tests.unit.agents.crm import PricedModel, asks
from toolcrib import CompositeRoute, Crib, Limits, tool
from toolcrib.contracts import OWNER, Allowance, ErrorCode, Principal, Reason, Run, ToolDefinition, ToolEnvelope
from toolcrib.core.policy import Budget, ModelReservation
from toolcrib.kinds.composite.shape import CompositeImplementation


@tool(side_effects="reads")
async def look_up() -> str:
    """Nothing much."""
    return "found"


@tool(side_effects="writes", requires_confirmation=True)
async def change() -> str:
    """Change something."""
    return "changed"


@tool(name="look_up", version="1.1.0", side_effects="writes")
async def changed() -> str:
    """The same, after it was changed to change something."""
    return "changed"


def one_way(name: str, to: str, **changes: str) -> ToolDefinition:
    """A composite tool with one route."""
    implementation = CompositeImplementation(routes=(CompositeRoute(id="only", tool=to),))
    return ToolDefinition.model_validate({"name": name, "implementation": implementation, **changes})


async def nested_run(crib: Crib, envelope: ToolEnvelope) -> Run:
    return await crib.store.journal.run(envelope.metadata["run_id"])


@pytest.mark.requirement("callees.handed_down")
async def test_a_nested_run_knows_who_calls_what_is_open_above_it_and_what_its_caller_had_left():
    async with Crib("memory://") as crib:
        crib.add(look_up, one_way("inner", "look_up"), one_way("outer", "inner"))
        result = await crib.invoke("outer", {}, session_id="s1", conversation_id="c1", dry_run=True)
        outer = await nested_run(crib, result.envelopes[-1])
        log = await crib.store.journal.events(outer.run_id)
        [child] = [entry.event.child_run_id for entry in log if entry.event.type == "child_started"]
        inner = await crib.store.journal.run(child)

    assert inner.output == "found"
    asked = inner.request
    assert (asked.principal, asked.session_id, asked.conversation_id, asked.dry_run) == (OWNER, "s1", "c1", True)
    assert list(asked.callers.values()) == ["outer@1.0.0"]
    assert (asked.depth, asked.side_effects) == (2, "reads")
    assert asked.allowance is not None
    assert (asked.allowance.tool_calls, asked.allowance.cost_usd) == (23, Decimal("1.00"))
    assert 0 < asked.allowance.seconds <= 60


@pytest.mark.requirement("callees.handed_down", "composites.effects")
async def test_an_operation_that_does_more_than_when_the_composite_was_saved_is_denied():
    async with Crib("memory://") as crib:
        crib.add(look_up, one_way("outer", "look_up", side_effects="reads"))
        await crib.open()
        crib.add(changed)
        envelope = await crib.call("outer")

    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.POLICY_DENIED, Reason.SIDE_EFFECTS_FORBIDDEN)


@pytest.mark.requirement("callees.handed_down", "composites.failures")
async def test_a_caller_needs_the_grants_of_the_operation_too():
    guest = Principal(id="guest", realm=OWNER.realm, grants=("ai://tools/utility/outer/execute",))
    async with Crib("memory://", principal=guest) as crib:
        crib.add(look_up, one_way("outer", "look_up"))
        envelope = await crib.call("outer")

    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.POLICY_DENIED, Reason.PERMISSION_MISSING)
    assert "ai://tools/utility/look_up/execute" in envelope.error.message


@pytest.mark.requirement("callees.depth")
async def test_composites_are_nested_five_deep_and_no_deeper():
    async with Crib("memory://") as crib:
        crib.add(look_up, one_way("c1", "look_up"))
        crib.add(*(one_way(f"c{number}", f"c{number - 1}") for number in range(2, 7)))
        deep, too_deep = await crib.call("c5"), await crib.call("c6")

    assert deep.output == "found"
    assert too_deep.error is not None
    assert (too_deep.error.code, too_deep.error.reason) == (ErrorCode.POLICY_DENIED, Reason.DEPTH_EXCEEDED)


@pytest.mark.requirement("callees.circles_at_run")
async def test_a_circle_that_was_not_seen_when_it_was_saved_ends_where_it_closes():
    async with Crib("memory://") as crib:
        for definition in (one_way("a", "b"), one_way("b", "a")):
            await crib.registry.save(definition, realm=OWNER.realm, made_by=OWNER.id, at=AT)
        envelope = await crib.call("a")

    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.POLICY_DENIED, Reason.CYCLE_DETECTED)
    assert "(a@1.0.0 -> b@1.0.0 -> a@1.0.0)" in envelope.error.message


@pytest.mark.requirement("callees.handed_down")
async def test_a_nested_run_that_goes_on_without_its_caller_keeps_inside_what_that_had_left():
    ask = asks(("inner", {"task": "it"}))
    outer, inner = PricedModel([ask, "ok"]), PricedModel([asks(("change", {})), asks(("look_up", {})), "done"])
    async with Crib("memory://", models={"scripted:outer": outer, "scripted:inner": inner}) as crib:
        crib.add(look_up, change)
        crib.agentic_tool("inner", mode="agentic", model="scripted:inner", tools=["change", "look_up"])
        few = Limits(max_cost_usd=Decimal("0.25"))
        agent = crib.agentic_tool("outer", mode="agentic", model="scripted:outer", tools=["inner"], limits=few)
        waiting = await agent("go")
        [child] = [entry.event.child_run_id for entry in waiting.events if entry.event.type == "child_started"]
        [asked] = await crib.pending_approvals(child)
        await crib.decide(child, asked.position, approve=True)

        alone = await crib.resume(child)
        whole = await crib.resume(waiting.run_id)

    assert waiting.summary.status == "awaiting_approval"
    assert alone.summary.stop_reason == "max_cost"
    assert alone.cost_usd == Decimal("0.10")
    assert whole.cost_usd == Decimal("0.20")


@pytest.mark.requirement("callees.handed_down")
def test_what_is_left_is_the_least_of_all_budgets_above_and_bounds_limits():
    above = Budget(Limits(max_tool_calls=9, max_total_tokens=None, max_cost_usd=Decimal(1)))
    budget = Budget(Limits(max_tool_calls=20, max_total_tokens=100, max_cost_usd=None), parent=above)
    budget.take_tool_call()
    budget.take_request()
    budget.reserve_model(ModelReservation(30, Decimal("0.25")))

    left = budget.allowance(12.5)

    assert left == Allowance(tool_calls=8, requests=199, tokens=70, cost_usd=Decimal("0.75"), seconds=12.5)
    assert Budget(Limits(max_total_tokens=None, max_cost_usd=None)).allowance(-1) == Allowance(
        tool_calls=25, requests=200, seconds=0
    )
    own = Limits(max_tool_calls=3, max_total_tokens=500, max_cost_usd=Decimal("0.5"), timeout_s=60)
    assert left.bounding(own) == Limits(
        max_tool_calls=3, max_requests=199, max_total_tokens=70, max_cost_usd=Decimal("0.5"), timeout_s=12.5
    )
    unbounded = Allowance(tool_calls=1, requests=1, seconds=1).bounding(Limits(max_cost_usd=None))
    assert (unbounded.max_cost_usd, unbounded.max_total_tokens) == (None, None)
