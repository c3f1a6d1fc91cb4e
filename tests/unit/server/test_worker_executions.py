"""Executions of agents, agentic tools and workflows whose tools only a worker has: real processes on one store."""

import json
from typing import Any

import pytest

from tests.unit.server.client import checked
from tests.unit.server.test_worker_calls import Shop, shop
from toolcrib import Crib, SharingOptions

__all__ = ["shop"]
APPLICATION = '''
from toolcrib import Crib, ScriptedModel, tool
from toolcrib.testing import calls, says

@tool(side_effects="reads")
def double(number: int) -> int:
    """Double a number."""
    return number * 2

def answers(request):
    """Call the tool that is offered, then say what came of it."""
    if "42" in str(request.messages[-1]):
        return says("It is 42.")
    number = {"number": 21} if request.tools.tools[0].name == "double" else {"task": "Double 21."}
    return calls(request.tools.tools[0].name, **number)

crib = Crib.from_settings(models={"scripted:clerk": ScriptedModel(answers)})
crib.add(double)
crib.agent("clerk", model="scripted:clerk", tools=[double])
crib.agentic_tool("helper", mode="agentic", model="scripted:clerk", tools=["double"])
crib.agent("chief", model="scripted:clerk", tools=["helper"])
'''
WORKFLOWS: list[dict[str, Any]] = [
    {"name": "twice", "steps": [{"name": "doubled", "tool": "double", "input": {"number": 21}}]},
    {"name": "ask", "steps": [{"name": "asked", "agent": "chief", "input": {"message": "Double 21."}}]},
    {"name": "wait", "steps": [
        {"name": "paid", "wait": {"signal": "paid"}},
        {"name": "doubled", "tool": "double", "depends_on": ["paid"], "input": {"number": 21}},
    ]},
]  # fmt: skip
pytestmark = [pytest.mark.requirement("engines.left_to_worker"), pytest.mark.slow]


async def _prepared(shop: Shop) -> None:
    """Let a worker save its functions and agents once, then publish workflows over them."""
    shop.rewrite(APPLICATION)
    worker = shop.worker()
    worker.terminate()
    worker.communicate(timeout=60)
    async with Crib(shop.store) as crib:
        for workflow in WORKFLOWS:
            await crib.workflows.publish(workflow)


async def test_a_worker_completes_executions_whose_tools_the_server_lacks(shop: Shop) -> None:
    await _prepared(shop)
    shop.worker()
    session = shop.server()
    message = {"message": "Double 21."}

    asked = checked(session.post("/api/v1/ai/agents/clerk/execute", json=message), 200)
    above = checked(session.post("/api/v1/ai/agents/chief/execute", json=message), 200)
    path = f"/api/v1/ai/conversations/{asked['conversation_id']}/continue"
    continued = checked(session.post(path, json=message), 200)
    invoked = checked(session.post("/api/v1/ai/tools/helper/invoke", json={"params": {"task": "Double 21."}}), 200)
    flowed = checked(session.post("/api/v1/ai/workflows/twice/run", json={}), 200)
    nested = checked(session.post("/api/v1/ai/workflows/ask/run", json={}), 200)
    streamed = session.post("/api/v1/ai/agents/clerk/execute/stream", json=message)
    run = shop.run("agent", "run", "clerk", "Double 21.")
    flow = shop.run("workflow", "run", "twice", "--input", "{}")

    assert [each["response"] for each in (asked, above, continued)] == ["It is 42."] * 3
    assert [each["status"] for each in (asked, above, continued)] == ["completed"] * 3
    assert invoked["success"], invoked
    assert flowed["output"] == {"doubled": 42}
    assert nested["status"] == "completed", nested
    assert "It is 42." in streamed.text
    assert (run.returncode, run.stdout) == (0, "It is 42.\n"), run.stderr
    assert (flow.returncode, json.loads(flow.stdout)) == (0, {"doubled": 42}), flow.stderr


async def test_an_instance_that_waited_for_a_signal_is_resumed_by_a_worker(shop: Shop) -> None:
    await _prepared(shop)
    worker = shop.worker()
    session = shop.server(TOOLCRIB_WORKER_WAIT_S="0")
    waiting = checked(session.post("/api/v1/ai/workflows/wait/run", json={"wait": False}), 202)
    path = f"/api/v1/ai/instances/{waiting['run_id']}"
    session.get(f"{path}/stream")  # until it waits
    worker.terminate()
    worker.communicate(timeout=60)
    checked(session.post(f"{path}/signal", json={"name": "paid"}), 202)
    resumed = checked(session.post(f"{path}/resume", json={}), 202)
    shop.worker()
    shop.run("instance", "resume", waiting["run_id"])  # returns when it has ended; refused if it has ended before
    shown = checked(session.get(path), 200)

    assert "no worker claimed the run within 0 s" in resumed["warnings"][0]
    assert (shown["status"], shown["output"]) == ("completed", {"doubled": 42})


async def test_without_a_worker_executions_stay_queued_and_say_what_is_missing(shop: Shop) -> None:
    await _prepared(shop)
    session = shop.server(TOOLCRIB_WORKER_WAIT_S="0")
    message = {"message": "Double 21."}

    asked = checked(session.post("/api/v1/ai/agents/clerk/execute", json=message), 202)
    above = checked(session.post("/api/v1/ai/agents/chief/execute", json=message), 202)
    flowed = checked(session.post("/api/v1/ai/workflows/twice/run", json={}), 202)
    nested = checked(session.post("/api/v1/ai/workflows/ask/run", json={}), 202)
    run = shop.run("agent", "run", "clerk", "Double 21.", TOOLCRIB_WORKER_WAIT_S="0")
    flow = shop.run("workflow", "run", "twice", "--input", "{}", TOOLCRIB_WORKER_WAIT_S="0")

    said = "this process lacks the Python function of double@1.0.0, and no worker claimed the run within 0 s"
    for each in (asked, above, flowed, nested):
        assert each["status"] == "queued"
        assert said in each["warnings"][0]
    assert said in run.stderr
    assert (run.returncode, run.stdout) == (1, "")
    assert said in flow.stderr
    assert flow.returncode == 1

    shop.worker()
    for each in (asked, above, flowed, nested):
        session.get(f"/api/v1/executions/{each['run_id']}/events/stream")
        shown = checked(session.get(f"/api/v1/executions/{each['run_id']}"), 200)
        assert shown["run"]["status"] == "completed", shown


async def test_the_same_in_python(shop: Shop) -> None:
    await _prepared(shop)
    async with Crib(shop.store, sharing=SharingOptions(worker_wait_s=0)) as crib:
        instance = await crib.instances.start("twice", {})
        again = await crib.instances.resume(instance.run_id)
        resumed = await crib.resume(instance.run_id)
    for each in (instance, again, resumed):
        assert each.status == "queued"
        assert "toolcrib worker MODULE:CRIB" in each.warnings[0]
