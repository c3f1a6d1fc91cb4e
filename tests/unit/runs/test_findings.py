"""What a program finds out, keeps and warns of, across waits and crashes."""

import asyncio

import pytest

from tests.unit.runs.house import House, ask
from toolcrib.contracts import Json, ProgressMade
from toolcrib.core.executor import Dispatch, Outcome
from toolcrib.core.runs import RunContext


@pytest.mark.requirement("agentic.once")
async def test_what_was_found_out_before_a_wait_holds_after_it():
    looks: list[int] = []

    async def look() -> Json:
        looks.append(len(looks) + 1)
        return {"look": looks[-1]}

    async def script(context: RunContext) -> Json:
        found = await context.once("weather", "looked", look)
        await context.wait_signal("go")
        return [found, await context.once("weather", "looked", look)]

    house = House(script)
    await house.save()
    run_id = (await house.start()).result.run_id
    await house.signal(run_id, "go")
    last = await house.engine.resume(run_id)

    assert last.result.output == [{"look": 1}, {"look": 1}]
    told = [entry.event for entry in last.log if isinstance(entry.event, ProgressMade)]
    assert told == [ProgressMade(key="weather", kind="looked", data={"look": 1})]


@pytest.mark.requirement("agentic.once")
async def test_the_call_that_found_it_out_counts_also_where_it_is_not_asked_again():
    async def script(context: RunContext) -> Json:
        async def look() -> Json:
            return (await context.call(ask("weather"))).output

        await context.once("weather", "looked", look)
        await context.wait_signal("go")
        await context.once("weather", "looked", look)
        return context.budget.tool_calls

    house = House(script)
    await house.save()
    run_id = (await house.start()).result.run_id
    await house.signal(run_id, "go")

    assert (await house.engine.resume(run_id)).result.output == 1


@pytest.mark.requirement("agentic.once")
async def test_what_could_not_be_found_out_is_looked_for_again():
    answers = iter([ValueError("not yet"), "found"])

    async def look() -> Json:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def script(context: RunContext) -> Json:
        try:
            return await context.once("thing", "looked", look)
        except ValueError:
            return await context.once("thing", "looked", look)

    house = House(script)
    await house.save()

    assert (await house.start()).result.output == "found"


@pytest.mark.requirement("agentic.warnings")
async def test_a_warning_stands_in_the_result_once_also_after_a_wait():
    async def script(context: RunContext) -> Json:
        context.warn("the list is old")
        context.warn("the list is old")
        await context.wait_signal("go")
        return None

    house = House(script)
    await house.save()
    run_id = (await house.start()).result.run_id
    await house.signal(run_id, "go")

    assert (await house.engine.resume(run_id)).result.warnings == ("the list is old",)


@pytest.mark.requirement("runs.notes", "runs.waiting_all")
async def test_a_part_of_a_program_runs_beside_the_rest_and_what_it_keeps_can_be_read():
    async def script(context: RunContext) -> Json:
        started = asyncio.Event()

        async def part() -> str:
            started.set()
            await context.call(ask("a"))
            return await context.keep(b"text")

        pending = context.start(part())
        await started.wait()
        [digest] = await context.wait_all([pending])
        return (await context.read_blob(digest)).decode()

    house = House(script)
    await house.save()

    assert (await house.start()).result.output == "text"


@pytest.mark.requirement("runs.incomplete_lists")
async def test_a_run_that_was_given_a_part_of_a_list_says_so_once_also_after_a_wait():
    async def list_some(dispatch: Dispatch) -> Outcome:
        paging = {"pages": 2, "items": 4, "complete": dispatch.position == "whole"}
        told = ["the list is not complete"] if dispatch.position == "part" else []
        return Outcome([1], metadata={"paging": paging, "warnings": told})

    async def script(context: RunContext) -> Json:
        for position in ("part", "whole", "as asked"):
            await context.call(ask(position))
        await context.wait_signal("go")
        return None

    house = House(script, list_some)
    await house.save()
    run_id = (await house.start()).result.run_id
    await house.signal(run_id, "go")

    assert (await house.engine.resume(run_id)).result.warnings == ("look_up: the list is not complete",)
