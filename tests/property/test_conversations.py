"""Any conversation: prompts stay inside their room, begin with the prompts before, and pair every call with its result.

What the model does in each turn is drawn: it answers, calls tools with results of any size, fails, or asks for a call
that waits and is cancelled. The memory's strategy and the limits are drawn as well.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias, cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.conversations.talk import calls, helper, talking
from toolcrib.agents.history.prior_turns import Size, Window, move_window
from toolcrib.contracts import AgentMemory, Json, JsonObject, MemoryStrategy, ModelError
from toolcrib.llm import Message, Request, ToolCall, ToolResult
from toolcrib.llm.base.prices import estimate_tokens
from toolcrib.llm.base.quirks import Quirks
from toolcrib.llm.wires import AnthropicWire, ChatWire, GeminiWire, ResponsesWire

Deed: TypeAlias = Literal["answer", "fail", "wait"] | int
"""What the model does: a number is a call whose result has so many characters."""

DEEDS = st.one_of(st.sampled_from(["answer", "fail", "wait"]), st.integers(1, 4000))
TURNS = st.lists(st.lists(DEEDS, min_size=1, max_size=3), min_size=2, max_size=7)
_LISTS = ("messages", "input", "contents")


@dataclass(frozen=True)
class Scene:
    """How an agent remembers."""

    strategy: MemoryStrategy
    turns: int
    history: int | None
    room: int | None


SCENES = st.builds(
    Scene,
    strategy=st.sampled_from(["full", "sliding_window", "summary", "none"]),
    turns=st.integers(1, 4),
    history=st.none() | st.integers(50, 3000),
    room=st.none() | st.integers(800, 4000),
)


class Script:
    """Plays the deeds of turns."""

    def __init__(self, turns: Sequence[Sequence[Deed]]) -> None:
        self._turns = turns
        self.prompts: list[Request] = []
        """Of the conversation, without those of summaries."""

    def __call__(self, request: Request) -> Any:
        if request.system.startswith("You summarize"):
            return "in short"
        self.prompts.append(request)
        said = [message for message in request.messages if message.text.startswith("message ")]
        number = int(said[-1].text.split()[1])
        done = len(request.messages) - request.messages.index(said[-1]) - 1
        deeds = self._turns[number]
        deed = deeds[done // 2] if done // 2 < len(deeds) else "answer"
        match deed:
            case "answer":
                return "ok"
            case "fail":
                return ModelError("bad_request", "no")
            case "wait":
                return calls(("send", '{"text": "x"}'))
            case size:
                return calls(("look_up", orjson.dumps({"word": "x", "size": size}).decode()))


async def play(scene: Scene, turns: Sequence[Sequence[Deed]]) -> list[Request]:
    """The prompts of a conversation."""
    script = Script(turns)
    memory = AgentMemory(strategy=scene.strategy, max_conversation_turns=scene.turns, max_context_tokens=scene.history)
    async with talking(script, helper(memory=memory, llm={"max_input_tokens": scene.room})) as talk:
        conversation_id = None
        for number in range(len(turns)):
            answer = await talk.say(f"message {number} {'y' * 50}", conversation_id)
            conversation_id = answer.conversation_id
            if answer.status == "awaiting_approval":
                await talk.crib.cancel(answer.run_id)
    return script.prompts


def is_paired(messages: Sequence[Message]) -> bool:
    """Whether every call has its result in the message after it, and there is no result without a call."""
    asked: list[str] = []
    for message in messages:
        results = [part.id for part in message.parts if isinstance(part, ToolResult)]
        if results != asked:
            return False
        asked = [part.id for part in message.parts if isinstance(part, ToolCall)]
    return not asked


@pytest.mark.requirement("conversations.budget", "conversations.recall", "conversations.trimming")
@settings(max_examples=60, deadline=None)
@given(scene=SCENES, turns=TURNS)
def test_no_prompt_exceeds_its_room_loses_the_newest_message_or_breaks_a_pair(scene: Scene, turns: list[list[Deed]]):
    for prompt in asyncio.run(play(scene, turns)):
        tokens = estimate_tokens(prompt.messages, system=prompt.system, tools=prompt.tools)
        assert scene.room is None or tokens <= scene.room
        assert is_paired(prompt.messages)
        newest = next(message for message in reversed(prompt.messages) if message.text.startswith("message "))
        assert newest.text.endswith("y" * 50)
        for message in prompt.messages:
            for part in message.parts:
                assert not isinstance(part, ToolCall) or orjson.loads(part.args) is not None


@pytest.mark.requirement("conversations.cache")
@settings(max_examples=40, deadline=None)
@given(turns=TURNS)
def test_each_prompt_begins_with_all_of_the_one_before_it_on_every_wire(turns: list[list[Deed]]):
    prompts = asyncio.run(play(Scene("full", 1, None, None), turns))

    for before, after in pairwise(prompts):
        assert after.messages[: len(before.messages)] == before.messages
        assert (after.system, after.tools) == (before.system, before.tools)
        for wire in (AnthropicWire(), ChatWire(), GeminiWire(), ResponsesWire()):
            said, more = (_said(wire.build(prompt, Quirks(), stream=False)[1]) for prompt in (before, after))
            assert more[: len(said)] == said


def _said(body: dict[str, Any]) -> list[Any]:
    """The messages of a request body, in the bytes that are sent, without marks of what is to be cached."""
    found = next(body[name] for name in _LISTS if name in body)
    return [_unmarked(orjson.loads(orjson.dumps(item))) for item in found]


def _unmarked(value: Json) -> Json:
    if isinstance(value, dict):
        fields = cast("JsonObject", value)
        return {key: _unmarked(item) for key, item in fields.items() if key != "cache_control"}
    return [_unmarked(item) for item in cast("list[Json]", value)] if isinstance(value, list) else value


@pytest.mark.requirement("conversations.cache", "conversations.budget")
@given(
    sizes=st.lists(st.tuples(st.integers(0, 500), st.integers(0, 100)), min_size=1, max_size=30),
    most_turns=st.none() | st.integers(1, 8),
    room=st.none() | st.integers(-100, 2000),
)
def test_a_window_never_goes_back_and_shows_as_much_as_fits(
    sizes: list[tuple[int, int]], most_turns: int | None, room: int | None
):
    turns = {place: Size(whole + short, short) for place, (whole, short) in enumerate(sizes, start=1)}
    window = Window()
    for upcoming in range(1, len(sizes) + 2):
        before, window = window, move_window(window, turns, upcoming, most_turns=most_turns, room=room)

        assert window >= before
        assert window.first <= upcoming
        assert most_turns is None or upcoming - window.first <= most_turns
        assert room is None or _tokens(window, turns, upcoming) <= max(room, 0)
        fits = room is None or _tokens(before, turns, upcoming) <= room
        if fits and (most_turns is None or upcoming - before.first <= most_turns):
            assert window == before


def _tokens(window: Window, turns: dict[int, Size], upcoming: int) -> int:
    shown = range(window.first, upcoming)
    return sum(turns[place].short if place < window.short else turns[place].whole for place in shown)
