"""What forks make of failures, refusals, cut off calls, resumed runs, and journals of older releases."""

import asyncio
from typing import Any

import pytest

from tests.twins import ManualClock
from tests.unit.agents.crm import Crm, asks
from tests.unit.forks.forking import made_itself, same_at_every_event
from tests.unit.forks.test_changing import agent
from tests.unit.workflows.shop import Shop, calls, publish
from toolcrib import Crib, ScriptedModel, code_tool
from toolcrib.contracts import (
    AgentDefinition,
    CallStarted,
    ChildStarted,
    ContentFilter,
    InvalidInput,
    JsonObject,
    LLMConfig,
    ModelError,
    ModelStarted,
    NotFound,
    PermissionDenied,
    Principal,
    ProgressMade,
    SignalReceived,
    ToolEnvelope,
)
from toolcrib.contracts.runs.forks import Fork
from toolcrib.contracts.runs.recordings import Recorded, RecordedCall
from toolcrib.core.executor import CallRequest
from toolcrib.core.policy import CallPolicy
from toolcrib.core.runs.forks.fork import read_recorded
from toolcrib.core.runs.forks.recording import Recording

SEARCH = asks(("search_deals", {"company": "Acme"}))
AUTH, BUSY = ModelError("auth", "no key"), ModelError("overloaded", "come back later")


@pytest.mark.requirement("forks.same", "forks.diff")
async def test_failures_of_models_and_refusals_are_outcomes_too():
    script = [SEARCH, BUSY, AUTH, "The magic word is xyzzy.", "Ok."]
    async with Crib("memory://", models={"scripted:m": ScriptedModel(script)}, clock=ManualClock()) as crib:
        crib.add(*Crm(1).tools)
        await crib.save(agent("fails"))
        failed = await crib.invoke("fails", {"message": "go"})
        assert failed.summary.status == "failed"
        filters = ContentFilter(words=("xyzzy",), applies_to=("model_output",))
        await crib.save(agent("withheld", guardrails=(filters,)))
        withheld = await crib.invoke("withheld", {"message": "go"})
        refusing = ContentFilter(words=("magic",), applies_to=("model_input",))
        await crib.save(agent("refused", guardrails=(refusing,)))
        refused = await crib.invoke("refused", {"message": "Say the magic word."})
        assert (withheld.summary.stop_reason, refused.summary.stop_reason) == ("policy", "policy")

        for result in (failed, withheld, refused):
            await same_at_every_event(crib, result.run_id)

        diff = await crib.compare(withheld.run_id, refused.run_id)
        assert [(each.kind, each.before, each.after) for each in diff.decisions] == [
            ("model_guard", None, "deny (content_filter)")
        ]
        [answer] = (await crib.compare(failed.run_id, failed.run_id)).answers or [None]
        assert answer is None
        answers = (await crib.compare(withheld.run_id, failed.run_id)).answers
        assert [each.after for each in answers][-1] == "auth: no key"


@pytest.mark.requirement("forks.known", "forks.taken")
async def test_calls_that_were_cut_off_as_the_run_was_cancelled_are_made_in_a_fork():
    crm, started = Crm(1), asyncio.Event()

    async def hang(company: str) -> None:
        started.set()
        await asyncio.Event().wait()

    crm.on_search = hang
    async with Crib("memory://", models={"scripted:m": ScriptedModel([SEARCH, "Ok.", "Ok."])}) as crib:
        crib.add(*crm.tools)
        await crib.save(agent("a"))
        run_id = await crib.submit("a", {"message": "go"})
        driving = asyncio.create_task(crib.resume(run_id))
        await started.wait()
        await crib.cancel(run_id)
        assert (await driving).summary.status == "cancelled"
        crm.on_search = Crm(1).on_search
        last = len(await crib.store.journal.events(run_id))

        for at in (1, last):
            fork = await crib.fork(run_id, at=at)
            assert (fork.status, fork.output is not None) == ("completed", True), fork.error
            assert set(await made_itself(crib, fork.run_id)) == {"t1.c1", "t2.llm"}


