"""What a Python function learns of the call that it is."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Crib, ScriptedModel, ToolContext, tool
from toolcrib.llm import Message, ToolCall


@tool(side_effects="reads")
def look(context: ToolContext) -> list[Any]:
    """Tell who calls."""
    context.logger.warning("looking")
    return [context.tool, context.call_id, context.agent, context.conversation_id, context.session_id]


@pytest.mark.requirement("runtimes.python_context")
@pytest.mark.parametrize("place", ["memory://", "sqlite:///{folder}/crib.db"])
async def test_a_function_knows_who_calls_and_its_log_names_the_call(
    place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    call = Message("assistant", (ToolCall("c1", "look", json.dumps({})),))
    async with Crib(place.format(folder=tmp_path), models={"scripted:m": ScriptedModel([call, "seen"])}) as crib:
        crib.add(look)
        direct = (await crib.invoke(look, {}, session_id="s")).envelopes[0]
        desk = crib.agent("desk", model="scripted:m", tools=[look])
        answer = await desk("look")
        [by_agent] = answer.envelopes

    assert direct.output == ["look", direct.call_id, None, None, "s"]
    assert by_agent.output == ["look", by_agent.call_id, "desk@1.0.0", answer.conversation_id, None]
    records = [vars(record) for record in caplog.records if record.name == "toolcrib.tools.look"]
    assert [(record["run_id"], record["call_id"], record["levelno"]) for record in records] == [
        (direct.run_id, direct.call_id, logging.WARNING),
        (by_agent.run_id, by_agent.call_id, logging.WARNING),
    ]
