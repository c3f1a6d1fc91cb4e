"""Other models are asked while a provider fails: in order, told in the journal, for the rest of the run."""

from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.unit.runs.test_model_calls import OVERLOADED, REQUEST, Desk, Priced
from tests.unit.store.samples import NOON
from toolcrib import Crib, Limits, ScriptedModel
from toolcrib.contracts import (
    AgentDefinition,
    InvalidDefinition,
    InvalidSettings,
    LLMConfig,
    LLMStep,
    ModelError,
    ModelFailed,
    ModelStarted,
)
from toolcrib.contracts.base.errors import ModelErrorKind
from toolcrib.llm import Cost, Reasoning, Request, Response, ScriptedAnswer, TokenUsage
from toolcrib.llm.base.messages import Done
from toolcrib.llm.models.model import ModelWithFallbacks

pytestmark = pytest.mark.requirement("runs.model_fallbacks")


class Named(Priced):
    """A scripted model of a provider, which keeps what it is asked."""

    def __init__(self, name: str, *answers: ScriptedAnswer) -> None:
        super().__init__(answers)
        self.name = name
        self.asked: list[Request] = []

    async def request(self, request: Request) -> Response:
        self.asked.append(request)
        return await super().request(request)

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        return Cost(Decimal(usage.output) / 10_000, "table")


def fallbacks_of(desk: Desk) -> list[str | None]:
    return [entry.event.fallback for entry in desk.log.events if isinstance(entry.event, ModelFailed)]


async def test_the_next_model_is_asked_when_a_provider_fails_for_good():
    desk = await Desk.open()
    first, second = Named("one:a", OVERLOADED, OVERLOADED), Named("two:b", "Five.")

    answer = await desk.ask(ModelWithFallbacks((first, second)))

    assert answer.message.text == "Five."
    assert desk.clock.naps == [0.5, 0.0]
    assert fallbacks_of(desk) == [None, "two:b"]
    asked = [entry.event.model for entry in desk.log.events if isinstance(entry.event, ModelStarted)]
    assert asked == ["one:a", "one:a", "two:b"]
    assert desk.told[-1] == ("model_finished", 3)
    assert desk.budget.cost_usd == Decimal(answer.usage.output) / 10_000


@pytest.mark.parametrize("kind", ["auth", "quota", "not_found", "bad_response"])
async def test_what_cannot_work_again_is_not_tried_again_at_the_same_provider(kind: ModelErrorKind):
    desk = await Desk.open()
    failed = ModelError(kind, "no")

    answer = await desk.ask(ModelWithFallbacks((Named("one:a", failed), Named("two:b", "Five."))))

    assert (answer.message.text, desk.clock.naps) == ("Five.", [0.0])


@pytest.mark.parametrize("kind", ["bad_request", "context_length", "content_filter"])
async def test_a_failure_of_the_request_is_one_at_every_provider(kind: ModelErrorKind):
    desk = await Desk.open()
    failed = ModelError(kind, "no")
    second = Named("two:b", "Five.")

    with pytest.raises(ModelError, match="no"):
        await desk.ask(ModelWithFallbacks((Named("one:a", failed), second)))

    assert (second.asked, fallbacks_of(desk)) == ([], [None])


async def test_a_missing_key_is_a_reason_to_ask_another_provider():
    class Locked(Named):
        async def request(self, request: Request) -> Response:
            raise InvalidSettings("no key")

    desk = await Desk.open()
    answer = await desk.ask(ModelWithFallbacks((Locked("one:a"), Named("two:b", "Five."))))

    assert answer.message.text == "Five."


async def test_a_long_wait_that_a_provider_asks_for_is_not_taken_while_there_is_another():
    desk = await Desk.open()
    later = ModelError("rate_limit", "slow down", retry_after_s=60)

    await desk.ask(ModelWithFallbacks((Named("one:a", later), Named("two:b", later, "Five."))))

    assert desk.clock.naps == [0.0, 60]


async def test_the_failure_of_the_last_model_ends_the_call():
    desk = await Desk.open()
    models = (Named("one:a", ModelError("quota", "first")), Named("two:b", ModelError("quota", "second")))

    with pytest.raises(ModelError, match="second"):
        await desk.ask(ModelWithFallbacks(models))

    last = desk.log.events[-1].event
    assert isinstance(last, ModelFailed)
    assert (last.retry_in_s, last.fallback) == (None, None)
    assert (desk.budget.reserved_tokens, desk.budget.reserved_usd) == (0, 0)


