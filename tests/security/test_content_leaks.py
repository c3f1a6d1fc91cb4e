"""A content filter holds in every place where a run tells something: stream, answer, journal, inbox, nested runs."""

from typing import Any

import pytest

from tests.unit.agents.crm import MODEL, asks
from tests.unit.agents.desk import agent
from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import AgentRequest, ChildStarted, ContentFilter, FilterAction, LLMConfig, RunStarted
from toolcrib.llm import Message, Text, Thinking, ToolCall

pytestmark = pytest.mark.requirement("guardrails.content")

INNER = "scripted:inner"
LOOK = ToolCall("1", "look", "{}")


async def journal(crib: Crib, run_id: str) -> str:
    """All events of a run and its nested runs but their requests, which have the rules."""
    events = [entry.event for entry in await crib.store.journal.events(run_id)]
    nested = [await journal(crib, event.child_run_id) for event in events if isinstance(event, ChildStarted)]
    return "\n".join([*(str(event) for event in events if not isinstance(event, RunStarted)), *nested])


@pytest.mark.parametrize("action", ["redact", "block"])
@pytest.mark.parametrize(
    ("first", "brings"),
    [
        (asks(("look", {})), "the zebra"),
        (asks(("look", {})), RuntimeError("the zebra")),
        (asks(("pay", {"to": "the zebra"})), "fine"),
        (Message("assistant", (Text("the zebra"), LOOK)), "fine"),
        (Message("assistant", (Thinking("the zebra"), LOOK)), "fine"),
        (Message("assistant", (ToolCall("1", "pay", ' {"to": "\\u007aebra"}'),)), "fine"),
        (asks(("inner", {"message": "Go"})), "fine"),
        ("the zebra", "fine"),
    ],
)
async def test_what_may_not_pass_stands_nowhere(action: FilterAction, first: Any, brings: str | Exception):
    @tool(side_effects="reads")
    async def look() -> str:
        """Look."""
        if isinstance(brings, Exception):
            raise brings
        return brings

    @tool(side_effects="writes", requires_confirmation=True)
    async def pay(to: str) -> str:
        """Pay."""
        return to

    outer = ScriptedModel([first, *["Done."] * 3])
    models = {MODEL: outer, INNER: ScriptedModel([asks(("pay", {"to": "zebra"})), "I saw a zebra.", "zebra"])}
    rule = ContentFilter(words=("zebra",), action=action)
    async with Crib("memory://", models=models) as crib:
        crib.add(look, pay)
        await crib.agents.save(agent("inner", llm=LLMConfig(model=INNER), tools=["look", "pay"]))
        await crib.agents.save(agent(tools=["look", "pay"], delegates=["inner"], guardrails=[rule]))
        begun = await crib.executions.submit("desk", AgentRequest(message="Go"))
        said = [str(told) async for told in crib.executions.follow(begun.run_id, drive=True)]
        answer = await crib.executions.respond(begun.run_id)
        inbox = await crib.approvals.page(status=None)
        written = await journal(crib, begun.run_id)

    told = "\n".join([*said, str(answer), str(inbox), written, *(str(request.messages) for request in outer.requests)])
    assert "zebra" not in told
    assert "u007a" not in told  # with its "u": ids and hashes are hexadecimal and may have "007a" by chance
