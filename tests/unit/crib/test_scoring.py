"""Checks, held against runs: what holds, and what is said where one does not."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from toolcrib.contracts import (
    CalledCheck,
    CallFinished,
    CallStarted,
    ContainsCheck,
    CostCheck,
    ErrorCode,
    EvaluationCheck,
    EvaluationOutcome,
    ExactCheck,
    GuardDecision,
    Json,
    JudgeCheck,
    NotCalledCheck,
    PathCheck,
    Reason,
    RunEvent,
    RunResult,
    SchemaCheck,
    ToolEnvelope,
    ToolOutputCheck,
)
from toolcrib.core.executor import error
from toolcrib.core.runs import Result
from toolcrib.crib.agents.evaluations import JudgeVerdict, answer_of, figures_of, judgement_of, score

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)


def envelope(name: str, output: Json = None, status: Any = "success", **given: Json) -> ToolEnvelope:
    failure = None if status == "success" else error(ErrorCode.UNKNOWN, Reason.TOOL_FAILED, "no")
    return ToolEnvelope(
        call_id=name, name=name, version="1.0.0", position="t1.c1", status=status, input=given, output=output,
        error=failure, t_start=AT, t_end=AT, run_id="run_1", side_effects="none",
    )  # fmt: skip


def began(place: str) -> CallStarted:
    return CallStarted(
        position=place, call_id=place, name="find", version="1.0.0", content_hash="0" * 64, side_effects="none",
        input={}, idempotency_key=place, decision=GuardDecision(outcome="allow", rule="allow_list"),
    )  # fmt: skip


def result(output: Json, *envelopes: ToolEnvelope, **summary: Any) -> Result:
    log = [
        RunEvent("run_1", number, AT, "acme", "ann", CallFinished(position=f"c{number}", envelope=one))
        for number, one in enumerate(envelopes, start=1)
    ]
    return Result(RunResult(run_id="run_1", status="completed", output=output, **summary), log)


SAID = {"response": "Order 7 was Shipped.", "output": {"order": 7}}
FOUND = envelope("find", {"status": "shipped"}, number=7)
BROKEN = envelope("find", status="error", number=8)
DENIED = envelope("refund", status="denied", number=7)


@pytest.mark.requirement("evaluations.checks")
def test_the_last_call_is_the_one_that_began_last_whichever_ended_first():
    first, second = envelope("find", {"page": 1}), envelope("find", {"page": 2})
    happened = [
        began("t1.c1"),
        began("t1.c2"),
        CallFinished(position="t1.c2", envelope=second),
        CallFinished(position="t1.c1", envelope=first),
    ]
    log = [RunEvent("run_1", number, AT, "acme", "ann", event) for number, event in enumerate(happened, start=1)]

    ended = Result(RunResult(run_id="run_1", status="completed"), log)

    assert score(ToolOutputCheck(tool="find", path="$.page", equals=2), ended).passed


@pytest.mark.requirement("evaluations.checks")
@pytest.mark.parametrize(
    "check",
    [
        ExactCheck(value={"order": 7}),
        ContainsCheck(text="ORDER"),
        PathCheck(path="$.response", equals="Order 7 was Shipped."),
        SchemaCheck(fits={"type": "object", "required": ["order"]}),
        CalledCheck(tool="find"),
        CalledCheck(tool="find", input={"number": 7}, times=1),
        CalledCheck(tool="refund", times=0),
        NotCalledCheck(tool="refund"),
        ToolOutputCheck(tool="find", path="$.status", equals="shipped"),
        CostCheck(usd=Decimal("0.02")),
    ],
)
def test_a_check_that_holds_needs_no_reason(check: EvaluationCheck):
    found = score(check, result(SAID, FOUND, BROKEN, DENIED, cost_usd=Decimal("0.01")))

    assert (found.kind, found.passed, found.reason) == (check.kind, True, "")


@pytest.mark.requirement("evaluations.checks")
@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (ExactCheck(value="8"), 'the answer is {"order":7}, not "8"'),
        (ContainsCheck(text="Order", ignore_case=False), """'Order' is not in the answer {"order":7}"""),
        (PathCheck(path="$.output.order", equals=8), "$.output.order of the output is 7, not 8"),
        (PathCheck(path="$.none", equals=8), "$.none of the output is 0 values, not 8"),
        (PathCheck(path="$[", equals=8), "the check cannot be made: "),
        (SchemaCheck(fits={"required": ["name"]}), "name"),
        (CalledCheck(tool="refund"), "'refund' was called 0 times, not at least once; its calls: []"),
        (
            CalledCheck(tool="find", input={"number": 7}, times=2),
            """'find' was called 1 times with {"number":7}, not 2 times; its calls: [{"number":7},{"number":8}]""",
        ),
        (NotCalledCheck(tool="find"), "'find' was called 2 times"),
        (ToolOutputCheck(tool="refund", equals=1), "no call of 'refund' succeeded"),
        (CostCheck(usd=Decimal("0.01")), "it cost $0.01, not less than $0.01"),
    ],
)
def test_a_check_that_does_not_hold_says_why(check: EvaluationCheck, reason: str):
    found = score(check, result(SAID, FOUND, BROKEN, DENIED, cost_usd=Decimal("0.01")))

    assert not found.passed
    assert reason in found.reason


@pytest.mark.requirement("evaluations.checks")
def test_a_cost_that_is_not_known_is_not_less_and_long_values_are_cut():
    assert "an unknown amount" in score(CostCheck(usd=Decimal(1)), result("", cost_unknown=True)).reason
    assert len(score(ExactCheck(value=""), result("x" * 1000)).reason) < 300


@pytest.mark.requirement("evaluations.checks")
@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("words", "words"),
        ({"response": "words"}, "words"),
        ({"response": "words", "output": [1]}, [1]),
        ({"summary": "words"}, "words"),
        ({"summary": "words", "count": 1}, {"summary": "words", "count": 1}),
    ],
)
def test_the_answer_is_what_was_asked_for_without_its_wrapping(output: Json, answer: Json):
    assert answer_of(output) == answer


@pytest.mark.requirement("evaluations.judge")
@pytest.mark.parametrize(
    ("output", "judgement"),
    [
        ({"response": '{"score": 0.4, "reason": "vague"}'}, JudgeVerdict(0.4, "vague")),
        ({"response": "", "output": {"score": 1}}, JudgeVerdict(1.0, "")),
        ({"response": "Yes, it does."}, JudgeVerdict(1.0, "Yes, it does.")),
        ({"response": "no"}, JudgeVerdict(0.0, "no")),
        ({"response": "perhaps"}, None),
        ({"response": "[1]"}, None),
        ({"response": '{"score": true}'}, None),
    ],
)
def test_a_judgement_is_a_score_or_a_word(output: Json, judgement: JudgeVerdict | None):
    assert judgement_of(output) == judgement


@pytest.mark.requirement("evaluations.judge")
def test_a_judge_passes_what_reaches_the_score_and_always_gives_its_reason():
    check = JudgeCheck(agent="judge", question="Is it polite?", at_least=0.5)

    held = score(check, result(SAID), JudgeVerdict(0.5, "fine"))
    failed = score(check, result(SAID), JudgeVerdict(0.4, "rude"))
    silent = score(check, result(SAID))

    assert (held.passed, held.reason) == (True, "fine")
    assert (failed.passed, failed.reason) == (False, "0.4 of 1: rude")
    assert (silent.passed, silent.reason) == (False, "the judge gave no score")


def outcome(seconds: float, cost: str | None, *, passed: bool = True) -> EvaluationOutcome:
    return EvaluationOutcome(
        task="t", candidate="c", attempt=1, passed=passed, cost_usd=Decimal(cost) if cost else None, tokens=10, steps=2,
        tool_calls=1, duration_s=timedelta(seconds=seconds).total_seconds(),
    )  # fmt: skip


@pytest.mark.requirement("evaluations.comparison")
def test_figures_are_sums_with_the_seconds_of_the_half_and_of_nearly_all():
    found = figures_of([outcome(second, "0.01", passed=second > 5) for second in range(1, 21)])

    assert (found.runs, found.passed, found.success) == (20, 15, Decimal("0.75"))
    assert (found.cost_usd, found.cost_unknown, found.tokens) == (Decimal("0.20"), False, 200)
    assert (found.p50_s, found.p95_s) == (10.0, 19.0)


@pytest.mark.requirement("evaluations.comparison")
def test_a_cost_is_unknown_where_none_is_known_and_a_lower_bound_where_some_are():
    none, some = figures_of([outcome(1, None)]), figures_of([outcome(1, None), outcome(1, "0.5")])

    assert (none.cost_usd, none.cost_unknown) == (None, True)
    assert (some.cost_usd, some.cost_unknown) == (Decimal("0.5"), True)
