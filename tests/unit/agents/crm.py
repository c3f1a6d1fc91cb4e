"""A small CRM in memory whose tools write down what they did, and models that follow a script."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, TypedDict, Unpack

import orjson
from pydantic import BaseModel, Field

from toolcrib import (
    AgenticContext,
    AgenticStep,
    AllocatedTool,
    Crib,
    FunctionTool,
    Limits,
    Result,
    ScriptedModel,
    tool,
)
from toolcrib.contracts import AgenticMode, Grounding, JsonObject, LLMConfig, ModelFinished
from toolcrib.llm import (
    Cost,
    Message,
    Request,
    Response,
    Script,
    Stop,
    Text,
    TokenUsage,
    ToolCall,
    ToolResult,
    assistant,
)

MODEL = "scripted:model"

STAGES: list[JsonObject] = [
    {"id": "3001", "label": "Qualified"},
    {"id": "3002", "label": "Proposal"},
    {"id": "3003", "label": "Negotiation"},
]


class Deal(BaseModel):
    """One deal."""

    id: str
    name: str
    amount: int


class Found(BaseModel):
    """What a search brings."""

    results: list[Deal]


class Crm:
    """Deals of Acme, and three tools.

    Args:
        deals: How many there are.
    """

    def __init__(self, deals: int = 7) -> None:
        self.deals = [Deal(id=f"d{number}", name="Acme", amount=100 * number) for number in range(deals)]
        self.searches: list[str] = []
        self.updates: list[tuple[list[str], str]] = []
        self.stages: list[JsonObject] = STAGES
        self.on_search: Callable[[str], Awaitable[None]] = _nothing
        """Happens inside a search; may fail or wait."""
        self.on_update: Callable[[list[str]], Awaitable[None]] = _nothing
        """Happens inside an update, before it takes effect."""

        @tool(side_effects="reads")
        async def search_deals(company: str, limit: int | None = None) -> Found:
            """Deals whose company name contains the text."""
            self.searches.append(company)
            await self.on_search(company)
            return Found(results=[deal for deal in self.deals if company in deal.name][:limit])

        @tool(side_effects="writes", idempotent=True)
        async def update_deals(
            ids: Annotated[list[str], Field(min_length=1, max_length=3)], stage: str
        ) -> dict[str, Any]:
            """Move deals to a stage."""
            await self.on_update(ids)
            self.updates.append((ids, stage))
            return {"updated": len(ids)}

        @tool(side_effects="reads")
        async def list_stages() -> list[dict[str, Any]]:
            """The stages that a deal can have."""
            return self.stages

        self.tools: Sequence[FunctionTool[..., Any]] = (search_deals, update_deals, list_stages)


async def _nothing(_: object) -> None: ...


async def for_ever(_: object) -> None:
    """Wait until somebody gives up."""
    await asyncio.Event().wait()


class Options(TypedDict, total=False):
    """What a test says about its agentic tool."""

    steps: Sequence[str | AgenticStep]
    tools: Sequence[str | AllocatedTool]
    model: str | LLMConfig
    system_prompt: str
    context: AgenticContext
    limits: Limits
    input_schema: JsonObject
    result_schema: JsonObject
    grounding: Grounding
    """`off` if nothing is said: most tests are about something else than what a task says."""
    preview_above: int


async def run_tool(
    crm: Crm,
    answering: ScriptedModel,
    mode: AgenticMode,
    *others: FunctionTool[..., Any],
    parameters: JsonObject | None = None,
    dry_run: bool = False,
    **options: Unpack[Options],
) -> Result:
    """Run an agentic tool over the CRM's tools and others, once, in a crib of its own."""
    async with Crib("memory://", models={MODEL: answering}) as crib:
        crib.add(*crm.tools, *others)
        settings: dict[str, Any] = {"model": MODEL, "grounding": "off", **options}
        crib.agentic_tool("agent", mode=mode, **settings)
        return await crib.invoke("agent", parameters or {"task": "Move Acme's deals to Negotiation"}, dry_run=dry_run)


