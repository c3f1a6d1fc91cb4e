"""Models of a replay: they return their recorded answers in the recorded order.

The event that starts a model request selects the answer.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import combinations
from typing import Final, NamedTuple, TypeAlias

import msgspec
import orjson

from toolcrib.contracts import (
    GuardDecision,
    Guardrail,
    LimitReached,
    LLMConfig,
    ModelDenied,
    ModelError,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    RunEvent,
)
from toolcrib.core.engines.replay.event_comparison import ASKED, ReplayState
from toolcrib.core.engines.replay.ordering import never
from toolcrib.core.engines.replay.recorded_ports import RUN
from toolcrib.core.runs.models.request_screening import Screens
from toolcrib.llm import Cost, Request, Response, TokenUsage, decode_response
from toolcrib.llm.base.messages import Done, Event
from toolcrib.llm.models.model import LanguageModel, open_candidates

Price: TypeAlias = Callable[[LLMConfig, TokenUsage, datetime], Cost]
"""What so many tokens of a model cost, by the prices of this release; used where the recording does not say it."""

Hear: TypeAlias = Callable[[str, ModelStarted, LanguageModel, Request], None]
"""Is told of each request of a replay: the run, the attempt as it was recorded, the model, and the whole request."""

_PLACES: Final = 12
"""Of a cost that is worked out; rates have no more."""


class ReplayModels:
    """Opens models that say what was said.

    Args:
        stage: Of the replay.
        price: See there.
        hear: Is told of each request.
    """

    def __init__(self, stage: ReplayState, price: Price, hear: Hear | None = None) -> None:
        self._stage = stage
        self._price = price
        self._hear = hear
        self._names: dict[str, set[str]] = {}
        self._costs: dict[tuple[str, int, int], Decimal | None] = {}
        for part in stage.parts.values():
            for entry in part.recorded.events:
                if isinstance(entry.event, ModelStarted | ModelDenied):
                    self._names.setdefault(entry.run_id, set()).add(entry.event.model)
                if isinstance(entry.event, ModelStarted):
                    self._learn(entry.event)

    def model(self, llm: LLMConfig) -> LanguageModel:
        """The model of a configuration."""
        if llm.fallbacks:
            return open_candidates(llm, self.model)
        names = self._names.get(RUN.get(), set())
        name = next(iter(names)) if len(names) == 1 else llm.model
        return ReplayModel(name, self._stage, lambda usage, at: self._cost(name, llm, usage, at), self._hear)

    def _learn(self, started: ModelStarted) -> None:
        facts = started.decision.inputs if started.decision is not None else {}
        count, output, cost = (facts.get(name) for name in ("input_tokens", "output_tokens", "cost_usd"))
        if isinstance(count, int) and isinstance(output, int):
            self._costs[started.model, count, output] = Decimal(str(cost)) if isinstance(cost, int | float) else None

    def _cost(self, name: str, llm: LLMConfig, usage: TokenUsage, at: datetime) -> Cost:
        key = name, usage.input, usage.output
        if key in self._costs:
            return Cost(self._costs[key], "as recorded")
        reservations = [
            _Reservation(count, output, cost) for (model, count, output), cost in self._costs.items() if model == name
        ]
        if not reservations:
            return self._cost_over_limit() or self._price(llm, usage, at)
        if any(self._agrees(llm, one, at) for one in reservations):
            return self._price(llm, usage, at)
        usd = _interpolate_cost([one for one in reservations if one.usd is not None], usage)
        return Cost(usd, "by the recorded prices" if usd is not None else "unknown, as recorded")

    def _cost_over_limit(self) -> Cost | None:
        """What a call would have cost that was the first of its run, and too dear for it."""
        events = (entry.event for entry in self._stage.life(RUN.get()).events)
        reached = next((one for one in events if isinstance(one, LimitReached) and one.limit == "max_cost_usd"), None)
        return None if reached is None else Cost(Decimal(str(reached.value)), "as recorded")

    def _agrees(self, llm: LLMConfig, reservation: "_Reservation", at: datetime) -> bool:
        """Whether the prices of this release are those by which a recorded reservation was made."""
        plain = TokenUsage(input=reservation.input, output=reservation.output)
        cached = msgspec.structs.replace(plain, cache_write=reservation.input)
        costs = [self._price(llm, usage, at).usd for usage in (plain, cached)]
        most = max((cost for cost in costs if cost is not None), default=None)
        return most is None if reservation.usd is None else most is not None and float(most) == float(reservation.usd)


class _Reservation(NamedTuple):
    """What a recorded reservation was for."""

    input: int
    output: int
    usd: Decimal | None


def _interpolate_cost(known: Sequence[_Reservation], usage: TokenUsage) -> Decimal | None:
    """What tokens cost by the costs of others, which are sums of a price for input and one for output."""
    for one, other in combinations(known, 2):
        common = one.input * other.output - other.input * one.output
        if common and one.usd is not None and other.usd is not None and one.usd != other.usd:
            of_input = (one.usd * other.output - other.usd * one.output) / common
            of_output = (one.input * other.usd - other.input * one.usd) / common
            return round(of_input * usage.input + of_output * usage.output, _PLACES)
    return known[0].usd if known else None


class ReplayScreens(Screens):
    """Content filters that find in an answer what they found then: the journal has what they let pass."""

    def __init__(self, stage: ReplayState) -> None:
        super().__init__()
        self._stage = stage

    def response(self, rules: tuple[Guardrail, ...], response: Response) -> tuple[Response, GuardDecision | None]:
        """The answer as it was taken, and what was found in it."""
        attempt = ASKED.get()
        entry = None if attempt is None else self._stage.life(RUN.get()).find("model_finished", attempt.position)
        event = None if entry is None else entry.event
        return response, event.decision if isinstance(event, ModelFinished) else None

    def output_tokens(self, position: str, number: int) -> int | None:
        """As it was then: what was left depends on which calls beside it had come first."""
        life = self._stage.life(RUN.get())
        entry = life.find("model_started", position, number)
        if entry is None or not isinstance(entry.event, ModelStarted) or entry.event.decision is None:
            return None
        facts = entry.event.decision.inputs
        return facts["output_tokens"] if "narrowed_from" in facts else 0


class ReplayModel:
    """A model that says what it said.

    Args:
        name: As it is recorded.
        stage: Of the replay.
        price: What tokens cost that were not used.
        hear: Is told of each request.
    """

    def __init__(
        self, name: str, stage: ReplayState, price: Callable[[TokenUsage, datetime], Cost], hear: Hear | None = None
    ) -> None:
        self.name = name
        self._stage = stage
        self._price = price
        self._hear = hear
        self._paid: list[tuple[TokenUsage, Cost]] = []

    async def request(self, request: Request) -> Response:
        """The recorded answer to the attempt that has just begun.

        Raises:
            ModelError: The attempt failed.
        """
        attempt = ASKED.get()
        if self._hear is not None and attempt is not None and not self._stage.score.stopped:
            self._hear(RUN.get(), attempt, self, request)
        entry = self._outcome()
        if entry is None:
            await never()
            raise ModelError("stream_cut", "the attempt was cut off")
        await self._stage.score.turn(entry)
        if isinstance(entry.event, ModelFailed):
            failed = entry.event
            raise ModelError(failed.kind, failed.message, status=failed.status, retry_after_s=failed.retry_after_s)
        return self._response_from(entry)

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The same, all at once."""
        yield Done(await self.request(request))

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """What an answer cost, and what others would have."""
        paid = (cost for known, cost in self._paid if known is usage)
        return next(paid, None) or self._price(usage, at)

    def _outcome(self) -> RunEvent | None:
        attempt = ASKED.get()
        if attempt is None:
            return None
        life = self._stage.life(RUN.get())
        failed = life.find("model_failed", attempt.position, attempt.attempt)
        return failed or life.find("model_finished", attempt.position)

    def _response_from(self, entry: RunEvent) -> Response:
        event = entry.event
        if not isinstance(event, ModelFinished):
            raise ModelError("bad_response", f"event {entry.number} is no answer")
        response = decode_response(orjson.dumps(event.response))
        self._paid.append((response.usage, Cost(event.cost_usd, event.cost_source or "", event.not_priced)))
        return response
