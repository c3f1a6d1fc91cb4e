"""The context window: how many tokens earlier turns may use, and how results are shortened.

Sizes are estimates, four characters per token. Results and very long arguments are shortened, the oldest first and
many at once, so that the prompt's beginning stays the same for some turns; messages of people and models never are.
Shortening twice equals shortening once. Decisions are recorded, so that a resumed run repeats them.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import orjson

from toolcrib.contracts import Json, LLMConfig, ModelError
from toolcrib.core.runs import RunContext, shorten_json
from toolcrib.llm import FilePart, Message, Part, Text, ToolCall, ToolResult, ToolSet
from toolcrib.llm.base.files import describe
from toolcrib.llm.base.messages import GrowingSize
from toolcrib.llm.base.prices import characters_of, context_window, estimate_tokens, tokens_of

_LONGEST_RESULT: Final = 500
"""Characters of a result that is left alone."""
_KEPT: Final = 300
_LONGEST_ARGUMENTS: Final = 1000
_NOT_SHOWN: Final = "it is not shown any more, to leave room"
_CUT: Final = "… (the beginning of {size} characters; call the tool again if you need the rest)"


def trim_message(message: Message) -> Message:
    """The message with short results and arguments; the very same if they are short."""
    parts = tuple(_short(part) for part in message.parts)
    same = all(short is part for short, part in zip(parts, message.parts, strict=True))
    return message if same else msgspec.structs.replace(message, parts=parts)


def shorten_turn(message: Message) -> Message:
    """The message of an earlier turn with short results and arguments, and with words in place of its files."""
    parts = tuple(
        Text(describe(part, _NOT_SHOWN)) if type(part) is FilePart else _short(part) for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


def trim_results(messages: Sequence[Message], before: int) -> tuple[Message, ...]:
    """The messages, of which those before a place have short results."""
    return (*map(trim_message, messages[:before]), *messages[before:])


def _short(part: Part) -> Part:
    match part:
        case ToolResult() if len(part.text) > _LONGEST_RESULT or part.files:
            return _short_result(part)
        case ToolCall() if len(part.args) > _LONGEST_ARGUMENTS:
            # A seal is over the call as it was, and says nothing of this one.
            return msgspec.structs.replace(part, args=_short_arguments(part.args), signature=None)
        case _:
            return part


def _short_result(result: ToolResult) -> ToolResult:
    """The result with the beginning of its text, and with words in place of its files."""
    text = result.text
    if len(text) > _LONGEST_RESULT:
        text = text[:_KEPT] + _CUT.format(size=len(text))
    words = [text, *(describe(file, _NOT_SHOWN) for file in result.files)]
    return msgspec.structs.replace(result, text="\n".join(words), files=())


def _short_arguments(text: str) -> str:
    try:
        arguments = orjson.loads(text)
    except orjson.JSONDecodeError:
        return "{}"
    short = orjson.dumps(shorten_json(arguments, _LONGEST_ARGUMENTS)).decode()
    return short if len(short) <= _LONGEST_ARGUMENTS else "{}"


_OF_THE_PAST: Final = 3, 4
"""The part of what is left that the past may take; the rest is for what the run's own calls bring."""


def room_key(turn: int) -> str:
    """The key of the note that says how many messages of a run have short results from a turn on."""
    return f"t{turn}.room"


class ContextWindow:
    """What the prompts of one run may come to.

    Args:
        context: The run.
        llm: Says it, or names the model of which it is known.
    """

    def __init__(self, context: RunContext, llm: LLMConfig) -> None:
        self._context = context
        self._llm = llm
        self._short = 0
        """Messages of the run, from the first on, that have short results."""
        self._characters = GrowingSize(characters_of)
        self.tokens = self._find_tokens()
        """Tokens that a prompt may have; null where nobody knows."""

    def _find_tokens(self) -> int | None:
        if self._llm.max_input_tokens is not None:
            return self._llm.max_input_tokens
        window = context_window(*_provider_and_model(self._llm.model))
        if window is None:
            return None
        return window - (self._llm.max_tokens or self._context.budget.limits.max_tokens_per_call)

    def for_the_past(self, message: Message, *, system: str, tools: ToolSet) -> int | None:
        """Tokens that are left for what was said before.

        Args:
            message: The new message.
            system: The system prompt.
            tools: What the model is offered.
        """
        if self.tokens is None:
            return None
        part, whole = _OF_THE_PAST
        return (self.tokens - estimate_tokens((message,), system=system, tools=tools)) * part // whole

    async def fit(
        self, turn: int, messages: tuple[Message, ...], own: int, *, system: str, tools: ToolSet
    ) -> tuple[Message, ...]:
        """The messages of a prompt, with results shortened as far as they must be.

        Args:
            turn: Number of the model call.
            messages: What was said before the run, and in it.
            own: Place of the run's first message.
            system: The system prompt.
            tools: What the model is offered.

        Raises:
            ModelError: They do not fit, however short the results are.
        """
        most = self.tokens
        if most is None:
            return messages

        prompt = self._trim_messages(messages, own, self._short)
        if tokens_of(len(system) + tools.size + self._characters.of(prompt)) <= most:
            return prompt

        def size(short: int) -> int:
            return estimate_tokens(self._trim_messages(messages, own, short), system=system, tools=tools)

        async def shorten() -> Json:
            short = self._enough(size, len(messages) - own, most)
            return {"messages": short, "tokens": size(short), "most": most}

        noted = await self._context.once(room_key(turn), "results_shortened", shorten)
        self._short = noted["messages"]
        if noted["tokens"] > most:
            raise self._too_large(noted["tokens"], most)
        return self._trim_messages(messages, own, self._short)

    def _enough(self, size: Callable[[int], int], count: int, most: int) -> int:
        """So many messages of the run that half the room is free again; all of them only if the prompt must have it."""
        goal, short = most // 2, self._short
        while short < count - 1 and size(short) > goal:
            short += 1
        return short if size(short) <= most else count

    def _trim_messages(self, messages: tuple[Message, ...], own: int, short: int) -> tuple[Message, ...]:
        return (*messages[:own], *trim_results(messages[own:], short)) if short else messages

    def _too_large(self, tokens: int, most: int) -> ModelError:
        message = (
            f"the prompt comes to about {tokens} tokens and {self._llm.model!r} may read {most}; send a shorter "
            "message, offer fewer tools, or raise max_input_tokens"
        )
        self._context.note_limit("max_input_tokens", tokens, most, message)
        return ModelError("context_length", message)


def _provider_and_model(model: str) -> tuple[str, str]:
    """Provider and model."""
    provider, _, name = model.partition(":")
    return provider, name
