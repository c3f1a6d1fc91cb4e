"""What functions tell of how far they have come."""

import math
import threading

import pytest

from toolcrib import Crib, ToolContext, tool
from toolcrib.contracts import AgentRequest, ContentFilter, ErrorCode, Reason, RetryPolicy, SecretReference
from toolcrib.contracts.runs.stream import ToolCallEnd, ToolLog, ToolProgress
from toolcrib.core.executor import CallFailed, error
from toolcrib.core.runs.models.live import MOST_LINES
from toolcrib.interfaces.cli.render.streams import spoken
from toolcrib.llm import Message, ToolCall
from toolcrib.testing import ScriptedModel

WAIT_S = 20.0


@pytest.mark.requirement("runtimes.progress")
async def test_many_reports_are_thinned_and_the_last_one_is_told_before_the_end():
    @tool(side_effects="none")
    def count(context: ToolContext) -> str:
        for done in range(20_000):
            context.progress(done, 20_000)
        context.progress(20_000, 20_000, "counted")
        return "done"

    async with Crib("memory://") as crib:
        crib.add(count)
        run_id = await crib.submit("count", {})
        events = [event async for _, event in crib.stream(run_id, drive=True)]
        again = [event async for _, event in crib.stream(run_id)]
        journal = await crib.store.journal.events(run_id)

    told = [event for event in events if isinstance(event, ToolProgress)]
    assert (told[-1].done, told[-1].total, told[-1].message, told[-1].name) == (20_000, 20_000, "counted", "count")
    assert len(told) < 1_000
    assert [event.type for event in events[-3:]] == ["progress", "tool_call_end", "done"]
    assert "progress" not in {event.type for event in again}
    assert len(journal) == 4


@pytest.mark.requirement("runtimes.progress")
async def test_progress_is_shown_while_the_function_runs():
    go = threading.Event()

    @tool(side_effects="none")
    def slow(context: ToolContext) -> str:
        context.progress(1, message="half")
        assert go.wait(WAIT_S), "nobody saw it"
        return "done"

    async with Crib("memory://") as crib:
        crib.add(slow)
        run_id = await crib.submit("slow", {})
        events = list[object]()
        async for _, event in crib.stream(run_id, drive=True):
            events.append(event)
            if isinstance(event, ToolProgress):
                assert (event.total, event.message) == (None, "half")
                go.set()
        [end] = [event for event in events if isinstance(event, ToolCallEnd)]
        assert end.envelope.output == "done", end.envelope.error


@pytest.mark.requirement("runtimes.progress")
async def test_progress_without_followers_and_without_a_call_is_no_error():
    @tool(side_effects="none")
    def odd(context: ToolContext) -> str:
        context.progress(math.nan)
        context.progress(1, math.inf)
        context.progress(1, message="\ud800")
        return "done"

    async with Crib("memory://") as crib:
        crib.add(odd)
        assert (await crib.call(odd)).output == "done"

    alone = ToolContext("run", "call", "default", "ann", "key", 1, {}, None)  # type: ignore[arg-type]
    assert odd(alone) == "done"


@pytest.mark.requirement("runtimes.progress", "live.outputs")
@pytest.mark.parametrize(("action", "shown"), [("block", ""), ("redact", "looking for [")])
async def test_a_message_passes_the_content_filters(action: str, shown: str):
    @tool(side_effects="none")
    def look(context: ToolContext) -> str:
        context.progress(1, message="looking for gold")
        return "found"

    script = [Message("assistant", (ToolCall("c1", "look", "{}"),)), "Done."]
    async with Crib("memory://", models={"scripted:m": ScriptedModel(script)}) as crib:
        crib.add(look)
        rule = ContentFilter(words=("gold",), action=action, applies_to=("tool_output",))  # type: ignore[arg-type]
        crib.agent("desk", model="scripted:m", tools=["look"], guardrails=(rule,))
        begun = await crib.executions.submit("desk", AgentRequest(message="look"))
        events = [event async for _, event in crib.stream(begun.run_id, drive=True)]

    [told] = [event for event in events if isinstance(event, ToolProgress)]
    assert "gold" not in told.message
    assert told.message.startswith(shown)


@pytest.mark.requirement("runtimes.progress")
async def test_the_command_line_shows_progress(capsys: pytest.CaptureFixture[str]):
    @tool(side_effects="none")
    def report(context: ToolContext) -> str:
        context.progress(2, 4, "half")
        return "done"

    @tool(side_effects="none")
    def count(context: ToolContext) -> str:
        context.progress(7)
        return "done"

    async with Crib("memory://") as crib:
        crib.add(report, count)
        await spoken(crib, await crib.submit("report", {}))
        await spoken(crib, await crib.submit("count", {}))

    shown = capsys.readouterr().err
    assert "[report: 2 of 4 half]" in shown
    assert "[count: 7]" in shown


@pytest.mark.requirement("runtimes.logs")
async def test_followers_see_what_a_function_logs_without_secrets_and_within_bounds():
    @tool(side_effects="none", secrets=(SecretReference(name="key", reference="${env:TOOLCRIB_SECRET_KEY}"),))
    def work(context: ToolContext) -> str:
        context.log(f"the key is {context.auth['key']}", "warning")
        context.log("x" * 3_000, "loud")  # type: ignore[arg-type]
        for number in range(1_100):
            context.log(str(number), "debug")
        return "done"

    async with Crib("memory://", environment={"TOOLCRIB_SECRET_KEY": "s3cr3t-0123456789"}) as crib:
        crib.add(work)
        run_id = await crib.submit("work", {})
        lines = [event async for _, event in crib.stream(run_id, drive=True) if isinstance(event, ToolLog)]
        journal = await crib.store.journal.events(run_id)

    assert "s3cr3t" not in lines[0].message
    assert (lines[0].level, lines[0].name) == ("warning", "work")
    assert (lines[1].level, len(lines[1].message)) == ("info", 2_000)
    assert len(lines) == MOST_LINES + 1
    assert "1000 is the limit of a call" in lines[-1].message
    assert "s3cr3t" not in repr(journal)


@pytest.mark.requirement("runtimes.logs")
async def test_a_further_attempt_logs_anew_and_nobody_needs_to_follow():
    attempts: list[int] = []

    @tool(side_effects="reads", retry=RetryPolicy(count=1, base_s=0))
    def twice(context: ToolContext) -> str:
        attempts.append(context.attempt)
        context.log(f"attempt {context.attempt}")
        if len(attempts) % 2:
            raise CallFailed(error(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, "gone"), sent=False)
        return "done"

    async with Crib("memory://") as crib:
        crib.add(twice)
        alone = await crib.call("twice")
        run_id = await crib.submit("twice", {})
        lines = [event.message async for _, event in crib.stream(run_id, drive=True) if isinstance(event, ToolLog)]
    assert alone.output == "done"
    assert lines[-1] == "attempt 2"
