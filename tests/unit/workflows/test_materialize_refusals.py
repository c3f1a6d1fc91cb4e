"""What cannot become a step of its own: what was no success, what cannot be repeated exactly, what has no place."""

from typing import Any, Self

import pytest

from tests.unit.executions.house import agent, turn
from tests.unit.workflows.asking import LOOKS, asks, opened, pin, run, workflow
from toolcrib import Crib
from toolcrib.contracts import Conflict, InvalidInput, JsonObject, NotFound, ToolcribError, ToolEnvelope
from toolcrib.contracts.workflows import WorkflowDefinition
from toolcrib.core.runs import calls_of
from toolcrib.llm import Message

pytestmark = pytest.mark.requirement("workflow_agents.materialize_refusals")

THEN: JsonObject = {"name": "then", "output": "${ask.handles.found}"}
FLOW = workflow(asks(pins=[pin("found")]), THEN)


class Scene:
    """A workflow that was run once, and what is asked of its first call.

    Args:
        definition: The workflow.
        answers: Of the agent's model.
    """

    def __init__(self, definition: WorkflowDefinition = FLOW, answers: Any = LOOKS, **options: Any) -> None:
        self._definition = definition
        self._answers: tuple[Message | str, ...] = answers
        self._options = options
        self._crib: Crib

    async def __aenter__(self) -> Self:
        self._crib = await opened(self._definition, *self._answers, **self._options)
        await self._crib.__aenter__()
        self.instance = await run(self._crib)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._crib.close()

    @property
    def crib(self) -> Crib:
        """The crib."""
        return self._crib

    @property
    def agent_run(self) -> str:
        """The first run of the agent."""
        return next(step.agent_runs[0] or "" for step in self.instance.steps if step.agent_runs)

    async def calls(self) -> list[ToolEnvelope]:
        """What the agent has called."""
        return list(calls_of(await self._crib.store.journal.events(self.agent_run)))

    async def refused(self, kind: type[ToolcribError], words: str, **wanted: Any) -> None:
        """Ask for a step and be refused; nothing has changed then."""
        named: dict[str, Any] = {"run_id": self.agent_run, "step": "looked", **wanted}
        if not {"call_id", "position", "pin"} & named.keys():
            named["position"] = "t1.c1"
        with pytest.raises(kind, match=words):
            await self._crib.workflows.materialize("flow", **named)
        assert list(await self._crib.workflows.drafts()) == []


async def test_a_call_that_is_not_there_or_not_named():
    async with Scene() as scene:
        await scene.refused(NotFound, r"has no call ffff; it has: [0-9a-f]+ \(look\)", call_id="ffff")
        await scene.refused(NotFound, "has no call t9.c1", position="t9.c1")
        await scene.refused(NotFound, "has no call t1.c1", position="t1.c1", node="then")
        await scene.refused(NotFound, "step 'ask' has no handle 'fond'; it has: found", pin="fond")
        await scene.refused(InvalidInput, "no call is named", position=None)
        await scene.refused(NotFound, "there is no run", run_id="run_none")


async def test_a_handle_that_no_call_has_filled():
    async with Scene(workflow(asks(pins=[pin("found"), pin("paid", "pay")]), THEN)) as scene:
        await scene.refused(NotFound, "has no call that fills 'paid'", pin="paid")
        await scene.refused(
            InvalidInput, "has the output of 'pay', and call .* is of 'look'", pin="paid", position="t1.c1"
        )


async def test_a_call_that_did_not_succeed():
    async with Scene(answers=(turn(("fail", "x"), ("look", "hat")), "A hat.")) as scene:
        await scene.refused(Conflict, "of 'fail' is error: .*choose one that succeeded")


async def test_a_call_that_was_denied():
    reading = agent(tools=("look", "pay"), side_effects="reads")
    async with Scene(answers=(turn(("pay", "x")), "No."), clerk=reading) as scene:
        await scene.refused(Conflict, "of 'pay' is denied")


async def test_arguments_that_hold_a_secret():
    async with Scene(answers=(turn(("look", "key [secret]")), "A hat.")) as scene:
        await scene.refused(Conflict, "has a secret in /item, which is not stored; give the tool a secret of its own")


