"""Agents inside of agents, up to five deep, of which the innermost calls a tool that waits for a person.

Every piece is a process's view of one store: it can be closed, and another one goes on.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tests.unit.runs.house import StandingClock
from toolcrib import Crib, ScriptedModel, ToolContext, tool
from toolcrib.contracts import Approval, Json, Principal
from toolcrib.kinds.python.functions import FunctionTool
from toolcrib.llm import Message, Request, ScriptedAnswer, ToolCall, ToolResult

Action: TypeAlias = Literal["approve", "edit", "reject", "expire"]
ACTIONS: tuple[Action, ...] = ("approve", "edit", "reject", "expire")

BOSS = Principal(id="boss")
EXPIRES_S = 600.0
MODEL = "scripted:chain"


@dataclass
class Ledger:
    """What has been paid, beside the journal: a line per payment."""

    file: Path

    def pay(self, usd: int, key: str) -> None:
        """Write a payment down."""
        with self.file.open("a") as lines:
            lines.write(json.dumps([usd, key]) + "\n")

    def paid(self) -> list[int]:
        """What was paid, in order."""
        if not self.file.exists():
            return []
        return [json.loads(line)[0] for line in self.file.read_text().splitlines()]


def _answer(request: Request) -> ScriptedAnswer:
    """Call the one tool once per task, and then say what came of it."""
    said = [part for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
    if said:
        return " | ".join(result.text for result in said)
    calls: list[ToolCall] = []
    for number, offered in enumerate(request.tools.tools, start=1):
        arguments = {"usd": 5} if offered.name == "pay" else {"message": "Pay what we owe."}
        calls.append(ToolCall(str(number), offered.name, json.dumps(arguments)))
    return Message("assistant", tuple(calls))


def _pay(ledger: Ledger, usage: str) -> FunctionTool[..., Json]:
    @tool(side_effects="writes", requires_confirmation=True, confirmation_expires_s=EXPIRES_S, usage=usage)
    async def pay(usd: int, context: ToolContext) -> Json:
        """Pay an amount, once a person agrees."""
        ledger.pay(usd, context.idempotency_key)
        return {"paid": usd}

    return pay


@dataclass
class Chain:
    """A store with agents `l1` to `l{depth}`, each with the next one as its delegate.

    Args:
        folder: Of store and ledger.
        depth: How many agents; the last has `pay`.
        leaves: How many innermost agents the one before the last has.
        in_memory: Keep the store in memory: nothing of it survives its crib.
    """

    folder: Path
    depth: int
    leaves: int = 1
    in_memory: bool = False
    clock: StandingClock = field(default_factory=StandingClock)

    @property
    def ledger(self) -> Ledger:
        """What was paid."""
        return Ledger(self.folder / "ledger")

    @property
    def url(self) -> str:
        """Of the store."""
        return "memory://" if self.in_memory else f"sqlite:///{self.folder}/crib.db"

    def crib(self, *, clock: StandingClock | None = None, usage: str = "") -> Crib:
        """A process that has all that the runs need; `usage` makes another revision of the tool."""
        crib = Crib(self.url, models={MODEL: ScriptedModel(_answer, name="chain")}, clock=clock or self.clock)
        crib.add(_pay(self.ledger, usage))
        last = [f"l{self.depth}{mark}" for mark in ("", "b", "c")[: self.leaves]]
        for name in last:
            crib.agent(name, model=MODEL, tools=["pay"], description="Pays.")
        for level in range(self.depth - 1, 0, -1):
            below = last if level == self.depth - 1 else [f"l{level + 1}"]
            crib.agent(f"l{level}", model=MODEL, delegates=tuple(below), description="Has others pay.")
        return crib


async def begin(crib: Crib) -> str:
    """Ask the outermost agent; its run waits."""
    result = await crib.invoke("l1", {"message": "Pay what we owe."})
    assert result.summary.status == "awaiting_approval", result.summary
    return result.run_id


async def waiting(crib: Crib) -> tuple[Approval, ...]:
    """The inbox."""
    return (await crib.acting_as(BOSS).approvals.page()).items


async def act(crib: Crib, approval: Approval, action: Action) -> None:
    """What somebody does about a call that waits; who lets it expire does nothing."""
    decide: Callable[..., Any] = crib.acting_as(BOSS).approvals.decide
    match action:
        case "approve":
            await decide(approval.approval_id, approve=True)
        case "edit":
            await decide(approval.approval_id, approve=True, edited_input={"usd": 3})
        case "reject":
            await decide(approval.approval_id, approve=False, reason="too much")
        case "expire":
            pass


PAID: dict[Action, list[int]] = {"approve": [5], "edit": [3], "reject": [], "expire": []}
"""What is paid in the end."""
SAID: dict[Action, str] = {
    "approve": '"paid":5',
    "edit": '"paid":3',
    "reject": "a person rejected the call: too much",
    "expire": "nobody approved the call in time",
}
"""What the outermost agent hears, through all that are between."""


# Jobs of processes of their own ---------------------------------------------------------------------------------------


async def begin_elsewhere(folder: Path, depth: int) -> Json:
    """Ask, in a process that ends then."""
    async with Chain(folder, depth).crib() as crib:
        return await begin(crib)


async def act_elsewhere(folder: Path, action: Action) -> Json:
    """Decide on all that waits, in a process that has no tools and no models."""
    async with Crib(f"sqlite:///{folder}/crib.db", clock=StandingClock()) as crib:
        found = await waiting(crib)
        for approval in found:
            await act(crib, approval, action)
        return len(found)


async def end_elsewhere(folder: Path, depth: int, run_id: str, late: bool) -> Json:
    """Carry the outermost run on, in a process that begins then; `late` after the time to decide is over."""
    clock = StandingClock()
    clock.advance(EXPIRES_S + 60 if late else 0)
    async with Chain(folder, depth).crib(clock=clock) as crib:
        result = await crib.resume(run_id)
        return result.summary.model_dump(mode="json")
