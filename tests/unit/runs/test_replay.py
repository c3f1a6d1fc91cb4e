"""Replays: the same program on the same journal, and another program, which is told where it goes another way."""

import pytest

from tests.unit.runs.house import House, Script, ask
from toolcrib.contracts import (
    Conflict,
    Divergence,
    ErrorCode,
    InvalidInput,
    Json,
    Limits,
    ModelError,
    Reason,
    Replay,
    RunResult,
)
from toolcrib.engines import end_of, limits_of
from toolcrib.executor import error
from toolcrib.llm import Request, ScriptedAnswer, ScriptedModel, user
from toolcrib.runs import BudgetExhausted, Ended, ModelCall, Program, Recording, RunContext, recorded_model, replay

QUESTION = Request(messages=(user("How many?"),), system="Count.", max_tokens=100)
NEVER = ScriptedModel(())


async def recording_of(house: House, run_id: str) -> Recording:
    journal = house.store.journal
    run, events = await journal.run(run_id), await journal.events(run_id)
    tool = await house.registry.pinned(run.realm, run.request.content_hash)
    nested = {
        child.run_id: await recording_of(house, child.run_id)
        for child in await journal.runs(run.realm)
        if child.request.parent_run_id == run_id
    }
    return Recording(run, events, tool, limits_of(tool, "tool"), nested)


async def replayed(house: House, run_id: str, script: Script | None = None) -> Replay:
    """Replay a run of the house, with another program if one is given."""

    def programs(recording: Recording) -> Program:
        async def program(context: RunContext, tool: object) -> Ended:
            given = script if script is not None and recording.run.run_id == run_id else house.script
            output = await given(context)
            return output if isinstance(output, Ended) else Ended(output=output)

        return program

    recording = await recording_of(house, run_id)
    store = house.store
    return await replay(recording, programs, tools=house.registry, blobs=store.blobs, past=store.journal, failed=end_of)


async def departure(first: Script, then: Script) -> Divergence:
    """Where a program departs from the run of another one."""
    house = House(first)
    await house.save()
    run_id = (await house.start()).result.run_id
    found = await replayed(house, run_id, then)
    assert found.divergence is not None
    assert (found.same, found.divergence.run_id) == (False, run_id)
    return found.divergence


def calls(**inputs: Json) -> Script:
    """A program that makes calls one after the other and returns their outputs."""

    async def script(context: RunContext) -> Json:
        return [(await context.call(ask(position, at=value))).output for position, value in inputs.items()]

    return script


def asks(model: ScriptedModel, *, position: str = "t1.llm", request: Request = QUESTION) -> Script:
    """A program that asks a model once and returns what it said."""

    async def script(context: RunContext) -> Json:
        call = ModelCall(
            position, "tool_selection", model, request, new=request.messages, system=request.system,
            tools=await context.keep(b"[]"),
        )  # fmt: skip
        try:
            return (await context.model(call)).message.text
        except (ModelError, BudgetExhausted) as problem:
            return f"{type(problem).__name__}: {problem}"

    return script


@pytest.mark.requirement("runs.replay")
async def test_calls_notes_signals_and_nested_runs_come_from_the_journal_and_nothing_is_written():
    async def script(context: RunContext) -> Json:
        if context.request.parent_run_id:
            return "nested"
        await context.emit("begun", "note", {"at": 1})
        found = await context.once("found", "note", lambda: _given(context))
        listed = await context.kept(await context.keep(b"a long text"))
        envelope = await context.call(ask("a", at=1))
        tool = await house.save()
        await context.start_child("first", tool, {"at": 1})
        child: RunResult = await context.start_child("b", tool, {"at": 2})
        signal = await context.wait_signal("go")
        return [found, listed.decode(), envelope.output, child.output, signal.payload if signal else None]

    house = House(script)
    await house.save()
    run_id = (await house.start()).result.run_id
    await house.signal(run_id, "go", {"who": "ann"})
    ended = (await house.engine.resume(run_id)).result
    assert ended.status == "completed"
    before, dispatched = await house.events(run_id), list(house.dispatched)

    found = await replayed(house, run_id)

    assert (found.same, found.output) == (True, ended.output)
    assert [envelope.position for envelope in found.envelopes] == ["a"]
    assert [nested.output for nested in found.nested] == ["nested", "nested"]
    assert (await house.events(run_id), house.dispatched) == (before, dispatched)


async def _given(context: RunContext) -> Json:
    return {"run": context.run_id}


@pytest.mark.requirement("runs.replay")
@pytest.mark.parametrize("answer", ["three", ModelError("bad_request", "no such model", status=404)])
async def test_answers_and_failures_of_models_come_from_the_journal(answer: ScriptedAnswer):
    model = ScriptedModel([answer])
    house = House(asks(model))
    run_id = (await house.start()).result.run_id

    found = await replayed(house, run_id)

    assert (found.same, found.model_calls) == (True, 1)
    assert len(model.requests) == 1


@pytest.mark.requirement("runs.replay")
async def test_a_limit_that_kept_a_model_from_being_asked_is_met_again_where_it_was_met():
    async def script(context: RunContext) -> Json:
        context.budget.limits = Limits(max_iterations=1)
        return [await asks(model, position=position)(context) for position in ("one", "two")]

    model = ScriptedModel(["one", "never"])
    house = House(script)
    run_id = (await house.start()).result.run_id

    found = await replayed(house, run_id)

    assert (found.same, found.model_calls) == (True, 1)
    assert "max_iterations" in found.output[1]


