"""A workflow with everything that takes time, whose tools leave a line in a file for every effect.

A fan-out, retries after a pause, a time-out, a timer, a signal, an approval, an agent, and a nested workflow which asks
as well; what waits stands beside what works, and one step needs all of them. Calls have the kinds of safety that the
ledger has, so a killed process may cost the letters their answers and nothing else.
"""

import asyncio
import contextlib
from pathlib import Path

from tests.chaos.ledger import Ledger, tools
from toolcrib import Crib, ScriptedModel, SharingOptions, ToolContext, tool
from toolcrib.contracts import Json, JsonObject
from toolcrib.kinds.python.functions import FunctionTool
from toolcrib.llm import Message, Request, ScriptedAnswer, ToolCall

ITEMS = 200
LEASE_S = 5.0
"""Long enough that no process that lives is thought dead on a busy machine: it would act all the same."""
INNER: JsonObject = {
    "name": "inner",
    "steps": [
        {"name": "before", "tool": "pay", "input": {}},
        {"name": "asked", "approval": {"message": "go on?"}, "depends_on": ["before"]},
        {"name": "each", "tool": "put", "for_each": "${input.items}", "depends_on": ["asked"]},
    ],
    "input_schema": {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "integer"}}}},
    "output": {"done": "${each.length}"},
}
OUTER: JsonObject = {
    "name": "outer",
    "steps": [
        {"name": "puts", "tool": "put", "for_each": {"items": "${input.items}", "max_concurrency": 16}},
        {"name": "pays", "tool": "pay", "for_each": {"items": "${input.few}", "max_concurrency": 3}},
        {"name": "tries", "tool": "fails_once", "retry": {"count": 3, "base_s": 0.2}},
        {"name": "letter", "tool": "post", "on_error": "continue"},
        {"name": "rests", "wait": {"seconds": 0.5}},
        {"name": "rested", "tool": "put", "depends_on": ["rests"]},
        {"name": "hears", "wait": {"signal": "news"}},
        {"name": "asked", "approval": {"message": "pay?"}},
        {"name": "paid", "tool": "pay", "depends_on": ["asked", "hears"]},
        {"name": "hangs", "tool": "hang", "timeout_s": 0.2, "on_error": "continue"},
        {"name": "nested", "workflow": "inner", "input": {"items": "${input.few}"}},
        {"name": "agent", "agent": "clerk", "input": {"message": "Do your work"}},
        {
            "name": "last",
            "tool": "put",
            "depends_on": ["puts", "pays", "tries", "letter", "rested", "paid", "hangs", "nested", "agent"],
        },
    ],
    "input_schema": {
        "type": "object",
        "properties": {name: {"type": "array", "items": {"type": "integer"}} for name in ("items", "few")},
    },
    "output": {"puts": "${puts.length}", "pays": "${pays.length}", "inner": "${nested.done}"},
}
INPUT: JsonObject = {"items": list(range(ITEMS)), "few": list(range(5))}
OUTPUT: JsonObject = {"puts": ITEMS, "pays": 5, "inner": 5}
EFFECTS = {"put": ITEMS + 5 + 2, "pay": 5 + 2, "fails_once": 1}
"""What an instance does, besides one letter at most. Its agent only reads: one that was cut off is asked anew."""


def more_tools(ledger: Ledger) -> list[FunctionTool[..., Json]]:
    """Those that the ledger's own do not have."""

    @tool(side_effects="writes", idempotent=True)
    async def fails_once(context: ToolContext) -> Json:
        """Fail at the first try."""
        if not ledger.counts()["refused", context.idempotency_key]:
            ledger.write("refused", context.idempotency_key)
            raise RuntimeError("not yet")
        ledger.write("fails_once", context.idempotency_key)
        return {}

    @tool(side_effects="reads")
    async def hang() -> Json:
        """Never answer."""
        await asyncio.sleep(3600)
        return None

    return [fails_once, hang]


def _script(request: Request) -> ScriptedAnswer:
    if any(message.role == "assistant" for message in request.messages):
        return "All done."
    return Message("assistant", (ToolCall("1", "look", "{}"),))


def crib_at(folder: Path) -> Crib:
    """A crib in the folder that can run the workflow."""
    model = ScriptedModel(_script, name="clerk")
    crib = Crib(
        f"sqlite:///{folder}/crib.db", models={"scripted:clerk": model}, sharing=SharingOptions(lease_s=LEASE_S)
    )
    crib.add(*tools(Ledger(folder)), *more_tools(Ledger(folder)))
    crib.agent("clerk", model="scripted:clerk", tools=["look"])
    return crib


async def submit(folder: Path, instances: int) -> Json:
    """Publish the workflows and leave instances for whoever serves; returns their ids."""
    async with crib_at(folder) as crib:
        await crib.open()
        for definition in (INNER, OUTER):
            await crib.workflows.publish(definition)
        begun = [await crib.instances.start("outer", INPUT, wait=False) for _ in range(instances)]
        return [instance.run_id for instance in begun]


async def serve(folder: Path, seconds: float) -> Json:
    """Serve for some time, and stop in good order."""
    async with crib_at(folder) as crib:
        await crib.open()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await crib.engine.serve()
    return None
