"""A model request of a run: guarded, reserved, journaled per attempt, retried, priced.

The model layer never retries, so every attempt is an event, with its decision, failure and cost. A request that a
crash interrupted is sent again, and the lost attempt counts with its maximum usage.
"""

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import orjson
from msgspec import Struct

from toolcrib.contracts import (
    EgressDenied,
    ErrorCode,
    GuardDecision,
    Guardrail,
    InvalidInput,
    InvalidSettings,
    Json,
    JsonObject,
    LimitReached,
    ModelDenied,
    ModelError,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    NotFound,
    Purpose,
    ToolcribError,
    ToolError,
)
from toolcrib.contracts.runs.recordings import RecordedAnswer, RecordedFailure
from toolcrib.core.executor import Clock, error
from toolcrib.core.policy import (
    Budget,
    CapReservation,
    GuardedModel,
    Guardrails,
    ModelReservation,
    RunCaps,
    Shortage,
    Spend,
    strictest,
    withholds_text,
)
from toolcrib.core.runs.forks.fork import copy_answer, copy_failure
from toolcrib.core.runs.forks.recording import Recording
from toolcrib.core.runs.interrupts.suspension import RunEnd
from toolcrib.core.runs.journal.history import History, as_contract, at_most, model_usage
from toolcrib.core.runs.journal.log import RunLog
from toolcrib.core.runs.models.live import OpenBuffer, answer, no_subscribers
from toolcrib.core.runs.models.request_screening import NOBODY, Estimate, ModelCallScope, Screens
from toolcrib.llm import (
    Cost,
    Message,
    Request,
    Response,
    check_characters,
    decode_response,
    messages_as_json,
    response_as_json,
)
from toolcrib.llm import TokenUsage as ModelUsage
from toolcrib.llm.base.errors import ModelRetryPolicy
from toolcrib.llm.base.files import files_in, has_files, places_shown
from toolcrib.llm.base.messages import GrowingHash
from toolcrib.llm.models.model import LanguageModel, ModelWithFallbacks

_PERHAPS_BILLED: Final = frozenset({"timeout", "stream_cut", "bad_response"})
"""Failures that come when the provider has begun to answer."""
_LEAST_OUTPUT: Final = 1024
"""Output tokens to which a request is narrowed at the least."""
_FREE: Final[frozenset[Purpose]] = frozenset({"formatting", "answer", "summary"})
"""Purposes that are no turn of a loop, so that no `max_iterations` keeps them from being asked."""


class ModelCall(Struct, frozen=True, gc=False):
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
    request_hash: str = ""
    """Of the request, as content filters let it pass."""


class _Attempt(Struct, frozen=True, gc=False):
    """A call that may be sent."""

    call: ModelCall
    number: int
    reservation: ModelReservation
    decision: GuardDecision
    cap_reservation: CapReservation | None = None
    """What was reserved under the caps on what many runs spend."""


class BudgetExhausted(ToolcribError):
    """The run may not spend what the next model call could cost."""

    code = "budget_exhausted"

    def __init__(self, shortage: Shortage) -> None:
        super().__init__(shortage.message)
        self.shortage = shortage

    @property
    def error(self) -> ToolError:
        """The same as data: the limit, its value and what would have been used are in its details."""
        short = self.shortage
        facts: JsonObject = {"limit": short.limit, "value": short.value, "maximum": short.maximum}
        return error(ErrorCode.POLICY_DENIED, short.reason, str(self), **facts)

    def run_end(self, partial: Json = None, warnings: tuple[str, ...] = ()) -> RunEnd:
        """The end of a run that can do nothing else any more.

        Args:
            partial: What it has done.
            warnings: What else is to be told.
        """
        return RunEnd(
            partial=partial,
            status="incomplete",
            stop_reason=self.shortage.stop_reason,
            error=self.error,
            warnings=(*warnings, str(self)),
        )


class ModelRefused(ToolcribError):
    """A guardrail forbids a model call, or withholds its answer."""

    code = "model_refused"

    def __init__(self, decision: GuardDecision) -> None:
        super().__init__(decision.message or decision.rule)
        self.decision = decision


@dataclass(slots=True)
class Spending:
    """What the model calls of a run came to."""

    usage: ModelUsage
    cost_unknown: bool = False


