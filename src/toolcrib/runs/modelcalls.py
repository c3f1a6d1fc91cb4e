"""One model call of a run: reserved, journaled attempt by attempt, retried by our rules, priced.

The model layer never retries; every attempt is an event here, so that its failure and its cost can be read. A model
call that a crash cut off is sent again.
"""

from collections.abc import Callable
from dataclasses import dataclass

import orjson
from msgspec import Struct

from toolcrib.contracts import (
    EgressDenied,
    InvalidSettings,
    LimitReached,
    ModelError,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    Purpose,
    ToolcribError,
    Usage,
)
from toolcrib.executor import Clock
from toolcrib.llm import Cost, Message, Request, Response, decode_response, messages_as_json, response_as_json
from toolcrib.llm import Usage as ModelUsage
from toolcrib.llm.model import LanguageModel
from toolcrib.llm.retry import RetryPolicy
from toolcrib.policy import Budget, ModelReservation, Shortage
from toolcrib.runs.history import History
from toolcrib.runs.log import RunLog

_CHARACTERS_PER_TOKEN = 3
"""Few, because a reservation must not be too small."""


class ModelCall(Struct, frozen=True):
    """A model call as data."""

    position: str
    purpose: Purpose
    model: LanguageModel
    request: Request
    new: tuple[Message, ...] = ()
    """Messages that stand nowhere else in the journal."""
    system: str | None = None
    """System prompt, if it stands nowhere else in the journal."""
    tools: str | None = None
    """Digest of the blob with the offered tools."""


class BudgetExhausted(ToolcribError):
    """The run may not spend what the next model call could cost."""

    code = "budget_exhausted"

    def __init__(self, shortage: Shortage) -> None:
        super().__init__(shortage.message)
        self.shortage = shortage


@dataclass(slots=True)
class Spending:
    """What the model calls of a run came to."""

    usage: ModelUsage
    cost_unknown: bool = False


class ModelCalls:
    """Makes the model calls of one run.

    Args:
        log: Where events go.
        history: What is known already.
        budget: Where tokens and dollars are reserved and settled.
        clock: Time.
        jitter: Random numbers in [0, 1) for back-off.
        retry: When a failed attempt is worth another.
    """

    def __init__(
        self,
        log: RunLog,
        history: History,
        budget: Budget,
        clock: Clock,
        *,
        jitter: Callable[[], float],
        retry: RetryPolicy,
    ) -> None:
        self.spending = Spending(ModelUsage())
        self._log = log
        self._history = history
        self._budget = budget
        self._clock = clock
        self._jitter = jitter
        self._retry = retry
        self._recounted: set[str] = set()

    async def perform(self, call: ModelCall) -> Response:
        """The model's answer: from the journal, or from the model.

        Raises:
            BudgetExhausted: Iterations, tokens or dollars do not allow the call; nothing was sent.
            ModelError: The provider failed for good.
            InvalidSettings: The model's credential is missing.
        """
        known = self._history.answers.get(call.position)
        if known is not None:
            return self._recount(known)
        failed = self._history.failures.get(call.position)
        if failed is not None:
            raise ModelError(failed.kind, failed.message, status=failed.status)
        reservation = self._reserve(call)
        try:
            return await self._send_until_answered(call, reservation)
        except BaseException:
            self._settle(reservation, ModelUsage(), Cost(None, ""), paid=False)
            raise

    def recount_rest(self) -> None:
        """Count the answers of the journal that the program did not ask for again, because it was stopped before."""
        for position in self._history.answers.keys() - self._recounted:
            self._recount(self._history.answers[position])

    def _recount(self, known: ModelFinished) -> Response:
        self._recounted.add(known.position)
        self._budget.iterations += 1
        response = decode_response(orjson.dumps(known.response))
        self._settle(None, response.usage, Cost(known.cost_usd, known.cost_source or ""))
        return response

    def _reserve(self, call: ModelCall) -> ModelReservation:
        request = call.request
        characters = len(request.system) + request.tools.size + sum(map(_size, request.messages))
        most = ModelUsage(
            input=characters // _CHARACTERS_PER_TOKEN,
            output=request.max_tokens or self._budget.limits.max_tokens_per_call,
        )
        reservation = ModelReservation(
            tokens=most.input + most.output, cost_usd=call.model.cost(most, self._clock.now()).usd
        )
        shortage = self._shortage(call) or self._budget.reserve_model(reservation)
        if shortage is not None:
            self._log.add(
                LimitReached(
                    limit=shortage.limit, value=shortage.value, maximum=shortage.maximum, message=shortage.message
                )
            )
            raise BudgetExhausted(shortage)
        return reservation

    def _shortage(self, call: ModelCall) -> Shortage | None:
        """Whether no more answers are allowed; what was done may be reported even then."""
        return None if call.purpose == "formatting" else self._budget.iteration_shortage()

    async def _send_until_answered(self, call: ModelCall, reservation: ModelReservation) -> Response:
        first = self._history.attempts.get(call.position, 0) + 1
        attempt = first
        while True:
            self._log.add(
                ModelStarted(
                    position=call.position,
                    purpose=call.purpose,
                    model=call.model.name,
                    attempt=attempt,
                    system=call.system if attempt == 1 else None,
                    tools=call.tools,
                    messages=messages_as_json(call.new) if call.new and attempt == 1 else None,
                    history=len(call.request.messages),
                )
            )
            started = self._clock.monotonic()
            try:
                response = await call.model.request(call.request)
            except ModelError as error:
                wait = self._retry.wait_s(error, attempt - first, self._jitter())
                self._log.add(_failure(call, attempt, error, wait))
                if wait is None:
                    raise
            except (InvalidSettings, EgressDenied) as error:
                refused = ModelError("auth" if isinstance(error, InvalidSettings) else "bad_request", str(error))
                self._log.add(_failure(call, attempt, refused, None))
                raise refused from error
            else:
                self._finish(call, response, reservation, attempt, self._clock.monotonic() - started)
                return response
            await self._clock.sleep(wait)
            attempt += 1

    def _finish(
        self, call: ModelCall, response: Response, reservation: ModelReservation, attempts: int, seconds: float
    ) -> None:
        cost = call.model.cost(response.usage, self._clock.now())
        self._settle(reservation, response.usage, cost)
        self._budget.iterations += 1
        self._log.add(
            ModelFinished(
                position=call.position,
                purpose=call.purpose,
                model=call.model.name,
                response=response_as_json(response),
                usage=as_contract(response.usage),
                cost_usd=cost.usd,
                cost_source=cost.source,
                attempts=attempts,
                duration_s=seconds,
            )
        )

    def _settle(
        self, reservation: ModelReservation | None, usage: ModelUsage, cost: Cost, *, paid: bool = True
    ) -> None:
        self._budget.settle_model(reservation, tokens=usage.input + usage.output, cost_usd=cost.usd)
        self.spending.usage += usage
        if paid and cost.usd is None:
            self.spending.cost_unknown = True


def as_contract(usage: ModelUsage) -> Usage:
    """The model layer's token counts as the contract shows them."""
    return Usage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        reasoning_tokens=usage.reasoning,
        estimated=usage.estimated,
    )


def _failure(call: ModelCall, attempt: int, error: ModelError, wait: float | None) -> ModelFailed:
    return ModelFailed(
        position=call.position,
        attempt=attempt,
        kind=error.kind,
        message=str(error),
        status=error.status,
        retry_in_s=wait,
    )


def _size(message: Message) -> int:
    size = 0
    for part in message.parts:
        size += len(getattr(part, "text", "")) + len(getattr(part, "args", ""))
    return size