async def run_sequence(
    crm: Crm,
    *answers: JsonObject | str | Message | Response | Exception,
    task: str | None = None,
    dry_run: bool = False,
    **options: Unpack[Options],
) -> tuple[Result, ScriptedModel]:
    """Run the sequence of search and update with these answers of the model."""
    model = ScriptedModel([_said(answer) for answer in answers])
    sequence: Options = {"steps": ["search_deals", "update_deals"], **options}
    parameters: JsonObject | None = {"task": task} if task else None
    return await run_tool(crm, model, "deterministic", parameters=parameters, dry_run=dry_run, **sequence), model


async def run_agent(
    crm: Crm,
    *answers: JsonObject | str | Message | Response | Exception,
    parameters: JsonObject | None = None,
    dry_run: bool = False,
    **options: Unpack[Options],
) -> tuple[Result, ScriptedModel]:
    """Run an agent that may search and update with these answers of the model."""
    model = ScriptedModel([_said(answer) for answer in answers])
    choice: Options = {"tools": ["search_deals", "update_deals"], **options}
    return await run_tool(crm, model, "agentic", parameters=parameters, dry_run=dry_run, **choice), model


def _said(answer: Any) -> Any:
    return orjson.dumps(answer).decode() if isinstance(answer, dict) else answer


def plan(**changes: Any) -> JsonObject:
    """The plan that moves all of Acme's deals to Negotiation; a step may be replaced."""
    return {
        "reasoning": "Find the deals, then move them.",
        "search_deals": {"input": {"company": "Acme"}},
        "update_deals": {
            "for_each": "${search_deals.results}",
            "input": {"ids": ["${item.id}"], "stage": "3003"},
        },
        **changes,
    }


READING: list[JsonObject] = [
    {"words": "Move", "use": "request"},
    {"words": "Acme's", "use": "condition", "value": "Acme"},
    {"words": "deals", "use": "request"},
    {"words": "to Negotiation", "use": "change", "value": "Negotiation"},
]
"""What the words of "Move Acme's deals to Negotiation" are for."""


def read_plan(**changes: Any) -> JsonObject:
    """The same plan as a model writes it that must say where its values come from."""
    return {"reading": READING, **plan(**changes)}


DONE: JsonObject = {"summary": "7 deals are in Negotiation now."}


def stopped(stop: Stop, text: str = "", raw: str = "") -> Response:
    """A model's answer that stopped for this reason, which the provider calls by this word, or by ours."""
    return Response(assistant(text), stop, raw or stop, TokenUsage(), "model", "1")


def asks(*calls: tuple[str, JsonObject | str], text: str = "") -> Message:
    """A model's answer that calls tools."""
    said = (Text(text),) if text else ()
    wanted = (
        ToolCall(f"id{number}", name, args if isinstance(args, str) else orjson.dumps(args).decode())
        for number, (name, args) in enumerate(calls, start=1)
    )
    return Message("assistant", (*said, *wanted))


def told(request: Request) -> list[str]:
    """What the calls of the last turn came to, as the model is told."""
    return [part.text for part in request.messages[-1].parts if isinstance(part, ToolResult)]


def own_prompt(request: Request) -> str:
    """The tool's own system prompt, without what a plan's has about the operations."""
    return request.system.partition("\n\nThe operations run in this order")[0]


def purposes(result: Result) -> list[str]:
    """What each model call that was answered was for, in order."""
    return [entry.event.purpose for entry in result.events if isinstance(entry.event, ModelFinished)]


def positions(result: Result) -> list[str]:
    """Where each call stands, in the order in which they ended."""
    return [envelope.position for envelope in result.envelopes]


class PricedModel(ScriptedModel):
    """A scripted model whose every call costs ten cents, before and after."""

    def __init__(self, script: Script, *, usd: str = "0.10") -> None:
        super().__init__(script)
        self._usd = Decimal(usd)

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """The price."""
        return Cost(self._usd, "test")
