"""Triggers on SQLite: each occurrence starts one run, whatever becomes of the processes that look."""

import json
import random
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.twins import MASTER_KEYS, ManualClock
from toolcrib import Crib, tool
from toolcrib.contracts import (
    Conflict,
    CronSource,
    InvalidDefinition,
    NotFound,
    PermissionDenied,
    Principal,
    RunEndSource,
    ServiceAccount,
    ToolcribError,
    TriggerDefinition,
    TriggerStart,
    Unauthenticated,
    Unavailable,
    WebhookSource,
)
from toolcrib.core.triggers import sign
from toolcrib.crib.runs.triggers import run_id_of

SIX = datetime(2026, 5, 4, 6, tzinfo=UTC)
SECRET = "whsec_c2VjcmV0LWtleS1vZi10aGUtdGVzdHM="


@tool(side_effects="none")
def review(day: str) -> str:
    """Review a day."""
    return f"reviewed {day}"


@tool(side_effects="none")
def report(text: str) -> str:
    """Report a review."""
    return f"report: {text}"


class Rig:
    """Two cribs over one SQLite file, as two processes have them."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(SIX - timedelta(minutes=30))
        self.store = f"sqlite:///{folder / 'crib.db'}"
        self.cribs = [self._crib(), self._crib()]

    def _crib(self) -> Crib:
        crib = Crib(self.store, clock=self.clock, environment={"TOOLCRIB_MASTER_KEYS": MASTER_KEYS})
        crib.add(review, report)
        return crib

    @property
    def crib(self) -> Crib:
        return self.cribs[0]

    async def open(self) -> None:
        for crib in self.cribs:
            await crib.open()
        await self.crib.refresh()
        await self.crib.accounts.save(ServiceAccount(name="robot", grants=("ai://tools/*", "ai://secrets/*")))
        await self.crib.secrets.set("HOOK", SECRET)

    async def close(self) -> None:
        for crib in self.cribs:
            await crib.close()

    async def restart(self, number: int) -> None:
        """Another process in place of one."""
        await self.cribs[number].close()
        self.cribs[number] = self._crib()
        await self.cribs[number].open()

    async def drive(self) -> None:
        """Drive what is queued."""
        await self.crib.recover()

    async def outputs(self) -> list[Any]:
        runs = await self.crib.store.journal.runs("default", made_by="account:robot", limit=1000)
        return sorted(run.output for run in runs)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncGenerator[Rig]:
    rig = Rig(tmp_path)
    await rig.open()
    yield rig
    await rig.close()


def daily(**changes: Any) -> TriggerDefinition:
    made = TriggerDefinition(
        name="daily",
        when=CronSource(cron="0 6 * * *"),
        start="review",
        input={"day": "${event.scheduled_at}"},
        account="robot",
    )
    return made.model_copy(update=changes)


def hook(**changes: Any) -> TriggerDefinition:
    source = WebhookSource(secret="${secret:HOOK}")
    body = {"day": "${event.body.day}"}
    made = TriggerDefinition(name="hook", when=source, start="review", input=body, account="robot", overlap="allow")
    return made.model_copy(update=changes)


def after(**changes: Any) -> TriggerDefinition:
    source = RunEndSource(tool="review")
    body = {"text": "${event.output}"}
    made = TriggerDefinition(name="after", when=source, start="report", input=body, account="robot", overlap="allow")
    return made.model_copy(update=changes)


async def send(rig: Rig, body: object, event_id: str, *, number: int = 0) -> TriggerStart:
    data = json.dumps(body).encode()
    headers = sign("standard", SECRET, data, event_id=event_id, at=rig.clock.now())
    return await rig.cribs[number].triggers.receive("hook", headers, data)


@pytest.mark.requirement("triggers.once")
async def test_a_time_starts_its_run_once_in_whichever_process(rig: Rig):
    await rig.crib.triggers.save(daily())
    assert (await rig.crib.triggers.state("daily")).next_at == SIX
    assert await rig.crib.triggers.start_due() == []

    rig.clock.advance(1801)
    first, second = [await crib.triggers.start_due() for crib in rig.cribs]
    await rig.drive()

    assert [start.outcome for start in (*first, *second)] == ["started"]
    assert await rig.outputs() == ["reviewed 2026-05-04T06:00:00+00:00"]
    state = await rig.cribs[1].triggers.state("daily")
    assert (state.last_at, state.last_status, state.started) == (SIX, "completed", 1)
    assert state.next_at == SIX + timedelta(days=1)


@pytest.mark.requirement("triggers.once")
@pytest.mark.parametrize("seed", range(6))
async def test_restarts_and_downtime_start_each_time_once(rig: Rig, seed: int):
    chance = random.Random(seed)
    source = CronSource(cron="*/10 * * * *", catch_up="all", max_catch_up=1000)
    await rig.crib.triggers.save(daily(when=source, overlap="allow"))
    begun = rig.clock.now()
    for _ in range(40):
        match chance.randrange(5):
            case 0:
                await rig.restart(chance.randrange(2))
            case 1:
                rig.clock.advance(chance.uniform(0, 7200))
            case 2:
                rig.clock.advance(chance.uniform(0, 300))
            case _:
                await chance.choice(rig.cribs).triggers.start_due()
    await rig.crib.triggers.start_due()
    await rig.drive()

    passed: list[str] = []
    moment = begun + timedelta(minutes=10 - begun.minute % 10)
    while moment <= rig.clock.now():
        passed.append(f"reviewed {moment.isoformat()}")
        moment += timedelta(minutes=10)
    assert await rig.outputs() == passed


@pytest.mark.requirement("triggers.once")
async def test_a_process_that_dies_before_it_notes_a_start_starts_nothing_twice(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
):
    await rig.crib.triggers.save(daily())
    rig.clock.advance(1801)
    triggers = rig.crib.triggers

    async def die(*_: object) -> None:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(triggers, "_keep", die)
    with pytest.raises(Unavailable):
        await triggers.start_due()
    [start] = await rig.cribs[1].triggers.start_due()
    await rig.drive()

    assert start.outcome == "known"
    assert len(await rig.outputs()) == 1
    assert (await rig.cribs[1].triggers.state("daily")).last_run_id == start.run_id


@pytest.mark.requirement("triggers.once")
async def test_another_process_takes_over_when_the_lease_of_a_dead_one_ends(rig: Rig):
    await rig.crib.triggers.save(daily())
    now = rig.clock.now()
    ends = now + timedelta(minutes=31)
    key = "trigger-lease/default/daily"
    await rig.crib.store.cache.add(key, {}, realm="default", made_by="dead", now=now, expires_at=ends)
    rig.clock.advance(1801)
    assert await rig.crib.triggers.start_due() == []
    with pytest.raises(Unavailable, match="is busy"):
        await rig.crib.triggers.fire("daily")

    rig.clock.advance(60)
    assert [start.outcome for start in await rig.crib.triggers.start_due()] == ["started"]


@pytest.mark.requirement("triggers.overlap")
async def test_while_a_run_goes_on_the_next_is_left_out_started_or_kept(rig: Rig):
    every = CronSource(cron="*/10 * * * *", catch_up="all")
    for overlap in ("skip", "allow", "queue"):
        await rig.crib.triggers.save(daily(name=overlap, when=every, overlap=overlap))
    for _ in range(3):
        rig.clock.advance(600)
        await rig.crib.triggers.start_due()

    states = [await rig.crib.triggers.state(name) for name in ("skip", "allow", "queue")]
    assert [(state.started, state.skipped) for state in states] == [(1, 2), (3, 0), (1, 0)]
    for _ in range(3):
        await rig.drive()
        await rig.crib.triggers.start_due()
    assert (await rig.crib.triggers.state("queue")).started == 3


@pytest.mark.requirement("triggers.manage")
async def test_a_paused_trigger_starts_nothing_and_catches_nothing_up(rig: Rig):
    await rig.crib.triggers.save(daily(when=CronSource(cron="*/10 * * * *", catch_up="all")))
    await rig.crib.triggers.pause("daily")
    rig.clock.advance(3600)
    assert await rig.cribs[1].triggers.start_due() == []
    assert (await rig.crib.triggers.state("daily")).next_at is None

    await rig.crib.triggers.resume("daily")
    assert await rig.cribs[1].triggers.start_due() == []
    rig.clock.advance(600)
    assert len(await rig.cribs[1].triggers.start_due()) == 1

    assert [trigger.name for trigger in await rig.crib.triggers.list()] == ["daily"]
    await rig.crib.triggers.remove("daily")
    with pytest.raises(NotFound):
        await rig.crib.triggers.state("daily")
    rig.clock.advance(600)
    assert await rig.cribs[1].triggers.start_due() == []


@pytest.mark.requirement("triggers.manage")
async def test_a_trigger_is_fired_by_hand(rig: Rig):
    await rig.crib.triggers.save(daily(input={"day": "${event.day}"}, enabled=False))

    first = await rig.crib.triggers.fire("daily", {"day": "Monday"})
    second = await rig.crib.triggers.fire("daily", {"day": "Tuesday"})
    failed = await rig.crib.triggers.fire("daily", {})
    await rig.drive()

    assert [start.outcome for start in (first, second, failed)] == ["started", "started", "failed"]
    assert await rig.outputs() == ["reviewed Monday", "reviewed Tuesday"]
    assert "day" in ((await rig.crib.triggers.state("daily")).problem or "")


@pytest.mark.requirement("triggers.run_end")
async def test_the_end_of_a_run_starts_another_with_its_output(rig: Rig):
    await rig.crib.call("review", {"day": "before"})
    rig.clock.advance(1)
    await rig.crib.triggers.save(after())
    assert await rig.crib.triggers.start_due() == []

    await rig.crib.call("review", {"day": "Monday"})
    await rig.cribs[1].call("review", {"day": "Tuesday"})
    await rig.crib.call("review", {"day": 5})
    started = [len(await crib.triggers.start_due()) for crib in rig.cribs]
    await rig.drive()

    assert started == [2, 0]
    assert await rig.outputs() == ["report: reviewed Monday", "report: reviewed Tuesday"]
    await rig.restart(0)
    assert await rig.crib.triggers.start_due() == []


@pytest.mark.requirement("triggers.run_end")
async def test_a_run_whose_end_becomes_visible_late_is_not_missed(rig: Rig):
    await rig.crib.triggers.save(after())
    slow = await rig.crib.submit("review", {"day": "slow"})
    rig.clock.advance(5)
    await rig.crib.call("review", {"day": "fast"})
    assert len(await rig.crib.triggers.start_due()) == 1
    rig.clock.elapsed -= 3  # the clock of another machine is late
    await rig.cribs[1].resume(slow)
    rig.clock.advance(3)

    assert len(await rig.crib.triggers.start_due()) == 1


@pytest.mark.requirement("triggers.run_end", "triggers.overlap")
async def test_ends_wait_in_turn_for_the_run_before(rig: Rig):
    await rig.crib.triggers.save(after(overlap="queue"))
    for day in ("Monday", "Tuesday"):
        await rig.crib.call("review", {"day": day})
        rig.clock.advance(1)
    counts: list[int] = []
    for _ in range(3):
        counts.append(len(await rig.crib.triggers.start_due()))
        await rig.drive()

    assert counts == [1, 1, 0]
    assert await rig.outputs() == ["report: reviewed Monday", "report: reviewed Tuesday"]


@pytest.mark.requirement("triggers.run_end")
async def test_many_ends_are_read_page_by_page(rig: Rig):
    await rig.crib.triggers.save(after())
    for number in range(120):
        await rig.crib.call("review", {"day": str(number)})

    assert len(await rig.crib.triggers.start_due()) == 120


@pytest.mark.requirement("triggers.webhook", "triggers.once")
async def test_a_webhook_starts_its_run_once_per_event(rig: Rig):
    await rig.crib.triggers.save(hook())

    sent = [await send(rig, {"day": "Monday"}, "msg_1", number=number) for number in (0, 1)]
    other = await send(rig, {"day": "Tuesday"}, "msg_2")
    await rig.drive()

    assert [start.outcome for start in (*sent, other)] == ["started", "known", "started"]
    assert sent[0].run_id == sent[1].run_id
    assert await rig.outputs() == ["reviewed Monday", "reviewed Tuesday"]
    run = await rig.crib.store.journal.run(other.run_id or "")
    assert (run.request.tainted, run.request.session_id) == (True, "trigger:hook")


@pytest.mark.requirement("triggers.webhook")
async def test_a_webhook_that_is_not_signed_starts_nothing_and_hears_nothing(rig: Rig):
    await rig.crib.triggers.save(hook())
    await rig.crib.triggers.save(hook(name="keyless", when=WebhookSource(secret="${secret:MISSING}")))
    await rig.crib.triggers.save(daily())
    refusals: set[str] = set()
    for name in ("hook", "keyless", "daily", "unknown"):
        with pytest.raises(Unauthenticated) as refused:
            await rig.crib.triggers.receive(name, {}, b"{}")
        refusals.add(str(refused.value))

    assert len(refusals) == 1
    await rig.crib.triggers.pause("hook")
    with pytest.raises(Unauthenticated):
        await rig.crib.triggers.receive("hook", {}, b"{}")
    with pytest.raises(Conflict, match="is paused"):
        await send(rig, {"day": "Monday"}, "msg_1")
    assert await rig.outputs() == []


@pytest.mark.requirement("triggers.webhook")
async def test_a_body_is_read_as_json_or_as_text(rig: Rig):
    await rig.crib.triggers.save(hook(input={"day": "${event.body}"}))
    for body in (b"Monday", b'"Tuesday"'):
        headers = sign("standard", SECRET, body, event_id=body.decode(), at=rig.clock.now())
        await rig.crib.triggers.receive("hook", headers, body)
    headers = sign("standard", SECRET, b"\xff", event_id="x", at=rig.clock.now())
    with pytest.raises(ToolcribError, match="neither JSON nor UTF-8"):
        await rig.crib.triggers.receive("hook", headers, b"\xff")
    await rig.drive()

    assert await rig.outputs() == ["reviewed Monday", "reviewed Tuesday"]


@pytest.mark.requirement("triggers.account")
async def test_a_run_acts_as_the_account_and_who_saves_needs_the_grant(rig: Rig):
    await rig.crib.accounts.save(ServiceAccount(name="nothing"))
    await rig.crib.triggers.save(daily(account="nothing"))
    denied = await rig.crib.triggers.fire("daily")
    await rig.drive()
    run = await rig.crib.store.journal.run(denied.run_id or "")
    assert (run.made_by, run.status, run.error.code if run.error else None) == (
        "account:nothing",
        "failed",
        "POLICY_DENIED",
    )

    author = rig.crib.acting_as(Principal(id="ann", grants=("ai://tools/*", "ai://triggers/*")))
    with pytest.raises(PermissionDenied, match="needs the grant 'ai://accounts/robot/execute'"):
        await author.triggers.save(daily())
    with pytest.raises(PermissionDenied, match="would act as account 'nothing'"):
        await author.triggers.fire("daily")

    await rig.crib.accounts.save(ServiceAccount(name="nothing", enabled=False))
    assert "is disabled" in ((await rig.crib.triggers.fire("daily")).problem or "")


@pytest.mark.requirement("triggers.manage")
async def test_what_could_never_start_is_refused_when_it_is_saved(rig: Rig):
    refused: list[tuple[TriggerDefinition, type[ToolcribError], str]] = [
        (daily(start="reveiw"), NotFound, "reveiw"),
        (daily(account="nobody"), NotFound, "nobody"),
        (daily(when=CronSource(cron="6 o'clock")), InvalidDefinition, "five fields"),
        (daily(input={"day": "${event."}), ToolcribError, "never closed"),
        (after(when=RunEndSource(tool="nothing")), NotFound, "nothing"),
    ]
    for trigger, kind, message in refused:
        with pytest.raises(kind, match=message):
            await rig.crib.triggers.save(trigger)
    assert await rig.crib.triggers.list() == []


@pytest.mark.requirement("triggers.manage")
def test_a_trigger_that_starts_itself_or_lets_webhooks_wait_is_none():
    with pytest.raises(ValueError, match="would start itself at each of its ends"):
        TriggerDefinition(name="loop", when=RunEndSource(tool="review"), start="review@1", account="robot")
    with pytest.raises(ValueError, match="a webhook cannot wait"):
        TriggerDefinition(
            name="h", when=WebhookSource(secret="${env:X}"), start="review", account="robot", overlap="queue"
        )


@pytest.mark.requirement("triggers.once")
def test_the_ids_of_occurrences_differ_by_realm_trigger_and_kind():
    from toolcrib.crib.runs.triggers import Occurrence

    found = Occurrence("cron", "x", SIX, {})
    ids = {
        run_id_of("a", "b", found),
        run_id_of("ab", "", found),
        run_id_of("a", "c", found),
        run_id_of("a", "b", Occurrence("manual", "x", SIX, {})),
    }
    assert len(ids) == 4
