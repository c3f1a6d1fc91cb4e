"""Running tools through a crib: calls, runs, refusals, waits, and going on in another process."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Crib, Principal, ScriptedModel, SharingOptions, tool
from toolcrib.contracts import (
    ClientResult,
    Conflict,
    ErrorCode,
    InvalidDefinition,
    NotFound,
    Reason,
    RunFinished,
    RunStarted,
)
from toolcrib.kinds.python.functions import as_function_tool
from toolcrib.llm import Message, ToolCall

STRANGER = Principal(id="stranger", realm="default", grants=())


@tool(side_effects="reads")
async def add(a: int, b: int = 1) -> int:
    """The sum."""
    return a + b


class Till:
    """A till that asks before it pays."""

    def __init__(self) -> None:
        self.paid: list[tuple[int, str]] = []

        @tool(side_effects="writes", requires_confirmation=True)
        async def pay(amount: int, to: str = "Ann") -> str:
            """Pays."""
            self.paid.append((amount, to))
            return f"paid {amount}"

        self.pay = pay


@tool(runs_on="client", side_effects="writes")
async def open_page(page: str) -> dict[str, Any]:
    """Prepares the opening of a page."""
    return {"url": f"/pages/{page}"}


@pytest.mark.requirement("crib.invoke")
async def test_a_run_of_a_tool_has_an_output_a_journal_and_a_trace():
    async with Crib("memory://") as crib:
        crib.add(add)
        result = await crib.invoke("add", {"a": 1}, conversation_id="c", session_id="s")
        trace = await crib.trace(result.run_id)

    assert (result.ok, result.output, result.summary.tool_calls) == (True, 2, 1)
    assert [entry.event.type for entry in result.events] == [
        "run_started",
        "call_started",
        "call_finished",
        "run_finished",
    ]
    [envelope] = result.envelopes
    assert (envelope.position, envelope.input, envelope.conversation_id) == ("call", {"a": 1, "b": 1}, "c")
    assert trace == result.trace
    assert trace.run_id == result.run_id


@pytest.mark.requirement("crib.invoke")
async def test_a_tool_that_fails_fails_its_run():
    @tool
    async def fail() -> None:
        raise RuntimeError("no")

    async with Crib("memory://") as crib:
        crib.add(fail)
        result = await crib.invoke("fail", {})

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert result.summary.error is not None
    assert "RuntimeError: no" in result.summary.error.message


@pytest.mark.requirement("crib.invoke")
async def test_a_dry_run_of_a_tool_that_writes_skips_it():
    till = Till()
    async with Crib("memory://") as crib:
        crib.add(till.pay)
        result = await crib.invoke("pay", {"amount": 5}, dry_run=True)

    assert (result.ok, result.output, till.paid) == (True, None, [])
    assert result.envelopes[0].status == "skipped"


@pytest.mark.requirement("crib.call")
async def test_a_call_of_an_agentic_tool_has_an_envelope_like_any_other():
    async with Crib("memory://", models={"scripted:m": ScriptedModel(["hello"])}) as crib:
        crib.add(add)
        agent = crib.agentic_tool("agent", mode="agentic", model="scripted:m", tools=["add"])
        envelope = await crib.call("agent", task="hi")

        assert agent.definition.name == "agent"
    assert (envelope.name, envelope.output, envelope.side_effects) == ("agent", {"summary": "hello"}, "reads")


@pytest.mark.requirement("crib.invoke")
async def test_a_handle_takes_a_task_parameters_or_both():
    model = ScriptedModel(lambda request: request.messages[0].text)
    schema: Any = {"type": "object", "properties": {"task": {"type": "string"}, "n": {"type": "integer"}}}
    async with Crib("memory://", models={"scripted:m": model}) as crib:
        crib.add(add)
        agent = crib.agentic_tool("agent", mode="agentic", model="scripted:m", tools=["add"], input_schema=schema)

        assert (await agent("hi", n=1)).output == {"summary": "hi"}
        assert (await agent(n=1)).output == {"summary": '{"n":1}'}


@pytest.mark.requirement("crib.refusals")
@pytest.mark.parametrize("agentic", [True, False])
async def test_a_stranger_is_refused_and_the_refusal_is_in_the_journal(agentic: bool):
    async with Crib("memory://", models={"scripted:m": ScriptedModel([])}) as crib:
        crib.add(add)
        crib.agentic_tool("agent", mode="agentic", model="scripted:m", tools=["add"])
        name, arguments = ("agent", {"task": "go"}) if agentic else ("add", {"a": 1})

        result = await crib.acting_as(STRANGER).invoke(name, arguments)
        why = await crib.acting_as(STRANGER).refusal(name, arguments)
        events = await crib.store.journal.events(result.run_id)

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "policy")
    assert result.summary.error is not None
    assert result.summary.error.reason is Reason.PERMISSION_MISSING
    assert why is not None
    assert why.message == result.summary.error.message
    assert isinstance(events[0].event, RunStarted)
    assert isinstance(events[-1].event, RunFinished)
    assert result.summary.tool_calls == 0


@pytest.mark.requirement("crib.refusals")
async def test_parameters_that_do_not_fit_are_refused_before_the_model_is_asked():
    model = ScriptedModel([])
    async with Crib("memory://", models={"scripted:m": model}) as crib:
        crib.add(add)
        agent = crib.agentic_tool("agent", mode="agentic", model="scripted:m", tools=["add"])
        result = await agent(tsk="go")
        allowed = await crib.refusal("agent", {"task": "go"})

    assert (result.summary.status, result.summary.stop_reason) == ("failed", "error")
    assert result.summary.error is not None
    assert result.summary.error.code is ErrorCode.VALIDATION_ERROR
    assert allowed is None
    assert model.requests == []


@pytest.mark.requirement("crib.submit")
async def test_a_submitted_run_waits_for_whoever_drives_it():
    async with Crib("memory://") as crib:
        crib.add(add)
        run_id = await crib.submit("add", {"a": 2})
        queued = await crib.store.journal.run(run_id)
        [result] = await crib.recover()

    assert queued.status == "queued"
    assert (result.run_id, result.output) == (run_id, 3)


@pytest.mark.requirement("crib.submit", "crib.refusals")
async def test_a_submitted_run_that_is_refused_is_ended_at_once():
    async with Crib("memory://", models={"scripted:m": ScriptedModel([])}) as crib:
        crib.add(add)
        crib.agentic_tool("agent", mode="agentic", model="scripted:m", tools=["add"])
        run_id = await crib.acting_as(STRANGER).submit("agent", {})
        run = await crib.store.journal.run(run_id)

        assert run.status == "failed"
        assert await crib.recover() == []


@pytest.mark.requirement("crib.submit")
async def test_a_serving_engine_drives_what_is_submitted():
    done = asyncio.Event()

    @tool(side_effects="reads")
    async def finish() -> str:
        done.set()
        return "ok"

    async with Crib("memory://") as crib:
        crib.add(finish)
        run_id = await crib.submit("finish", {})
        serving = asyncio.create_task(crib.engine.serve())
        await done.wait()
        result = await crib.resume(run_id)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    assert result.output == "ok"


@pytest.mark.requirement("crib.approval")
async def test_a_call_that_waits_for_a_person_goes_on_after_approval():
    till = Till()
    async with Crib("memory://") as crib:
        crib.add(till.pay)
        waiting = await crib.invoke("pay", {"amount": 5})
        [request] = await crib.pending_approvals(waiting.run_id)

        assert (waiting.summary.status, waiting.ok, till.paid) == ("awaiting_approval", False, [])
        assert (request.position, request.input) == ("call", {"amount": 5, "to": "Ann"})
        assert await crib.decide(waiting.run_id, "call", approve=True)
        assert await crib.pending_approvals(waiting.run_id) == []
        result = await crib.resume(waiting.run_id)
        again = await crib.resume(waiting.run_id)

    assert (result.output, again.output, till.paid) == ("paid 5", "paid 5", [(5, "Ann")])


@pytest.mark.requirement("crib.approval")
async def test_a_person_may_edit_the_arguments_or_reject():
    till, boss = Till(), Principal(id="boss", realm="default", grants=("ai://*",))
    async with Crib("memory://") as crib:
        crib.add(till.pay)
        first = await crib.invoke("pay", {"amount": 5})
        await crib.acting_as(boss).decide(first.run_id, "call", approve=True, edited_input={"amount": 3})
        edited = await crib.resume(first.run_id)
        second = await crib.invoke("pay", {"amount": 9})
        await crib.decide(second.run_id, "call", approve=False, reason="too much")
        rejected = await crib.resume(second.run_id)

    assert till.paid == [(3, "Ann")]
    assert edited.envelopes[0].approved_input == {"amount": 3}
    assert [entry.event.made_by for entry in edited.events if entry.event.type == "approval_decided"] == ["boss"]
    assert (rejected.summary.status, rejected.summary.stop_reason) == ("failed", "policy")
    assert rejected.summary.error is not None
    assert "too much" in rejected.summary.error.message


@pytest.mark.requirement("crib.approval", "crib.call")
async def test_a_call_that_waits_says_so_instead_of_giving_an_envelope():
    till = Till()
    async with Crib("memory://") as crib:
        crib.add(till.pay)
        with pytest.raises(Conflict, match=r"run run_\w+ awaiting approval; decide it and resume it"):
            await crib.call("pay", amount=5)


@pytest.mark.requirement("crib.approval", "crib.client")
async def test_what_does_not_wait_cannot_be_decided_or_returned():
    till = Till()
    async with Crib("memory://") as crib:
        crib.add(till.pay, open_page)
        waiting = await crib.invoke("pay", {"amount": 5})
        with pytest.raises(Conflict, match=r"no call at 't1' that waits for approval; waiting: call"):
            await crib.decide(waiting.run_id, "t1", approve=True)
        with pytest.raises(Conflict, match=r"no call at 'call' that waits for a client; waiting: none"):
            await crib.return_client_result(waiting.run_id, "call", ClientResult())


@pytest.mark.requirement("crib.client")
async def test_a_clients_tool_is_prepared_handed_over_and_ends_with_what_came_back():
    async with Crib("memory://") as crib:
        crib.add(open_page)
        waiting = await crib.invoke("open_page", {"page": "deals"})
        [prepared] = await crib.pending_handoffs(waiting.run_id)

        assert waiting.summary.status == "awaiting_client"
        assert (prepared.output, prepared.requires_client_execution) == ({"url": "/pages/deals"}, True)
        assert await crib.return_client_result(waiting.run_id, "call", ClientResult(output={"opened": True}))
        result = await crib.resume(waiting.run_id)

    assert result.output == {"opened": True}


@pytest.mark.requirement("crib.approval")
async def test_of_two_decisions_at_the_same_time_the_first_counts():
    till = Till()
    async with Crib("memory://") as crib:
        crib.add(till.pay)
        waiting = await crib.invoke("pay", {"amount": 5})
        answers = await asyncio.gather(
            crib.decide(waiting.run_id, "call", approve=True),
            crib.decide(waiting.run_id, "call", approve=False),
            return_exceptions=True,
        )
        result = await crib.resume(waiting.run_id)

    assert answers[0] is True
    assert answers[1] is False or isinstance(answers[1], Conflict)
    assert result.output == "paid 5"


@pytest.mark.requirement("crib.invoke")
async def test_there_is_no_trace_of_a_run_that_never_was():
    async with Crib("memory://") as crib:
        with pytest.raises(NotFound):
            await crib.trace("run_0")


@pytest.mark.requirement("crib.reopen", "crib.approval")
async def test_another_process_carries_a_waiting_run_on(tmp_path: Path):
    url, first, second = f"sqlite:///{tmp_path / 'crib.db'}", Till(), Till()
    model = ScriptedModel([Message("assistant", (ToolCall("a", "pay", '{"amount": 5}'),))])
    async with Crib(url, models={"scripted:m": model}) as crib:
        crib.add(first.pay)
        agent = crib.agentic_tool("agent", mode="agentic", model="scripted:m", tools=["pay"])
        waiting = await agent("pay")
        assert waiting.summary.status == "awaiting_approval"

    async with Crib(url, models={"scripted:m": ScriptedModel(["Paid."])}) as crib:
        crib.add(second.pay)
        [request] = await crib.pending_approvals(waiting.run_id)
        await crib.decide(waiting.run_id, request.position, approve=True)
        [result] = await crib.recover()
        trace = await crib.trace(waiting.run_id)

    assert result.output == {"summary": "Paid."}
    assert (first.paid, second.paid) == ([], [(5, "Ann")])
    assert trace.status == "completed"


@pytest.mark.requirement("crib.reopen")
async def test_a_store_that_is_opened_again_has_its_tools(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'crib.db'}"
    async with Crib(url) as crib:
        crib.add(add)
        ended = await crib.invoke("add", {"a": 1})

    async with Crib(url, sharing=SharingOptions(worker_wait_s=0)) as crib:
        assert list(crib.registry.names("default")) == ["add"]
        assert (await crib.resume(ended.run_id)).output == 2
        left = await crib.invoke("add", {"a": 1})
        assert (left.status, "lacks the Python function of add@1.0.0" in left.warnings[0]) == ("queued", True)
        crib.add(add)
        assert (await crib.call("add", a=1)).output == 2
        assert (await crib.resume(left.run_id)).output == 2


@pytest.mark.requirement("crib.reopen")
async def test_a_function_that_a_store_in_memory_lacks_fails_its_call():
    async with Crib("memory://") as crib:
        await crib.save(as_function_tool(add).definition)
        missing = await crib.call("add", a=1)
    assert missing.error is not None
    assert missing.error.reason is Reason.RUNTIME_MISSING


@pytest.mark.requirement("crib.realms")
async def test_what_others_save_is_listed_after_a_refresh(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'crib.db'}"
    async with Crib(url) as one, Crib(url) as other:
        one.add(add)
        await one.open()
        assert list(other.registry.names("default")) == []
        await other.refresh()
        assert list(other.registry.names("default")) == ["add"]
        assert (await other.refusal("add", {"a": 1})) is None


@pytest.mark.requirement("crib.call_ids")
@pytest.mark.parametrize("place", ["memory://", "sqlite:///{folder}/crib.db"])
async def test_equal_direct_calls_have_ids_of_their_own_that_a_replay_makes_again(place: str, tmp_path: Path):
    @tool(side_effects="reads")
    def fail(n: int) -> int:
        raise RuntimeError(str(n))

    async with Crib(place.format(folder=tmp_path)) as crib:
        crib.add(add, fail)
        envelopes = [await crib.call(name, {arg: 1}) for name, arg in (("add", "a"), ("fail", "n")) for _ in range(2)]
        replays = [await crib.replay(envelope.run_id or "") for envelope in envelopes]

    assert len({envelope.call_id for envelope in envelopes}) == 4
    assert [replay.same for replay in replays] == [True] * 4


def plain_sum(a: int, b: int) -> int:
    return a + b


@pytest.mark.requirement("crib.callees")
@pytest.mark.parametrize("place", ["memory://", "sqlite:///{folder}/crib.db"])
async def test_a_tool_is_called_by_its_function_and_by_its_handle_as_by_its_name(place: str, tmp_path: Path):
    async with Crib(place.format(folder=tmp_path)) as crib:
        crib.add(add, plain_sum)
        steps = [{"name": "summed", "tool": "add", "input": {"a": 1}}]
        flow = crib.workflow("flow", steps=steps, output="${summed}")

        assert (await crib.invoke(add, {"a": 1})).output == 2
        assert (await crib.call(plain_sum, a=2, b=3)).output == 5
        assert (await crib.invoke(flow, {})).output == 2
        assert await crib.refusal(add, {"a": 1}) is None
        refused = await crib.refusal(add, {"c": 1})
        assert refused is not None
        assert "'c'" in refused.message
        assert (await crib.resume(await crib.submit(plain_sum, {"a": 1, "b": 1}))).output == 2
        with pytest.raises(NotFound, match="no tool 'unknown_here'"):
            await crib.call(unknown_here)
        number: Any = 3
        with pytest.raises(InvalidDefinition, match="expected a function, got int"):
            await crib.call(number)


def unknown_here() -> None: ...
