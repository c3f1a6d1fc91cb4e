"""Model calls: reserved before they are sent, every attempt in the journal, the answer of the journal ever after."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

import pytest

from tests.twins import ManualClock
from tests.unit.store.samples import NOON, claimed, later, started
from toolcrib.contracts import (
    EgressDenied,
    InvalidSettings,
    LimitReached,
    Limits,
    ModelError,
    ModelFailed,
    ModelFinished,
    ModelStarted,
)
from toolcrib.core.policy import Budget
from toolcrib.core.runs import BudgetExhausted, History, ModelCall, ModelCalls, RunLog
from toolcrib.infrastructure.store import Claim, MemoryStore
from toolcrib.llm import Cost, Request, Response, ScriptedAnswer, ScriptedModel, TokenUsage, user
from toolcrib.llm.base.errors import ModelRetryPolicy
from toolcrib.llm.models.model import LanguageModel

OVERLOADED = ModelError("overloaded", "try later", status=529)
REQUEST = Request(messages=(user("How many?"),), system="Count.", max_tokens=100)


class Priced(ScriptedModel):
    """A scripted model with a price: a cent per output token, or an unknown one."""

    def __init__(self, answers: Sequence[ScriptedAnswer], *, known: bool = True) -> None:
        super().__init__(answers)
        self._known = known

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        return Cost(Decimal(usage.output) / 100, "table") if self._known else Cost(None, "unknown")


class Desk:
    """The model calls of one run, as the process sees them that has it now."""

    def __init__(self, claim: Claim, store: MemoryStore, clock: ManualClock, limits: Limits | None) -> None:
        self.store = store
        self.clock = clock
        self.budget = Budget(limits or Limits())
        self.log = RunLog(store.journal, claim.run, clock, claim.events)
        self.calls = ModelCalls(
            self.log, History(claim.events), self.budget, clock, jitter=lambda: 0.0, retry=ModelRetryPolicy()
        )

    @classmethod
    async def open(cls, limits: Limits | None = None) -> "Desk":
        store = MemoryStore()
        return cls(await started(store.journal), store, ManualClock(NOON), limits)

    async def taken_over(self) -> "Desk":
        """The same run in the next process."""
        claim = await claimed(self.store.journal, owner="next", at=later(1000))
        return Desk(claim, self.store, self.clock, self.budget.limits)

    async def ask(self, model: LanguageModel, position: str = "t1.llm", request: Request = REQUEST) -> Response:
        call = ModelCall(position, "planning", model, request, new=request.messages, system=request.system)
        return await self.calls.perform(call)

    @property
    def told(self) -> list[tuple[str, int]]:
        """Attempts in the journal."""
        found = (entry.event for entry in self.log.events)
        return [
            (event.type, event.attempts if isinstance(event, ModelFinished) else event.attempt)
            for event in found
            if isinstance(event, ModelStarted | ModelFailed | ModelFinished)
        ]


@pytest.mark.requirement("runs.model_attempts")
async def test_a_call_that_fails_is_sent_again_after_a_wait_and_every_attempt_is_told():
    desk = await Desk.open()
    model = Priced([OVERLOADED, ModelError("rate_limit", "slow down", retry_after_s=7), "Five."])

    answer = await desk.ask(model)

    assert answer.message.text == "Five."
    assert desk.clock.naps == [0.5, 7]
    assert desk.told == [
        ("model_started", 1),
        ("model_failed", 1),
        ("model_started", 2),
        ("model_failed", 2),
        ("model_started", 3),
        ("model_finished", 3),
    ]
    started_first, failed, started_again = [entry.event for entry in desk.log.events[1:4]]
    assert isinstance(started_first, ModelStarted)
    assert isinstance(started_again, ModelStarted)
    assert (started_first.system, started_again.system) == ("Count.", None)
    assert started_first.messages is not None
    assert started_again.messages is None
    assert isinstance(failed, ModelFailed)
    assert (failed.kind, failed.status, failed.retry_in_s) == ("overloaded", 529, 0.5)


@pytest.mark.requirement("runs.model_attempts")
async def test_a_call_that_fails_too_often_fails_for_good_and_gives_its_reservation_back():
    desk = await Desk.open()

    with pytest.raises(ModelError, match="try later"):
        await desk.ask(Priced([OVERLOADED] * 4))

    assert desk.clock.naps == [0.5, 1, 2]
    assert desk.told[-1] == ("model_failed", 4)
    assert (desk.budget.reserved_tokens, desk.budget.reserved_usd, desk.budget.cost_usd) == (
        0,
        0,
        0,
    )


class Closed(ScriptedModel):
    """A model that cannot be asked at all."""

    def __init__(self, cause: InvalidSettings | EgressDenied) -> None:
        super().__init__([])
        self._cause = cause

    async def request(self, request: Request) -> Response:
        raise self._cause


@pytest.mark.requirement("runs.model_refused")
@pytest.mark.parametrize(
    ("cause", "kind"), [(InvalidSettings("no key"), "auth"), (EgressDenied("not there"), "bad_request")]
)
async def test_a_model_that_cannot_be_asked_fails_at_once(cause: InvalidSettings | EgressDenied, kind: str):
    desk = await Desk.open()

    with pytest.raises(ModelError) as caught:
        await desk.ask(Closed(cause))

    assert (caught.value.kind, str(caught.value)) == (kind, str(cause))
    assert desk.told == [("model_started", 1), ("model_failed", 1)]
    assert desk.clock.naps == []


@pytest.mark.requirement("runs.model_recorded")
async def test_an_answer_that_the_journal_has_is_not_asked_for_again_and_counts():
    desk = await Desk.open()
    first = await desk.ask(Priced(["Five."]))

    heir = await desk.taken_over()
    unused = Priced([])
    again = await heir.ask(unused)

    assert again == first
    assert unused.requests == []
    assert heir.budget.cost_usd == desk.budget.cost_usd > 0
    assert heir.budget.tokens == desk.budget.tokens
    assert heir.calls.spending == desk.calls.spending
    assert heir.told == desk.told


@pytest.mark.requirement("runs.model_recorded")
async def test_a_failure_that_the_journal_has_fails_again_without_asking():
    desk = await Desk.open()
    with pytest.raises(ModelError):
        await desk.ask(Priced([ModelError("quota", "no money", status=402)]))

    heir = await desk.taken_over()
    with pytest.raises(ModelError) as caught:
        await heir.ask(Priced([]))

    assert (caught.value.kind, str(caught.value), caught.value.status) == ("quota", "no money", 402)


@pytest.mark.requirement("runs.model_recorded", "runs.model_attempts")
async def test_a_call_that_a_crash_cut_off_is_sent_again_with_all_its_retries():
    desk = await Desk.open()
    asking = asyncio.create_task(desk.ask(ScriptedModel(lambda request: asyncio.get_running_loop().create_future())))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    assert desk.told == [("model_started", 1)]
    assert desk.budget.reserved_tokens == 0

    heir = await desk.taken_over()
    answer = await heir.ask(Priced([OVERLOADED, OVERLOADED, OVERLOADED, "Five."]))

    assert answer.message.text == "Five."
    assert heir.told[-1] == ("model_finished", 5)
    assert heir.clock.naps == [0.5, 1, 2]


@pytest.mark.requirement("runs.model_budget")
@pytest.mark.parametrize(
    ("limits", "limit", "stop_reason"),
    [
        (Limits(max_cost_usd=Decimal("0.99")), "max_cost_usd", "max_cost"),
        (Limits(max_total_tokens=90), "max_total_tokens", "max_tokens"),
    ],
)
async def test_what_a_call_could_use_is_reserved_before_anything_is_sent(limits: Limits, limit: str, stop_reason: str):
    desk = await Desk.open(limits)
    model = Priced(["Five."])

    with pytest.raises(BudgetExhausted) as caught:
        await desk.ask(model)

    assert model.requests == []
    assert (caught.value.shortage.limit, caught.value.shortage.stop_reason) == (limit, stop_reason)
    last = desk.log.events[-1].event
    assert isinstance(last, LimitReached)
    assert (last.limit, last.message) == (limit, str(caught.value))


@pytest.mark.requirement("runs.model_budget")
async def test_calls_at_the_same_time_cannot_overspend_together():
    desk = await Desk.open(Limits(max_cost_usd=Decimal("1.50")))
    waiting: asyncio.Future[ScriptedAnswer] = asyncio.get_running_loop().create_future()
    model = SlowPriced(waiting)
    first = asyncio.create_task(desk.ask(model, "a"))
    await asyncio.sleep(0)

    with pytest.raises(BudgetExhausted):
        await desk.ask(model, "b")
    waiting.set_result("Five.")
    await first

    await desk.ask(Priced(["Six."]), "b")


class SlowPriced(Priced):
    """A priced model that answers when it is told to."""

    def __init__(self, answer: "asyncio.Future[ScriptedAnswer]") -> None:
        super().__init__([])
        self._answer = answer

    async def request(self, request: Request) -> Response:
        await self._answer
        return await Priced(["Five."]).request(request)


@pytest.mark.requirement("runs.model_unpriced")
async def test_an_unknown_price_is_said_and_stops_nothing():
    desk = await Desk.open(Limits(max_cost_usd=Decimal(0)))

    await desk.ask(Priced(["Five."], known=False))

    last = desk.log.events[-1].event
    assert isinstance(last, ModelFinished)
    assert (last.cost_usd, last.cost_source) == (None, "unknown")
    assert desk.calls.spending.cost_unknown
    heir = await desk.taken_over()
    await heir.ask(Priced([]))
    assert heir.calls.spending.cost_unknown


@pytest.mark.requirement("runs.model_unpriced")
async def test_a_failed_call_of_unknown_price_does_not_make_the_cost_unknown():
    desk = await Desk.open()

    with pytest.raises(ModelError):
        await desk.ask(Priced([ModelError("auth", "no key")], known=False))

    assert not desk.calls.spending.cost_unknown
