"""How runs end, whatever becomes of their parts: nobody can take a run for done that is not, at any depth.

The runs are on the default store, and what is looked at is what a caller gets: the result, the trace, the envelope of a
nested run and the answer of a workflow.
"""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeAlias

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.agents.crm import asks
from toolcrib import AgenticStep, Crib, Limits, Result, ScriptedModel, tool
from toolcrib.contracts import ContentFilter, ErrorCode, JsonObject, JsonSchema, ToolEnvelope
from toolcrib.kinds.composite.shape import CompositeRoute
from toolcrib.llm import Message, Request

Part: TypeAlias = Literal["done", "fails", "denied", "half", "left out"]
"""What becomes of a step. `half`: one of its two calls fails."""
PARTS: tuple[Part, ...] = ("done", "fails", "denied", "half", "left out")
SUCCESS: JsonSchema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@tool(side_effects="reads")
async def act(n: int) -> int:
    """Act; not on odd numbers."""
    if n % 2:
        raise ValueError(f"{n} is odd")
    return n


@tool(side_effects="reads", cost_usd_per_call=Decimal(50))
async def buy(n: int) -> int:
    """Buy; nobody may spend that much."""
    return n


def entry(part: Part) -> JsonObject:
    """What the plan says of a step."""
    match part:
        case "left out":
            return {"skip": True}
        case "half":
            return {"for_each": "${look}", "input": {"n": "${item}"}}
        case _:
            return {"input": {"n": 1 if part == "fails" else 2}}


def plan(parts: Sequence[Part]) -> JsonObject:
    looked: JsonObject = {"look": {"input": {}}} if "half" in parts else {}
    return {"reasoning": "", **looked, **{f"s{n}": entry(part) for n, part in enumerate(parts)}}


@tool(side_effects="reads")
async def look() -> list[int]:
    """Look at numbers."""
    return [1, 2]


def planner(plan: JsonObject, answer: JsonObject) -> ScriptedModel:
    """A model that plans so, stays with the plan of its first step when it is asked again, and answers so."""

    def reply(request: Request) -> str:
        said = {"plan": plan, "step": plan["s0"], "answer": answer}[request.output_name]
        return orjson.dumps(said).decode()

    return ScriptedModel(reply)


def steps(parts: Sequence[Part]) -> list[AgenticStep]:
    looked = [AgenticStep(id="look", tool="look")] if "half" in parts else []
    return looked + [AgenticStep(id=f"s{n}", tool="buy" if part == "denied" else "act") for n, part in enumerate(parts)]


def is_done(parts: Sequence[Part]) -> bool:
    """Whether everything that was planned is done."""
    return set(parts) <= {"done", "left out"} and "done" in parts


def check_end(result: Result, *, done: bool) -> None:
    assert result.ok is done
    assert (result.status == "completed") is done
    assert (result.output is not None) is done
    assert (result.error is None) is done
    if not done:
        assert result.status in {"incomplete", "failed"}
        assert result.stop_reason != "final_answer"
        assert result.error is not None
        assert "no usable plan" not in result.error.message
        assert (result.status == "incomplete") is (
            result.error.code is ErrorCode.POLICY_DENIED or result.stop_reason == "nothing_done"
        )


async def deterministic(folder: Path, parts: Sequence[Part], depth: int, *, promised: bool) -> tuple[Result, Result]:
    """A deterministic tool, under as many others; returns its end and that of the outermost."""
    answer: JsonObject = {"n": 1} if promised else {"summary": "x"}
    models = {"scripted:0": planner(plan(parts), answer)}
    calling: JsonObject = {"reasoning": "", "s0": {"input": {"task": "go"}}}
    models |= {f"scripted:{n}": planner(calling, answer) for n in range(1, depth + 1)}
    schema = SUCCESS if promised else None
    async with Crib(f"sqlite:///{folder}/ends.db", models=models) as crib:
        crib.add(act, buy, look)
        for n in range(depth + 1):
            crib.agentic_tool(
                f"tool{n}",
                mode="deterministic",
                model=f"scripted:{n}",
                grounding="off",
                steps=steps(parts) if n == 0 else [AgenticStep(id="s0", tool=f"tool{n - 1}")],
                result_schema=schema,
                limits=Limits(max_cost_usd=Decimal(1)),
            )
        outer = await crib.invoke(f"tool{depth}", {"task": "go"})
        inner = outer
        for _ in range(depth):
            call = inner.envelopes[-1]
            check_call(call, inner)
            inner = await crib.resume(call.metadata["run_id"])
        trace = await crib.trace(outer.run_id)
        assert (trace.status, trace.stop_reason, trace.error) == (outer.status, outer.stop_reason, outer.error)
        assert (trace.output, trace.partial) == (outer.output, outer.partial)
        assert (await crib.replay(outer.run_id)).same
        return inner, outer


def check_call(call: ToolEnvelope, caller: Result) -> None:
    """A nested run that did not complete is a failed call, which has what it did."""
    assert call.ok is caller.ok
    if not call.ok:
        assert call.output is None
        assert call.partial is not None
        assert call.metadata["status"] in {"incomplete", "failed"}


