"""Evaluations: every task by every candidate, as ordinary runs, side by side."""

from typing import Any

import pytest

from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import (
    AgentDefinition,
    CalledCheck,
    ContainsCheck,
    EvaluationCall,
    EvaluationCandidate,
    EvaluationDataset,
    EvaluationTask,
    ExactCheck,
    InvalidInput,
    InvalidSettings,
    JudgeCheck,
    LLMConfig,
    NotFound,
    PathCheck,
    ScriptedTurn,
)

REAL = "anthropic:claude-sonnet-4"


class Till:
    """Counts what is sold."""

    def __init__(self) -> None:
        self.sold: list[str] = []

        @tool(side_effects="writes")
        def sell(item: str) -> dict[str, int]:
            """Sell an item."""
            if item == "nothing":
                raise ValueError("nothing cannot be sold")
            self.sold.append(item)
            return {"sold": len(self.sold)}

        self.sell = sell


def agent(version: str = "1.0.0", *, tools: tuple[str, ...] = ("sell",), name: str = "seller") -> AgentDefinition:
    return AgentDefinition.model_validate(
        {"name": name, "version": version, "llm": LLMConfig(model=REAL), "tools": tools}
    )


def scripted(version: str, **fields: Any) -> EvaluationCandidate:
    return EvaluationCandidate(tool=f"seller@{version}", model="scripted", **fields)


SELL = (
    ScriptedTurn(calls=(EvaluationCall(tool="sell", input={"item": "pen"}),)),
    ScriptedTurn(text="One pen is sold."),
)
SOLD = EvaluationTask(
    id="sold",
    input="Sell a pen.",
    script=SELL,
    checks=(CalledCheck(tool="sell", input={"item": "pen"}), ContainsCheck(text="sold")),
)
TALK = EvaluationTask(
    id="talk", input="Hello?", context={"name": "Ann"}, script=(ScriptedTurn(text="Hello."),),
    checks=(ExactCheck(value="Hello."),),
)  # fmt: skip


def dataset(*tasks: EvaluationTask, **fields: Any) -> EvaluationDataset:
    return EvaluationDataset(name="sales", agents=(agent(), agent("1.1.0", tools=())), tasks=tasks, **fields)


@pytest.mark.requirement("evaluations.runs", "evaluations.comparison", "evaluations.models")
async def test_candidates_are_compared_task_by_task_in_the_order_of_the_dataset():
    till = Till()
    async with Crib("memory://") as crib:
        crib.add(till.sell)

        found = await crib.evaluate(dataset(SOLD, TALK), [scripted("1.0.0"), scripted("1.1.0")], repeat=2)

        assert (found.dataset, found.base) == ("sales", "seller@1.0.0 with scripted")
        assert [one.total.passed for one in found.candidates] == [4, 2]
        assert [list(one.tasks) for one in found.candidates] == [["sold", "talk"]] * 2
        assert [(one.task, one.attempt) for one in found.outcomes[:4]] == [
            ("sold", 1), ("sold", 2), ("talk", 1), ("talk", 2),
        ]  # fmt: skip
        assert till.sold == ["pen", "pen"]
        [change] = found.changes
        assert (change.kind, change.task, change.passed, change.base_passed) == ("regression", "sold", 0, 2)
        first = found.outcomes[0]
        assert (first.answer, first.steps, first.tool_calls, first.stop_reason) == (
            "One pen is sold.", 2, 1, "final_answer",
        )  # fmt: skip
        run = await crib.store.journal.run(first.run_id or "")
        assert (run.request.model or "").startswith("scripted:sold#")
        assert (await crib.replay(run.run_id)).same


@pytest.mark.requirement("evaluations.comparison")
async def test_the_base_may_be_any_candidate_and_what_it_lacks_is_an_improvement():
    async with Crib("memory://") as crib:
        crib.add(Till().sell)
        tasks = dataset(SOLD, candidates=(scripted("1.0.0"), scripted("1.1.0")))

        found = await crib.evaluate(tasks, base="seller@1.1.0")

    assert [(one.kind, one.candidate) for one in found.changes] == [("improvement", "seller@1.0.0 with scripted")]


@pytest.mark.requirement("evaluations.models")
async def test_a_candidate_may_have_a_model_and_scripts_of_its_own():
    mine = (ScriptedTurn(text="Hi there."),)
    models = {REAL: ScriptedModel(["Hello."]), "anthropic:other": ScriptedModel(["Good day."])}
    async with Crib("memory://", models=models) as crib:
        crib.add(Till().sell)
        candidates = [
            EvaluationCandidate(tool="seller@1.0.0"),
            EvaluationCandidate(tool="seller@1.0.0", model="anthropic:other"),
            scripted("1.0.0", scripts={"talk": mine}),
        ]

        found = await crib.evaluate(dataset(TALK), candidates)

    assert [one.answer for one in found.outcomes] == ["Hello.", "Good day.", "Hi there."]
    assert [one.total.passed for one in found.candidates] == [1, 0, 0]


