"""Plays known calls through a real agent: a scripted model asks for them, the agent calls the tools, turn by turn.

Nothing here knows a suite. A task is a list of turns; the turns of one task are one conversation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import orjson

from toolcrib import Crib, FunctionTool, Limits, LLMConfig, ScriptedModel, ToolDefinition, recorded_model
from toolcrib.contracts import (
    AgentImplementation,
    AgentRequest,
    AllocatedTool,
    JsonObject,
    Replay,
    RunEvent,
    ToolEnvelope,
)
from toolcrib.llm import LanguageModel, Message, ToolCall

MODEL = "scripted:played"
LIMITS = Limits(max_iterations=200, max_tool_calls=500, max_cost_usd=None)
MOST_TOOLS = 500


@dataclass(frozen=True)
class Turn:
    """What the user says, what the model then calls, one call an answer, and what it says at last."""

    message: str
    calls: Sequence[tuple[str, JsonObject]]
    answer: str = ""
    hidden: frozenset[str] = frozenset()
    """Tools that the model is not offered in this turn."""

    def script(self) -> list[Message | str]:
        """The answers of the model."""
        asked = [Message("assistant", (ToolCall(f"call_{index}", name, orjson.dumps(arguments).decode()),))
                 for index, (name, arguments) in enumerate(self.calls)]  # fmt: skip
        return [*asked, self.answer or "Done."]


@dataclass
class Played:
    """What came of a task."""

    answers: list[str] = field(default_factory=list[str])
    """What the agent said at the end of each turn."""
    turns: list[list[ToolEnvelope]] = field(default_factory=list[list[ToolEnvelope]])
    """The envelopes of each turn's calls, in order."""
    events: list[RunEvent] = field(default_factory=list[RunEvent])
    """Of all runs, one after the other."""
    replays: list[Replay] = field(default_factory=list[Replay])

    @property
    def replayed(self) -> bool:
        """Whether every run, replayed on its journal, had the same envelopes and the same end."""
        same = [list(replay.envelopes) == envelopes for replay, envelopes in zip(self.replays, self.turns, strict=True)]
        return all(same) and all(replay.same for replay in self.replays)


async def play(tools: Sequence[FunctionTool[..., Any]], turns: Sequence[Turn]) -> Played:
    """Let a scripted model make the calls of all turns, and replay every run when all are done."""
    return await _converse(tools, turns, ScriptedModel([answer for turn in turns for answer in turn.script()]))


async def play_again(tools: Sequence[FunctionTool[..., Any]], turns: Sequence[Turn], played: Played) -> Played:
    """Let the model of a played task give its recorded answers again, on the tools of a fresh state."""
    return await _converse(tools, turns, recorded_model(played.events))


async def _converse(tools: Sequence[FunctionTool[..., Any]], turns: Sequence[Turn], model: LanguageModel) -> Played:
    played, versions, conversation = Played(), count(), None
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*tools)
        names = [made.definition.name for made in tools]
        hidden: frozenset[str] | None = None
        for turn in turns:
            if turn.hidden != hidden:
                hidden = turn.hidden
                await crib.save(_agent([name for name in names if name not in hidden], version=f"1.{next(versions)}.0"))
            request = AgentRequest(message=turn.message, conversation_id=conversation)
            response = await crib.executions.execute("player", request)
            conversation = response.conversation_id
            played.answers.append(response.response)
            played.turns.append([response.tools_by_id[call_id] for call_id in response.tool_order])
            played.events += await crib.store.journal.events(response.run_id)
            played.replays.append(await crib.replay(response.run_id))
    return played


def _agent(names: Sequence[str], *, version: str) -> ToolDefinition:
    return ToolDefinition(
        name="player",
        version=version,
        input_schema={
            "type": "object",
            "properties": {"message": {"type": "string"}},
            "required": ["message"],
        },
        implementation=AgentImplementation(
            llm=LLMConfig(model=MODEL),
            tools=tuple(AllocatedTool(tool=name) for name in names),
            max_tools_in_context=MOST_TOOLS,
            limits=LIMITS,
        ),
    )
