"""`ScriptedModel`, the in-memory double of `Model`: it answers from a script, streams, and uses no network.

For tests, examples and offline development. Its name always starts with `scripted:`, its tokens are marked as
estimated, and its price is 0 from the source `scripted`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from inspect import isawaitable
from typing import TypeAlias

import msgspec

from toolcrib.contracts.base.errors import InvalidInput, ModelError
from toolcrib.llm.base.messages import (
    CallDelta,
    CallEnd,
    CallStart,
    Done,
    Event,
    Message,
    Opaque,
    Request,
    Response,
    Text,
    TextChunk,
    Thinking,
    ThinkingChunk,
    TokenUsage,
    ToolCall,
    UsageUpdate,
    assistant,
)
from toolcrib.llm.base.prices import Cost, estimate_usage

ScriptedAnswer: TypeAlias = Response | Message | str | ModelError
"""What a script says next: a whole response, its message, its text, or a failure that is raised."""

Script: TypeAlias = Iterable[ScriptedAnswer] | Callable[[Request], ScriptedAnswer | Awaitable[ScriptedAnswer]]
"""Answers in order, or a function from the request."""


class ScriptedModel:
    """A model that says what it was told to say.

    Args:
        script: Answers in order, or a function; the function may be async and may wait, which makes a slow model.
        name: Shown as `scripted:NAME`.

    Example:
        model = ScriptedModel(["Acme has two deals."])
        crib = Crib("memory://", models={"scripted:desk": model})
        desk = crib.agent("desk", model="scripted:desk")
        print((await desk("Which deals has Acme?")).output, len(model.requests))
    """

    def __init__(self, script: Script, *, name: str = "script") -> None:
        self.name = f"scripted:{name}"
        self.requests: list[Request] = []
        """Every request so far, for assertions."""
        self._answers = None if callable(script) else iter(script)
        self._function = script if callable(script) else None

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r})"

    async def request(self, request: Request) -> Response:
        """The next answer.

        Raises:
            ModelError: The script says so.
            InvalidInput: The script has no further answer.
        """
        self.requests.append(request)
        answer = await self._next(request)
        if isinstance(answer, ModelError):
            raise answer
        return self._response(request, answer)

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The next answer, word by word; raises what `request` raises."""
        response = await self.request(request)
        for event in _events(response):
            yield event
        yield UsageUpdate(response.usage)
        yield Done(response)

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """Nothing, at any time."""
        return Cost(Decimal(0), "scripted")

    async def _next(self, request: Request) -> ScriptedAnswer:
        if self._function is not None:
            answer = self._function(request)
            return await answer if isawaitable(answer) else answer
        for answer in self._answers or ():
            return answer
        count = len(self.requests)
        raise InvalidInput(f"{self.name} was asked {count} times, but its script has {count - 1} answers; add one")

    def _response(self, request: Request, answer: Response | Message | str) -> Response:
        if isinstance(answer, Response):
            usage = answer.usage if answer.usage != TokenUsage() else estimate_usage(request, answer.message)
            return msgspec.structs.replace(answer, usage=usage)
        message = assistant(answer) if isinstance(answer, str) else answer
        stop = "tool_calls" if message.calls else "end"
        usage = estimate_usage(request, message)
        return Response(message, stop, stop, usage, self.name, f"scripted-{len(self.requests)}")


def _events(response: Response) -> Iterator[Event]:
    index = 0
    for part in response.message.parts:
        match part:
            case Text() | Opaque():
                yield from map(TextChunk, _words(part.text))
            case Thinking():
                yield from map(ThinkingChunk, _words(part.text))
            case ToolCall():
                yield CallStart(index, part.id, part.name)
                yield CallDelta(index, part.args)
                yield CallEnd(index, part)
                index += 1
            case _:
                pass


def _words(text: str) -> list[str]:
    """The text in pieces that add up to it."""
    words = text.split(" ")
    return [f"{word} " for word in words[:-1]] + [word for word in words[-1:] if word]
