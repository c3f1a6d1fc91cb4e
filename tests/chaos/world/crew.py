"""The crew: tools of every kind of safety, agents whose models follow plans, and a workflow that waits for people.

What a run does is a function of its task's number, so that a judge knows what must have been done: `plan` tells the
calls of each turn, and how a run must end follows from the outcomes that its journal has.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from tests.chaos.world.book import Book
from tests.chaos.world.place import Place
from toolcrib import Crib, ScriptedModel, SharingOptions, ToolContext, tool
from toolcrib.contracts import Json, JsonObject, Limits
from toolcrib.infrastructure.store import Store
from toolcrib.kinds.python.functions import FunctionTool
from toolcrib.llm import Message, Request, ScriptedAnswer, ToolCall, ToolResult

TURNS: Final = 8
LIMITS: Final = Limits(max_iterations=50, max_tool_calls=500, timeout_s=3600)
UNSAFE: Final = frozenset({"post", "sign"})
"""Nothing can tell afterwards whether it took effect."""
WRITES: Final = frozenset({"put", "charge", "pay"}) | UNSAFE
HELPER: Final[Sequence[Sequence[str]]] = (("put", "post", "look"), ("pay", "charge"))
"""The plan of the nested agent."""
BOSS: Final[Sequence[Sequence[str]]] = (("helper", "put"), ("sign", "label"))
"""The plan of one that calls it."""
ITEMS: Final = 4
SPREAD: Final[JsonObject] = {
    "name": "spread",
    "steps": [
        {"name": "puts", "tool": "put", "for_each": {"items": "${input.items}", "max_concurrency": 3}},
        {"name": "paid", "tool": "pay"},
        {"name": "letter", "tool": "post", "on_error": "continue"},
        {"name": "rests", "wait": {"seconds": 0.1}},
        {"name": "hears", "wait": {"signal": "news"}},
        {"name": "asked", "approval": {"message": "go on?"}, "depends_on": ["paid"]},
        {"name": "last", "tool": "charge", "depends_on": ["puts", "letter", "rests", "hears", "asked"]},
    ],
    "input_schema": {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "integer"}}}},
    "output": {"puts": "${puts.length}"},
}
SPREAD_INPUT: Final[JsonObject] = {"items": list(range(ITEMS))}
SPREAD_CALLS: Final[Mapping[str, int]] = {"put": ITEMS, "pay": 1, "post": 1, "charge": 1}


def plan(number: int) -> Sequence[Sequence[str]]:
    """The calls of each turn of a clerk's run."""
    dice = Random(number)
    kinds = ["look", "put", "charge", "pay", *(["post"] if number % 2 else [])]
    turns = [dice.choices(kinds, k=3) for _ in range(TURNS)]
    for every, place, special in ((3, 2, "sign"), (4, 4, "label"), (5, 6, "helper")):
        if number % every == 0:
            turns[place][0] = special
    return turns


async def _act(book: Book, name: str, context: ToolContext) -> Json:
    """What every tool does: it begins, takes effect, and ends, and it takes a moment from each to the next."""
    dice, key = Random(f"{context.idempotency_key}{context.attempt}"), context.idempotency_key
    book.write("begun", name, key)
    await asyncio.sleep(dice.uniform(0, 0.04))
    if name == "charge":
        book.write_once(name, key)
    else:
        book.write("effect", name, key)
    await asyncio.sleep(dice.uniform(0, 0.04))
    book.write("ended", name, key)
    return {"did": name}


def wanted(tool: str, asked: Json) -> Counter[str]:
    """The calls of a run that is not disturbed, by tool."""
    match tool:
        case "spread":
            return Counter(SPREAD_CALLS)
        case "helper" | "boss" | "clerk":
            return Counter(name for turn in _turns(asked["task"]) for name in turn)
        case _:
            return Counter([tool])


def _turns(task: str) -> Sequence[Sequence[str]]:
    match task:
        case "help":
            return HELPER
        case "lead":
            return BOSS
        case _:
            return plan(int(task))


def tools(book: Book) -> list[FunctionTool[..., Json]]:
    """One tool of each kind."""

    @tool(side_effects="reads")
    async def look(context: ToolContext) -> Json:
        """Look something up."""
        return await _act(book, "look", context)

    @tool(side_effects="writes", idempotent=True)
    async def put(context: ToolContext) -> Json:
        """Set something to a value."""
        return await _act(book, "put", context)

    @tool(side_effects="writes", idempotent=True)
    async def charge(context: ToolContext) -> Json:
        """Charge a card at a system that knows the key."""
        return await _act(book, "charge", context)

    @tool(side_effects="writes")
    async def post(context: ToolContext) -> Json:
        """Send a letter, which cannot be taken back."""
        return await _act(book, "post", context)

    @tool(side_effects="writes", reconcile="was_paid", timeout_s=3)
    async def pay(context: ToolContext) -> Json:
        """Pay a bill; afterwards the bank can be asked whether it was paid."""
        return await _act(book, "pay", context)

    @tool(side_effects="reads")
    async def was_paid(idempotency_key: str) -> Json:
        """Ask the bank."""
        return {"found": book.has("effect", "pay", idempotency_key), "output": {"did": "pay"}}

    @tool(side_effects="writes", requires_confirmation=True)
    async def sign(context: ToolContext) -> Json:
        """Sign a contract, once a person agrees."""
        return await _act(book, "sign", context)

    @tool(side_effects="reads", runs_on="client")
    async def label() -> Json:
        """Prepare a label; the client prints it."""
        return {"label": "fragile"}

    return [look, put, charge, post, pay, was_paid, sign, label]


async def _follow_plan(request: Request) -> ScriptedAnswer:
    """The next turn of the plan that the task names, or what came of it; a function of the conversation alone."""
    await asyncio.sleep(0.02)
    turns = _turns(request.messages[0].text)
    turn = sum(message.role == "assistant" for message in request.messages)
    if turn == len(turns):
        parts = [part for message in request.messages for part in message.parts]
        return told(sum(isinstance(part, ToolResult) and part.is_error for part in parts))
    asks = [_asked(turn, index, name) for index, name in enumerate(turns[turn])]
    return Message("assistant", tuple(asks))


def told(failed: int) -> str:
    """The answer of an agent of which so many calls have no output."""
    return f"done, but for {failed}"


def _asked(turn: int, index: int, name: str) -> ToolCall:
    return ToolCall(f"{turn}.{index}", name, '{"task": "help"}' if name == "helper" else "{}")


def crib_at(place: Place, store: Store | None = None) -> Crib:
    """A crib at a place that has what its runs need."""
    model = ScriptedModel(_follow_plan, name="clerk")
    models = {"scripted:clerk": model}
    crib = Crib(
        store or place.store,
        models=models,
        sharing=SharingOptions(lease_s=place.lease_s, restate=place.restate),
        clock=place.clock,
    )
    crib.add(*tools(place.book))
    named = ["look", "put", "charge", "post", "pay"]
    crib.agentic_tool("helper", mode="agentic", model="scripted:clerk", tools=named, limits=LIMITS)
    named += ["sign", "label", "helper"]
    crib.agentic_tool("boss", mode="agentic", model="scripted:clerk", tools=named, limits=LIMITS)
    crib.agentic_tool("clerk", mode="agentic", model="scripted:clerk", tools=named, limits=LIMITS)
    return crib
