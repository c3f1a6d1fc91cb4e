"""The gate before model calls: what is recorded, filtered, refused, counted when it is lost, and held back."""

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.runs.test_model_calls import Desk, Priced
from toolcrib.contracts import (
    ContentFilter,
    Guardrail,
    Limits,
    MaxCost,
    ModelDenied,
    ModelError,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    Reason,
)
from toolcrib.core.runs import BudgetExhausted, ModelCall, ModelRefused
from toolcrib.core.runs.models.request_screening import Estimate, ModelCallScope
from toolcrib.llm import (
    Message,
    Opaque,
    Request,
    Response,
    ScriptedModel,
    Text,
    Thinking,
    TokenUsage,
    ToolCall,
    ToolResult,
    user,
)

REDACTS = ContentFilter(personal_data=("email",), action="redact")
BLOCKS = ContentFilter(words=("hush",))


async def ask(desk: Desk, model: ScriptedModel, *rules: Guardrail, text: str = "How many?", **fields: Any) -> Response:
    request = Request(messages=(user(text),), system=f"Count. {text}", max_tokens=100)
    call = ModelCall("t1.llm", "planning", model, request, new=request.messages, system=request.system)
    return await desk.calls.perform(call, ModelCallScope(guardrails=rules, realm="default", principal="ann", **fields))


def events(desk: Desk, kind: type[Any]) -> Sequence[Any]:
    return [entry.event for entry in desk.log.events if isinstance(entry.event, kind)]


@pytest.mark.requirement("policy.gated")
async def test_every_attempt_says_on_which_numbers_it_was_allowed():
    desk = await Desk.open(Limits(max_total_tokens=1000))

    await ask(desk, Priced([ModelError("overloaded", "x"), "Five."]))

    decisions = [event.decision for event in events(desk, ModelStarted)]
    assert [decision.outcome for decision in decisions] == ["allow", "allow"]
    assert decisions[0].inputs == {
        "iterations": 0,
        "max_iterations": 10,
        "tokens": 0,
        "spent_usd": 0.0,
        "reserved_usd": 0.0,
        "max_total_tokens": 1000.0,
        "max_cost_usd": 1.0,
        "input_tokens": 13,
        "output_tokens": 100,
        "cost_usd": 1.0,
    }


@pytest.mark.requirement("guardrails.content")
async def test_what_goes_to_a_model_is_replaced_and_the_journal_has_what_was_sent():
    desk = await Desk.open()
    model = Priced(["Five."])

    await ask(desk, model, REDACTS, text="of ann@x.de")

    (sent,), (started,) = model.requests, events(desk, ModelStarted)
    assert (sent.system, sent.messages[0].text) == ("Count. of [email]", "of [email]")
    assert started.system == "Count. of [email]"
    assert "ann@x.de" not in started.model_dump_json()
    assert started.decision.inputs["found"] == {"email": 2}


@pytest.mark.requirement("guardrails.content", "policy.gated")
async def test_what_may_not_go_to_a_model_is_not_sent_and_not_asked_for_again():
    desk = await Desk.open()
    model = Priced([])

    with pytest.raises(ModelRefused, match="content_filter"):
        await ask(desk, model, BLOCKS, text="hush")

    (denied,) = events(desk, ModelDenied)
    assert (denied.decision.outcome, denied.decision.reason) == ("deny", Reason.CONTENT_BLOCKED)
    assert (model.requests, desk.budget.reserved_tokens) == ([], 0)
    heir = await desk.taken_over()
    with pytest.raises(ModelRefused):
        await ask(heir, model)


@pytest.mark.requirement("guardrails.content")
async def test_an_answer_is_replaced_or_withheld_and_paid_for():
    desk, other = await Desk.open(), await Desk.open()

    answer = await ask(desk, Priced(["Ask ann@x.de."]), REDACTS)
    with pytest.raises(ModelRefused):
        await ask(other, Priced(["Hush!"]), BLOCKS)

    assert answer.message.text == "Ask [email]."
    (kept,), (withheld,) = events(desk, ModelFinished), events(other, ModelFinished)
    assert (kept.decision.outcome, withheld.decision.outcome) == ("allow", "deny")
    assert "ush" not in withheld.model_dump_json(include={"response"})
    assert other.budget.cost_usd > 0
    with pytest.raises(ModelRefused):
        await ask(await other.taken_over(), Priced([]), BLOCKS)


@pytest.mark.requirement("guardrails.content")
async def test_filters_look_into_every_part_and_leave_json_json():
    parts = (
        Text("a@x.de"),
        Thinking("b@x.de", signature="s"),
        Thinking("nothing", signature="s"),
        Opaque("x", "{}", "c@x.de"),
        ToolCall("1", "f", '{"to":"d@x.de\\n"}'),
        ToolResult("1", "f", "[broken e@x.de"),
    )
    desk = await Desk.open()

    answer = await ask(desk, Priced([Response(Message("assistant", parts), "end", "", TokenUsage(), "m", "")]), REDACTS)

    assert answer.message.parts == (
        Text("[email]"),
        parts[2],
        ToolCall("1", "f", '{"to":"[email]\\n"}'),
        ToolResult("1", "f", "[broken [email]"),
    )


