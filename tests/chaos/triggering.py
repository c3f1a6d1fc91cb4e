"""What a process does that has triggers: it takes webhooks, starts what is due, and drives the runs."""

import asyncio
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.chaos.crashing import CrashPoint, crashing
from tests.twins import ManualClock
from toolcrib import Crib, DefinitionOptions, ScriptedModel, tool
from toolcrib.contracts import (
    CronSource,
    Json,
    RunEndSource,
    ServiceAccount,
    TriggerDefinition,
    Unavailable,
    WebhookSource,
)
from toolcrib.core.triggers import sign
from toolcrib.infrastructure.store import open_store

BEGIN = datetime(2026, 5, 4, 6, tzinfo=UTC)
STEP = timedelta(minutes=10)
_SECRET = "whsec_c2VjcmV0LWtleS1vZi10aGUtdGVzdHM="


@tool(side_effects="none")
def report(text: str) -> str:
    """Report."""
    return text


def open_crib(folder: Path, now: datetime, point: CrashPoint | None = None) -> Crib:
    """A crib on the folder's database at a time; it dies at a point."""
    store = open_store(f"sqlite:///{folder / 'crib.db'}")
    crib = Crib(
        store if point is None else crashing(store, point),
        clock=ManualClock(now),
        models={"scripted:clerk": ScriptedModel(lambda _: "Done.", name="clerk")},
        environment={"TOOLCRIB_SECRET_HOOK": _SECRET},
        definitions=DefinitionOptions(released=("TOOLCRIB_SECRET_*",)),
    )
    crib.add(report)
    return crib


async def define(folder: Path) -> None:
    """Save an agent, a workflow, and a trigger of each kind."""
    async with open_crib(folder, BEGIN) as crib:
        await crib.accounts.save(ServiceAccount(name="robot", grants=("ai://*",)))
        crib.agent("clerk", model="scripted:clerk")
        text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        step = {"name": "said", "tool": "report", "input": {"text": "${input.text}"}}
        crib.workflow("flow", input_schema=text, steps=[step])
        await crib.refresh()
        every = CronSource(cron="*/10 * * * *", catch_up="all")
        for name, when, start, given in (
            ("times", every, "clerk", {"message": "${event.scheduled_at}"}),
            ("hook", WebhookSource(secret="${env:TOOLCRIB_SECRET_HOOK}"), "flow", {"text": "${event.body}"}),
            ("ends", RunEndSource(tool="clerk"), "report", {"text": "${event.run_id}"}),
        ):
            await crib.triggers.save(
                TriggerDefinition(name=name, when=when, start=start, input=given, account="robot", overlap="allow")
            )


async def work(folder: Path, round_number: int, hooks: list[str], point: CrashPoint | None) -> Json:
    """Take webhooks, some of them at once, start what is due, and drive what there is; the webhooks that were taken."""
    now = BEGIN + STEP * round_number
    async with open_crib(folder, now, point) as crib:

        async def take(event_id: str) -> str | None:
            body = json.dumps(event_id).encode()
            headers = sign("standard", _SECRET, body, event_id=event_id, at=now)
            with suppress(Unavailable):
                return str((await crib.triggers.receive("hook", headers, body)).run_id)
            return None

        taken: list[Any] = await asyncio.gather(*map(take, hooks))
        taken = [run or await take(event_id) for run, event_id in zip(taken, hooks, strict=True)]  # the first were many
        for _ in range(2):
            await crib.triggers.start_due()
            await crib.recover()
        return taken
