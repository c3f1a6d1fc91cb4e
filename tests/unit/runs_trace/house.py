"""A crib in memory whose time stands still unless a tool lets it pass, and events written by hand."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import (
    OWNER,
    CallFinished,
    CallStarted,
    Event,
    GuardDecision,
    RunEvent,
    RunRequest,
    RunStarted,
    ToolEnvelope,
)
from toolcrib.llm import Script

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
MODEL = "scripted:model"


class StillClock:
    """Time passes through `advance` only; whoever sleeps gives others a turn."""

    def __init__(self) -> None:
        self.elapsed = 0.0

    def now(self) -> datetime:
        return AT + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)

    def advance(self, seconds: float) -> None:
        self.elapsed += seconds


class House:
    """A crib with three tools: one that reads, one that asks before it writes, one that a client performs."""

    def __init__(self, script: Script, *, models: Mapping[str, ScriptedModel] | None = None) -> None:
        self.clock = StillClock()
        self.model = ScriptedModel(script, name="model")
        self.crib = Crib("memory://", models={MODEL: self.model, **(models or {})}, clock=self.clock)
        clock = self.clock

        @tool(side_effects="reads")
        def search(company: str) -> list[dict[str, str]]:
            """Deals of a company."""
            clock.advance(0.456)
            if company == "Broken":
                raise ValueError("the index is broken")
            return [{"id": f"d{number}", "company": company} for number in range(3)]

        @tool(side_effects="writes", requires_confirmation=True)
        def delete(ids: list[str]) -> dict[str, int]:
            """Delete deals."""
            clock.advance(1.1)
            return {"deleted": len(ids)}

        @tool(side_effects="writes", runs_on="client")
        def show(text: str) -> dict[str, str]:
            """Show a text on the client's screen."""
            return {"text": text}

        self.crib.add(search, delete, show)

    def agentic(self, **options: Any) -> Any:
        tools = options.pop("tools", ["search", "delete", "show"])
        return self.crib.agentic_tool(options.pop("name", "deals"), mode="agentic", model=MODEL, tools=tools, **options)


def written(*events: Event, seconds: Iterable[float] = ()) -> list[RunEvent]:
    """A journal of these events after the run's start, at given seconds from then on."""
    request = RunRequest(
        kind="agentic", tool="deals@1.0.0", content_hash="sha256:0", input={"task": "look"}, principal=OWNER
    )
    times = [0.0, *seconds]
    return [
        RunEvent(
            run_id="run_1",
            number=number,
            at=AT + timedelta(seconds=times[number - 1] if number <= len(times) else times[-1]),
            realm=OWNER.realm,
            made_by=OWNER.id,
            event=event,
        )
        for number, event in enumerate((RunStarted(request=request), *events), start=1)
    ]


def started(position: str = "t1.c1", *, attempt: int = 1) -> CallStarted:
    """The intent of a call."""
    return CallStarted(
        position=position,
        call_id="sha256:1",
        name="search",
        version="1.0.0",
        content_hash="sha256:2",
        side_effects="reads",
        input={"company": "Acme"},
        idempotency_key=f"run_1/{position}",
        decision=GuardDecision(outcome="allow", rule="allowed"),
        attempt=attempt,
    )


def finished(position: str = "t1.c1") -> CallFinished:
    """Its outcome."""
    envelope = ToolEnvelope(
        call_id="sha256:1",
        name="search",
        version="1.0.0",
        position=position,
        status="success",
        output=[],
        t_start=AT,
        t_end=AT + timedelta(seconds=2),
        attempts=1,
    )
    return CallFinished(position=position, envelope=envelope)
