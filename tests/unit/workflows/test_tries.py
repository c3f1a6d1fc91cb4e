"""Steps that are tried again: after which failures, how long they wait, and what a crash in between leaves."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.twins import make_definition
from tests.unit.runs.house import StandingClock, settled
from tests.unit.workflows.flows import HOUR, calls_of, error_of, run, run_through, save, steps_of
from toolcrib import Crib, SharingOptions, ToolContext, tool
from toolcrib.contracts import AgentDefinition, ErrorCode, JsonObject, LLMConfig, ModelError, Reason, ToolError
from toolcrib.contracts.workflows import StepRetry, WorkflowInstance
from toolcrib.core.executor import error
from toolcrib.llm import ScriptedModel
from toolcrib.workflows.run.step_calls import wait_before_try

pytestmark = pytest.mark.requirement("workflow_steps.retry")


class Line:
    """A tool that fails a number of times."""

    def __init__(self, failures: int, *, retry_after_s: float | None = None) -> None:
        self.left = failures
        self.keys: list[str] = []
        self.begun = asyncio.Event()
        self.retry_after_s = retry_after_s

    def tool(self) -> Any:
        @tool(side_effects="writes")
        async def send(ctx: ToolContext, text: str = "") -> JsonObject:
            """Send a text."""
            self.keys.append(ctx.idempotency_key)
            self.begun.set()
            if self.left:
                self.left -= 1
                raise ConnectionError("the line is down")
            return {"sent": text}

        return send


def send(**fields: Any) -> JsonObject:
    return {"name": "send", "tool": "send", "input": {"text": "hello"}, **fields}


async def test_a_step_is_tried_again_until_its_call_succeeds_each_try_a_call_of_its_own():
    line = Line(2)
    async with Crib("memory://", clock=(clock := StandingClock())) as crib:
        crib.add(line.tool())
        instance = await run_through(crib, clock, send(retry={"count": 3, "base_s": 1}))
        calls = await calls_of(crib, instance)

    assert steps_of(instance)["send"].tries == 3
    assert steps_of(instance)["send"].positions == ("send.try3",)
    assert instance.output == {"send": {"sent": "hello"}}
    assert {position: call.status for position, call in calls.items()} == {
        "send": "error",
        "send.try2": "error",
        "send.try3": "success",
    }
    assert clock.elapsed >= 3


async def test_all_tries_have_the_idempotency_key_of_the_first():
    line = Line(2)
    async with Crib("memory://", clock=(clock := StandingClock())) as crib:
        crib.add(line.tool())
        await run_through(crib, clock, send(retry={"count": 2, "base_s": 0}))

    assert len(line.keys) == 3
    assert len(set(line.keys)) == 1


async def test_when_the_last_try_has_failed_its_error_is_the_step_s():
    async with Crib("memory://", clock=(clock := StandingClock())) as crib:
        crib.add(Line(9).tool())
        instance = await run_through(crib, clock, send(retry={"count": 1, "base_s": 0}))

    assert (instance.status, steps_of(instance)["send"].tries) == ("failed", 2)
    assert error_of(instance, "send").message == "tool 'send' raised ConnectionError: the line is down"
    assert instance.error is not None
    assert instance.error.message == "step 'send' failed: tool 'send' raised ConnectionError: the line is down"


async def test_elements_of_a_list_are_tried_again_each_for_itself():
    line = Line(1)
    step = send(for_each="${input.texts}", input={"text": "${item}"}, retry={"count": 1, "base_s": 0})
    async with Crib("memory://", clock=(clock := StandingClock())) as crib:
        crib.add(line.tool())
        instance = await run_through(crib, clock, step, given={"texts": ["a", "b"]})
        calls = await calls_of(crib, instance)

    assert instance.output == {"send": [{"sent": "a"}, {"sent": "b"}]}
    assert steps_of(instance)["send"].positions == ("send[0].try2",)
    assert set(calls) == {"send[0]", "send[0].try2", "send[1]"}


@pytest.mark.requirement("workflow_steps.durable_wait")
async def test_a_long_wait_between_tries_suspends_the_run_and_outlives_the_process(tmp_path: Path):
    line, clock, url = Line(1), StandingClock(), f"sqlite:///{tmp_path}/crib.db"
    async with Crib(url, clock=clock) as crib:
        crib.add(line.tool())
        waiting = await run(crib, send(retry={"count": 1, "base_s": HOUR, "max_s": HOUR}))
    assert (waiting.status, len(line.keys)) == ("awaiting_client", 1)

    clock.advance(HOUR / 2)
    async with Crib(url, clock=clock) as crib:
        crib.add(line.tool())
        await crib.resume(waiting.run_id)
        assert len(line.keys) == 1
        clock.advance(HOUR / 2)
        result = await crib.resume(waiting.run_id)

    assert result.output == {"send": {"sent": "hello"}}
    assert len(line.keys) == 2


@pytest.mark.requirement("workflow_steps.durable_wait")
async def test_a_crash_in_a_short_wait_neither_repeats_the_first_try_nor_makes_the_wait_shorter():
    line, clock = Line(1), StandingClock()
    async with Crib("memory://", clock=clock, sharing=SharingOptions(lease_s=30)) as crib:
        crib.add(line.tool())
        await save(crib, send(retry={"count": 1, "base_s": 4}))
        running = asyncio.create_task(crib.instances.start("flow", {}))
        await settled()
        running.cancel()
        await asyncio.wait([running])
        [run_id] = [summary.run_id for summary in (await crib.instances.page()).items]
        resumed = asyncio.create_task(crib.resume(run_id))
        await settled()
        await clock.pass_time(3)
        assert len(line.keys) == 1
        await clock.pass_time(1)

        assert (await resumed).output == {"send": {"sent": "hello"}}


async def test_a_nested_run_that_has_failed_is_made_anew():
    line = Line(1)
    async with Crib("memory://", clock=(clock := StandingClock())) as crib:
        crib.add(line.tool())
        await save(crib, send(), name="inner")
        outer = {"name": "inner", "workflow": "inner", "retry": {"count": 1, "base_s": 0}}
        instance = await run_through(crib, clock, outer)

    inner = steps_of(instance)["inner"]
    assert (instance.status, inner.tries, len(set(inner.child_run_ids))) == ("completed", 2, 2)


async def test_an_agent_that_has_failed_is_asked_anew():
    model = ScriptedModel([ModelError("bad_request", "no", status=400), "The answer."])
    agent = AgentDefinition(name="sage", llm=LLMConfig(model="scripted:m"), system_prompt="Answer.")
    async with Crib("memory://", clock=(clock := StandingClock()), models={"scripted:m": model}) as crib:
        await crib.save(agent.tool())
        step = {"name": "ask", "agent": "sage", "input": {"message": "?"}, "retry": {"count": 2, "base_s": 0}}
        instance = await run_through(crib, clock, step)

    assert (instance.status, steps_of(instance)["ask"].tries) == ("completed", 2)
    assert len(set(steps_of(instance)["ask"].child_run_ids)) == 2


# Which failures, and how long -----------------------------------------------------------------------------------------

WRITES = make_definition("send", side_effects="writes")
READS = make_definition("look", side_effects="reads")
AGAIN = StepRetry(count=3, base_s=1, max_s=10)


def failed(code: str, reason: Reason = Reason.TOOL_FAILED, retry_after_s: float | None = None) -> ToolError:
    return error(ErrorCode(code), reason, "no").model_copy(update={"retry_after_s": retry_after_s})


@pytest.mark.parametrize("code", ["RATE_LIMIT", "PROVIDER_ERROR", "NETWORK_ERROR", "SANDBOX_ERROR", "UNKNOWN"])
def test_what_may_pass_is_tried_again(code: str):
    assert wait_before_try(AGAIN, WRITES, failed(code), 1) == 1


@pytest.mark.parametrize("code", ["VALIDATION_ERROR", "POLICY_DENIED", "AUTH_REQUIRED"])
def test_what_would_come_again_is_not_unless_the_step_names_it(code: str):
    assert wait_before_try(AGAIN, WRITES, failed(code), 1) is None
    assert wait_before_try(AGAIN.model_copy(update={"codes": (ErrorCode(code),)}), WRITES, failed(code), 1) == 1


def test_a_step_that_names_codes_is_tried_again_after_these_only():
    chosen = AGAIN.model_copy(update={"codes": (ErrorCode.RATE_LIMIT,)})
    assert wait_before_try(chosen, WRITES, failed("NETWORK_ERROR"), 1) is None
    assert wait_before_try(chosen, WRITES, failed("RATE_LIMIT"), 1) == 1


def test_an_effect_that_is_not_known_is_never_had_once_more():
    chosen = AGAIN.model_copy(update={"codes": (ErrorCode.UNKNOWN,)})
    unknown = failed("UNKNOWN", Reason.OUTCOME_UNKNOWN)
    assert wait_before_try(AGAIN, WRITES, unknown, 1) is None
    assert wait_before_try(chosen, WRITES, unknown, 1) is None


def test_a_call_that_took_too_long_is_repeated_only_if_that_is_safe_or_the_step_says_so():
    late = failed("TIMEOUT", Reason.TOOL_TIMEOUT)
    assert wait_before_try(AGAIN, WRITES, late, 1) is None
    assert wait_before_try(AGAIN, READS, late, 1) == 1
    assert wait_before_try(AGAIN, WRITES.model_copy(update={"idempotent": True}), late, 1) == 1
    assert wait_before_try(AGAIN.model_copy(update={"codes": (ErrorCode.TIMEOUT,)}), WRITES, late, 1) == 1


@pytest.mark.parametrize(
    ("backoff", "waits"), [("none", [0, 0, 0, None]), ("linear", [1, 2, 3, None]), ("exponential", [1, 2, 4, None])]
)
def test_the_waits_between_tries_follow_the_policy_and_end_with_its_count(backoff: str, waits: list[float | None]):
    retry = AGAIN.model_copy(update={"backoff": backoff})
    assert [wait_before_try(retry, WRITES, failed("UNKNOWN"), tries) for tries in (1, 2, 3, 4)] == waits


def test_a_longer_wait_that_the_other_side_asks_for_is_heeded_and_one_beyond_the_longest_ends_the_tries():
    assert wait_before_try(AGAIN, WRITES, failed("RATE_LIMIT", retry_after_s=7), 1) == 7
    assert wait_before_try(AGAIN, WRITES, failed("RATE_LIMIT", retry_after_s=0.1), 1) == 1
    assert wait_before_try(AGAIN, WRITES, failed("RATE_LIMIT", retry_after_s=11), 1) is None


def test_a_step_says_nothing_of_tries_and_has_one():
    assert wait_before_try(StepRetry(), WRITES, failed("UNKNOWN"), 1) is None


async def test_when_the_run_has_failed_meanwhile_there_is_no_further_try():
    line = Line(9)

    @tool(side_effects="reads")
    async def late() -> None:
        """Fail after the first try."""
        await line.begun.wait()
        raise RuntimeError("too bad")

    async with Crib("memory://", clock=(clock := StandingClock())) as crib:
        crib.add(line.tool(), late)
        instance: WorkflowInstance = await run_through(
            crib, clock, send(retry={"count": 5, "base_s": 1}), {"name": "late", "tool": "late"}
        )

    assert instance.error is not None
    assert instance.error.message == "step 'late' failed: tool 'late' raised RuntimeError: too bad"
    assert len(line.keys) == 1


async def test_tries_of_an_instance_that_is_resumed_are_still_the_same_request():
    line = Line(3)
    async with Crib("memory://", clock=(clock := StandingClock())) as crib:
        crib.add(line.tool())
        instance = await run_through(crib, clock, send(retry={"count": 1, "base_s": 0}))
        resuming = asyncio.create_task(crib.instances.resume(instance.run_id))
        while not resuming.done():
            await settled()
            await clock.pass_time(0.25)
        resumed = await resuming

    assert (instance.status, resumed.status) == ("failed", "completed")
    assert len(line.keys) == 4
    assert len(set(line.keys)) == 1
