"""Tools that wait for somebody: one that a person confirms, one that a client performs, alone and inside of models."""

import json
from pathlib import Path
from typing import Literal, TypeAlias

from tests.chaos.crashing import CrashPoint, crashing
from tests.chaos.ledger import LEASE_S, Ledger
from toolcrib import Crib, ScriptedModel, SharingOptions, ToolContext, tool
from toolcrib.contracts import ClientResult, ErrorCode, InvalidInput, Json, JsonObject, ToolError, Unavailable
from toolcrib.infrastructure.store import open_store
from toolcrib.kinds.python.functions import FunctionTool
from toolcrib.llm import Message, Request, ScriptedAnswer, ToolCall

Mode: TypeAlias = Literal["tool", "agentic", "deterministic", "nested"]
MODES: tuple[Mode, ...] = ("tool", "agentic", "deterministic", "nested")
Name: TypeAlias = Literal["sign", "print_label"]


def tools(ledger: Ledger, *, revised: bool = False) -> list[FunctionTool[..., Json]]:
    """Both tools; `revised` ones have the same names and versions, and another content."""
    usage = "Read it first." if revised else ""

    @tool(side_effects="writes", requires_confirmation=True, usage=usage)
    async def sign(text: str, context: ToolContext) -> Json:
        """Sign a text, once a person agrees."""
        ledger.write(f"sign-{text}", context.idempotency_key)
        return {"signed": text}

    @tool(side_effects="writes", runs_on="client", usage=usage)
    async def print_label(text: str) -> Json:
        """Prepare a label; the client prints it."""
        return {"label": text.upper()}

    return [sign, print_label]


def _script(name: Name) -> ScriptedModel:
    """Calls the tool once, in either mode, and answers."""

    def script(request: Request) -> ScriptedAnswer:
        if request.output_name == "plan":
            reading = [{"words": "Do it", "use": "request"}, {"words": "offer", "use": "change", "value": "offer"}]
            step = {"input": {"text": "offer"}}
            return json.dumps({"reading": reading, "reasoning": "It is asked for.", name: step})
        if request.output_schema is not None:
            return json.dumps({"summary": "Done."})
        if any(message.role == "assistant" for message in request.messages):
            return "Done."
        if request.tools.tools[0].name == "clerk":
            return Message("assistant", (ToolCall("1", "clerk", json.dumps({"task": "Do it"})),))
        return Message("assistant", (ToolCall("1", name, json.dumps({"text": "offer"})),))

    return ScriptedModel(script, name="desk")


def _crib(folder: Path, name: Name, *, revised: bool = False, point: CrashPoint | None = None) -> Crib:
    store = open_store(f"sqlite:///{folder}/crib.db")
    crib = Crib(
        store if point is None else crashing(store, point),
        models={"scripted:desk": _script(name)},
        sharing=SharingOptions(lease_s=LEASE_S),
    )
    crib.add(*tools(Ledger(folder), revised=revised))
    return crib


async def start(folder: Path, mode: Mode, name: Name, point: CrashPoint | None = None) -> Json:
    """Run until somebody has to do something."""
    async with _crib(folder, name, point=point) as crib:
        if mode == "tool":
            result = await crib.invoke(name, {"text": "offer"})
        else:
            inner = "deterministic" if mode == "deterministic" else "agentic"
            model = "scripted:desk"
            handle = crib.agentic_tool("clerk", mode=inner, model=model, tools=[name], steps=[name])
            if mode == "nested":
                handle = crib.agentic_tool("head", mode="agentic", model=model, tools=["clerk"])
            result = await handle("Do it: offer")
        return result.summary.model_dump(mode="json")


async def decide(folder: Path, run_id: str, approve: bool, edited: JsonObject | None = None) -> Json:
    """What a person does, in a process that has no tools; why it was refused, if it was."""
    async with Crib(f"sqlite:///{folder}/crib.db") as crib:
        (waiting,) = await crib.pending_approvals(run_id)
        try:
            return await crib.decide(run_id, waiting.position, approve=approve, edited_input=edited, reason="because")
        except InvalidInput as refusal:
            return str(refusal)


async def hand_back(folder: Path, run_id: str, position: str, works: bool) -> Json:
    """What a client does, in a process that has no tools."""
    paper = ToolError(code=ErrorCode.PROVIDER_ERROR, message="no paper")
    result = ClientResult(output={"printed": 1}) if works else ClientResult(error=paper)
    async with Crib(f"sqlite:///{folder}/crib.db") as crib:
        return await crib.return_client_result(run_id, position, result)


async def resume(
    folder: Path, name: Name, run_ids: list[str], revised: bool = False, point: CrashPoint | None = None
) -> Json:
    """Go on with runs, in this order, in a process that has the tools; what stops it is told."""
    async with _crib(folder, name, revised=revised, point=point) as crib:
        try:
            results = [await crib.resume(run_id) for run_id in run_ids]
        except Unavailable as problem:
            return str(problem)
        return [result.summary.model_dump(mode="json") for result in results]
