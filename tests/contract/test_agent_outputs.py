"""The stable outputs of an agent are all there, for every way in which an execution can stand or end."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import jsonschema_rs
import pytest

from tests.unit.executions.house import Desk, agent, open_crib, results, turn
from toolcrib import Crib, Limits, Principal
from toolcrib.contracts import (
    AgentRequest,
    AgentResponse,
    ModelError,
    PinnedHandle,
    PinSelector,
    RunStatus,
    StopReason,
    ToolEnvelope,
)
from toolcrib.contracts.schemas import contract_schemas
from toolcrib.llm import Message

GO = AgentRequest(message="go")
PINS = tuple(
    PinnedHandle(name=f"{strategy}_{missing}", selector=PinSelector(tool="look", strategy=strategy), on_missing=missing)
    for strategy in ("latest", "first_success")
    for missing in ("null", "stale_last_success")
)
LOOK = turn(("look", "hat"), ("fail", "coat"))


class Exit(NamedTuple):
    """How an execution comes to stand so."""

    answers: tuple[Message | str | ModelError, ...]
    status: RunStatus
    stop_reason: StopReason | None
    executed: int
    """Calls that have an envelope."""
    limits: Limits = Limits()
    request: AgentRequest = GO
    principal: Principal | None = None
    then: Callable[[Crib, AgentResponse], Awaitable[Any]] | None = None
    """What happens after the first answer."""


async def _cancel(crib: Crib, waiting: AgentResponse) -> None:
    await crib.cancel(waiting.run_id)


async def _return(crib: Crib, waiting: AgentResponse) -> None:
    request = AgentRequest(run_id=waiting.run_id, tool_results=results(waiting, "red"))
    await crib.executions.execute("clerk", request)


EXITS: dict[str, Exit] = {
    "final_answer": Exit((LOOK, "A hat."), "completed", "final_answer", 2),
    "no_calls": Exit(("Hello.",), "completed", "final_answer", 0),
    "max_iterations": Exit((LOOK, LOOK, LOOK), "incomplete", "max_iterations", 2, Limits(max_iterations=1)),
    "max_tool_calls": Exit((LOOK, LOOK, "?"), "incomplete", "max_tool_calls", 4, Limits(max_tool_calls=2)),
    "model_failed": Exit((LOOK, ModelError("auth", "no key")), "failed", "error", 2),
    "empty_answers": Exit((LOOK, "", ""), "failed", "error", 2),
    "refused": Exit((), "failed", "policy", 0, principal=Principal(id="stranger", grants=())),
    "bad_arguments": Exit((), "failed", "error", 0, request=AgentRequest(params={"massage": "go"})),
    "awaiting_client": Exit((turn(("look", "hat"), ("pick", "hat")),), "awaiting_client", None, 1),
    "awaiting_approval": Exit((turn(("look", "hat"), ("pay", "hat")),), "awaiting_approval", None, 1),
    "after_hand_off": Exit((turn(("pick", "hat")), "Red."), "completed", "final_answer", 1, then=_return),
    "cancelled": Exit((turn(("look", "hat"), ("pick", "hat")),), "cancelled", "cancelled", 2, then=_cancel),
}


@pytest.mark.requirement("outputs.always", "outputs.standing")
@pytest.mark.parametrize("name", EXITS)
async def test_an_execution_has_all_outputs_however_it_stands(name: str):
    case, desk = EXITS[name], Desk()
    definition = agent(pins=PINS, limits=case.limits)
    async with await open_crib(*case.answers, desk=desk, definition=definition) as crib:
        asker = crib if case.principal is None else crib.acting_as(case.principal)
        response = await asker.executions.execute("clerk", case.request)
        if case.then is not None:
            await case.then(crib, response)
        response = await crib.executions.respond(response.run_id)
        run = await crib.store.journal.run(response.run_id)

    assert (response.status, response.stop_reason) == (case.status, case.stop_reason)
    assert (run.status, run.stop_reason) == (case.status, case.stop_reason)
    assert len(response.tool_order) == case.executed
    assert_complete(response)


@pytest.mark.requirement("outputs.always")
async def test_a_queued_execution_has_all_outputs():
    async with await open_crib(definition=agent(pins=PINS)) as crib:
        response = await crib.executions.submit("clerk", GO)

    assert response.status == "queued"
    assert_complete(response)


@pytest.mark.requirement("outputs.always")
async def test_an_agentic_tool_has_the_same_outputs_without_handles():
    async with await open_crib(LOOK, "A hat.") as crib:
        crib.agentic_tool("finder", mode="agentic", model="scripted:m", tools=["look", "fail"])
        response = await crib.executions.execute("finder", GO)

    assert (response.response, response.handles) == ("A hat.", {})
    assert_complete(response, handles=())


def assert_complete(response: AgentResponse, handles: tuple[PinnedHandle, ...] = PINS) -> None:
    """All fields are there and agree with each other and with the committed schema."""
    wire = response.model_dump(mode="json")
    assert wire.keys() == AgentResponse.model_fields.keys()
    assert list(jsonschema_rs.validator_for(contract_schemas()["AgentResponse"]).iter_errors(wire)) == []
    assert isinstance(response.response, str)
    assert list(response.tools_by_id) == list(response.tool_order)
    assert all(call.call_id == call_id for call_id, call in response.tools_by_id.items())
    assert response.last_tool == _last_success(response)
    assert response.handles.keys() == {pin.name for pin in handles}
    assert bool(response.tool_calls or response.approvals) == response.status.startswith("awaiting")


def _last_success(response: AgentResponse) -> ToolEnvelope | None:
    found = [response.tools_by_id[call_id] for call_id in response.tool_order]
    return next((call for call in reversed(found) if call.ok), None)
