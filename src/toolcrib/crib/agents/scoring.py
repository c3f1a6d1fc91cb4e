"""Whether a run is what a task's checks ask for. Pure, but for the judge, which is a run of its own elsewhere."""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple, assert_never, cast

import orjson

from toolcrib.contracts import (
    CalledCheck,
    CheckOutcome,
    ContainsCheck,
    CostCheck,
    EvaluationCheck,
    EvaluationFigures,
    EvaluationOutcome,
    ExactCheck,
    InvalidExpression,
    InvalidInput,
    Json,
    JsonObject,
    JudgeCheck,
    NotCalledCheck,
    PathCheck,
    SchemaCheck,
    ToolEnvelope,
    ToolOutputCheck,
)
from toolcrib.core.expressions.jsonpath import check_path, select
from toolcrib.core.registry import compile_schema
from toolcrib.core.runs import Result, calls_of, holds

_MOST_SHOWN = 200
"""Characters of a value in a reason."""


class Judgement(NamedTuple):
    """What a judge said."""

    score: float
    reason: str


def answer_of(output: Json) -> Json:
    """What a run answers: an agent's value or words, the words of an agentic tool, or all that a tool puts out."""
    if not isinstance(output, dict):
        return output
    given = cast("JsonObject", output)
    if "response" in given:
        return given.get("output", given["response"])
    return given["summary"] if given.keys() == {"summary"} else given


def judgement_of(output: Json) -> Judgement | None:
    """What an answer says as a judgement; null if it says none."""
    answer = answer_of(output)
    if isinstance(answer, str):
        word = answer.strip().lower()
        if word.startswith(("yes", "no")):
            return Judgement(float(word.startswith("yes")), answer.strip())
        try:
            answer = orjson.loads(answer)
        except orjson.JSONDecodeError:
            return None
    found = cast("JsonObject", answer) if isinstance(answer, dict) else {}
    score = found.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float):
        return None
    return Judgement(float(score), str(found.get("reason", "")))


def check_form(check: EvaluationCheck) -> None:
    """Look at what a check says before any run is made for it.

    Raises:
        InvalidExpression: Its path is not well formed.
        InvalidDefinition: Its schema is none.
    """
    match check:
        case PathCheck(path=path) | ToolOutputCheck(path=path):
            check_path(path)
        case SchemaCheck(fits=schema):
            compile_schema(schema)
        case _:
            pass


def score(check: EvaluationCheck, result: Result, judgement: Judgement | None = None) -> CheckOutcome:
    """Whether a check holds of a run.

    Args:
        check: The check.
        result: The run.
        judgement: What the judge said, where one was asked.
    """
    try:
        problem = _problem(check, result, judgement)
    except (InvalidExpression, InvalidInput) as fault:
        problem = f"the check cannot be made: {fault}"
    told = judgement.reason if judgement and problem is None else ""
    return CheckOutcome(kind=check.kind, passed=problem is None, reason=problem or told)


def _problem(check: EvaluationCheck, result: Result, judgement: Judgement | None) -> str | None:
    """Why a check does not hold."""
    match check:
        case ExactCheck() | ContainsCheck() | SchemaCheck():
            return _of_answer(check, answer_of(result.output))
        case PathCheck(path=path, equals=equals):
            return _selected(path, equals, result.output, "the output")
        case CalledCheck() | NotCalledCheck() | ToolOutputCheck():
            return _of_calls(check, [envelope for envelope in calls_of(result.log) if envelope.status != "denied"])
        case CostCheck(usd=usd):
            cost = None if result.summary.cost_unknown else result.cost_usd
            return None if cost is not None and cost < usd else f"it cost {_money(cost)}, not less than {_money(usd)}"
        case JudgeCheck(at_least=least):
            if judgement is None:
                return "the judge gave no score"
            return None if judgement.score >= least else f"{judgement.score:g} of 1: {judgement.reason}"
        case _:
            assert_never(check)


def _of_answer(check: ExactCheck | ContainsCheck | SchemaCheck, answer: Json) -> str | None:
    match check:
        case ExactCheck(value=value):
            return None if answer == value else f"the answer is {_shown(answer)}, not {_shown(value)}"
        case ContainsCheck(text=text, ignore_case=ignore_case):
            fold: Callable[[str], str] = str.casefold if ignore_case else str
            said = answer if isinstance(answer, str) else orjson.dumps(answer).decode()
            return None if fold(text) in fold(said) else f"{text!r} is not in the answer {_shown(answer)}"
        case SchemaCheck(fits=schema):
            problems = compile_schema(schema).problems(answer)
            return "; ".join(map(str, problems)) or None


def _of_calls(check: CalledCheck | NotCalledCheck | ToolOutputCheck, made: Sequence[ToolEnvelope]) -> str | None:
    calls = [envelope for envelope in made if envelope.name == check.tool]
    match check:
        case CalledCheck(times=times, input=wanted):
            fitting = sum(holds(envelope.input, wanted) for envelope in calls)
            if (fitting > 0) if times is None else (fitting == times):
                return None
            how = f" with {_shown(wanted)}" if wanted else ""
            often = "at least once" if times is None else f"{times} times"
            inputs = _shown([envelope.input for envelope in calls])
            return f"{check.tool!r} was called {fitting} times{how}, not {often}; its calls: {inputs}"
        case NotCalledCheck():
            return f"{check.tool!r} was called {len(calls)} times" if calls else None
        case ToolOutputCheck(path=path, equals=equals):
            last = next((envelope for envelope in reversed(calls) if envelope.ok), None)
            if last is None:
                return f"no call of {check.tool!r} succeeded"
            return _selected(path, equals, last.output, f"the output of {check.tool!r}")


def _selected(path: str, equals: Json, document: Json, what: str) -> str | None:
    found = select(path, document)
    if found == [equals]:
        return None
    got = _shown(found[0]) if len(found) == 1 else f"{len(found)} values"
    return f"{path} of {what} is {got}, not {_shown(equals)}"


def figures_of(outcomes: Sequence[EvaluationOutcome]) -> EvaluationFigures:
    """What some runs came to; there is at least one. Latencies are nearest ranks."""
    costs = [outcome.cost_usd for outcome in outcomes if outcome.cost_usd is not None]
    seconds = sorted(outcome.duration_s for outcome in outcomes)
    return EvaluationFigures(
        runs=len(outcomes),
        passed=sum(outcome.passed for outcome in outcomes),
        cost_usd=sum(costs, Decimal(0)) if costs else None,
        cost_unknown=len(costs) < len(outcomes),
        tokens=sum(outcome.tokens for outcome in outcomes),
        steps=sum(outcome.steps for outcome in outcomes),
        tool_calls=sum(outcome.tool_calls for outcome in outcomes),
        p50_s=seconds[math.ceil(0.5 * len(seconds)) - 1],
        p95_s=seconds[math.ceil(0.95 * len(seconds)) - 1],
    )


def _money(usd: Decimal | None) -> str:
    return "an unknown amount" if usd is None else f"${usd:f}"


def _shown(value: Json) -> str:
    text = orjson.dumps(value, default=str).decode()
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
