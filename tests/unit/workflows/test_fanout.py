"""Steps over lists: in order, some at once, with what becomes of those that fail."""

import asyncio
from typing import Any

import pytest

from tests.unit.workflows.flows import calls_of, error_of, run, run_open, save, steps_of
from toolcrib import Crib, tool
from toolcrib.contracts import AgentDefinition, ErrorCode, Json, JsonObject, LLMConfig, Signal
from toolcrib.contracts.workflows import MAX_ITEM_ERRORS, ItemError, event_signal
from toolcrib.llm import ScriptedModel
from toolcrib.workflows.run.step import MAX_WAITING

pytestmark = pytest.mark.requirement("workflow_steps.for_each")


class Kitchen:
    """Counts who is at work at once."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.begun: list[int] = []

    def tool(self) -> Any:
        @tool(side_effects="writes")
        async def cook(dish: int, spoiled: bool = False) -> JsonObject:
            """Cook."""
            self.begun.append(dish)
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0)
            self.now -= 1
            if spoiled:
                raise ValueError(f"dish {dish} is spoiled")
            return {"dish": dish}

        return cook


def cook(**each: Json) -> JsonObject:
    spoiled = "${contains(input.bad, item)}"
    return {
        "name": "cook",
        "tool": "cook",
        "input": {"dish": "${item}", "spoiled": spoiled},
        "for_each": {"items": "${input.dishes}", **each},
    }


async def served(*steps: JsonObject, dishes: Json, bad: list[int] | None = None, **fields: Any) -> Any:
    kitchen = Kitchen()
    async with Crib("memory://") as crib:
        crib.add(kitchen.tool())
        instance = await run(crib, *steps, given={"dishes": dishes, "bad": bad or []}, **fields)
    return kitchen, instance


async def test_the_outputs_are_in_the_order_of_the_list():
    _, instance = await served({**cook(), "output": "${index}: ${output.dish}"}, dishes=[5, 6, 7])

    assert instance.output == {"cook": ["0: 5", "1: 6", "2: 7"]}
    assert steps_of(instance)["cook"].items == 3


async def test_no_more_are_under_way_than_the_step_allows():
    kitchen, _ = await served(cook(max_concurrency=2), dishes=list(range(9)))

    assert (kitchen.most, len(kitchen.begun)) == (2, 9)


async def test_an_empty_list_gives_an_empty_list():
    kitchen, instance = await served(cook(), dishes=[])

    assert (instance.status, instance.output, kitchen.begun) == ("completed", {"cook": []}, [])


@pytest.mark.parametrize(
    ("dishes", "told"),
    [
        ("soup", 'is string: "soup"'),
        (None, "is null: null"),
        ({"a": "x" * 200}, 'is object: {"a":"xxx'),
    ],
)
@pytest.mark.requirement("workflow_steps.messages")
async def test_what_is_no_list_fails_the_step_and_is_shown(dishes: Json, told: str):
    kitchen, instance = await served(cook(), dishes=dishes)

    message = error_of(instance, "cook").message
    assert message.startswith("step 'cook' cannot use its for_each: ${input.dishes} must be a list, and ")
    assert told in message
    assert len(message) < 300
    assert kitchen.begun == []


async def test_a_list_that_cannot_be_read_fails_the_step():
    _, instance = await served(cook(items="${input.gone}"), dishes=[])

    assert "step 'cook' has no value for its for_each: " in error_of(instance, "cook").message


async def test_after_a_failure_that_must_not_be_none_is_begun_and_the_step_fails():
    kitchen, instance = await served(cook(max_concurrency=1), dishes=[1, 2, 3], bad=[2])

    step = steps_of(instance)["cook"]
    assert (instance.status, step.status, step.failed, step.output) == ("failed", "failed", 1, None)
    assert error_of(instance, "cook").message == "tool 'cook' raised ValueError: dish 2 is spoiled"
    assert kitchen.begun == [1, 2]


async def test_failures_that_may_be_leave_null_in_their_places_and_are_told():
    told = {"name": "told", "output": "${steps.cook.failed}: ${steps.cook.errors[0].message}"}
    _, instance = await served(cook(on_item_error="continue"), told, dishes=[1, 2, 3], bad=[2])

    step = steps_of(instance)["cook"]
    message = "tool 'cook' raised ValueError: dish 2 is spoiled"
    assert (instance.status, step.status) == ("completed", "partial")
    assert step.output == [{"dish": 1}, None, {"dish": 3}]
    assert step.errors == (ItemError(index=1, code=ErrorCode.UNKNOWN, message=message),)
    assert steps_of(instance)["told"].output == f"1: {message}"


async def test_of_many_failures_a_hundred_are_told_and_all_are_counted():
    dishes = list(range(MAX_ITEM_ERRORS + 5))
    step = {**cook(on_item_error="continue"), "output": "${input.gone}"}
    _, instance = await served(step, dishes=dishes)

    assert steps_of(instance)["cook"].failed == len(dishes)
    assert len(steps_of(instance)["cook"].errors) == MAX_ITEM_ERRORS


async def test_the_error_of_an_element_is_told_in_short():
    @tool(side_effects="reads")
    async def fail(text: str) -> None:
        """Fail at length."""
        raise ValueError(text)

    step = {
        "name": "fail",
        "tool": "fail",
        "input": {"text": "${item}"},
        "for_each": {"items": "${input.texts}", "on_item_error": "continue"},
    }
    async with Crib("memory://") as crib:
        crib.add(fail)
        instance = await run(crib, step, given={"texts": ["x" * 5_000]})

    assert len(steps_of(instance)["fail"].errors[0].message) < 600


async def test_values_are_made_for_each_element_too():
    step = {"name": "double", "for_each": "${input.dishes}", "output": "${item * 2}"}
    _, instance = await served(step, dishes=[1, 2])

    assert instance.output == {"double": [2, 4]}


async def test_workflows_and_agents_work_on_each_element():
    def answer(request: Any) -> str:
        return f"about {request.messages[-1].text}"

    agent = AgentDefinition(name="sage", llm=LLMConfig(model="scripted:m"), system_prompt="Answer.")
    async with Crib("memory://", models={"scripted:m": ScriptedModel(answer)}) as crib:
        await crib.save(agent.tool())
        await save(crib, {"name": "up", "output": "${upper(input.word)}"}, name="inner", output="${up}")
        each = {"for_each": "${input.words}"}
        instance = await run(
            crib,
            {"name": "inner", "workflow": "inner", "input": {"word": "${item}"}, **each},
            {"name": "ask", "agent": "sage", "input": {"message": "${item}"}, **each},
            given={"words": ["a", "b"]},
        )
        calls = await calls_of(crib, instance)

    assert steps_of(instance)["inner"].output == ["A", "B"]
    assert len(set(steps_of(instance)["ask"].child_run_ids)) == 2
    assert set(calls) == {"inner[0]", "inner[1]", "ask[0]", "ask[1]"}


async def test_elements_that_wait_take_no_places_of_others():
    ask = {
        "name": "ask",
        "for_each": {"items": "${input.dishes}", "max_concurrency": 1},
        "approval": {"message": "Cook ${item}?", "show": {"dish": "${item}"}},
    }
    async with Crib("memory://") as crib:
        await run(crib, ask, given={"dishes": [1, 2, 3]})
        asked = (await crib.approvals.page()).items

    assert len(asked) == 3


async def test_nested_runs_that_wait_take_no_places_of_others():
    inner = {"name": "ask", "approval": {"message": "Cook?"}}
    outer = {"name": "inner", "workflow": "inner", "for_each": {"items": "${input.dishes}", "max_concurrency": 1}}
    async with Crib("memory://") as crib:
        await save(crib, inner, name="inner")
        await run(crib, outer, given={"dishes": [1, 2, 3]})
        asked = (await crib.approvals.page()).items

    assert len(asked) == 3


async def test_no_more_than_a_thousand_elements_wait_at_once_and_the_others_follow_them():
    wait = {"name": "news", "for_each": "${input.dishes}", "wait": {"signal": "go"}, "output": "${item}"}
    dishes = list(range(MAX_WAITING + 3))
    async with Crib("memory://") as crib:
        waiting = await run(crib, wait, given={"dishes": dishes})
        first = await awaited(crib, waiting.run_id)
        go = Signal(name=event_signal("go"), payload={}, made_by="ann", at=crib.clock.now())
        await crib.engine.signal(waiting.run_id, go)
        result = await crib.resume(waiting.run_id)

    assert first == MAX_WAITING
    assert result.output == {"news": dishes}


async def awaited(crib: Crib, run_id: str) -> int:
    """How many waits have begun."""
    return sum(entry.event.type == "signal_awaited" for entry in await crib.store.journal.events(run_id))


async def test_when_the_run_fails_beside_it_no_element_is_begun_any_more():
    gate = asyncio.Event()

    @tool(side_effects="reads")
    async def slow(dish: int) -> int:
        """Cook slowly."""
        begun.append(dish)
        await gate.wait()
        return dish

    @tool(side_effects="reads")
    async def fail() -> None:
        """Fail."""
        raise RuntimeError("the oven is on fire")

    begun: list[int] = []
    step = {
        "name": "slow",
        "tool": "slow",
        "input": {"dish": "${item}"},
        "for_each": {"items": "${input.dishes}", "max_concurrency": 2},
    }
    async with Crib("memory://") as crib:
        crib.add(slow, fail)
        fails = {"name": "fail", "tool": "fail"}
        instance = await run_open(crib, gate, step, fails, given={"dishes": [1, 2, 3, 4]})

    cut_off = steps_of(instance)["slow"]
    assert (instance.status, begun) == ("failed", [1, 2])
    assert (cut_off.status, cut_off.reason) == ("cut_off", "the run has failed when 2 of its 4 elements had ended")


@pytest.mark.requirement("workflow_steps.no_zombies")
async def test_nested_runs_of_elements_that_nobody_waits_for_any_more_are_ended_while_the_run_goes_on():
    inner = {"name": "ask", "approval": {"message": "Cook ${input.dish}?"}}
    outer = {
        "name": "inner",
        "workflow": "inner",
        "input": {"dish": "${item}"},
        "for_each": "${input.dishes}",
        "on_error": "continue",
    }
    async with Crib("memory://") as crib:
        await save(crib, inner, name="inner")
        waiting = await run(
            crib, outer, {"name": "rest", "wait": {"seconds": 60}, "depends_on": ["inner"]}, given={"dishes": [1, 2, 3]}
        )
        [second] = [asked for asked in (await crib.approvals.page()).items if asked.message == "Cook 2?"]
        await crib.approvals.decide(second.approval_id, approve=False)
        result = await crib.resume(waiting.run_id)
        instance = await crib.instances.get(waiting.run_id)
        nested = [await crib.instances.get(child) for child in steps_of(instance)["inner"].child_run_ids]

    assert result.summary.status == "awaiting_client"
    assert sorted(child.status for child in nested) == ["cancelled", "cancelled", "incomplete"]
    assert steps_of(instance)["inner"].status == "failed"