@pytest.mark.parametrize("how", ["removed", "blocked", "disabled", "changed"])
async def test_a_tool_that_is_another_one_by_now(how: str):
    words = {
        "removed": "was of look@1.0.0, which no longer exists",
        "blocked": "was of look@1.0.0, which is blocked",
        "disabled": "was of look@1.0.0, which is disabled",
        "changed": "was of look@1.0.0 as sha256:.* is sha256:.* now; save what ran under a version of its own",
    }
    async with Scene() as scene:
        look = scene.crib.registry.require("default", "look").definition
        match how:
            case "removed":
                await scene.crib.registry.remove("default", "look")
            case "blocked":
                await scene.crib.lifecycle.block("look")
            case "disabled":
                await scene.crib.save(look.model_copy(update={"enabled": False}))
            case _:
                await scene.crib.save(look.model_copy(update={"description": "Looks elsewhere."}))
        await scene.refused(NotFound if how == "removed" else Conflict, words[how])


@pytest.mark.parametrize("name", ["ask", "then", "steps", "input"])
async def test_a_name_that_is_taken(name: str):
    async with Scene() as scene:
        await scene.refused(Conflict, f"has something named '{name}'", step=name)


async def test_a_name_that_is_none():
    async with Scene() as scene:
        await scene.refused(InvalidInput, "'a-b' cannot be the name of a step", step="a-b")


async def test_an_agent_that_is_asked_for_each_element():
    each = asks(pins=[pin("found")], for_each="${['a']}")
    async with Scene(workflow(each, {"name": "then", "output": "${ask[0].handles.found}"})) as scene:
        await scene.refused(InvalidInput, r"for each element of a list.*write a step with for_each \$\{\['a'\]\}")


async def test_a_step_that_is_gone():
    async with Scene() as scene:
        await scene.crib.workflows.publish(workflow({"name": "other", "output": 1}))
        await scene.refused(NotFound, "workflow 'flow' has no step 'ask' any more")


async def test_a_name_that_two_steps_share():
    two = (
        asks(pins=[pin("found")], save_as="either", on_error={"go_to": "other"}),
        {"name": "other", "output": {"handles": {"found": 1}}, "save_as": "either"},
        {"name": "then", "output": "${either.handles.found}", "join": "any"},
    )
    async with Scene(workflow(*two)) as scene:
        await scene.refused(InvalidInput, "step 'ask' is read as 'either', and so is another one")


async def test_a_run_that_the_workflow_has_nothing_to_do_with():
    async with Scene(answers=(*LOOKS, *LOOKS, *LOOKS)) as scene:
        await scene.crib.workflows.publish(FLOW.model_copy(update={"name": "other"}))
        other = await run(scene.crib, "other")
        alone = await scene.crib.invoke("clerk", {"message": "go"})

        await scene.refused(InvalidInput, "is of workflow 'other', and not of 'flow'", run_id=other.run_id)
        await scene.refused(InvalidInput, "was not begun by a step", run_id=other.steps[0].agent_runs[0])
        await scene.refused(InvalidInput, "was not begun by a step", run_id=alone.run_id)


async def test_a_call_that_two_nodes_have_made():
    both = workflow(asks(pins=[pin("found")]), asks("again", depends_on=["ask"]), THEN)
    async with Scene(both, (*LOOKS, *LOOKS)) as scene:
        (call,) = await scene.calls()
        whole: dict[str, Any] = {"run_id": scene.instance.run_id, "call_id": call.call_id}
        await scene.refused(InvalidInput, r"several calls match: .*step 'ask'.*step 'again'", **whole)

        change = await scene.crib.workflows.materialize("flow", step="looked", node="again", **whole)

    assert change.node == "again"


async def test_a_workflow_that_is_not_there():
    async with Scene() as scene:
        with pytest.raises(NotFound, match="no workflow 'flown'"):
            await scene.crib.workflows.materialize("flown", run_id=scene.agent_run, pin="found", step="x")


async def test_there_is_nothing_to_undo_without_a_draft():
    async with Scene() as scene:
        with pytest.raises(NotFound, match="there is no draft 'flow'"):
            await scene.crib.workflows.undo("flow")