@pytest.mark.requirement("evaluations.runs")
async def test_setups_run_before_each_task_and_a_dry_run_writes_nothing():
    till = Till()
    ready = SOLD.model_copy(update={"setup": (EvaluationCall(tool="sell", input={"item": "ink"}),)})
    async with Crib("memory://") as crib:
        crib.add(till.sell)
        await crib.evaluate(dataset(ready), [scripted("1.0.0")])
        assert till.sold == ["ink", "pen"]

        dry = await crib.evaluate(dataset(ready), [scripted("1.0.0")], dry_run=True)

    assert till.sold == ["ink", "pen"]
    assert dry.candidates[0].total.passed == 1


@pytest.mark.requirement("evaluations.failures")
async def test_what_fails_keeps_nothing_else_from_being_run():
    broken = SOLD.model_copy(
        update={"id": "broken", "setup": (EvaluationCall(tool="sell", input={"item": "nothing"}),)}
    )
    refused = SOLD.model_copy(update={"id": "refused", "input": {"words": "Hello?"}})
    short = SOLD.model_copy(update={"id": "short", "script": SELL[:1]})
    async with Crib("memory://") as crib:
        crib.add(Till().sell)

        found = await crib.evaluate(dataset(broken, refused, short, SOLD), [scripted("1.0.0")], at_once=1)

    outcomes = {one.task: one for one in found.outcomes}
    assert [one.passed for one in found.outcomes] == [False, False, False, True]
    assert "the task was not set up: 'sell': " in (outcomes["broken"].error or "")
    assert (outcomes["broken"].run_id, outcomes["refused"].status) == (None, "failed")
    assert "message" in (outcomes["refused"].error or "")
    assert "its script has" in (outcomes["short"].error or "")


@pytest.mark.requirement("evaluations.runs")
async def test_any_tool_can_be_a_candidate_and_a_run_that_waits_has_not_passed():
    models = {REAL: ScriptedModel(["unused"])}
    async with Crib("memory://", models=models) as crib:
        crib.add(tool(side_effects="reads", runs_on="client")(Till().sell))
        crib.agentic_tool("clerk", mode="agentic", model=REAL, tools=["sell"])
        task = EvaluationTask(id="sell", input={"item": "pen"}, checks=(ExactCheck(value={"sold": 1}),))
        told = TALK.model_copy(update={"checks": (ContainsCheck(text="unused"),)})

        waiting = await crib.evaluate(dataset(task), [EvaluationCandidate(tool="sell")])
        clerk = await crib.evaluate(dataset(told), [EvaluationCandidate(tool="clerk")])
        left = await crib.trace(waiting.outcomes[0].run_id or "")

    assert waiting.outcomes[0].error == "the run is awaiting client"
    assert left.status == "cancelled"
    assert clerk.outcomes[0].passed


@pytest.mark.requirement("evaluations.judge")
async def test_a_judge_sees_the_task_and_the_answer():
    judge = ScriptedModel(['{"score": 0.9, "reason": "short and kind"}'])
    task = TALK.model_copy(update={"checks": (JudgeCheck(agent="judge", question="Is it kind?"),)})
    async with Crib("memory://", models={REAL: judge}) as crib:
        crib.add(Till().sell)
        judged = EvaluationDataset(name="sales", agents=(agent(), agent(name="judge", tools=())), tasks=(task,))

        found = await crib.evaluate(judged, [scripted("1.0.0")])

    assert found.outcomes[0].checks[0].reason == "short and kind"
    asked = judge.requests[0].messages[-1].text
    assert all(words in asked for words in ("Is it kind?", "Hello?", "Hello."))


@pytest.mark.requirement("evaluations.refused")
async def test_what_cannot_be_run_is_refused_before_anything_runs():
    mute = SOLD.model_copy(update={"script": ()})
    lost = SOLD.model_copy(update={"checks": (PathCheck(path="$.[[", equals=1),)})
    unjudged = SOLD.model_copy(update={"checks": (JudgeCheck(agent="nobody", question="Good?"),)})
    refusals: list[tuple[EvaluationDataset, list[EvaluationCandidate], str | None, type[Exception], str]] = [
        (dataset(SOLD), [], None, InvalidInput, "name at least one candidate"),
        (dataset(SOLD), [scripted("1.0.0")] * 2, None, InvalidInput, "is named twice"),
        (dataset(SOLD), [scripted("1.0.0")], "other", InvalidInput, "there is no candidate 'other'"),
        (dataset(mute), [scripted("1.0.0")], None, InvalidInput, "task 'sold' has no script"),
        (dataset(SOLD), [scripted("2.0.0")], None, NotFound, "seller"),
        (dataset(lost), [scripted("1.0.0")], None, InvalidInput, "is not well formed"),
        (dataset(unjudged), [scripted("1.0.0")], None, NotFound, "nobody"),
        (dataset(SOLD), [EvaluationCandidate(tool="seller", model="none:x")], None, InvalidSettings, "none"),
    ]
    async with Crib("memory://") as crib:
        crib.add(Till().sell)
        for tasks, candidates, base, kind, message in refusals:
            with pytest.raises(kind, match=message):
                await crib.evaluate(tasks, candidates, base=base)
        assert not await crib.store.journal.runs("default")


@pytest.mark.requirement("evaluations.refused")
def test_two_tasks_of_one_id_are_no_dataset():
    with pytest.raises(ValueError, match="two tasks have the id 'sold'"):
        dataset(SOLD, SOLD)
