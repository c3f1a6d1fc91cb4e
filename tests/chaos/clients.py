"""Processes that ask an agent whose calls a client performs, alone and in an agent that it asks; they may be killed."""

from pathlib import Path

from tests.chaos.crashing import CrashPoint, crashing
from tests.chaos.ledger import LEASE_S
from tests.unit.executions.house import MODEL, Desk, agent, turn
from toolcrib import Crib, ScriptedModel, SharingOptions
from toolcrib.contracts import AgentRequest, AgentResponse, Json, ReturnedCall
from toolcrib.core.runs import read_tree
from toolcrib.infrastructure.store import open_store
from toolcrib.llm import Message, Request, ScriptedAnswer, ToolCall


def _script(request: Request) -> ScriptedAnswer:
    """The boss asks its client and the clerk, the clerk its client; then both are done."""
    if any(message.role == "assistant" for message in request.messages):
        return "Done."
    if any(offered.name == "clerk" for offered in request.tools.tools):
        asks = (ToolCall("1", "pick", '{"item": "hat"}'), ToolCall("2", "clerk", '{"message": "go"}'))
        return Message("assistant", asks)
    return turn(("look", "shoe"), ("pick", "coat"))


def _crib(folder: Path, point: CrashPoint | None = None) -> Crib:
    store = open_store(f"sqlite:///{folder}/crib.db")
    models = {MODEL: ScriptedModel(_script)}
    crib = Crib(
        store if point is None else crashing(store, point), models=models, sharing=SharingOptions(lease_s=LEASE_S)
    )
    crib.add(*Desk().tools, agent(), agent("boss", tools=["pick"], delegates=("clerk",)))
    return crib


async def ask(folder: Path) -> Json:
    """Ask the boss; returns the results that its client will bring, and the run."""
    async with _crib(folder) as crib:
        waiting = await crib.executions.execute("boss", AgentRequest(message="go"))
        results = [
            ReturnedCall(call_id=call.call_id, run_id=call.run_id, output=f"the red {call.input['item']}")
            for call in waiting.tool_calls
        ]
        request = AgentRequest(run_id=waiting.run_id, tool_results=tuple(results))
        return request.model_dump(mode="json")


async def bring(folder: Path, request: Json, point: CrashPoint | None = None) -> Json:
    """Bring the results; returns what became of them, in the run and in the nested one."""
    async with _crib(folder, point) as crib:
        answer = await crib.executions.execute("boss", AgentRequest.model_validate(request))
        tree = await read_tree(crib.store.journal, answer.run_id, ended=True)
        responses = [await crib.executions.respond(branch.run.run_id) for branch in tree]
        events = [entry.event.type for branch in tree for entry in branch.events]
        return {
            "ended": [[response.status, response.response] for response in responses],
            "brought": sorted(output for response in responses for output in _brought(response)),
            "times": [events.count(kind) for kind in ("client_handoff", "client_returned", "run_finished")],
        }


def _brought(response: AgentResponse) -> list[str]:
    return [call.output for call in response.tools_by_id.values() if call.name == "pick"]
