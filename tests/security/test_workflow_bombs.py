"""Definitions that would make values nobody can hold, or whose check would not end."""

import pytest

from tests.unit.workflows.checked import problems
from tests.unit.workflows.flows import error_of, run
from toolcrib import Crib, tool
from toolcrib.contracts import Json, JsonObject, Reason
from toolcrib.contracts.workflows import WorkflowInstance
from toolcrib.workflows.values import step_errors
from toolcrib.workflows.values.step_errors import MAX_MADE, is_too_large

pytestmark = pytest.mark.requirement("workflow_attacks.size")

TEN = 10
GROWING: tuple[JsonObject, ...] = (
    {"name": "s0", "output": ["lol"] * TEN},
    *({"name": f"s{n}", "output": [f"${{s{n - 1}}}"] * TEN} for n in range(1, 6)),
)
"""Each step puts out ten times what the one before does: ten thousand in `s3`, a million in `s5`."""


@tool(side_effects="reads")
async def echo(value: Json) -> int:
    """Say whether there is something."""
    return 0 if value is None else 1


async def laughed(*steps: JsonObject, **fields: Json) -> WorkflowInstance:
    async with Crib("memory://") as crib:
        crib.add(echo)
        return await run(crib, *GROWING[:4], *steps, **fields)


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """A hundredth of the limit, which values of a hundredth of the size exceed in less time."""
    monkeypatch.setattr(step_errors, "MAX_MADE", MAX_MADE // 100)
    return MAX_MADE // 100


async def test_a_million_elements_cannot_be_multiplied():
    async with Crib("memory://") as crib:
        ended = await run(crib, *GROWING, {"name": "boom", "output": ["${s5}"] * TEN})

    assert f"longer than {MAX_MADE:,} characters; select less" in error_of(ended, "boom").message


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("a value", {"output": ["${s3}"] * TEN}),
        ("members", {"output": {str(n): "${s3}" for n in range(TEN)}}),
        ("of a call", {"tool": "echo", "input": {"value": "${s0}"}, "output": ["${s3}"] * TEN}),
        ("elements", {"for_each": "${s0}", "output": "${s3}"}),
        ("arguments", {"tool": "echo", "input": {"value": ["${s3}"] * TEN}}),
        ("a question", {"approval": {"message": "Well?", "show": {"all": ["${s3}"] * TEN}}}),
    ],
)
async def test_a_step_that_would_multiply_what_others_have_put_out_fails(limit: int, name: str, step: JsonObject):
    ended = await laughed({"name": "boom", **step})

    assert ended.status == "failed"
    assert error_of(ended, "boom").reason is Reason.REFERENCE_UNRESOLVED
    assert f"longer than {limit:,} characters; select less" in error_of(ended, "boom").message


async def test_so_does_a_workflow_that_would_put_that_out(limit: int):
    ended = await laughed(output=["${s3}"] * TEN)

    assert ended.status == "failed"
    assert ended.error is not None
    assert f"longer than {limit:,}" in ended.error.message


async def test_what_is_read_often_and_small_is_no_matter(limit: int):
    ended = await laughed({"name": "fine", "for_each": "${s1}", "output": "${s2}"}, output="${fine.length}")

    assert (ended.status, ended.output) == ("completed", TEN)


@pytest.mark.parametrize("value", ["x" * MAX_MADE, ["x" * 1000] * 20_000, {"x" * MAX_MADE: None}, [0] * MAX_MADE])
def test_characters_names_and_elements_count(value: Json):
    assert is_too_large(value)


@pytest.mark.parametrize("value", [None, True, 1.5, "x", {"a": [1, {"b": "x" * (MAX_MADE // 2)}]}])
def test_everything_else_is_held(value: Json):
    assert not is_too_large(value)


@pytest.mark.requirement("workflow_attacks.checking")
async def test_names_that_are_long_and_alike_are_not_compared_until_the_end_of_time():
    alike = "x" * 60
    found = await problems(*({"name": f"s{n}{alike}", "output": f"${{q{n}{alike}}}"} for n in range(600)))

    assert len(found) == 600
    assert 0 < sum(problem.suggestion is not None for problem in found) < 10
