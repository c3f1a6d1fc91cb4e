"""Whatever a model calls, in whatever order its clients and persons answer, and whoever carries the run on."""

import asyncio
from collections import Counter
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.executions.house import Desk, open_crib, turn
from toolcrib import ScriptedModel
from toolcrib.contracts import AgentRequest, AgentResponse, ReturnedCall, ToolEnvelope
from toolcrib.infrastructure.store import MemoryStore

CALLS = st.tuples(st.sampled_from(["look", "pay", "pick", "show", "fail"]), st.sampled_from(["hat", "coat"]))
TURNS = st.lists(st.lists(CALLS, min_size=1, max_size=4), min_size=1, max_size=3)


class Schedule:
    """One execution, and how it is answered.

    Args:
        turns: The calls of the model's answers.
        data: Draws what happens next.
    """

    def __init__(self, turns: list[list[tuple[str, str]]], data: st.DataObject) -> None:
        self._data = data
        self._turns = turns
        self._model = ScriptedModel([*(turn(*calls) for calls in turns), "Done."])
        self._store = MemoryStore()
        self.desk = Desk()
        self.told: dict[str, Any] = {}
        """What the client has brought, by `call_id`."""

    async def play(self) -> AgentResponse:
        """Answer until the run has ended; each time, it is another process that is told."""
        async with await self._process() as crib:
            response = await crib.executions.execute("clerk", AgentRequest(message="go"))
        while response.status != "completed":
            assert response.tool_calls or response.approvals
            async with await self._process() as crib:
                assert await crib.executions.respond(response.run_id) == response
                response = await self._answer(crib, response)
        return response

    async def _process(self) -> Any:
        return await open_crib(store=self._store, desk=self.desk, model=self._model)

    async def _answer(self, crib: Any, response: AgentResponse) -> AgentResponse:
        if response.approvals and (not response.tool_calls or self._data.draw(st.booleans())):
            approval = self._data.draw(st.sampled_from(response.approvals))
            await crib.decide(approval.run_id, approval.position, approve=True)
            await crib.resume(response.run_id)
            return cast("AgentResponse", await crib.executions.respond(response.run_id))
        chosen = self._data.draw(st.lists(st.sampled_from(response.tool_calls), min_size=1, unique_by=_position))
        brought = [ReturnedCall(call_id=call.call_id, output=f"{call.call_id} brought") for call in chosen]
        self.told |= {result.call_id: result.output for result in brought}
        request = AgentRequest(run_id=response.run_id, tool_results=tuple(brought))
        return cast("AgentResponse", await crib.executions.execute("clerk", request))


def _position(call: ToolEnvelope) -> str:
    return call.position


@pytest.mark.requirement("handoff.stateless", "handoff.restart", "handoff.approvals", "handoff.mixed")
@settings(max_examples=30)
@given(TURNS, st.data())
def test_every_call_is_made_once_and_every_answer_counts(turns: list[list[tuple[str, str]]], data: st.DataObject):
    schedule = Schedule(turns, data)

    answer = asyncio.run(schedule.play())

    asked = [call for calls in turns for call in calls]
    assert answer.response == "Done."
    assert Counter(schedule.desk.done) == Counter(call for call in asked if call[0] != "fail")
    made = sorted(answer.tools_by_id.values(), key=_position)
    assert [call.name for call in made] == [name for name, _ in asked]
    assert {call_id: answer.tools_by_id[call_id].output for call_id in schedule.told} == schedule.told
    assert len(schedule.told) == sum(name in {"pick", "show"} for name, _ in asked)