ReadBlob: TypeAlias = Callable[[str], Awaitable[bytes]]
"""Reads what is kept under a digest; raises `NotFound`."""


class ModelCallRules(NamedTuple):
    """What the model calls of a run are held against."""

    guardrails: Guardrails | None = None
    """Asks the rules of the run; those that everybody has if null."""
    run_caps: RunCaps | None = None
    """Asks the caps on what many runs spend; there are none if null."""
    screens: Screens | None = None
    """The content filters; in a replay they find what they found."""
    narrows_tokens: bool = False
    """Whether a request that does not fit into the cost limits is made with fewer output tokens."""
    read_blob: ReadBlob | None = None
    """Reads the bytes of files; files are described in words if null."""


class ModelCalls:
    """Makes the model calls of one run.

    Args:
        log: Where events go.
        history: What is known already.
        budget: Where tokens and dollars are reserved and settled.
        clock: Time.
        open_buffer: Lets those who watch the run hear what is said; nobody does if not given.
        jitter: Random numbers in [0, 1) for back-off.
        retry: When a failed attempt is worth another.
        rules: What the calls are held against.
    """

    def __init__(
        self,
        log: RunLog,
        history: History,
        budget: Budget,
        clock: Clock,
        *,
        open_buffer: OpenBuffer = no_subscribers,
        jitter: Callable[[], float],
        retry: ModelRetryPolicy,
        rules: ModelCallRules | None = None,
    ) -> None:
        rules = rules or ModelCallRules()
        self.spending = Spending(ModelUsage())
        self._log = log
        self._history = history
        self._budget = budget
        self._clock = clock
        self._open_buffer = open_buffer
        self._jitter = jitter
        self._retry = retry
        self._guardrails = rules.guardrails or Guardrails()
        self._run_caps = rules.run_caps
        self._estimate = Estimate()
        self._hashes = GrowingHash()
        self._screens = rules.screens or Screens()
        self._narrows_tokens = rules.narrows_tokens
        self._read_blob = rules.read_blob
        self._fallback = history.fallback
        """The model that is asked in place of the one that is configured; that one if null."""
        self._kept: ModelReservation | None = None
        """For a last answer."""
        self.recording: Recording | None = None
        """What may be taken from another run instead of asking; nothing if null."""
        self._recount()

    def perform(self, call: ModelCall, standing: ModelCallScope = NOBODY) -> Coroutine[Any, Any, Response]:
        """The model's answer: from the journal, or from the model.

        Raises:
            BudgetExhausted: Iterations, tokens or dollars do not allow the call; nothing was sent.
            ModelRefused: A guardrail forbids it, or withholds the answer.
            ModelError: The provider failed for good.
            InvalidSettings: The model's credential is missing.
        """
        known, position = self._history, call.position
        if (
            position in known.answers
            or position in known.failures
            or position in known.denials
            or (self.recording is not None)
        ):
            return self._recall(call, standing)
        return self._send(call, standing)

    async def _recall(self, call: ModelCall, standing: ModelCallScope) -> Response:
        """What is known of a call already, here or in the run that is taken from; else the model is asked."""
        known = self._history.answers.get(call.position)
        if known is not None:
            response = decode_response(orjson.dumps(known.response))
            self._estimate.learn(call.request, response.usage)
            return _unless_refused(response, known.decision)
        failed = self._history.failures.get(call.position)
        if failed is not None:
            raise _failure(failed)
        denied = self._history.denials.get(call.position)
        if denied is not None:
            raise ModelRefused(denied.decision)
        screened, found = self._screened(call, standing)
        recorded = None if self.recording is None else self.recording.answer(call.position, screened.request_hash)
        if recorded is not None:
            return self._take(self._admit_attempt(screened, standing, found, 1, recorded=True), standing, recorded)
        return await self._send(call, standing)

    def _screened(self, call: ModelCall, standing: ModelCallScope) -> tuple[ModelCall, GuardDecision | None]:
        """The call as it may be sent, with the hash of that, and what content filters have found."""
        found = None
        if standing.guardrails:
            call, found = self._screen_call(call, standing.guardrails)
        return msgspec.structs.replace(call, request_hash=self._hashes.of(call.model.name, call.request)), found

    def _screen_call(
        self, call: ModelCall, guardrails: tuple[Guardrail, ...]
    ) -> tuple[ModelCall, GuardDecision | None]:
        """The call as content filters let it pass, and what they have found."""
        request = call.request
        system, messages, found = self._screens.request(guardrails, request.system, request.messages)
        if found is None:
            return call, None
        _, new, _ = self._screens.request(guardrails, "", call.new)
        return msgspec.structs.replace(
            call,
            request=msgspec.structs.replace(request, system=system, messages=messages),
            new=new,
            system=None if call.system is None else system,
        ), found

    async def _with_files(
        self, call: ModelCall, found: GuardDecision | None, standing: ModelCallScope
    ) -> tuple[ModelCall, GuardDecision | None]:
        """The call with the bytes of its files, and what content filters have found in all of it."""
        files = files_in(call.request.messages)
        data: dict[str, bytes] = {}
        shown, read = [files[place] for place in sorted(places_shown(files))], self._read_blob
        for file in shown:
            if read is not None and file.digest not in data:
                with suppress(NotFound):
                    data[file.digest] = await read(file.digest)
        passed, decision = self._screens.files(standing.guardrails, shown, data)
        request = msgspec.structs.replace(call.request, files=passed)
        decisions = [each for each in (found, decision) if each is not None]
        return msgspec.structs.replace(call, request=request), strictest(decisions)

    def keep_answer(self, model: LanguageModel, request: Request) -> bool:
        """Hold back what a request of this length may use at most, until `release_answer`.

        Returns:
            False if it is more than a quarter of what a run begins with, so that nothing was held back.
        """
        self.release_answer()
        most = self._estimate.most(request, request.max_tokens or self._budget.limits.max_tokens_per_call)
        reservation = ModelReservation(most.input + most.output, self._most_expensive(model, most))
        if not (self._history.begun or self._budget.has_plenty(reservation)) or self._budget.reserve_model(reservation):
            return False
        self._kept = reservation
        return True

    def release_answer(self) -> None:
        """Give back what was held back for a last answer."""
        if self._kept is not None:
            self._budget.settle_model(self._kept, tokens=0, cost_usd=None)
            self._kept = None

    def know(self, history: History) -> None:
        """Count the turns that were taken in another run, and now are this one's: nobody has paid for them here."""
        for known in history.answers.values():
            self._budget.settle_model(None, tokens=0, cost_usd=Decimal(0), iterations=iterations_of(known.purpose))

    def _recount(self) -> None:
        """Count what the journal has: answers, and attempts that may have cost something and brought nothing."""
        for known in self._history.answers.values():
            cost = Cost(known.cost_usd, known.cost_source or "", known.not_priced)
            self._settle(None, model_usage(known.usage), cost, iterations=iterations_of(known.purpose))
        for wasted in self._history.wasted:
            self._settle(None, wasted.usage, Cost(wasted.cost_usd, "at most"), cut_off=True)

    def _admit_attempt(
        self,
        call: ModelCall,
        standing: ModelCallScope,
        found: GuardDecision | None,
        number: int,
        *,
        recorded: bool = False,
    ) -> _Attempt:
        """Ask the guardrails, and reserve what an attempt may use at most; a recorded one uses nothing any more.

        Raises:
            ModelRefused: A guardrail forbids the call.
            BudgetExhausted: A limit does not allow it.
        """
        budget, limits = self._budget, self._budget.limits
        most = (
            ModelUsage()
            if recorded
            else self._estimate.most(call.request, call.request.max_tokens or limits.max_tokens_per_call)
        )
        cost, whole = self._most_expensive(call.model, most), most.output
        known = self._known_output(call, number) if self._narrows_tokens and not recorded else 0
        output = (whole if cost is None else self._fit(call, most, cost)) if known is None else known or whole
        if output < whole:
            most = msgspec.structs.replace(most, output=output)
            cost = self._most_expensive(call.model, most)
            request = msgspec.structs.replace(call.request, max_tokens=output)
            call = msgspec.structs.replace(call, request=request)
        reservation = ModelReservation(most.input + most.output, cost, 0 if call.purpose in _FREE else 1)
        refused = self._judge_call(call, standing, found, reservation) if standing.guardrails else found
        if refused is not None and refused.outcome == "deny":
            self._log.add(
                ModelDenied(position=call.position, purpose=call.purpose, model=call.model.name, decision=refused)
            )
            raise ModelRefused(refused)
        facts = budget.model_facts()
        facts["input_tokens"], facts["output_tokens"] = most.input, most.output
        if cost is not None:
            facts["cost_usd"] = float(cost)
        if output < whole:
            facts["narrowed_from"] = whole
        shortage = budget.reserve_model(reservation, settled=bool(known))
        if shortage is not None:
            if call.purpose != "answer":  # which is asked for because a limit was reached: that was told
                self._log.add(_limit_event(shortage))
            raise BudgetExhausted(shortage)
        if found is not None:
            facts |= found.inputs
        return _Attempt(call, number, reservation, GuardDecision(outcome="allow", rule="allowed", inputs=facts))

    def _known_output(self, call: ModelCall, number: int) -> int | None:
        """To how many output tokens an attempt is narrowed, if that is known: 0 for none, null to find it out."""
        if call.purpose == "planning" or call.request.output_schema is not None:
            return 0  # which would be of no use if they were cut short
        return self._screens.output_tokens(call.position, number)

    def _fit(self, call: ModelCall, most: ModelUsage, cost: Decimal) -> int:
        """How many output tokens an attempt may have: as many as what is left of the cost limits pays for.

        All of them where that is enough, or where not even the least would do: then it is refused by its whole cost.
        """
        left = self._budget.usd_left
        if left is None or cost <= left or most.output <= _LEAST_OUTPUT:
            return most.output
        least = self._most_expensive(call.model, msgspec.structs.replace(most, output=_LEAST_OUTPUT))
        if least is None or least > left:
            return most.output
        return _LEAST_OUTPUT + int((most.output - _LEAST_OUTPUT) * (left - least) / (cost - least))

    def _judge_call(
        self, call: ModelCall, standing: ModelCallScope, found: GuardDecision | None, most: ModelReservation
    ) -> GuardDecision | None:
        """The strictest that guardrails say of a call, its contents included; null for nothing."""
        guarded = GuardedModel(
            call.model.name,
            standing.realm,
            standing.principal,
            tokens=most.tokens,
            priced=most.cost_usd is not None,
            tainted_by=standing.tainted_by,
        )
        return strictest(filter(None, (found, self._guardrails.judge(standing.guardrails, guarded))))

    def _most_expensive(self, model: LanguageModel, most: ModelUsage) -> Decimal | None:
        """What so many tokens cost at most: a prompt may be written to the provider's cache, for a price of its own.

        A model without a price has none for a cached prompt either.
        """
        now = self._clock.now()
        cost = model.cost(most, now).usd
        if cost is None:
            return None
        cached = model.cost(msgspec.structs.replace(most, cache_write=most.input), now).usd
        return cost if cached is None or cached <= cost else cached

    def _send(self, asked: ModelCall, standing: ModelCallScope) -> Coroutine[Any, Any, Response]:
        """Ask the model what it may be asked, with the bytes of the files in it."""
        call, found = self._screened(asked, standing)
        if has_files(call.request.messages):
            return self._send_with_files(call, found, standing)
        return self._send_until_answered(call, found, standing)

    async def _send_with_files(
        self, asked: ModelCall, found: GuardDecision | None, standing: ModelCallScope
    ) -> Response:
        call, found = await self._with_files(asked, found, standing)
        return await self._send_until_answered(call, found, standing)

    async def _send_until_answered(
        self, call: ModelCall, found: GuardDecision | None, standing: ModelCallScope
    ) -> Response:
        first = number = self._history.attempts.get(call.position, 0) + 1
        others: tuple[LanguageModel, ...] = ()
        if type(call.model) is ModelWithFallbacks:
            model, others = self._candidates(call.model)
            call = _asking(call, model)
        is_held = bool(standing.guardrails) and withholds_text(standing.guardrails)
        while True:
            attempt = self._admit_attempt(call, standing, found, number)
            if self._run_caps is not None:
                attempt = await self._reserve_caps(attempt, self._run_caps)
            self._log.add(_start_event(attempt))
            model, request = attempt.call.model, attempt.call.request
            started = self._clock.monotonic()
            try:
                speech = None if is_held else self._open_buffer(self._log)
                if speech is None:
                    response = await model.request(request)
                else:
                    with speech as heard:
                        response = await answer(model, request, heard)
                check_characters(response, model.name)
            except (ModelError, InvalidInput, EgressDenied) as problem:
                error = _as_model_error(problem)
                wait = self._retry.wait_s(error, number - first, self._jitter(), has_fallback=bool(others))
                if wait is None and others and error.may_fall_back:
                    wait, first, call = 0.0, number + 1, _asking(call, others[0])
                    self._fallback, others = others[0].name, others[1:]
                    await self._fail(attempt, error, wait, fallback=self._fallback)
                else:
                    await self._fail(attempt, error, wait)
                if wait is None:
                    raise error from (None if error is problem else problem)
            except BaseException:
                usage, cost = at_most(attempt.decision)  # it was sent, and nobody knows how far the provider came
                self._settle(attempt.reservation, usage, Cost(cost, "at most"), cut_off=True)
                await self._pay(attempt, usage, cost)
                raise
            else:
                return await self._finish(attempt, standing, response, self._clock.monotonic() - started)
            await self._clock.sleep(wait)
            number += 1

    def _candidates(self, model: ModelWithFallbacks) -> tuple[LanguageModel, tuple[LanguageModel, ...]]:
        """The model to ask, and those that may be asked in its place: a run stays with what it has fallen back on."""
        names = [each.name for each in model.candidates]
        place = names.index(self._fallback) if self._fallback in names else 0
        return model.candidates[place], model.candidates[place + 1 :]

    def _take(
        self, attempt: _Attempt, standing: ModelCallScope, recorded: RecordedAnswer | RecordedFailure
    ) -> Response:
        """What came of the same request in another run; filters of this one see it too."""
        call = attempt.call
        self._log.add(_start_event(attempt))
        self._settle(
            attempt.reservation, ModelUsage(), Cost(Decimal(0), "fork"), iterations=iterations_of(call.purpose)
        )
        if isinstance(recorded, RecordedFailure):
            failed = copy_failure(recorded.end).model_copy(update={"position": call.position})
            self._log.add(failed)
            raise _failure(failed)
        response = decode_response(orjson.dumps(recorded.end.response))
        self._estimate.learn(call.request, response.usage)
        response, found = self._screens.response(standing.guardrails, response)
        found = found or recorded.end.decision
        own = {"position": call.position, "response": response_as_json(response), "decision": found}
        self._log.add(copy_answer(recorded.end, recorded.event).model_copy(update=own))
        return _unless_refused(response, found)

    async def _fail(
        self, attempt: _Attempt, error: ModelError, wait: float | None, *, fallback: str | None = None
    ) -> None:
        """Record a failed attempt. One that may have been answered counts with what it may have used at most."""
        billed = error.kind in _PERHAPS_BILLED
        usage, cost = at_most(attempt.decision) if billed else (ModelUsage(), None)
        self._settle(attempt.reservation, usage, Cost(cost, "at most"), paid=billed, cut_off=billed)
        await self._pay(attempt, usage, cost)
        self._log.add(
            ModelFailed(
                position=attempt.call.position,
                attempt=attempt.number,
                kind=error.kind,
                message=str(error),
                status=error.status,
                retry_after_s=error.retry_after_s,
                retry_in_s=wait,
                fallback=fallback,
                usage=as_contract(usage),
                cost_usd=cost,
            )
        )

    async def _finish(
        self, attempt: _Attempt, standing: ModelCallScope, response: Response, seconds: float
    ) -> Response:
        """Settle and record an answer."""
        call = attempt.call
        cost = call.model.cost(response.usage, self._clock.now())
        self._settle(attempt.reservation, response.usage, cost, iterations=iterations_of(call.purpose))
        if attempt.cap_reservation is not None:
            await self._pay(attempt, response.usage, cost.usd)
        self._estimate.learn(call.request, response.usage)
        response, found = self._screens.response(standing.guardrails, response)
        self._log.add(
            ModelFinished(
                position=call.position,
                purpose=call.purpose,
                model=call.model.name,
                response=response_as_json(response),
                usage=as_contract(response.usage),
                cost_usd=cost.usd,
                cost_source=cost.source,
                not_priced=cost.not_priced,
                attempts=attempt.number,
                duration_s=seconds,
                decision=found,
            )
        )
        return _unless_refused(response, found)

    async def _reserve_caps(self, attempt: _Attempt, run_caps: RunCaps) -> _Attempt:
        """The attempt with what is reserved for it under the caps on what many runs spend.

        Raises:
            BudgetExhausted: One of them does not allow it.
        """
        most = attempt.reservation
        reservation = await run_caps.reserve(f"model/{attempt.call.position}", Spend(0, most.tokens, most.cost_usd))
        if isinstance(reservation, Shortage):
            self._budget.settle_model(most, tokens=0, cost_usd=None)
            if attempt.call.purpose != "answer":
                self._log.add(_limit_event(reservation))
            raise BudgetExhausted(reservation)
        facts = {**attempt.decision.inputs, **reservation.facts}
        decision = attempt.decision.model_copy(update={"inputs": facts})
        return msgspec.structs.replace(attempt, decision=decision, cap_reservation=reservation)

    async def _pay(self, attempt: _Attempt, usage: ModelUsage, cost_usd: Decimal | None) -> None:
        """Count what an attempt came to under those caps."""
        if self._run_caps is not None and attempt.cap_reservation is not None:
            await self._run_caps.settle(attempt.cap_reservation, Spend(0, usage.input + usage.output, cost_usd))

    def _settle(
        self,
        reservation: ModelReservation | None,
        usage: ModelUsage,
        cost: Cost,
        *,
        iterations: int = 0,
        paid: bool = True,
        cut_off: bool = False,
    ) -> None:
        tokens = usage.input + usage.output
        self._budget.settle_model(reservation, tokens=tokens, cost_usd=cost.usd, iterations=iterations, cut_off=cut_off)
        self.spending.usage += usage
        if paid and (cost.usd is None or cost.not_priced):
            self.spending.cost_unknown = True


