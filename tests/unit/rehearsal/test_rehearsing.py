"""What a rehearsal says of parked runs, held against what becomes of them when the change is really made."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import pytest
from msgspec import structs

from tests.unit.rehearsal.parked import ALL, KEY, PARKED, Fate, Process, World, agent, flow, go_on
from tests.unit.store.samples import NOON, new_run
from toolcrib import Crib, tool
from toolcrib.contracts import ApprovalRequested, ApprovalWithdrawn, ModelStarted, RunEvent, ServiceAccount
from toolcrib.contracts.pruning_and_rehearsal import RehearsalReport, RehearsedRun
from toolcrib.crib.runs.rehearsal import reasons_of_events

Alter: TypeAlias = Callable[[Crib], Awaitable[None]]


class Change(NamedTuple):
    """What is different after an upgrade."""

    alter: Alter | None = None
    process: Process = ALL


@tool(side_effects="writes", requires_confirmation=True)
async def pay(item: str, note: str = "") -> str:
    """Pays for something, with a note."""
    return f"{item} {note}"


async def _replace_agent(crib: Crib) -> None:
    await crib.save(agent("payer", "look", "pay", system_prompt="Be brief."))


async def _replace_flow(crib: Crib) -> None:
    await crib.workflows.publish(flow("flow", {"approval": {"message": "Really?"}}, "look"))


async def _remove(crib: Crib) -> None:
    for name in ("look", "pay"):
        await crib.registry.remove("default", name)


def _account(**fields: Any) -> Alter:
    async def alter(crib: Crib) -> None:
        await crib.accounts.save(ServiceAccount(name="clerk", **fields))

    return alter


def _blocking(name: str) -> Alter:
    async def alter(crib: Crib) -> None:
        await crib.lifecycle.block(name)

    return alter


async def _deprecate(crib: Crib) -> None:
    await crib.lifecycle.deprecate("pay")


async def _replace_tool(crib: Crib) -> None:
    await crib.save(pay.definition)


async def _disable(crib: Crib) -> None:
    definition = crib.registry.require("default", "pay").definition
    await crib.save(definition.model_copy(update={"enabled": False}))


def _without(*functions: str) -> Process:
    return ALL._replace(functions=ALL.functions - set(functions))


CHANGES: Final[Mapping[str, Change]] = {
    "nothing": Change(),
    "block look": Change(_blocking("look")),
    "block pay": Change(_blocking("pay")),
    "block send": Change(_blocking("send")),
    "block pick": Change(_blocking("pick")),
    "block payer": Change(_blocking("payer")),
    "block flow": Change(_blocking("flow")),
    "deprecate pay": Change(_deprecate),
    "another pay": Change(_replace_tool),
    "a disabled pay": Change(_disable),
    "remove look and pay": Change(_remove),
    "another agent": Change(_replace_agent),
    "another flow": Change(_replace_flow),
    "an account without rights": Change(_account(grants=("ai://agents/*",))),
    "an account that is disabled": Change(_account(grants=("ai://*",), enabled=False)),
    "no function look": Change(process=_without("look")),
    "no function pay": Change(process=_without("pay")),
    "no function send": Change(process=_without("send")),
    "no models": Change(process=ALL._replace(models=frozenset())),
    "no model of the payer": Change(process=ALL._replace(models=ALL.models - {"payer"})),
    "no key": Change(process=ALL._replace(environment={})),
    "another key": Change(process=ALL._replace(environment={KEY: "key-9876543210"})),
}


async def rehearsed(world: World, change: Change) -> RehearsalReport:
    async with world.process(change.process) as crib:
        return await crib.rehearse(change.alter)


async def really(world: World, change: Change, run_id: str) -> Fate:
    async with world.process(change.process) as crib:
        if change.alter is not None:
            await change.alter(crib)
        return await go_on(world, crib, run_id)


@pytest.fixture(scope="module")
def usual() -> Mapping[str, Fate]:
    """What becomes of the runs if nothing is changed."""

    async def all_of_them() -> dict[str, Fate]:
        return {parked: await _fate(parked, CHANGES["nothing"]) for parked in PARKED}

    return asyncio.run(all_of_them())


async def _fate(parked: str, change: Change) -> Fate:
    world = World()
    await world.park(parked)
    return await really(world, change, world.runs[parked])


@pytest.mark.requirement("rehearsal.verdicts", "rehearsal.code")
@pytest.mark.parametrize("change", CHANGES)
async def test_what_a_rehearsal_says_is_what_becomes_of_the_run(change: str, usual: Mapping[str, Fate]):
    wrong: list[str] = []
    for parked in PARKED:
        world = World()
        await world.park(parked)
        (told,) = (await rehearsed(world, CHANGES[change])).runs
        fate = await really(world, CHANGES[change], world.runs[parked])
        if not _is_right(told, fate, usual[parked]):
            wrong.append(f"{parked}: {told.verdict} {[reason.message for reason in told.reasons]}, but {fate}")

    assert wrong == []


@pytest.mark.requirement("rehearsal.verdicts")
async def test_every_verdict_and_reason_comes_up_in_the_corpus():
    world = World()
    await world.park(*PARKED)
    told = [run for change in CHANGES.values() for run in (await rehearsed(world, change)).runs]

    assert {run.verdict for run in told} == {"safe", "needs_attention", "will_strand"}
    found = {reason.code for run in told for reason in run.reasons}
    assert found >= {"cannot_run_here", "call_refused", "later_call_refused", "fails"}
    assert len(told) == len(CHANGES) * len(PARKED)


def _is_right(told: RehearsedRun, fate: Fate, usual: Fate) -> bool:
    """Whether what was told has come true. What may happen later need not, but what was said of a call must."""
    match told.verdict:
        case "safe":
            return fate == usual
        case "will_strand":
            return fate.stuck is not None or fate.status in {"failed", "incomplete"}
        case "needs_attention":
            refused = {reason.position for reason in told.reasons if reason.code == "call_refused"}
            again = any(reason.code == "asked_again" for reason in told.reasons)
            return fate.stuck is None and fate.status == "completed" and refused <= fate.refused and again <= fate.again


@pytest.mark.requirement("rehearsal.nothing_happens")
async def test_a_rehearsal_leaves_the_store_the_runs_and_the_world_as_they_were():
    world = World()
    await world.park(*PARKED)
    journal, definitions = world.store.journal, world.store.definitions
    before = {run_id: await journal.events(run_id) for run_id in journal.rows}
    revisions = await definitions.revisions("tool", "default")
    done = list(world.hands.done)

    for name in ("another pay", "another flow", "block pay", "remove look and pay"):
        await rehearsed(world, CHANGES[name])

    assert {run_id: await journal.events(run_id) for run_id in journal.rows} == before
    assert await definitions.revisions("tool", "default") == revisions
    assert world.hands.done == done
    assert await world.store.retention.prunings("default") == []


@pytest.mark.requirement("rehearsal.reasons")
async def test_a_reason_names_run_tool_position_and_what_to_do():
    world = World()
    await world.park("boss", "flow")

    report = await rehearsed(world, CHANGES["block pay"])

    (boss,) = [run for run in report.runs if run.run_id == world.runs["boss"]]
    (refused,) = [reason for reason in boss.reasons if reason.code == "call_refused"]
    assert (refused.tool, refused.position) == ("pay@1.0.0", "t2.c1")
    assert refused.run_id != boss.run_id
    assert "'pay@1.0.0' is blocked" in refused.message
    assert refused.next_step
    assert [run.run_id for run in report.of("safe")] == [world.runs["flow"]]
    assert not report.strands


@pytest.mark.requirement("rehearsal.code")
async def test_a_process_without_the_functions_can_leave_them_out_of_its_verdict():
    world = World()
    await world.park("flow")

    async with world.process(_without(*ALL.functions)) as crib:
        strict, lenient = await crib.rehearse(), await crib.rehearse(functions_here=False)

    assert [run.verdict for run in (*strict.runs, *lenient.runs)] == ["will_strand", "safe"]
    assert "lacks the Python function of look@1.0.0" in strict.runs[0].reasons[0].message


@pytest.mark.requirement("rehearsal.code")
async def test_what_a_new_release_adds_is_rehearsed_and_not_saved():
    world = World()
    await world.park("payer")

    crib = world.process(_without("pay"))
    crib.add(pay)
    report = await crib.rehearse()

    assert report.strands
    assert len(await world.store.definitions.revisions("tool", "default", "pay")) == 1


@pytest.mark.requirement("rehearsal.reasons")
def test_a_call_that_is_asked_about_again_needs_attention():
    asked = ApprovalRequested(
        position="t1.c1",
        number=2,
        call_id="call_1",
        name="pay",
        version="1.0.0",
        input={},
        arguments_hash="a",
        content_hash="c",
    )
    withdrawn = ApprovalWithdrawn(position="t1.c1", number=1, reason="the policy changed after it was shown")
    run = new_run()
    events = [
        RunEvent("r1", number, NOON, "default", "owner", each) for number, each in enumerate((withdrawn, asked), 1)
    ]

    (reason,) = reasons_of_events(run, events, before=0)

    assert (reason.code, reason.verdict, reason.position) == ("asked_again", "needs_attention", "t1.c1")
    assert "the policy changed after it was shown" in reason.message
    assert list(reasons_of_events(run, events, before=2)) == []


@pytest.mark.requirement("rehearsal.code")
async def test_code_that_would_ask_for_something_else_than_it_has_asked_for_is_told():
    world = World()
    await world.park("payer")
    log = world.store.journal.rows[world.runs["payer"]].log
    at = next(number for number, entry in enumerate(log) if isinstance(entry.event, ModelStarted))
    other = log[at].event.model_copy(update={"purpose": "planning"})  # of another release
    log[at] = structs.replace(log[at], event=other)

    (told,) = (await rehearsed(world, CHANGES["nothing"])).runs
    fate = await really(world, CHANGES["nothing"], world.runs["payer"])

    assert [(reason.code, reason.verdict) for reason in told.reasons] == [("diverges", "needs_attention")]
    assert f"event {at + 1} of run" in told.reasons[0].message
    assert fate.status == "completed"


@pytest.mark.requirement("rehearsal.verdicts")
async def test_a_run_whose_definition_is_nowhere_will_strand():
    world = World()
    await world.park("payer")
    row = world.store.journal.rows[world.runs["payer"]]
    request = row.created.request.model_copy(update={"content_hash": "sha256:gone"})
    row.created = row.created.model_copy(update={"request": request})

    (told,) = (await rehearsed(world, CHANGES["nothing"])).runs

    assert (told.verdict, told.reasons[0].code) == ("will_strand", "cannot_run_here")