async def test_a_run_stays_with_what_it_has_fallen_back_on_also_in_the_next_process():
    desk = await Desk.open()
    first = Named("one:a", ModelError("auth", "no"), "never")
    second, third = Named("two:b", "Five.", "Six.", ModelError("auth", "no")), Named("two:c", "Seven.")
    chain = ModelWithFallbacks((first, second, third))

    await desk.ask(chain)
    await desk.ask(chain, "t2.llm")
    then = await desk.taken_over()
    answer = await then.ask(chain, "t3.llm")

    assert (answer.message.text, len(first.asked)) == ("Seven.", 1)
    assert fallbacks_of(then) == ["two:b", "two:c"]


async def test_only_the_provider_that_is_configured_gets_what_only_it_understands():
    desk = await Desk.open()
    second, third = Named("one:b", ModelError("auth", "no")), Named("two:c", "Five.")
    request = Request(
        messages=REQUEST.messages,
        max_tokens=100,
        extra={"tier": "priority"},
        reasoning=Reasoning("high"),
        presence_penalty=1.0,
        temperature=0.5,
    )
    chain = ModelWithFallbacks((Named("one:a", ModelError("auth", "no")), second, third))
    await desk.ask(chain, request=request)

    assert second.asked == [request]
    [sent] = third.asked
    assert (sent.extra, sent.reasoning, sent.presence_penalty, sent.temperature) == ({}, None, None, 0.5)


async def test_outside_of_a_run_it_is_its_first_model():
    chain = ModelWithFallbacks((Named("one:a", "Five.", "Six."), Named("two:b")))

    assert (await chain.request(REQUEST)).message.text == "Five."
    last = [event async for event in chain.stream(REQUEST)][-1]
    assert isinstance(last, Done)
    assert last.response.message.text == "Six."
    assert chain.cost(TokenUsage(output=3), NOON) == Cost(Decimal("0.0003"), "table")
    assert repr(chain).startswith("ModelWithFallbacks((")


def test_a_model_is_named_once():
    with pytest.raises(ValidationError, match="'one:a' is empty or asked before already"):
        LLMConfig(model="one:a", fallbacks=("two:b", "one:a"))
    with pytest.raises(ValidationError, match="'' is empty"):
        LLMConfig(model="one:a", fallbacks=("",))


def test_how_a_model_is_reached_holds_for_its_own_provider():
    llm = LLMConfig(model="one:a", base_url="https://one.example", temperature=0.1, fallbacks=("one:b", "two:c"))

    same, other = llm.candidates[1:]
    assert (same.model, same.base_url, same.fallbacks) == ("one:b", "https://one.example", ())
    assert (other.model, other.base_url, other.temperature, other.fallbacks) == ("two:c", None, 0.1, ())


async def test_an_agent_on_sqlite_tells_in_its_trace_which_model_answered_and_its_run_is_replayed(tmp_path: Path):
    models = {
        "scripted:first": ScriptedModel([ModelError("auth", "the key is refused", status=401)] * 2, name="first"),
        "scripted:second": ScriptedModel(["Five.", "Six."], name="second"),
    }
    async with Crib(f"sqlite:///{tmp_path / 'crib.db'}", models=models) as crib:
        desk = crib.agent("desk", model=LLMConfig(model="scripted:first", fallbacks=("scripted:second",)))
        result = await desk("How many?")
        found = await crib.replay(result.run_id)
        [step] = [step for step in result.trace.steps if isinstance(step, LLMStep)] if result.trace else []

    assert (result.output, found.same, found.divergence) == ("Five.", True, None)
    assert (step.model, step.failures[0].fallback) == ("scripted:second", "scripted:second")


async def test_a_definition_whose_fallback_is_not_known_is_refused():
    async with Crib() as crib:
        llm = LLMConfig(model="anthropic:claude-sonnet-4", fallbacks=("nowhere:b",))
        with pytest.raises(InvalidSettings, match="'nowhere' is not a known provider"):
            await crib.agents.save(AgentDefinition(name="desk", llm=llm))


async def test_the_price_of_each_model_is_to_be_known_where_costs_are_limited():
    async with Crib() as crib:
        limits = Limits(max_cost_usd=Decimal("0.5"))
        llm = LLMConfig(model="anthropic:claude-sonnet-4", fallbacks=("openai:of-tomorrow",))
        definition = AgentDefinition(name="desk", llm=llm, limits=limits)
        with pytest.raises(InvalidDefinition, match="openai:of-tomorrow"):
            await crib.agents.save(definition)
