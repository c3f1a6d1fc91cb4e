"""Names of steps, edges that lead nowhere, and cycles."""

import pytest

from tests.unit.workflows.checked import problems, told
from toolcrib.contracts import JsonObject


def value(name: str, output: object = 1, **fields: object) -> JsonObject:
    return {"name": name, "output": output, **fields}


@pytest.mark.requirement("workflow_checks.names")
async def test_two_steps_of_one_name_are_told_at_the_second():
    assert await told(value("a"), value("a")) == [
        "/steps/1/name: two steps are named 'a'; give each a name of its own",
    ]


@pytest.mark.requirement("workflow_checks.names")
async def test_a_name_that_expressions_read_something_else_under_is_reserved():
    found = await problems(value("input"), value("b", save_as="item"))

    assert [problem.path for problem in found] == ["/steps/0/name", "/steps/1/save_as"]
    assert "use another name than error, index, input, item, output, steps" in str(found[0])


@pytest.mark.requirement("workflow_checks.names")
async def test_two_steps_that_both_run_cannot_save_under_one_name():
    assert await told(value("a", save_as="x"), value("b", save_as="x")) == [
        (
            "/steps/1/save_as: expressions would read the output of 'a' and of 'b' as 'x'; "
            "save one of them as something else, or let one go to the other when it fails"
        ),
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"on_error": {"go_to": "b"}}, {}),
        ({"condition": "${input.fast}"}, {"condition": "${ !input.fast }"}),
        ({"condition": "${input.kind == 'x'}"}, {"condition": "${input.kind == 'y'}"}),
        ({"condition": "${input.kind == 'x'}"}, {"condition": "${input.kind != 'x'}"}),
        ({"condition": "${input.kind == 'x'}"}, {"condition": "${!(input.kind in ['x', 'y'])}"}),
        ({"condition": "${input.kind in ['x', 'y']}"}, {"condition": "${input.kind in ['z']}"}),
    ],
)
@pytest.mark.requirement("workflow_checks.names")
async def test_alternatives_may_save_under_one_name(first: JsonObject, second: JsonObject):
    found = await told(value("a", save_as="x", **first), value("b", save_as="x", **second), value("c", "${x}"))

    assert found == []


@pytest.mark.requirement("workflow_checks.names")
async def test_alternatives_may_follow_each_other_through_several_failures():
    found = await told(
        value("a", save_as="x", on_error={"go_to": "b"}),
        value("b", save_as="x", on_error={"go_to": "c"}),
        value("c", save_as="x"),
    )

    assert found == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("${input.a}", "${input.b}"),
        ("${input.a}", "${input.a == 5}"),
        ("${input.a != 1}", "${input.a != 2}"),
        ("${input.a in [1, 2]}", "${input.a in [2, 3]}"),
        ("${input.a in [input.b]}", "${input.a == 1}"),
    ],
)
@pytest.mark.requirement("workflow_checks.names")
async def test_conditions_that_may_hold_together_are_a_warning(first: str, second: str):
    assert await told(value("a", save_as="x", condition=first), value("b", save_as="x", condition=second)) == [
        (
            "warning /steps/1/save_as: if 'a' and 'b' both run, 'x' is the output of the later one; "
            "make their conditions exclude each other"
        ),
    ]


@pytest.mark.requirement("workflow_checks.steps_known", "workflow_checks.all_at_once")
async def test_all_steps_that_there_are_not_are_told_at_once():
    found = await told(
        value("check", depends_on=["chek", "check"]),
        value("pay", "${steps.chck.status}", on_error={"go_to": "refund"}),
    )

    assert found == [
        "/steps/0/depends_on/0: there is no step 'chek'; did you mean 'check'?",
        "/steps/0/depends_on/1: step 'check' would wait for itself; take it out",
        "/steps/1/on_error/go_to: there is no step 'refund'; available: check, pay",
        ("/steps/1/output: ${steps.chck.status} reads 'chck', which its source does not have; did you mean 'check'?"),
    ]


@pytest.mark.requirement("workflow_checks.cycles")
async def test_a_circle_is_told_with_the_way_and_the_edge_to_take_out():
    found = await problems(value("a", depends_on=["c"]), value("b", "${a}"), value("c", "${b}"))

    assert [str(problem) for problem in found] == [
        "/steps/0/depends_on/0: the steps wait for each other: c -> a -> b -> c; take 'c' out of depends_on of 'a'",
    ]
    assert found[0].step == "a"


@pytest.mark.requirement("workflow_checks.cycles")
async def test_going_back_is_a_circle():
    assert await told(value("a"), value("b", "${a}", on_error={"go_to": "a"})) == [
        (
            "/steps/1/on_error/go_to: the steps wait for each other: b -> a -> b; "
            "'b' goes back to 'a', which it waits for; let it go to another step"
        ),
    ]


@pytest.mark.requirement("workflow_checks.cycles")
async def test_a_circle_of_expressions_names_the_expression():
    assert await told(value("a", "${b.x}"), value("b", "${a}")) == [
        "/steps/0/output: the steps wait for each other: b -> a -> b; do not read ${b.x} in 'a'",
    ]


@pytest.mark.requirement("workflow_checks.cycles")
async def test_each_circle_is_told_once_and_what_lies_between_them_is_in_none():
    found = await problems(
        value("a", depends_on=["b"]),
        value("b", depends_on=["a"]),
        value("between", depends_on=["b"]),
        value("c", depends_on=["d", "between"]),
        value("d", depends_on=["c"]),
    )

    assert [problem.message for problem in found] == [
        "the steps wait for each other: b -> a -> b",
        "the steps wait for each other: d -> c -> d",
    ]


@pytest.mark.requirement("workflow_checks.cycles", "workflow_checks.size")
async def test_a_circle_of_five_thousand_steps_is_told_in_a_line():
    steps = [value(f"s{place}", depends_on=[f"s{(place - 1) % 5000}"]) for place in range(5000)]

    (problem,) = await problems(*steps)

    assert problem.message.endswith("s4999 -> s0 -> s1 -> s2 -> … 4993 more … -> s4996 -> s4997 -> s4998 -> s4999")


@pytest.mark.parametrize(
    ("earlier", "is_told"), [({}, True), ({"on_error": "continue"}, False), ({"on_error": {"go_to": "mend"}}, False)]
)
@pytest.mark.requirement("workflow_checks.one_thing")
async def test_a_step_that_runs_in_any_case_is_told_what_ends_the_run_before_it(earlier: JsonObject, is_told: bool):
    found = await told(
        {"name": "work", "tool": "anything", **earlier},
        value("mend"),
        value("tidy", depends_on=["work"], join="always"),
    )

    message = "join is 'always', and if step 'work' fails the run ends, and this step does not run"
    instead = "let 'work' continue on_error, or go to a step"
    assert found == ([f"warning /steps/2/join: {message}; {instead}"] if is_told else [])