@pytest.mark.requirement("forks.writes", "forks.replayed")
async def test_forks_of_a_resumed_run_never_use_the_keys_of_the_runs_before():
    shop = Shop()
    shop.broken = {"charge", "pay"}
    steps = (
        calls("reserve", "reserve"),
        calls("pay", "pay", depends_on=["reserve"]),
        {"name": "inner", "workflow": "inner", "input": {"item": "i"}, "depends_on": ["reserve"]},
    )
    async with Crib("memory://") as crib:
        shop.add_to(crib)
        await publish(crib, "inner", calls("charge", "charge"))
        await publish(crib, "order", *steps)
        failed = await crib.instances.start("order", {"item": "x"})
        shop.broken = set()
        resumed = await crib.instances.resume(failed.run_id)
        assert resumed.status == "completed", resumed.error

        await same_at_every_event(crib, resumed.run_id)

        known = {key for keys in shop.keys.values() for key in keys}
        fork = await crib.fork(resumed.run_id, anew=True, allow_writes=True)
        events = await crib.store.journal.events(fork.run_id)
        keys = {entry.event.idempotency_key for entry in events if isinstance(entry.event, CallStarted)}
        assert fork.status == "completed"
        assert keys & known == set()


@pytest.mark.requirement("forks.taken", "forks.known")
async def test_answers_of_older_releases_are_known_before_the_cut_and_asked_for_after_it():
    model = ScriptedModel([SEARCH, "Ok.", "Again."])
    async with Crib("memory://", models={"scripted:m": model}) as crib:
        crib.add(*Crm(1).tools)
        await crib.save(agent("a"))
        first = await crib.invoke("a", {"message": "go"})
        journal: Any = crib.store.journal
        events = journal.events

        async def older(run_id: str, **options: Any) -> Any:
            def without(entry: Any) -> Any:
                event = entry.event
                if isinstance(event, ModelStarted):
                    event = event.model_copy(update={"request_hash": None})
                return entry.model_copy(update={"event": event})

            return [without(entry) for entry in await events(run_id, **options)]

        journal.events = older
        fork = await crib.fork(first.run_id, at="turn:2")
        del journal.events

        assert fork.output == {"response": "Again."}
        assert await made_itself(crib, fork.run_id) == ["t2.llm"]


@pytest.mark.requirement("forks.changes")
async def test_changes_that_a_kind_of_run_does_not_have_are_refused():
    shop = Shop()
    async with Crib("memory://", models={"scripted:m": ScriptedModel([SEARCH, "Ok."])}) as crib:
        shop.add_to(crib)
        crib.add(*Crm(1).tools)
        await publish(crib, "order", calls("reserve", "reserve"))
        tool = crib.agentic_tool("chosen", mode="agentic", model="scripted:m", tools=["search_deals"])
        chosen, single = await tool("go"), await crib.invoke("search_deals", {"company": "Acme"})
        await crib.save(code_tool("one", "def main():\n    return 1\n"))
        events = await crib.store.journal.events((await crib.invoke("one", {})).run_id)
        [coded] = [entry.event.child_run_id for entry in events if isinstance(entry.event, ChildStarted)]
        flow = (await crib.instances.start("order", {"item": "a"})).run_id
        refused: list[tuple[str, JsonObject, str]] = [
            (flow, {"prompt": "x"}, "no prompt and no model"),
            (flow, {"model": "scripted:m"}, "asks no model itself"),
            (flow, {"policy": {"tools": ["ship"]}}, "'tools'"),
            (flow, {"tool:order": "1.0.0", "policy": {"side_effects": "reads"}}, "'side_effects'"),
            (flow, {"input": {"item": 3}, "policy": {"limits": {"max_cost_usd": -1}}}, "max_cost_usd"),
            (chosen.run_id, {"policy": {"requires_approval": True}}, "'requires_approval'"),
            (coded, {"prompt": "x"}, "of kind 'code', which has no prompt"),
            (single.run_id, {"prompt": "x"}, "one call of"),
            (single.run_id, {"tool:search_deals": "1.0.0", "input": "x"}, "JSON object"),
        ]
        for run_id, changes, told in refused:
            with pytest.raises(InvalidInput, match=told):
                await crib.fork(run_id, changes=changes)
        with pytest.raises(NotFound, match=r"no tool .nothing. to call in another version"):
            await crib.fork(flow, changes={"tool:nothing": "1.0.0"})
        with pytest.raises(PermissionDenied, match="publish"):
            await crib.acting_as(Principal(id="eve", grants=("ai://runs/*/read",))).fork(flow, changes={"policy": {}})
        bounded = await crib.fork(flow, at="step:reserve", changes={"policy": {"limits": {"timeout_s": 9}}})
        assert bounded.status == "completed"