@pytest.mark.requirement("ends.deterministic", "ends.nested", "ends.left_out")
@SLOW
@given(
    parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=4),
    depth=st.integers(0, 2),
    promised=st.booleans(),
)
async def test_a_planned_step_that_was_denied_failed_or_never_ran_is_no_success(
    tmp_path_factory: pytest.TempPathFactory, parts: list[Part], depth: int, promised: bool
):
    inner, outer = await deterministic(tmp_path_factory.mktemp("ends"), parts, depth, promised=promised)

    check_end(inner, done=is_done(parts))
    check_end(outer, done=is_done(parts))
    if outer.ok:
        left_out = [f"step 's{n}' was left out" for n, part in enumerate(parts) if part == "left out"]
        assert all(said in "\n".join(outer.warnings) for said in left_out)


@pytest.mark.requirement("ends.agentic", "ends.recovered")
@SLOW
@given(
    turns=st.lists(st.sampled_from(["done", "fails", "denied", "unknown"]), max_size=5),
    answers=st.booleans(),
)
async def test_the_end_of_the_loop_decides_and_what_it_recovered_from_is_counted(
    tmp_path_factory: pytest.TempPathFactory, turns: list[str], answers: bool
):
    def call(place: int, what: str) -> Message:
        number = 2 * place + (1 if what == "fails" else 0)
        return asks(({"denied": "buy", "unknown": "none"}.get(what, "act"), {"n": number}))

    # Two refused turns are followed by one that is not, so that refusals alone do not end the run.
    calls = [call(place, what) for place, what in enumerate(turns) if what != "unknown" or place % 2]
    made = [what for place, what in enumerate(turns) if what != "unknown" or place % 2]
    limits = Limits(max_cost_usd=Decimal(1), max_iterations=len(calls) + (1 if answers else 0) or 1)
    model = ScriptedModel([*calls, "The answer."] if answers else [*calls, asks(("act", {"n": 2})), "A last word."])
    async with Crib(f"sqlite:///{tmp_path_factory.mktemp('ends')}/ends.db", models={"scripted:x": model}) as crib:
        crib.add(act, buy)
        agent = crib.agentic_tool("x", mode="agentic", model="scripted:x", tools=["act", "buy"], limits=limits)
        result = await agent("go")
        assert (await crib.replay(result.run_id)).same

    if "denied" in made:  # a turn all of whose calls a limit denies is the end
        assert (result.status, result.stop_reason, result.output) == ("incomplete", "max_cost", None)
        return
    check_end(result, done=answers)
    lost = [what for what in made if what in {"fails", "unknown"}]
    counted = [warning for warning in result.warnings if "without a result" in warning]
    assert len(counted) == (1 if lost and answers else 0)
    if counted:
        assert counted[0].startswith(f"{len(lost)} call")


LONG = "Half of it is done, said agent-7731. " * 40


async def limited(folder: Path, *guardrails: ContentFilter) -> Result:
    """An agent that calls a tool that calls a tool that a limit ends; the middle one is made of one call."""
    inner = ScriptedModel([asks(("act", {"n": 2})), LONG])
    outer = ScriptedModel([asks(("around", {"task": "go"})), "It was not finished."])
    async with Crib(f"sqlite:///{folder}/ends.db", models={"scripted:inner": inner, "scripted:outer": outer}) as crib:
        crib.add(act)
        limits = Limits(max_iterations=1)
        crib.agentic_tool("inner", mode="agentic", model="scripted:inner", tools=["act"], limits=limits)
        schema: JsonSchema = {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}
        crib.composite_tool("around", input_schema=schema, routes=[CompositeRoute(id="only", tool="inner")])
        crib.agent("outer", model="scripted:outer", tools=["around"], guardrails=guardrails)
        result = await crib.invoke("outer", {"message": "go"})
        assert (await crib.replay(result.run_id)).same
        return result


@pytest.mark.requirement("ends.nested")
async def test_what_a_nested_run_had_done_reaches_the_model_above_through_a_composite(tmp_path: Path):
    result = await limited(tmp_path)

    assert result.output == "It was not finished."
    assert "1 call was without a result (1 failed)" in result.warnings[-1]
    [call] = result.envelopes
    assert call.metadata["status"] == "incomplete"
    assert call.metadata["stop_reason"] == "max_iterations"
    partial: Any = call.partial
    assert partial["summary"] == LONG.strip()


@pytest.mark.requirement("ends.nested")
async def test_content_filters_hold_for_what_a_nested_run_had_done(tmp_path_factory: pytest.TempPathFactory):
    def filters(action: Literal["block", "redact"]) -> ContentFilter:
        return ContentFilter(words=("agent-7731",), action=action, applies_to=("tool_output",))

    redacted = await limited(tmp_path_factory.mktemp("redacted"), filters("redact"))
    blocked = await limited(tmp_path_factory.mktemp("blocked"), filters("block"))

    assert "agent-7731" not in str(redacted.envelopes[0].partial)
    assert "Half of it is done" in str(redacted.envelopes[0].partial)
    assert blocked.envelopes[0].partial is None
    for result in (redacted, blocked):
        assert "agent-7731" not in result.summary.model_dump_json()