def iterations_of(purpose: Purpose) -> int:
    """An iteration is an answer of the model, but not what comes before the first turn or after the last."""
    return 0 if purpose in {"summary", "answer"} else 1


def _start_event(attempt: _Attempt) -> ModelStarted:
    """An attempt as the journal is told of it; the first of a call says what is asked."""
    call, is_first = attempt.call, attempt.number == 1
    return ModelStarted(
        position=call.position,
        purpose=call.purpose,
        model=call.model.name,
        attempt=attempt.number,
        system=call.system if is_first else None,
        tools=call.tools,
        messages=messages_as_json(call.new) if call.new and is_first else None,
        history=len(call.request.messages),
        decision=attempt.decision,
        request_hash=call.request_hash if is_first else None,
    )


def _failure(failed: ModelFailed) -> ModelError:
    return ModelError(failed.kind, failed.message, status=failed.status, retry_after_s=failed.retry_after_s)


def _as_model_error(problem: ModelError | InvalidInput | EgressDenied) -> ModelError:
    """A request that was not sent is one that failed: a missing credential is one that is refused."""
    if isinstance(problem, ModelError):
        return problem
    return ModelError("auth" if isinstance(problem, InvalidSettings) else "bad_request", str(problem))


def _asking(call: ModelCall, model: LanguageModel) -> ModelCall:
    """The call of another model. What only the provider that is configured understands is not sent to another one."""
    request = call.request
    if model.name.partition(":")[0] != call.model.name.partition(":")[0]:
        request = msgspec.structs.replace(
            request, extra={}, reasoning=None, frequency_penalty=None, presence_penalty=None
        )
    return msgspec.structs.replace(call, model=model, request=request)


def _limit_event(shortage: Shortage) -> LimitReached:
    return LimitReached(limit=shortage.limit, value=shortage.value, maximum=shortage.maximum, message=shortage.message)


def _unless_refused(response: Response, decision: GuardDecision | None) -> Response:
    if decision is not None and decision.outcome == "deny":
        raise ModelRefused(decision)
    return response
