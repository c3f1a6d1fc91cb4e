"""Processes that talk to one agent in one conversation, which may be killed, or talk all at once."""

import asyncio
import json
from pathlib import Path

from tests.chaos.crashing import CrashPoint, crashing
from tests.chaos.ledger import LEASE_S
from tests.unit.conversations.talk import MODEL, TOOLS, helper
from toolcrib import Crib, ScriptedModel, SharingOptions
from toolcrib.contracts import AgentRequest, Conflict, Json
from toolcrib.core.runs import turn_run_id
from toolcrib.infrastructure.store import open_store
from toolcrib.llm import Message, Request, ScriptedAnswer, ToolCall

_BREATH_S = 0.01
"""Seconds until somebody who was refused tries again."""


def _script(request: Request) -> ScriptedAnswer:
    """Looks something up, and then answers with all that people have said to it, as JSON."""
    if isinstance(request.messages[-1].parts[0], type(request.messages[0].parts[0])):
        return Message("assistant", (ToolCall("1", "look_up", '{"word": "a"}'),))
    return json.dumps([message.text for message in request.messages if message.role == "user" and message.text])


def _crib(folder: Path, point: CrashPoint | None = None) -> Crib:
    store = open_store(f"sqlite:///{folder}/crib.db")
    models = {MODEL: ScriptedModel(_script)}
    crib = Crib(
        store if point is None else crashing(store, point), models=models, sharing=SharingOptions(lease_s=LEASE_S)
    )
    crib.add(*TOOLS, helper())
    return crib


async def speak(
    folder: Path, message: str, conversation_id: str | None = None, point: CrashPoint | None = None
) -> Json:
    """Say one thing; returns the id of the conversation."""
    async with _crib(folder, point) as crib:
        request = AgentRequest(message=message, conversation_id=conversation_id)
        return (await crib.executions.execute("helper", request)).conversation_id


async def insist(folder: Path, message: str, conversation_id: str) -> Json:
    """Carry on what another process has left, and say one thing; returns what is remembered then."""
    async with _crib(folder) as crib:
        found = await crib.conversations.get(conversation_id)
        request = AgentRequest(message=message, conversation_id=conversation_id)
        try:
            await crib.executions.execute("helper", request)
        except Conflict:
            await crib.resume(turn_run_id(conversation_id, found.turn_count))
            await crib.executions.execute("helper", request)
        return await _remembered(crib, conversation_id)


async def chatter(folder: Path, name: str, conversation_id: str, count: int) -> Json:
    """Say many things at the same time, each until it is accepted; returns the ids of their runs by what was said."""
    async with _crib(folder) as crib:

        async def say(message: str) -> str:
            request = AgentRequest(message=message, conversation_id=conversation_id)
            while True:
                try:
                    return (await crib.executions.execute("helper", request)).run_id
                except Conflict:
                    await asyncio.sleep(_BREATH_S)

        messages = [f"{name}{number}" for number in range(count)]
        return dict(zip(messages, await asyncio.gather(*map(say, messages)), strict=True))


async def remembered(folder: Path, conversation_id: str) -> Json:
    """What was said in each turn, and what its answer shows that the agent knew."""
    async with _crib(folder) as crib:
        return await _remembered(crib, conversation_id)


async def _remembered(crib: Crib, conversation_id: str) -> Json:
    turns = await crib.conversations.turns(conversation_id, limit=100)
    found = await crib.conversations.get(conversation_id)
    known = [[turn.message, turn.run_id, json.loads(turn.response or "null")] for turn in turns]
    return {"turns": known, "counted": [found.turn_count, found.ended_turns]}