@pytest.mark.requirement("runs.replay")
async def test_a_program_that_failed_fails_again():
    async def script(context: RunContext) -> Json:
        await context.call(ask("a", at=1))
        raise ValueError("three")

    house = House(script)
    await house.save()
    failed = (await house.start()).result
    assert failed.status == "failed"

    assert (await replayed(house, failed.run_id)).same


@pytest.mark.requirement("runs.replay")
async def test_a_run_that_was_ended_from_outside_is_the_same_as_far_as_it_came():
    refusal = error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_ALLOWED, "not here")
    house = House(calls(a=1))
    await house.save()
    run_id = (await house.engine.refuse(await house.request(), refusal)).result.run_id

    async def waits(context: RunContext) -> Json:
        await context.wait_signal("go")

    assert (await replayed(house, run_id)).same
    assert (await replayed(house, run_id, waits)).same
    assert (await replayed(house, run_id, calls())).same


@pytest.mark.requirement("runs.replay")
async def test_a_run_that_goes_on_cannot_be_replayed():
    async def script(context: RunContext) -> Json:
        await context.wait_signal("go")

    house = House(script)
    run_id = (await house.start()).result.run_id

    with pytest.raises(Conflict, match=f"run {run_id} has not ended; resume it"):
        await replayed(house, run_id)


@pytest.mark.requirement("runs.replay_divergence")
@pytest.mark.parametrize(
    ("then", "event", "field", "expected", "got"),
    [
        (calls(a=1, b=3), 4, "b.input", {"at": 2}, {"at": 3}),
        (calls(a=1, c=2), 6, "c", None, {"tool": "look_up", "input": {"at": 2}}),
        (calls(a=1), 6, "output", [{"at": 1}, {"at": 2}], [{"at": 1}]),
    ],
)
async def test_other_calls_and_another_end_are_told_with_the_event(
    then: Script, event: int, field: str, expected: Json, got: Json
):
    found = await departure(calls(a=1, b=2), then)

    assert (found.event, found.field, found.expected, found.got) == (event, field, expected, got)


@pytest.mark.requirement("runs.replay_divergence")
async def test_another_tool_and_a_call_that_is_left_out_are_told():
    async def other(context: RunContext) -> Json:
        return (await context.call(ask("a", "delete", at=1))).output

    async def less(context: RunContext) -> Json:
        return [{"at": 1}]

    assert (await departure(calls(a=1), other)).field == "a.name"
    left_out = await departure(calls(a=1), less)
    assert (left_out.event, left_out.field, left_out.expected, left_out.got) == (2, "a", "look_up", None)


@pytest.mark.requirement("runs.replay_divergence")
@pytest.mark.parametrize(
    ("request_", "field", "got"),
    [
        (Request(messages=QUESTION.messages, system="Guess.", max_tokens=100), "t1.llm.system", "Guess."),
        (Request(messages=(*QUESTION.messages, user("Now.")), system="Count."), "t1.llm.messages", None),
    ],
)
async def test_another_request_to_a_model_is_told(request_: Request, field: str, got: Json):
    found = await departure(asks(ScriptedModel(["three"])), asks(NEVER, request=request_))

    assert (found.event, found.field) == (2, field)
    assert got is None or (found.expected, found.got) == ("Count.", got)


@pytest.mark.requirement("runs.replay_divergence")
async def test_what_the_journal_has_nothing_of_is_told():
    async def looks(context: RunContext) -> Json:
        return await context.once("new", "note", lambda: _given(context))

    async def nests(context: RunContext) -> Json:
        house = House(nests)
        return (await context.start_child("n", await house.save(), {})).output

    async def waits(context: RunContext) -> Json:
        await context.wait_signal("go")

    async def failing(context: RunContext) -> Json:
        await context.call(ask("a", at=1))
        context._around.in_doubt.check_same(ask("a", "delete"), "look_up")  # pyright: ignore[reportPrivateUsage]

    first = calls(a=1)
    fields = [
        (await departure(first, then)).field for then in (looks, nests, waits, asks(NEVER, position="m"), failing)
    ]
    assert fields == ["new", "n", "waits", "m", "calls"]


@pytest.mark.requirement("runs.replay_divergence")
async def test_a_nested_run_that_goes_another_way_makes_the_whole_one_another():
    async def script(context: RunContext) -> Json:
        if context.request.parent_run_id:
            return outputs.pop()
        return (await context.start_child("b", await house.save(), {"at": 2})).output

    outputs = ["second", "first"]
    house = House(script)
    run_id = (await house.start()).result.run_id

    found = await replayed(house, run_id)

    assert (found.same, found.nested[0].same) == (False, False)
    assert found.divergence == found.nested[0].divergence
    assert found.divergence is not None
    assert (found.divergence.field, found.divergence.expected, found.divergence.got) == ("output", "first", "second")


@pytest.mark.requirement("runs.recorded_model")
async def test_a_recorded_run_is_a_model_that_answers_the_same_again():
    first = House(asks(ScriptedModel(["three"])))
    second = House(asks(ScriptedModel([ModelError("bad_request", "no")])), other=first)
    events = [
        entry
        for house in (first, second)
        for entry in await house.store.journal.events((await house.start()).result.run_id)
    ]

    model = recorded_model(events)

    assert (await model.request(QUESTION)).message.text == "three"
    with pytest.raises(ModelError, match="no"):
        await model.request(QUESTION)


@pytest.mark.requirement("runs.recorded_model")
async def test_a_run_whose_model_has_not_answered_is_no_model():
    house = House(asks(ScriptedModel(["three"])))
    run_id = (await house.start()).result.run_id
    events = await house.store.journal.events(run_id)

    with pytest.raises(InvalidInput, match=f"run {run_id} has no answer to its model call 't1.llm'"):
        recorded_model(events[:2])
