"""A returns desk: an agent that asks a second one, acts as an account of its own, and refunds what a person approved.

    python -m examples.agents.demo

The models are scripts. Everything else is real: the guard, the journal, the approval, the client's part, the memory.
"""

import asyncio
import json
from collections.abc import Sequence

from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import (
    AgentDefinition,
    AgentMemory,
    AgentRequest,
    AgentResponse,
    JsonObject,
    LLMConfig,
    NoDelete,
    PinnedHandle,
    PinSelector,
    Principal,
    PromptFragment,
    RequireConfirmation,
    ReturnedCall,
    ServiceAccount,
)
from toolcrib.llm import Message, Request, ToolCall, ToolResult

ANN = Principal(id="ann", grants=("ai://agents/*", "ai://conversations/own/*"))
"""A customer's advocate: she may ask agents, and use no tool herself."""
BEN = Principal(id="ben", grants=("ai://approvals/*",))
"""Decides on refunds."""

REFUNDED: list[str] = []
"""What the shop has really paid back."""


@tool(side_effects="reads", category="shop")
def find_order(number: str) -> dict[str, str | float]:
    """An order by its number."""
    return {"number": number, "item": "drill", "usd": 40.0, "delivered": "3 days ago"}


@tool(side_effects="writes", deletes=False, category="shop")
def refund(number: str, usd: float) -> dict[str, str]:
    """Pay an order back."""
    REFUNDED.append(f"{number}: {usd:.2f}")
    return {"receipt": f"R-{number}"}


@tool(side_effects="writes", deletes=False, category="shop", runs_on="client")
def print_label(number: str) -> dict[str, str]:
    """Print a label for the parcel; the customer's own printer does it."""
    return {"title": f"Return {number}", "format": "A6"}


def desk(request: Request) -> Message | str:
    """What the desk's model says next."""
    if "What was" in request.messages[-1].text:
        said = " ".join(message.text for message in request.messages[:-1])
        return "It was R-4711." if "R-4711" in said else "I do not know."
    done = _results(request)
    steps: Sequence[tuple[str, JsonObject]] = (
        ("find_order", {"number": "4711"}),
        ("policy", {"message": "May a drill be returned after 3 days?"}),
        ("refund", {"number": "4711", "usd": 40.0}),
        ("print_label", {"number": "4711"}),
    )
    if len(done) == len(steps):
        return "You get 40 dollars back. Your receipt is R-4711, and the label is printed."
    name, arguments = steps[len(done)]
    return Message("assistant", (ToolCall(f"call_{len(done)}", name, json.dumps(arguments)),))


def policy(request: Request) -> str:
    """What the model of the second agent says: it follows the house rule that stands in its prompt."""
    return "Yes, within 30 days." if "30 days" in request.system else "I do not know."


def _results(request: Request) -> list[str]:
    parts = (part for message in request.messages for part in message.parts)
    return [part.text for part in parts if isinstance(part, ToolResult)]


async def define(crib: Crib) -> None:
    """The tools, the account, the house rule and the two agents."""
    crib.add(find_order, refund, print_label)
    await crib.fragments.save(PromptFragment(name="returns", text="Goods may be returned within 30 days."))
    await crib.accounts.save(
        ServiceAccount(name="returns-bot", grants=("ai://tools/shop/*", "ai://agents/policy/execute"))
    )
    expert = AgentDefinition(
        name="policy",
        description="Knows the rules of the house.",
        llm=LLMConfig(model="scripted:policy"),
        prompt_fragments=("returns",),
    )
    await crib.agents.save(expert)
    await crib.agents.save(
        AgentDefinition(
            name="desk",
            llm=LLMConfig(model="scripted:desk"),
            system_prompt="You handle returns.",
            tool_categories=("shop",),
            delegates=("policy",),
            principal_ref="returns-bot",
            guardrails=(NoDelete(), RequireConfirmation(tools=("refund",), expires_s=3600)),
            memory=AgentMemory(strategy="sliding_window", max_conversation_turns=10),
            pins=(PinnedHandle(name="receipt", selector=PinSelector(tool="refund")),),
        )
    )


async def run(crib: Crib) -> tuple[AgentResponse, AgentResponse]:
    """Ann asks twice; in between Ben approves, and Ann's printer prints. Returns both answers."""
    waiting = await crib.acting_as(ANN).executions.execute("desk", AgentRequest(message="Return order 4711."))
    print(f"{waiting.status}: nothing is refunded yet: {REFUNDED}")

    [approval] = (await crib.acting_as(BEN).approvals.page()).items
    print(f"ben sees {approval.tool}({approval.input}) of {' -> '.join(approval.callers)} for {approval.requested_by}")
    await crib.acting_as(BEN).approvals.decide(approval.approval_id, approve=True)
    await crib.resume(waiting.run_id)

    handed = await crib.acting_as(ANN).executions.respond(waiting.run_id)
    [prepared] = handed.tool_calls
    print(f"{handed.status}: ann's printer prints {prepared.output}")
    printed = ReturnedCall(call_id=prepared.call_id, output={"printed": "one page"})
    back = AgentRequest(tool_results=(printed,), run_id=handed.run_id)
    first = await crib.acting_as(ANN).executions.execute("desk", back)
    print(f"{first.response}  [{first.handles}]")

    question = AgentRequest(message="What was my receipt?", conversation_id=first.conversation_id)
    second = await crib.acting_as(ANN).executions.execute("desk", question)
    print(second.response)
    return first, second


async def main() -> tuple[AgentResponse, AgentResponse]:
    """Define everything and run it."""
    models = {"scripted:desk": ScriptedModel(desk), "scripted:policy": ScriptedModel(policy)}
    async with Crib("memory://", models=models) as crib:
        await define(crib)
        return await run(crib)


if __name__ == "__main__":
    asyncio.run(main())
