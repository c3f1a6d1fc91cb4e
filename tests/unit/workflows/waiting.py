"""A workflow that waits for everything there is to wait for: signals, moments, people and clients."""

from tests.twins import ManualClock
from tests.unit.workflows.shop import calls, publish
from toolcrib import Crib
from toolcrib.contracts import ClientResult, Principal
from toolcrib.contracts.workflows import WorkflowInstance

COLLEAGUE = Principal(id="ben", grants=("ai://*",))


async def waited_through(crib: Crib, clock: ManualClock) -> WorkflowInstance:
    """An instance of `wait` that has got all of it: one signal of two, a client's result, an edited approval, time."""
    await publish(
        crib,
        "wait",
        {"name": "news", "wait": {"signal": "paid", "timeout_s": 60}},
        {"name": "never", "wait": {"signal": "no", "timeout_s": 60}, "on_error": "continue"},
        {"name": "rest", "wait": {"seconds": 30}},
        {"name": "ask", "approval": {"message": "Go?", "show": {"item": "${news.item}"}}},
        {"name": "show", "tool": "show", "input": {}},
        calls("ship", "ship", "${ask.item}"),
    )
    waiting = await crib.instances.start("wait", {})
    await crib.instances.signal(waiting.run_id, "paid", {"item": "a"})
    await crib.return_client_result(waiting.run_id, "show", ClientResult(output={"seen": True}))
    await crib.instances.resume(waiting.run_id)
    [asked] = (await crib.approvals.page()).items
    await crib.acting_as(COLLEAGUE).approvals.decide(
        asked.approval_id, approve=True, edited_input={"item": "b"}, allow_self=True
    )
    clock.advance(61)
    return await crib.instances.resume(waiting.run_id)
