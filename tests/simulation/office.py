"""The system under simulation: cribs of several processes with tools of every kind of safety, and a ledger outside.

What a run does is given by its kind. How long everything takes, what fails and what people say, the schedule decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Final

import orjson

from tests.simulation.processes import Process
from tests.simulation.simulated_loop import OWNER
from toolcrib import Crib, ScriptedModel, ToolContext, tool
from toolcrib.contracts import Json, JsonObject, Limits
from toolcrib.llm import Message, Request, ScriptedAnswer, ToolCall

STORE: Final = "crib.db"
UNSAFE: Final = frozenset({"post", "sign"})
"""Nothing can tell afterwards whether it took effect."""
ONCE: Final = frozenset({"pay"}) | UNSAFE
"""May take effect once at most."""
WRITES: Final = frozenset({"put"}) | ONCE
LIMITS: Final = (200, 12, 6)
"""Of tool calls: for all that a run makes, and for fewer."""

_LONG_S: Final = 604_800.0
"""More seconds than any clock is set forward."""

PLANS: Final[Mapping[str, list[list[tuple[str, JsonObject]]]]] = {
    "helper": [
        [("look", {"n": 1}), ("put", {"n": 4}), ("look", {"n": 2})],
        [("look", {"n": 1}), ("pay", {"n": 5})],
    ],
    "boss": [
        [("helper", {"task": "helper"}), ("look", {"n": 1}), ("put", {"n": 6}), ("look", {"n": 7})],
        [("sign", {"n": 8}), ("label", {}), ("look", {"n": 7}), ("post", {"n": 9})],
    ],
    "pair": [
        [("helper", {"task": "helper"}), ("helper", {"task": "helper"}), ("read", {"n": 3})],
    ],
}
"""The calls of each turn of an agent, by the task that it is given."""


@dataclass(frozen=True)
class Line:
    """An effect."""

    tool: str
    key: str
    process: str


@dataclass
class Ledger:
    """What has happened outside of all processes."""

    lines: list[Line] = field(default_factory=list[Line])

    def write(self, process: Process, name: str, key: str) -> None:
        """Note an effect; a dead process has none."""
        if not process.dead:
            self.lines.append(Line(name, key, process.name))

    def has(self, name: str, key: str) -> bool:
        """Whether an effect has taken place."""
        return any((line.tool, line.key) == (name, key) for line in self.lines)


def _me() -> Process:
    """The process that this code is part of."""
    process = OWNER.get()
    assert isinstance(process, Process)
    return process


async def _act(name: str, context: ToolContext, n: int) -> Json:
    process = _me()
    await process.take(name)
    if n % 5 == 3 and process.fails(name):
        raise ConnectionError("the line is down")
    ledger = process.outside
    assert isinstance(ledger, Ledger)
    ledger.write(process, name, context.idempotency_key)
    await process.take(f"{name} answer")
    return {"did": name, "n": n}


@tool(side_effects="none", cache="ttl", cache_ttl_s=60)
async def look(n: int) -> int:
    """Look a number up."""
    await _me().take("look")
    return n // 2


@tool(side_effects="reads", cost_usd_per_call=Decimal("0.01"))
async def read(n: int) -> int:
    """Read a number."""
    await _me().take("read")
    if _me().fails("read"):
        raise ConnectionError("the line is down")
    return n


@tool(side_effects="writes", idempotent=True, cost_usd_per_call=Decimal("0.01"))
async def put(n: int, context: ToolContext) -> Json:
    """Set something to a value."""
    return await _act("put", context, n)


@tool(side_effects="writes")
async def post(n: int, context: ToolContext) -> Json:
    """Send a letter, which cannot be taken back."""
    return await _act("post", context, n)


@tool(side_effects="writes", reconcile="was_paid", timeout_s=4)
async def pay(n: int, context: ToolContext) -> Json:
    """Pay a bill; afterwards the bank can be asked whether it was paid."""
    return await _act("pay", context, n)


@tool(side_effects="reads")
async def was_paid(idempotency_key: str) -> Json:
    """Ask the bank."""
    process = _me()
    await process.take("was_paid")
    assert isinstance(process.outside, Ledger)
    return {"found": process.outside.has("pay", idempotency_key), "output": {"did": "pay"}}


@tool(side_effects="writes", requires_confirmation=True)
async def sign(n: int, context: ToolContext) -> Json:
    """Sign a contract, once a person agrees."""
    return await _act("sign", context, n)


@tool(side_effects="reads", runs_on="client")
async def label() -> Json:
    """Prepare a label; the client prints it."""
    return {"label": "fragile"}


async def _follow_plan(request: Request) -> ScriptedAnswer:
    await _me().take("model")
    turns = PLANS.get(request.messages[0].text, [])  # none where the agent is asked for its answer alone
    turn = sum(message.role == "assistant" for message in request.messages)
    if turn >= len(turns):
        return "done"
    calls = (ToolCall(f"{turn}.{n}", name, _json(given)) for n, (name, given) in enumerate(turns[turn]))
    return Message("assistant", tuple(calls))


def _each(name: str, called: str, number: str, **more: Json) -> JsonObject:
    """A step that calls a tool for each item, four at a time."""
    each: JsonObject = {"items": "${input.items}", "max_concurrency": 4, "on_item_error": "continue"}
    return {"name": name, "tool": called, "input": {"n": number}, "on_error": "continue", "for_each": each, **more}


_ITEMS: Final[JsonObject] = {"type": "object", "properties": {"items": {"type": "array"}}}
_FAN: Final[list[JsonObject]] = [
    _each("puts", "put", "${item}", retry={"count": 2, "base_s": 0.1}),
    _each("cached", "look", "${item % 3}"),
    _each("looks", "look", "${item}"),
    _each("reads", "read", "${item}"),
]
_DESK: Final[list[JsonObject]] = [
    {"name": "asked", "approval": {"message": "go on?"}},
    {"name": "rests", "wait": {"seconds": 3}},
    {"name": "hears", "wait": {"signal": "news"}},
    {"name": "paid", "tool": "pay", "input": {"n": 1}, "on_error": "continue"},
    {"name": "letter", "tool": "post", "input": {"n": 2}, "on_error": "continue", "depends_on": ["asked"]},
    {"name": "known", "tool": "look", "input": {"n": 1}, "depends_on": ["rests"]},
    {"name": "again", "tool": "look", "input": {"n": 1}, "depends_on": ["known", "hears"]},
]
_NEST: Final[list[JsonObject]] = [
    {"name": "inner", "tool": "fan_200", "input": {"items": "${input.items}"}, "on_error": "continue"},
    {"name": "help", "tool": "helper", "input": {"task": "helper"}, "on_error": "continue"},
    {"name": "beside", "tool": "look", "input": {"n": 1}},
]


def open_office(folder: Path, process: Process, ledger: Ledger) -> Crib:
    """The crib of a process, with the functions of its tools; agents and workflows are in the store already."""
    process.outside = ledger
    crib = Crib(
        f"sqlite:///{folder}/{STORE}",
        models={"scripted:clerk": ScriptedModel(_follow_plan, name="clerk")},
        clock=process.clock,
        environment={},
    )
    crib.add(look, read, put, post, pay, was_paid, sign, label)
    return crib


def define(crib: Crib) -> None:
    """Add the agents and workflows."""
    named = ["look", "read", "put", "post", "pay", "sign", "label"]
    for name, tools, calls in (("helper", named, 4), ("boss", [*named, "helper"], 50), ("pair", [*named, "helper"], 7)):
        crib.agentic_tool(
            name, tools=tools, limits=_limits(calls), mode="agentic", model="scripted:clerk", grounding="off"
        )
    for most in LIMITS:
        crib.workflow(f"fan_{most}", steps=_FAN, input_schema=_ITEMS, limits=_limits(most))
    crib.workflow("desk", steps=_DESK, input_schema={"type": "object"}, limits=_limits(50))
    crib.workflow("nest", steps=_NEST, input_schema=_ITEMS, limits=_limits(14))


def _limits(calls: int) -> Limits:
    return Limits(max_tool_calls=calls, max_cost_usd=Decimal(1), timeout_s=_LONG_S)


def _json(given: JsonObject) -> str:
    return orjson.dumps(given).decode()
