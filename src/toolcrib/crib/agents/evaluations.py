"""Evaluations: run each task of a dataset with each candidate, as often as requested, and compare the results.

Each run is an ordinary run with its own journal. A failed task does not stop the others. The order of the report does
not depend on the order in which runs end. The functions that check results are pure, except the judge, which is a run.

Example:
    from toolcrib.contracts import EvaluationCandidate, EvaluationDataset

    task = {"id": "acme", "input": "Which deals has Acme?", "checks": [{"kind": "called", "tool": "search_deals"}]}
    dataset = EvaluationDataset(name="deals", tasks=[task])
    old, new = EvaluationCandidate(tool="desk@1.0.0"), EvaluationCandidate(tool="desk@1.0.0", model="openai:gpt-5")
    report = await crib.evaluate(dataset, [old, new])
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from decimal import Decimal
from itertools import count, product
from typing import NamedTuple, assert_never, cast

import orjson

from toolcrib.contracts import (
    SCRIPTED,
    WAITING,
    AgentImplementation,
    CalledCheck,
    CandidateResult,
    CheckOutcome,
    ContainsCheck,
    CostCheck,
    Evaluation,
    EvaluationCall,
    EvaluationCandidate,
    EvaluationChange,
    EvaluationCheck,
    EvaluationDataset,
    EvaluationFigures,
    EvaluationOutcome,
    EvaluationTask,
    ExactCheck,
    InvalidExpression,
    InvalidInput,
    Json,
    JsonObject,
    JudgeCheck,
    LLMConfig,
    NotCalledCheck,
    PathCheck,
    Principal,
    SchemaCheck,
    ScriptedTurn,
    ToolcribError,
    ToolEnvelope,
    ToolOutputCheck,
    ToolRevision,
)
from toolcrib.core.expressions.jsonpath import check_path, select
from toolcrib.core.registry import compile_schema
from toolcrib.core.runs import Result, calls_of, holds
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.container.requests import refusal_of_run, request_of
from toolcrib.llm import Message, ScriptedModel, Text, ToolCall

_MOST_SHOWN = 200
"""Characters of a value in a reason."""


class JudgeVerdict(NamedTuple):
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


def judgement_of(output: Json) -> JudgeVerdict | None:
    """What an answer says as a judgement; null if it says none."""
    answer = answer_of(output)
    if isinstance(answer, str):
        word = answer.strip().lower()
        if word.startswith(("yes", "no")):
            return JudgeVerdict(float(word.startswith("yes")), answer.strip())
        try:
            answer = orjson.loads(answer)
        except orjson.JSONDecodeError:
            return None
    found = cast("JsonObject", answer) if isinstance(answer, dict) else {}
    score = found.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float):
        return None
    return JudgeVerdict(float(score), str(found.get("reason", "")))


def check_form(check: EvaluationCheck) -> None:
    """Look at what a check says before any run is made for it.

    Raises:
        InvalidExpression: Its path is not well formed.
        InvalidDefinition: Its schema is invalid.
    """
    match check:
        case PathCheck(path=path) | ToolOutputCheck(path=path):
            check_path(path)
        case SchemaCheck(fits=schema):
            compile_schema(schema)
        case _:
            pass


def score(check: EvaluationCheck, result: Result, judgement: JudgeVerdict | None = None) -> CheckOutcome:
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
    comment = judgement.reason if judgement and problem is None else ""
    return CheckOutcome(kind=check.kind, passed=problem is None, reason=problem or comment)


def _problem(check: EvaluationCheck, result: Result, judgement: JudgeVerdict | None) -> str | None:
    """Why a check does not hold."""
    match check:
        case ExactCheck() | ContainsCheck() | SchemaCheck():
            return _of_answer(check, answer_of(result.output))
        case PathCheck(path=path, equals=equals):
            return _mismatch(path, equals, result.output, "the output")
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
            return None if answer == value else f"the answer is {_short_json(answer)}, not {_short_json(value)}"
        case ContainsCheck(text=text, ignore_case=ignore_case):
            fold: Callable[[str], str] = str.casefold if ignore_case else str
            answer_text = answer if isinstance(answer, str) else orjson.dumps(answer).decode()
            return None if fold(text) in fold(answer_text) else f"{text!r} is not in the answer {_short_json(answer)}"
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
            how = f" with {_short_json(wanted)}" if wanted else ""
            often = "at least once" if times is None else f"{times} times"
            inputs = _short_json([envelope.input for envelope in calls])
            return f"{check.tool!r} was called {fitting} times{how}, not {often}; its calls: {inputs}"
        case NotCalledCheck():
            return f"{check.tool!r} was called {len(calls)} times" if calls else None
        case ToolOutputCheck(path=path, equals=equals):
            last = next((envelope for envelope in reversed(calls) if envelope.ok), None)
            if last is None:
                return f"no call of {check.tool!r} succeeded"
            return _mismatch(path, equals, last.output, f"the output of {check.tool!r}")


def _mismatch(path: str, equals: Json, document: Json, what: str) -> str | None:
    found = select(path, document)
    if found == [equals]:
        return None
    got = _short_json(found[0]) if len(found) == 1 else f"{len(found)} values"
    return f"{path} of {what} is {got}, not {_short_json(equals)}"


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


def _short_json(value: Json) -> str:
    text = orjson.dumps(value, default=str).decode()
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


MOST_AT_ONCE = 4
"""Default number of simultaneous runs."""


class _Try(NamedTuple):
    """One run that is to be made."""

    task: EvaluationTask
    candidate: EvaluationCandidate
    attempt: int

    @property
    def script(self) -> Sequence[ScriptedTurn]:
        """What a scripted model answers here."""
        return self.candidate.scripts.get(self.task.id, self.task.script)


class Evaluations:
    """Runs evaluations as the principal that asks for them.

    Args:
        parts: Run the tasks.
        actor: The actor of the crib.
    """

    def __init__(self, parts: CribServices, actor: Actor) -> None:
        self._parts = parts
        self._actor = actor

    async def __call__(
        self,
        dataset: EvaluationDataset,
        candidates: Sequence[EvaluationCandidate] = (),
        *,
        repeat: int = 1,
        dry_run: bool = False,
        at_once: int = MOST_AT_ONCE,
        base: str | None = None,
        done: Callable[[int], None] = lambda _: None,
    ) -> Evaluation:
        """Run every task by every candidate, and compare them.

        Args:
            dataset: The tasks.
            candidates: Who runs them; the dataset's own if none is given.
            repeat: How often each task is run by each candidate.
            dry_run: Skip every call that would write, and the tasks' setups.
            at_once: Runs at the same time.
            base: Label or tool of the candidate that the others are compared with; the first if null.
            done: Gets the number of runs that have ended, after each.

        Raises:
            InvalidInput: There is no candidate, two are the same, there is no such base, a script is missing, or a path
                or a schema of a check is not well formed.
            NotFound: A candidate's tool or a judge does not exist.
            InvalidSettings: A candidate's model cannot be opened.

        Example:
            from toolcrib.contracts import ContainsCheck, EvaluationCandidate, EvaluationDataset, EvaluationTask

            task = EvaluationTask(id="acme", input="Which deals has Acme?", checks=(ContainsCheck(text="two deals"),))
            dataset = EvaluationDataset(name="deals", tasks=(task,))
            report = await crib.evaluate(dataset, [EvaluationCandidate(tool="desk@1.0.0")], repeat=3)
            print([(each.candidate, each.total.passed) for each in report.candidates])
        """
        who = await self._actor.authorize()
        for definition in (*dataset.tools, *(agent.tool() for agent in dataset.agents)):
            await self._parts.catalogue.save(definition, who)
        chosen = tuple(candidates) or dataset.candidates
        compared = _base(chosen, base)
        tools = {one.label: await self._parts.catalogue.require(who.realm, one.tool) for one in chosen}
        tries = [_Try(task, one, attempt + 1) for one, task, attempt in product(chosen, dataset.tasks, range(repeat))]
        self._check(tries, who.realm)
        for check in (check for task in dataset.tasks for check in task.checks):
            check_form(check)
            if isinstance(check, JudgeCheck):
                await self._parts.catalogue.require(who.realm, check.agent)
        lanes = asyncio.Semaphore(at_once)

        ended = count(1)

        async def run(one: _Try) -> EvaluationOutcome:
            async with lanes:
                found = await self._outcome(one, tools[one.candidate.label], who, dry_run=dry_run)
            done(next(ended))
            return found

        outcomes = await asyncio.gather(*map(run, tries))
        return _report(dataset, chosen, compared, outcomes)

    def _check(self, tries: Sequence[_Try], realm: str) -> None:
        """Refuse what could not be run, before anything runs."""
        for one in tries:
            model = one.candidate.model
            if model is not None and model != SCRIPTED:
                self._parts.models.check(LLMConfig(model=model), realm)
            elif model == SCRIPTED and not one.script:
                msg = f"task {one.task.id!r} has no script, and candidate {one.candidate.label!r} answers from scripts"
                raise InvalidInput(f"{msg}; write one, or name a model")

    async def _outcome(self, one: _Try, tool: ToolRevision, who: Principal, *, dry_run: bool) -> EvaluationOutcome:
        failed = EvaluationOutcome(task=one.task.id, candidate=one.candidate.label, attempt=one.attempt, passed=False)
        try:
            if not dry_run:
                for use in one.task.setup:
                    await self._set_up(use, who)
            result = await self._run(one, tool, who, dry_run=dry_run)
            if result.summary.status in WAITING:  # no later decision may change a run that was compared
                await self._parts.engine.cancel(result.run_id, by=who.id, reason="it waited in an evaluation")
            judged = [await self._ask_judge(check, one.task, result, who) for check in one.task.checks]
        except ToolcribError as problem:
            return failed.model_copy(update={"error": str(problem)})
        checks = [score(check, result, verdict) for check, verdict in zip(one.task.checks, judged, strict=True)]
        return _with_result(failed, result, checks)

    async def _run(self, one: _Try, tool: ToolRevision, who: Principal, *, dry_run: bool) -> Result:
        """Make the run; a scripted model is there for as long as it takes."""
        models, model = self._parts.models, one.candidate.model
        lent = nullcontext(model)
        if model == SCRIPTED:
            lent = models.lent(f"{SCRIPTED}:{one.task.id}", ScriptedModel(map(_message, one.script), name=one.task.id))
        with lent as named:
            return await self._start(tool, _input_of(tool, one.task), who, model=named, dry_run=dry_run)

    async def _start(
        self,
        tool: ToolRevision,
        arguments: JsonObject,
        who: Principal,
        *,
        model: str | None = None,
        dry_run: bool = False,
        as_call: bool = False,
    ) -> Result:
        parts = self._parts
        request = request_of(tool, arguments, who, parts.registry, dry_run=dry_run, as_call=as_call)
        request = request.model_copy(update={"model": model})
        refusal = refusal_of_run(parts.executor, tool, request)
        driven = parts.engine.start(request) if refusal is None else parts.engine.refuse(request, refusal)
        ended = await driven
        return Result(ended.result, ended.log)

    async def _set_up(self, use: EvaluationCall, who: Principal) -> None:
        tool = await self._parts.catalogue.require(who.realm, use.tool)
        result = await self._start(tool, use.input, who, as_call=True)
        if not result.ok:
            why = result.error.message if result.error else result.summary.status
            raise InvalidInput(f"the task was not set up: {use.tool!r}: {why}")

    async def _ask_judge(
        self, check: EvaluationCheck, task: EvaluationTask, result: Result, who: Principal
    ) -> JudgeVerdict | None:
        if not isinstance(check, JudgeCheck):
            return None
        judge = await self._parts.catalogue.require(who.realm, check.agent)
        request = {"question": check.question, "task": task.input, "answer": answer_of(result.output)}
        words = f"{orjson.dumps(request).decode()}\n\nJudge the answer. Answer with JSON: score (0 to 1) and reason."
        return judgement_of((await self._start(judge, {"message": words}, who)).output)


def _base(candidates: Sequence[EvaluationCandidate], base: str | None) -> str:
    """Label of the candidate that others are compared with."""
    labels = [one.label for one in candidates]
    if not labels:
        raise InvalidInput("nothing is evaluated; name at least one candidate, here or in the dataset")
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise InvalidInput(f"candidate {twice!r} is named twice; name another version or another model")
    if base is None:
        return labels[0]
    found = next((one.label for one in candidates if base in {one.label, one.tool}), None)
    if found is None:
        raise InvalidInput(f"there is no candidate {base!r} to compare with; there is: {', '.join(labels)}")
    return found


def _input_of(tool: ToolRevision, task: EvaluationTask) -> JsonObject:
    if not isinstance(task.input, str):
        return task.input
    if not isinstance(tool.definition.implementation, AgentImplementation):
        return {"task": task.input}
    return {"message": task.input, **({"context": task.context} if task.context else {})}


def _message(turn: ScriptedTurn) -> Message:
    texts = (Text(turn.text),) if turn.text else ()
    calls = (
        ToolCall(f"call_{number}", use.tool, orjson.dumps(use.input).decode())
        for number, use in enumerate(turn.calls, start=1)
    )
    return Message("assistant", (*texts, *calls))


def _with_result(failed: EvaluationOutcome, result: Result, checks: Sequence[CheckOutcome]) -> EvaluationOutcome:
    summary = result.summary
    completed = summary.status == "completed"
    why = result.error.message if result.error else f"the run is {summary.status.replace('_', ' ')}"
    return failed.model_copy(
        update={
            "run_id": result.run_id,
            "status": summary.status,
            "stop_reason": summary.stop_reason,
            "passed": completed and all(check.passed for check in checks),
            "checks": tuple(checks),
            "answer": answer_of(result.output),
            "error": None if completed else why,
            "cost_usd": None if summary.cost_unknown else summary.cost_usd,
            "tokens": summary.all_tokens,
            "steps": summary.iterations,
            "tool_calls": summary.tool_calls,
            "duration_s": (result.log[-1].at - result.log[0].at).total_seconds(),
        }
    )


def _report(
    dataset: EvaluationDataset,
    candidates: Sequence[EvaluationCandidate],
    base: str,
    outcomes: Sequence[EvaluationOutcome],
) -> Evaluation:
    results: dict[str, CandidateResult] = {}
    for one in candidates:
        own = [outcome for outcome in outcomes if outcome.candidate == one.label]
        tasks = {task.id: figures_of([outcome for outcome in own if outcome.task == task.id]) for task in dataset.tasks}
        results[one.label] = CandidateResult(candidate=one.label, total=figures_of(own), tasks=tasks)
    changes = [
        change
        for label, result in results.items()
        for task in dataset.tasks
        if (change := _change(task.id, label, result, results[base])) is not None
    ]
    return Evaluation(
        dataset=dataset.name,
        base=base,
        candidates=tuple(results.values()),
        changes=tuple(changes),
        outcomes=tuple(outcomes),
    )


def _change(task: str, label: str, result: CandidateResult, base: CandidateResult) -> EvaluationChange | None:
    mine, theirs = result.tasks[task], base.tasks[task]
    if mine.passed == theirs.passed:
        return None
    return EvaluationChange(
        kind="regression" if mine.passed < theirs.passed else "improvement",
        task=task,
        candidate=label,
        passed=mine.passed,
        base_passed=theirs.passed,
        runs=mine.runs,
    )