@pytest.mark.requirement("forks.changes")
async def test_another_revision_of_the_tool_itself_is_run():
    script = ["One.", "Two."]
    async with Crib("memory://", models={"scripted:m": ScriptedModel(script)}) as crib:
        await crib.save(agent("a", tools=()))
        first = await crib.invoke("a", {"message": "go"})
        newer = AgentDefinition(name="a", llm=LLMConfig(model="scripted:m"), system_prompt="Be brief.", version="2.0.0")
        await crib.save(newer.tool())

        fork = await crib.fork(first.run_id, changes={"tool:a": "2.0.0"})

        assert (fork.request.tool, fork.output) == ("a@2.0.0", {"response": "Two."})
        crib.add(*Crm(1).tools)
        other = (await crib.invoke("search_deals", {"company": "Acme"})).run_id
        assert (await crib.fork(other)).status == "completed"


ENVELOPE = ToolEnvelope.model_validate(
    {
        "call_id": "1",
        "name": "look",
        "version": "1.0.0",
        "position": "a",
        "status": "success",
        "t_start": "2026-01-31T12:00:00Z",
        "t_end": "2026-01-31T12:00:00Z",
        "content_hash": "sha256:1",
    }
)
SCHEMA: JsonObject = {"type": "object", "properties": {"id": {}, "n": {"default": 2}}}


def recording(*asked: Any, schema: JsonObject | None = SCHEMA) -> Recording:
    """A recording of calls with these arguments, one after the other."""
    found = (
        RecordedCall(event=number, envelope=ENVELOPE.model_copy(update={"position": f"p{number}"}), asked=given)
        for number, given in enumerate(asked, start=1)
    )
    facts = Recorded.model_validate({"run_id": "run_1", "began_at": ENVELOPE.t_start, "seed": "run_1"})
    schemas = {} if schema is None else {"sha256:1": schema}
    facts = facts.model_copy(update={"calls": tuple(found), "schemas": schemas})
    return Recording(facts, Fork(run_id="run_1", at=1), ())


def event_of(made: Recording, position: str, given: Any, version: str | None = None) -> int | None:
    """The event of the call that is taken."""
    found = made.call(CallRequest(position, "look", given, version), CallPolicy())
    return None if found is None else found.event


@pytest.mark.requirement("forks.taken")
def test_the_same_call_is_taken_as_often_as_it_was_made_at_its_own_place_first():
    made = recording({"id": 1, "n": 2}, {"id": 1, "n": 2}, {"id": 1, "n": 3})

    assert event_of(made, "p2", {"id": 1}) == 2
    assert event_of(made, "elsewhere", {"id": 1, "n": 2}, "sha256:1") == 1
    assert event_of(made, "p1", {"id": 1}) is None
    assert event_of(made, "p3", {"id": 1, "n": 3}, "sha256:2") is None
    assert event_of(made, "p3", {"id": 1, "n": 3}) == 3


@pytest.mark.requirement("forks.taken")
def test_arguments_are_the_same_with_the_defaults_that_there_were():
    assert event_of(recording({"id": 1, "n": 2}, schema=None), "p1", {"id": 1}) is None
    assert event_of(recording("no object"), "p1", "another") is None
    assert event_of(recording("no object"), "p1", "no object") == 1


@pytest.mark.requirement("forks.known")
async def test_what_stands_in_a_journal_and_is_no_outcome_is_not_known():
    class Gone:
        async def get_revision(self, realm: str, content_hash: str) -> Any:
            raise NotFound(content_hash)

    async with Crib("memory://", models={"scripted:m": ScriptedModel([SEARCH, "Ok."])}) as crib:
        crib.add(*Crm(1).tools)
        await crib.save(agent("a"))
        first = await crib.invoke("a", {"message": "go"})
        request = (await crib.store.journal.run(first.run_id)).request

        found = await read_recorded(
            request, Fork(run_id=first.run_id, at=1), "run_2", past=crib.store.journal, tools=Gone()
        )

        assert (found.known, found.schemas, len(found.calls)) == ((), {}, 1)
        assert not any(isinstance(event, ProgressMade | SignalReceived) for event in found.known)
