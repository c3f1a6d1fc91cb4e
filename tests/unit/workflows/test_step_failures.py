"""What becomes of a run when a step fails: it ends, goes on, or goes another way."""

import asyncio

import pytest

from tests.unit.workflows.flows import error_of, run, run_open, steps_of
from toolcrib import Crib, tool
from toolcrib.contracts import JsonObject

pytestmark = pytest.mark.requirement("workflow_steps.on_error")


@tool(side_effects="reads")
async def fail(why: str = "broken") -> None:
    """Fail."""
    raise RuntimeError(why)


FAIL: JsonObject = {"name": "fail", "tool": "fail"}


async def test_a_failure_ends_the_run_when_what_runs_has_ended_and_nothing_new_begins():
    done: list[str] = []
    gate = asyncio.Event()

    @tool(side_effects="writes")
    async def slow() -> str:
        """Take longer than the one that fails."""
        await gate.wait()
        done.append("slow")
        return "slow"

    @tool(side_effects="reads")
    async def fast() -> None:
        """Fail at once."""
        raise RuntimeError("broken")

    async with Crib("memory://") as crib:
        crib.add(slow, fast)
        instance = await run_open(
            crib,
            gate,
            {"name": "slow", "tool": "slow"},
            {"name": "fast", "tool": "fast"},
            {"name": "next", "output": "never", "depends_on": ["slow"]},
        )

    assert (instance.status, done) == ("failed", ["slow"])
    assert {name: step.status for name, step in steps_of(instance).items()} == {
        "slow": "succeeded",
        "fast": "failed",
        "next": "cut_off",
    }
    assert instance.error is not None
    assert instance.error.message == "step 'fast' failed: tool 'fast' raised RuntimeError: broken"
    assert (instance.error.details or {})["step"] == "fast"


async def test_a_failure_may_be_no_matter():
    async with Crib("memory://") as crib:
        crib.add(fail)
        instance = await run(
            crib, {**FAIL, "on_error": "continue"}, {"name": "next", "output": ["${fail}", "${steps.fail.error.code}"]}
        )

    assert (instance.status, instance.output) == ("completed", {"next": [None, "UNKNOWN"]})


@pytest.mark.parametrize("goes", [{"go_to": "mend"}, {"goTo": "mend"}])
async def test_a_failure_may_go_another_way_which_sees_it(goes: JsonObject):
    mend = {
        "name": "mend",
        "output": "${error.step}: ${error.code} ${error.message}",
        "condition": "${error.code == 'UNKNOWN'}",
    }
    async with Crib("memory://") as crib:
        crib.add(fail)
        instance = await run(crib, {**FAIL, "on_error": goes}, {**mend}, {"name": "next", "output": "${fail}"})

    assert instance.status == "completed"
    assert steps_of(instance)["mend"].output == "fail: UNKNOWN tool 'fail' raised RuntimeError: broken"
    assert steps_of(instance)["next"].status == "cut_off"


async def test_the_other_way_is_not_gone_without_a_failure():
    async with Crib("memory://") as crib:
        instance = await run(
            crib,
            {"name": "fine", "output": 1, "on_error": {"go_to": "mend"}},
            {"name": "mend", "output": "${error.message}"},
        )

    assert (instance.status, instance.output) == ("completed", {"fine": 1})
    assert steps_of(instance)["mend"].status == "cut_off"


@pytest.mark.parametrize("first", [FAIL, {"name": "fail", "output": "as usual"}])
async def test_what_follows_both_ways_runs_whichever_was_gone_if_both_are_known_by_one_name(first: JsonObject):
    async with Crib("memory://") as crib:
        crib.add(fail)
        instance = await run(
            crib,
            {**first, "on_error": {"go_to": "mend"}, "save_as": "result"},
            {"name": "mend", "output": "mended", "save_as": "result"},
            {"name": "next", "output": "${result}"},
        )

    assert instance.status == "completed"
    assert instance.output == {"next": first.get("output", "mended")}


async def test_of_several_failures_that_go_one_way_it_sees_the_one_that_stands_first():
    way = {"on_error": {"go_to": "mend"}}
    async with Crib("memory://") as crib:
        crib.add(fail)
        instance = await run(
            crib,
            {"name": "mend", "output": "${error.step}"},
            {**FAIL, "name": "zebra", **way},
            {**FAIL, "name": "ape", **way},
        )

    assert steps_of(instance)["mend"].output == "zebra"


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        ({"condition": "${input.gone}"}, "condition"),
        ({"input": {"why": "${input.gone}"}}, "input"),
        ({"output": "${input.gone}", "tool": None}, "output"),
        ({"for_each": "${input.gone}"}, "for_each"),
    ],
    ids=["condition", "input", "output", "list"],
)
@pytest.mark.requirement("workflow_steps.messages")
async def test_an_expression_without_a_value_is_a_failure_like_any_other(broken: JsonObject, field: str):
    mend = {"name": "mend", "output": "${error.details.field}"}
    async with Crib("memory://") as crib:
        crib.add(fail)
        instance = await run(crib, {**FAIL, "on_error": {"go_to": "mend"}, **broken}, mend)

    error = error_of(instance, "fail")
    assert (error.code, error.reason) == ("VALIDATION_ERROR", "reference_unresolved")
    assert error.message.startswith(f"step 'fail' has no value for its {field}: ")
    assert "'${input.gone}'" in error.message
    assert error.message.endswith("with ?. where something may be missing, and publish the workflow again")
    assert steps_of(instance)["mend"].output == field


async def test_an_error_can_be_read_only_where_there_is_one():
    async with Crib("memory://") as crib:
        instance = await run(crib, {"name": "told", "output": "${error.message}"})

    assert "unknown name 'error'" in error_of(instance, "told").message


@pytest.mark.requirement("workflow_steps.messages")
async def test_a_tool_that_is_not_there_fails_its_step_and_names_it():
    async with Crib("memory://") as crib:
        instance = await run(crib, {"name": "call", "tool": "gone"})

    error = error_of(instance, "call")
    assert (error.code, error.reason) == ("POLICY_DENIED", "tool_not_found")
    assert error.message.startswith("step 'call': ")
    assert "'gone'" in error.message


async def test_a_workflow_that_does_not_put_out_what_it_has_promised_has_failed():
    promised: JsonObject = {"type": "object", "required": ["total"]}
    async with Crib("memory://") as crib:
        instance = await run(crib, {"name": "sum", "output": {"sum": 3}}, output="${sum}", output_schema=promised)

    assert (instance.status, instance.error and instance.error.reason) == ("failed", "output_schema_mismatch")
    assert instance.error is not None
    assert instance.error.message.startswith("the steps have succeeded, but output does not match output_schema: ")
    assert instance.output is None
    assert instance.partial == {"steps": {"sum": {"status": "succeeded", "output": {"sum": 3}}}}
