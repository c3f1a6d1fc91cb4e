"""An agentic tool that is allotted to another one: a run of its own, inside its caller's budget."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.agents.crm import Crm, PricedModel, asks, for_ever, told
from toolcrib import AgenticContext, Crib, Limits, ReferenceSource, Result, ScriptedModel, tool
from toolcrib.contracts import ErrorCode, InvalidDefinition, Reason
from toolcrib.llm import LanguageModel, Request

ASK = asks(("inner", {"task": "find them"}))
SEARCH = asks(("search_deals", {"company": "Acme"}))


async def nested(
    outer: LanguageModel,
    inner: LanguageModel,
    *,
    crm: Crm | None = None,
    outer_limits: Limits | None = None,
    inner_limits: Limits | None = None,
) -> Result:
    """Run an outer agent that may ask an inner one, which may search."""
    async with Crib("memory://", models={"scripted:outer": outer, "scripted:inner": inner}) as crib:
        crib.add(*(crm or Crm(1)).tools)
        crib.agentic_tool("inner", mode="agentic", model="scripted:inner", tools=["search_deals"], limits=inner_limits)
        agent = crib.agentic_tool("outer", mode="agentic", model="scripted:outer", tools=["inner"], limits=outer_limits)
        result = await agent("go")
        trace = await crib.trace(result.run_id)
        assert trace.status == result.summary.status
        return result


@pytest.mark.requirement("agents.nested")
async def test_a_nested_run_is_a_call_of_its_caller_with_output_and_cost():
    outer, inner = PricedModel([ASK, "All found."]), PricedModel([SEARCH, "One deal."])

    result = await nested(outer, inner)

    assert result.output == {"summary": "All found."}
    [envelope] = result.envelopes
    assert envelope.output == {"summary": "One deal."}
    assert envelope.cost_usd == Decimal("0.20")
    assert envelope.metadata["stop_reason"] == "final_answer"
    assert envelope.metadata["run_id"] != result.run_id
    assert result.cost_usd == Decimal("0.40")
    assert result.summary.tool_calls == 2


@pytest.mark.requirement("agents.nested", "crib.trace")
async def test_the_trace_of_the_caller_shows_the_nested_run_with_its_parent():
    async with Crib(
        "memory://",
        models={"scripted:outer": ScriptedModel([ASK, "ok"]), "scripted:inner": ScriptedModel([SEARCH, "One deal."])},
    ) as crib:
        crib.add(*Crm(1).tools)
        crib.agentic_tool("inner", mode="agentic", model="scripted:inner", tools=["search_deals"])
        result = await crib.agentic_tool("outer", mode="agentic", model="scripted:outer", tools=["inner"])("go")
        child = await crib.store.journal.run(result.envelopes[0].metadata["run_id"])
        text = (await crib.trace(result.run_id)).model_dump_json()

    assert (child.request.parent_run_id, child.request.parent_position) == (result.run_id, "t1.c1")
    assert (child.request.depth, child.request.principal) == (1, crib.principal)
    assert child.run_id in text
    assert '"search_deals"' in text


@pytest.mark.requirement("agents.nested")
async def test_a_nested_runs_failure_is_the_error_of_the_call():
    inner = ScriptedModel(["", ""])

    result = await nested(ScriptedModel([ASK, "It failed."]), inner)

    assert result.ok
    [envelope] = result.envelopes
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)
    assert "run_id" in envelope.metadata


@pytest.mark.requirement("agents.nested", "agents.limits")
async def test_a_nested_run_that_a_limit_ended_brings_what_it_has_and_says_so():
    result = await nested(ScriptedModel([ASK, "Some."]), ScriptedModel([SEARCH]), inner_limits=Limits(max_iterations=1))

    [envelope] = result.envelopes
    assert (envelope.status, envelope.output) == ("error", None)
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.POLICY_DENIED, Reason.MAX_ITERATIONS_EXCEEDED)
    assert envelope.metadata["stop_reason"] == "max_iterations"
    assert "max_iterations is 1" in envelope.metadata["warnings"][0]
    assert envelope.partial["calls"][0]["tool"] == "search_deals"
    assert result.ok, "the model went on"
    assert "1 call was without a result (1 failed)" in result.warnings[-1]


@pytest.mark.requirement("agents.nested_budget")
async def test_a_nested_run_cannot_spend_more_money_than_its_caller_may():
    inner = PricedModel([SEARCH, SEARCH, SEARCH])

    result = await nested(PricedModel([ASK]), inner, outer_limits=Limits(max_cost_usd=Decimal("0.35")))

    assert result.cost_usd == Decimal("0.30")
    assert len(inner.requests) == 2
    assert result.envelopes[0].metadata["stop_reason"] == "max_cost"
    assert result.summary.stop_reason == "max_cost"


@pytest.mark.requirement("agents.nested_budget")
async def test_a_nested_run_cannot_make_more_calls_than_its_caller_may():
    crm = Crm(1)
    outer = ScriptedModel([ASK, "Enough."])

    result = await nested(
        outer, ScriptedModel([SEARCH, SEARCH, SEARCH]), crm=crm, outer_limits=Limits(max_tool_calls=2)
    )

    assert crm.searches == ["Acme"]
    assert result.summary.tool_calls == 2
    assert result.envelopes[0].metadata["stop_reason"] == "max_tool_calls"


@pytest.mark.requirement("agents.nested_budget")
async def test_parallel_nested_runs_share_their_callers_money():
    both = asks(("inner", {"task": "one"}), ("inner", {"task": "two"}))
    inner = PricedModel(lambda request: "Found.")

    result = await nested(PricedModel([both]), inner, outer_limits=Limits(max_cost_usd=Decimal("0.25")))

    assert result.cost_usd == Decimal("0.20")
    assert sorted(envelope.metadata["stop_reason"] for envelope in result.envelopes) == ["final_answer", "max_cost"]


@pytest.mark.requirement("agents.nested_budget")
async def test_a_nested_run_cannot_use_more_tokens_than_its_caller_may():
    inner = ScriptedModel([SEARCH])
    limits = Limits(max_total_tokens=1500, max_tokens_per_call=1000)

    result = await nested(ScriptedModel([ASK]), inner, outer_limits=limits)

    assert inner.requests == []
    assert result.envelopes[0].metadata["stop_reason"] == "max_tokens"


@pytest.mark.requirement("agents.nested", "agents.derived")
async def test_a_nested_run_that_runs_out_of_time_ends_itself_before_its_call_is_cut_off():
    crm = Crm(1)
    crm.on_search = for_ever
    outer, inner = ScriptedModel([ASK, "Too slow."]), ScriptedModel([SEARCH])
    async with Crib("memory://", models={"scripted:outer": outer, "scripted:inner": inner}) as crib:
        crib.add(*crm.tools)
        crib.agentic_tool(
            "inner", mode="agentic", model="scripted:inner", tools=["search_deals"], limits=Limits(timeout_s=0.2)
        )
        result = await crib.agentic_tool("outer", mode="agentic", model="scripted:outer", tools=["inner"])("go")
        [envelope] = result.envelopes
        child = await crib.store.journal.run(envelope.metadata["run_id"])

    assert result.output == {"summary": "Too slow."}
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.TIMEOUT, Reason.RUN_TIMEOUT)
    assert (child.status, child.stop_reason) == ("timed_out", "timeout")


@pytest.mark.requirement("agents.depth")
async def test_nesting_ends_at_a_fixed_depth():
    """a1 asks a2, a2 asks a3, and so on; the sixth is refused."""
    levels = 7
    asked: list[str] = []

    def script(request: Request) -> Any:
        if len(request.messages) > 1:
            return told(request)[0]
        name = request.tools.tools[0].name
        asked.append(name)
        return asks((name, {"task": "deeper"} if name.startswith("a") else {}))

    async with Crib("memory://", models={"scripted:m": ScriptedModel(script)}) as crib:
        crib.add(*Crm(1).tools)
        below = "list_stages"
        for level in range(levels, 0, -1):
            crib.agentic_tool(f"a{level}", mode="agentic", model="scripted:m", tools=[below])
            below = f"a{level}"
        result = await crib.invoke("a1", {"task": "go"})

    assert asked == ["a2", "a3", "a4", "a5", "a6", "a7"]
    assert "'a7' would be nested 6 deep, and 5 is the most" in result.unwrap()["summary"]
    assert "POLICY_DENIED" in result.unwrap()["summary"]


@pytest.mark.requirement("agents.depth", "agents.authoring")
async def test_a_tool_cannot_be_allotted_to_itself():
    async with Crib("memory://", models={"scripted:m": ScriptedModel([])}) as crib:
        with pytest.raises(InvalidDefinition, match="agentic tool 'a': it is allotted to itself"):
            crib.agentic_tool("a", mode="agentic", model="scripted:m", tools=["a@^1.0"])


@pytest.mark.requirement("agents.nested", "crib.approval")
async def test_a_confirmation_deep_inside_suspends_the_outer_run_and_a_decision_carries_all_on():
    paid: list[int] = []

    @tool(side_effects="writes", requires_confirmation=True)
    async def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    outer = ScriptedModel([ASK, "All done."])
    inner = ScriptedModel([asks(("pay", {"amount": 5})), "Paid."])
    async with Crib("memory://", models={"scripted:outer": outer, "scripted:inner": inner}) as crib:
        crib.add(pay)
        crib.agentic_tool("inner", mode="agentic", model="scripted:inner", tools=["pay"])
        waiting = await crib.agentic_tool("outer", mode="agentic", model="scripted:outer", tools=["inner"])("go")
        assert waiting.summary.status == "awaiting_approval"
        [child_id] = [entry.event.child_run_id for entry in waiting.events if entry.event.type == "child_started"]
        await crib.decide(child_id, "t1.c1", approve=True)
        assert (await crib.resume(child_id)).output == {"summary": "Paid."}
        result = await crib.resume(waiting.run_id)

    assert result.output == {"summary": "All done."}
    assert result.envelopes[0].output == {"summary": "Paid."}
    assert paid == [5]
    assert (len(outer.requests), len(inner.requests)) == (2, 2)


@pytest.mark.requirement("agents.dry_run", "agents.nested")
async def test_a_dry_run_does_not_start_a_nested_run_that_could_write():
    crm = Crm(1)
    outer = ScriptedModel([ASK, "Would be moved."])
    async with Crib("memory://", models={"scripted:outer": outer, "scripted:inner": ScriptedModel([])}) as crib:
        crib.add(*crm.tools)
        crib.agentic_tool("inner", mode="agentic", model="scripted:inner", tools=["update_deals"])
        crib.agentic_tool("outer", mode="agentic", model="scripted:outer", tools=["inner"])
        result = await crib.invoke("outer", {"task": "go"}, dry_run=True)

    assert [envelope.status for envelope in result.envelopes] == ["skipped"]


@pytest.mark.requirement("agents.nested", "agents.reference_data")
async def test_an_agentic_tool_may_be_a_step_of_a_sequence():
    crm = Crm(1)
    inner = ScriptedModel(lambda request: "Summed up.")
    planned = (
        '{"reasoning": "", "search_deals": {"input": {"company": "A"}}, "inner": {"input": {"task": "${input.task}"}}}'
    )
    outer = ScriptedModel([planned, '{"summary": "ok"}'])
    context = AgenticContext(reference_data=(ReferenceSource(name="any", values=("a",)),))
    async with Crib("memory://", models={"scripted:outer": outer, "scripted:inner": inner}) as crib:
        crib.add(*crm.tools)
        crib.agentic_tool("inner", mode="agentic", model="scripted:inner", tools=["search_deals"])
        agent = crib.agentic_tool(
            "outer", mode="deterministic", model="scripted:outer", steps=["search_deals", "inner"], context=context
        )
        result = await agent("Sum up")

    assert result.envelopes[1].output == {"summary": "Summed up."}
    assert inner.requests[0].messages[0].text == "Sum up"


@pytest.mark.requirement("agents.nested")
async def test_nested_runs_of_one_turn_go_on_at_the_same_time():
    crm, together = Crm(1), asyncio.Barrier(2)

    async def wait(_: str) -> None:
        await together.wait()

    crm.on_search = wait
    both = asks(("inner", {"task": "one"}), ("inner", {"task": "two"}))
    inner = ScriptedModel(lambda request: SEARCH if len(request.messages) == 1 else "Found.")

    result = await nested(ScriptedModel([both, "Both."]), inner, crm=crm)

    assert [envelope.output for envelope in result.envelopes] == [{"summary": "Found."}] * 2


@pytest.mark.requirement("agents.no_orphans")
async def test_a_nested_run_ends_with_the_run_that_called_it_and_writes_nothing_more():
    crm, gate = Crm(1), asyncio.Event()

    async def wait(_: str) -> None:
        await gate.wait()

    crm.on_search = wait
    models: dict[str, LanguageModel] = {
        "scripted:outer": ScriptedModel([asks(("inner", {"task": "x"})), "All"]),
        "scripted:inner": ScriptedModel(
            [
                asks(("search_deals", {"company": "Acme"})),
                asks(("update_deals", {"ids": ["d0"], "stage": "3003"})),
                "Done",
            ]
        ),
    }
    async with Crib("memory://", models=models) as crib:
        crib.add(*crm.tools)
        crib.agentic_tool("inner", mode="agentic", model="scripted:inner", tools=["search_deals", "update_deals"])
        outer = crib.agentic_tool(
            "outer", mode="agentic", model="scripted:outer", tools=["inner"], limits=Limits(timeout_s=0.1)
        )
        result = await outer("go")
        gate.set()
        recovered = await crib.recover()
        [child] = [entry.event.child_run_id for entry in result.events if entry.event.type == "child_started"]
        nested = await crib.store.journal.run(child)

    assert result.summary.status == "timed_out"
    assert (nested.status, nested.stop_reason) == ("cancelled", "cancelled")
    assert nested.error is not None
    assert "has ended" in nested.error.message
    assert list(recovered) == []
    assert crm.updates == []


@pytest.mark.requirement("agents.nested_recount")
async def test_a_resumed_run_has_taken_all_that_its_nested_runs_had_spent():
    @tool(side_effects="writes", requires_confirmation=True)
    async def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    search = asks(("search_deals", {"company": "Acme"}))
    models: dict[str, LanguageModel] = {
        "scripted:outer": PricedModel([asks(("inner", {"task": "x"})), asks(("pay", {"amount": 1})), "All"]),
        "scripted:inner": PricedModel([search, search, ""]),
    }
    async with Crib("memory://", models=models) as crib:
        crib.add(*Crm(1).tools, pay)
        crib.agentic_tool("inner", mode="agentic", model="scripted:inner", tools=["search_deals"])
        outer = crib.agentic_tool("outer", mode="agentic", model="scripted:outer", tools=["inner", "pay"])
        waiting = await outer("go")
        [request] = await crib.pending_approvals(waiting.run_id)
        await crib.decide(waiting.run_id, request.position, approve=True)

        ended = await crib.resume(waiting.run_id)

    assert ended.envelopes[0].error is not None, "the nested run gives no answer, and so fails"
    assert ended.cost_usd == Decimal("0.60")
    assert ended.summary.tool_calls == 4