@pytest.mark.requirement("guardrails.content")
@pytest.mark.parametrize(
    ("said", "passed"),
    [
        ('```json\n{"to": "a\\u0040x.de\\u000a"}\n```', '```json\n{"to": "[email]\\u000a"}\n```'),
        (' {"to": "a\\u0040x.de"}', '{"to":"[email]"}'),
        ('{"to": "a@x.de", "to": "you"}', '{"to":"you"}'),
        ("a\\\\u0040x.de", "a\\\\u0040x.de"),
        ('{"to": "\\u0061ll"}', '{"to": "\\u0061ll"}'),
    ],
)
async def test_what_a_model_writes_with_escapes_or_twice_in_an_object_is_found_too(said: str, passed: str):
    answer = await ask(await Desk.open(), Priced([said]), REDACTS)

    assert answer.message.text == passed


@pytest.mark.requirement("guardrails.cost")
async def test_a_model_of_unknown_price_is_refused_where_a_rule_says_so():
    desk = await Desk.open()

    with pytest.raises(ModelRefused, match="price"):
        await ask(desk, Priced([], known=False), MaxCost(usd=Decimal(1), deny_unpriced=True))


@pytest.mark.requirement("policy.never_overspends")
async def test_an_attempt_that_may_have_been_billed_counts_with_what_it_may_have_used_at_most():
    desk = await Desk.open(Limits(max_cost_usd=Decimal("2.50")))

    await ask(desk, Priced([ModelError("stream_cut", "x"), "Five."]))

    (failed,) = events(desk, ModelFailed)
    assert (failed.cost_usd, failed.usage.output_tokens, failed.usage.estimated) == (Decimal("1.0"), 100, True)
    assert desk.budget.cost_usd > 1
    assert (await desk.taken_over()).budget.cost_usd == desk.budget.cost_usd


@pytest.mark.requirement("policy.never_overspends")
async def test_a_retry_that_can_no_longer_be_paid_is_not_sent():
    desk = await Desk.open(Limits(max_cost_usd=Decimal("1.50")))
    model = Priced([ModelError("timeout", "x"), "never"])

    with pytest.raises(BudgetExhausted):
        await ask(desk, model)

    assert len(model.requests) == 1


@pytest.mark.requirement("policy.never_overspends")
async def test_an_attempt_over_which_a_process_dies_counts_in_the_next_one():
    desk = await Desk.open(Limits(max_cost_usd=Decimal(9)))

    for _ in range(2):
        hanging = ScriptedModel(lambda request: asyncio.get_running_loop().create_future())
        asking = asyncio.create_task(ask(desk, hanging))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
        desk = await desk.taken_over()

    assert desk.budget.tokens == 2 * 113
    assert desk.calls.spending.usage.estimated


@pytest.mark.requirement("policy.last_answer")
async def test_what_is_held_back_for_a_last_answer_nothing_else_can_spend():
    desk = await Desk.open(Limits(max_cost_usd=Decimal("1.50")))
    last = Request(messages=(user("x"),), max_tokens=30)

    assert desk.calls.keep_answer(Priced([]), last)
    assert desk.calls.keep_answer(Priced([]), last)
    assert desk.budget.reserved_usd == Decimal("0.30")
    desk.budget.add_cost(Decimal("0.25"))
    with pytest.raises(BudgetExhausted):
        await ask(desk, Priced([]))
    desk.calls.release_answer()
    desk.calls.release_answer()

    assert desk.budget.reserved_usd == 0
    assert (await ask(desk, Priced(["Five."]))).message.text == "Five."


@pytest.mark.requirement("policy.last_answer")
async def test_a_run_that_could_do_little_else_keeps_nothing_back_when_it_begins():
    desk = await Desk.open(Limits(max_cost_usd=Decimal("1.00")))
    last = Request(messages=(user("x"),), max_tokens=30)

    assert not desk.calls.keep_answer(Priced([]), last)
    await ask(desk, Priced(["Five."]))
    assert (await desk.taken_over()).calls.keep_answer(Priced([]), last), "once begun, all that fits is kept"


@pytest.mark.requirement("policy.never_overspends")
def test_an_estimate_follows_what_answers_have_said_and_not_what_was_estimated():
    estimate, request = Estimate(), Request(messages=(user("x" * 300),), output_schema={"type": "object"})
    before = estimate.most(request, 5)

    estimate.learn(request, TokenUsage(input=1000, estimated=True))
    assert estimate.most(request, 5) == before
    estimate.learn(request, TokenUsage(input=1000))

    assert estimate.most(request, 5).input > 1000
    parts = (Thinking("x", signature="x" * 50), ToolCall("1", "f", "x" * 50), Opaque("x", "x" * 50))
    longer = Request(messages=(Message("assistant", parts),))
    assert estimate.most(longer, 5).input > estimate.most(Request(messages=(user("x" * 140),)), 5).input
    assert estimate.most(Request(messages=(user("日" * 300),)), 5).input > estimate.most(request, 5).input
