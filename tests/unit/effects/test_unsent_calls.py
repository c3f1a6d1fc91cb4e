"""Calls that failed before anything was sent: they use no budget, live, after a crash and in a replay."""

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.servers.ports import free_port
from tests.twins import Rig, make_context, make_tool
from tests.unit.agents.crm import MODEL, asks
from tests.unit.runs.house import House, ask, hang
from toolcrib import Crib, EgressPolicy, Limits, ScriptedModel, ToolDefinition, tool
from toolcrib.contracts import CallFinished, ErrorCode, Json, Reason, RetryPolicy
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.core.runs import RunContext
from toolcrib.kinds.http.shape import HttpImplementation

pytestmark = pytest.mark.requirement("effects.unsent_budget")


def unsent() -> CallFailed:
    """The failure of a request that never left."""
    return CallFailed(error(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, "not reached"), effect="none", sent=False)


def raising(*failures: CallFailed) -> Any:
    """A tool that fails like this, in this order; the last for ever."""

    def behaviour(dispatch: Dispatch) -> Outcome:
        raise failures[min(dispatch.attempt, len(failures)) - 1]

    return behaviour


@pytest.mark.parametrize(
    ("failure", "used"),
    [
        (unsent(), 0),
        (CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, "no key")), 0),
        (CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, "no key"), http_status=401), 1),
        (CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, "no key"), sent=True), 1),
        (CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, "not here")), 0),
        (CallFailed(error(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, "broke")), 1),
        (CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, "no")), 1),
    ],
)
async def test_a_call_of_which_nothing_was_sent_uses_neither_a_call_nor_money(failure: CallFailed, used: int):
    rig = Rig(make_tool(cost_usd_per_call=Decimal("0.5")), behaviour=raising(failure))
    context = make_context()

    envelope = await rig.run(context=context)

    assert (context.budget.tool_calls, context.budget.cost_usd) == (used, 0)
    assert envelope.metadata.get("sent") is (False if used == 0 else None)


async def test_a_call_that_was_sent_once_uses_its_call_whatever_became_of_the_next_attempt():
    lost = CallFailed(error(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, "broke"))
    rig, context = (
        Rig(make_tool(retry=RetryPolicy(count=1, base_s=0)), behaviour=raising(lost, unsent())),
        make_context(),
    )

    envelope = await rig.run(context=context)

    assert (envelope.attempts, context.budget.tool_calls, "sent" in envelope.metadata) == (2, 1, False)


async def test_the_process_that_follows_counts_as_the_one_that_died():
    async def script(context: RunContext) -> Json:
        first = await context.call(ask("a"))
        second = await context.call(ask("b"))
        return [first.status, second.status, context.budget.tool_calls]

    def behaviour(dispatch: Dispatch) -> Any:
        if dispatch.position == "a":
            raise unsent()
        return hang(dispatch)

    house = House(script, behaviour)
    await house.save()
    run_id = await house.crash(asyncio.create_task(house.start()))
    heir = House(script, other=house, owner="second")

    done = await heir.engine.resume(run_id)

    assert (done.result.output, done.result.tool_calls) == (["error", "success", 1], 1)


async def test_a_model_tries_an_address_that_nobody_serves_and_still_has_its_call(tmp_path: Path):
    port = free_port()

    @tool(side_effects="reads")
    def look() -> str:
        """Look something up."""
        return "found"

    model = ScriptedModel([asks(("away", {})), asks(("away", {"n": 2})), asks(("look", {})), "Done."])
    egress = EgressPolicy(allow=(f"127.0.0.1:{port}",))
    async with Crib(f"sqlite:///{tmp_path}/crib.db", models={MODEL: model}, egress=egress) as crib:
        crib.add(look)
        await crib.save(
            ToolDefinition(
                name="away",
                description="Read what is away.",
                side_effects="reads",
                input_schema={"type": "object", "properties": {"n": {"type": "integer"}}},
                implementation=HttpImplementation(method="GET", url=f"http://127.0.0.1:{port}/"),
            )
        )
        crib.agentic_tool("clerk", mode="agentic", model=MODEL, tools=["away", "look"], limits=Limits(max_tool_calls=1))
        ended = await crib.invoke("clerk", {"task": "go"})
        found = await crib.replay(ended.run_id)

    envelopes = [event.event.envelope for event in ended.events if isinstance(event.event, CallFinished)]
    assert [(one.name, one.status) for one in envelopes] == [("away", "error"), ("away", "error"), ("look", "success")]
    assert (ended.summary.tool_calls, found.same, found.divergence) == (1, True, None)
