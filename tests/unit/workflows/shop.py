"""A small shop whose tools write down what they did, and fail as long as a test wants them to."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from toolcrib import Crib, ToolContext, tool
from toolcrib.contracts import Json, JsonObject, ToolRevision
from toolcrib.contracts.workflows import StepInstance, WorkflowDefinition, WorkflowInstance


@tool(side_effects="reads", runs_on="client")
async def show() -> JsonObject:
    """What a client shows."""
    return {}


@tool(side_effects="reads", untrusted=True)
async def read_mail() -> JsonObject:
    """What somebody wrote."""
    return {"text": "hello"}


class Shop:
    """What has been done, and what cannot be done at the moment."""

    def __init__(self) -> None:
        self.done: list[str] = []
        """`TOOL ARGUMENT`, in order: each an effect outside."""
        self.keys: dict[str, list[str]] = {}
        """The idempotency keys of each effect and of each attempt that failed."""
        self.broken: set[str] = set()
        """`TOOL` or `TOOL ARGUMENT` that fails."""
        self.once: set[str] = set()
        """`TOOL ARGUMENT` that fails once."""
        self.hanging: set[str] = set()
        """The same of what does not end."""
        self.reached = asyncio.Event()
        """Something hangs."""
        self.let_go = asyncio.Event()
        """What hangs fails."""
        self.after: str | None = None
        """An effect after which what hangs fails."""

    @property
    def twice(self) -> list[str]:
        """Effects that were had more than once."""
        return [effect for effect, times in Counter(self.done).items() if times > 1]

    async def act(self, name: str, argument: str, key: str = "") -> None:
        """Do something, or fail."""
        effect = f"{name} {argument}"
        self.keys.setdefault(effect, []).append(key)
        if {name, effect} & self.hanging:
            self.reached.set()
            await self.let_go.wait()
            raise ConnectionError
        if {name, effect} & self.broken or effect in self.once:
            self.once.discard(effect)
            msg = f"{effect} is not possible"
            raise RuntimeError(msg)
        self.done.append(effect)
        if effect == self.after:
            self.let_go.set()

    def add_to(self, crib: Crib, version: str = "1.0.0", **options: Any) -> None:
        """Add the tools.

        `reserve`, `charge`, `ship` and `refund` write, `look` reads, `pay` is idempotent, and a client does `show`.
        """
        writing = (self._tool(name, version=version, **options) for name in ("reserve", "charge", "ship", "refund"))
        crib.add(*writing, self._look(), self._pay(), show, read_mail)

    def _tool(self, name: str, **options: Any) -> Any:
        async def act(item: str, ctx: ToolContext, note: str = "") -> JsonObject:
            await self.act(name, item, ctx.idempotency_key)
            return {"item": item, "by": name, "note": note}

        act.__name__ = name
        act.__doc__ = f"To {name} an item."
        return tool(side_effects="writes", **options)(act)

    def _look(self) -> Any:
        @tool(side_effects="reads")
        async def look(item: str) -> JsonObject:
            """What there is of an item."""
            await self.act("look", item)
            return {"item": item, "left": 3}

        return look

    def _pay(self) -> Any:
        @tool(side_effects="writes", idempotent=True)
        async def pay(item: str, ctx: ToolContext) -> JsonObject:
            """Pay for an item; twice is once."""
            await self.act("pay", item, ctx.idempotency_key)
            return {"paid": item}

        return pay


def calls(name: str, tool: str, item: str = "${input.item}", **fields: Any) -> JsonObject:
    """A step that calls a tool of the shop."""
    return {"name": name, "tool": tool, "input": {"item": item}, **fields}


async def publish(crib: Crib, name: str, *steps: JsonObject, **fields: Any) -> ToolRevision:
    """Publish a workflow."""
    definition = WorkflowDefinition.model_validate({"name": name, "steps": steps, **fields})
    return (await crib.workflows.publish(definition)).tool


def statuses(instance: WorkflowInstance) -> Mapping[str, str]:
    """How the steps stand."""
    return {step.step: step.status for step in instance.steps}


def outputs(instance: WorkflowInstance) -> Mapping[str, Json]:
    """What the steps have put out."""
    return {step.step: step.output for step in instance.steps}


def step(instance: WorkflowInstance, name: str) -> StepInstance:
    """One step."""
    return next(each for each in instance.steps if each.step == name)


def reused(instance: WorkflowInstance) -> Sequence[str]:
    """Names of the steps that were taken over."""
    return [each.step for each in instance.steps if each.reused is not None]
