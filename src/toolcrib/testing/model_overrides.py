"""Other models for a crib that exists, and what its models are asked and answer, for as long as a block lasts."""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from toolcrib.contracts import InvalidInput, LLMConfig
from toolcrib.crib import ActingCrib
from toolcrib.llm import Cost, Done, Event, LanguageModel, Message, Request, Response, TextProtocol, TokenUsage

ModelT = TypeVar("ModelT", bound="LanguageModel | Mapping[str, LanguageModel]")


@contextmanager
def override_models(crib: ActingCrib, models: ModelT) -> Generator[ModelT]:
    """Have other models answer in a block, whatever the agents and tools of a crib name.

    The definitions stay as they are. It holds for all that the crib does meanwhile, in other tasks too; a block inside
    the block wins.

    Args:
        crib: Also one that an application made, with its tools and agents.
        models: One model for all references, or models by reference (`provider:model`). A reference that a mapping
            does not have is opened as usual.

    Yields:
        The models, for assertions on their requests.

    Raises:
        InvalidInput: The mapping is empty.

    Example:
        from toolcrib.testing import override_models, says

        with override_models(crib, ScriptedModel([says("None.")])) as model:
            answer = await desk("Which deals has Bolt?")
        print(answer.output, model.requests[0].messages[-1].text)
    """
    if isinstance(models, Mapping) and not models:
        raise InvalidInput("no model is given; pass one model, or models by reference such as {'openai:gpt-5': model}")

    def choose(llm: LLMConfig, opened: Callable[[], LanguageModel]) -> LanguageModel:
        chosen = models.get(llm.model) if isinstance(models, Mapping) else models
        if chosen is None:
            return opened()
        return TextProtocol(chosen, llm.on_malformed) if llm.tool_calling == "text" else chosen

    take_back = crib.models.substitute(choose)
    try:
        yield models
    finally:
        take_back()


@dataclass(slots=True)
class ModelExchange:
    """One request to a model, and what came of it."""

    model: str
    """`provider:model`."""
    request: Request
    response: Response | None = None
    """Null if the model failed, or has not answered yet."""
    error: Exception | None = None
    """What the model raised."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as the model saw it, and its answer."""
        return self.request.messages if self.response is None else (*self.request.messages, self.response.message)


@contextmanager
def capture_messages(crib: ActingCrib) -> Generator[list[ModelExchange]]:
    """What the models of a crib are asked in a block, and what they answer.

    Args:
        crib: Its runs are listened to, also those of agents inside agents, in the order in which they ask.

    Yields:
        The exchanges so far, which grow.

    Example:
        from toolcrib.testing import capture_messages

        with capture_messages(crib) as exchanges:
            await desk("Which deals has Acme?")
        for message in exchanges[-1].messages:
            print(message.role, message.text, [call.name for call in message.calls])
    """
    exchanges: list[ModelExchange] = []

    def observe(_llm: LLMConfig, opened: Callable[[], LanguageModel]) -> LanguageModel:
        return _ObservedModel(opened(), exchanges)

    take_back = crib.models.substitute(observe, observes=True)
    try:
        yield exchanges
    finally:
        take_back()


class _ObservedModel:
    """A model whose exchanges are kept.

    Args:
        model: The model.
        exchanges: Where they are kept.
    """

    def __init__(self, model: LanguageModel, exchanges: list[ModelExchange]) -> None:
        self.name = model.name
        self._model = model
        self._exchanges = exchanges

    async def request(self, request: Request) -> Response:
        """See `LanguageModel.request`."""
        exchange = self._begin(request)
        try:
            exchange.response = await self._model.request(request)
        except Exception as error:
            exchange.error = error
            raise
        return exchange.response

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """See `LanguageModel.stream`."""
        exchange = self._begin(request)
        try:
            async with aclosing(self._model.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        exchange.response = event.response
                    yield event
        except Exception as error:
            exchange.error = error
            raise

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """See `LanguageModel.cost`."""
        return self._model.cost(usage, at)

    def _begin(self, request: Request) -> ModelExchange:
        exchange = ModelExchange(self.name, request)
        self._exchanges.append(exchange)
        return exchange
