"""What is refused for its size: sources, values and work."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions import compile_expression
from toolcrib.core.expressions.values import MAX_DEPTH, MAX_LIST, MAX_NODES, MAX_SOURCE, MAX_STRING

BIG_LIST = list(range(MAX_LIST))
BIG_TEXT = "x" * MAX_STRING


def refusal(source: str, scope: dict[str, Any] | None = None) -> str:
    with pytest.raises(InvalidExpression) as caught:
        compile_expression(source).evaluate(scope or {})
    return str(caught.value)


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.requirement("expressions.bounded_source")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1" + " " * MAX_SOURCE, "expression has 2,001 characters; at most 2,000 are allowed"),
        ("+".join(["1"] * MAX_NODES), "expression has more than 300 parts; split it"),
        ("a" + ".b" * MAX_NODES, "expression has more than 300 parts; split it"),
        ("(" * 900 + "1" + ")" * 900, "expression is nested deeper than 40 levels; split it"),
        ("!" * 1000 + "1", "expression is nested deeper than 40 levels; split it"),
        ("[" * 900, "expression is nested deeper than 40 levels; split it"),
        ("1?" * 600, "expression is nested deeper than 40 levels; split it"),
        ("a" + ".trim()" * MAX_DEPTH, "expression is nested deeper than 40 levels; split it"),
    ],
)
def test_a_source_that_is_too_large_is_refused_before_it_is_evaluated(source: str, message: str):
    with pytest.raises(InvalidExpression) as caught:
        compile_expression(source)

    assert str(caught.value) == message


@pytest.mark.requirement("expressions.bounded_source")
@pytest.mark.parametrize(
    "source",
    [
        "1".ljust(MAX_SOURCE),
        "+".join(["1"] * (MAX_NODES // 2)),
        "a" + ".b" * (MAX_NODES - 2),
        "(" * (MAX_DEPTH - 1) + "1" + ")" * (MAX_DEPTH - 1),
    ],
)
def test_a_source_at_the_limit_is_compiled(source: str):
    compile_expression(source)


@pytest.mark.requirement("expressions.bounded_values")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("s + 'y'", "text would be longer than 262,144 characters at column 3"),
        ("1 + s", "text would be longer than 262,144 characters at column 3"),
        ("upper(ss)", "upper() text would be longer than 262,144 characters at column 1"),
        ("s.replace('x', 'xx')", "replace() text would be longer than 262,144 characters at column 3"),
        ("[s, s].join('')", "join() text would be longer than 262,144 characters at column 8"),
        ("xs.join(s)", "join() text would be longer than 262,144 characters at column 4"),
        ("json([s])", "json() text would be longer than 262,144 characters at column 1"),
        ("json(s)", "json() text would be longer than 262,144 characters at column 1"),
        ("json({a: xs, b: xs, c: xs})", "json() text would be longer than 262,144 characters at column 1"),
        ("string({k: o})", "string() text would be longer than 262,144 characters at column 1"),
        ("xs + [1]", "list would have 100,001 elements; at most 100,000 are allowed at column 4"),
        ("s.split('x')", "split() list would have more than 100,000 elements at column 3"),
        ("9223372036854775808 + 1", "integer would be beyond 2**63 at column 21"),
        ("3037000499 * 3037000499 * 2", "integer would be beyond 2**63 at column 25"),
        ("1e308 * 10", "number would be beyond the range of JSON at column 7"),
        ("number('1e999')", "number() number would be beyond the range of JSON at column 1"),
        ("number(digits)", "number() expects the text of a number such as '12' or '-1.5' at column 1"),
        ("int('9999999999999999999')", "int() integer would be beyond 2**63 at column 1"),
        ("huge / 1.5", "number would be beyond the range of JSON at column 6"),
        ("-huge", "integer would be beyond 2**63"),
        ("sum([huge, 1.5])", "sum() integer would be beyond 2**63 at column 1"),
        ("floor(infinite)", "floor() number would be beyond the range of JSON at column 1"),
        ("json(huge)", "json() number cannot be written as JSON: Integer exceeds 64-bit range at column 1"),
    ],
)
def test_a_value_that_would_be_too_large_is_refused(source: str, message: str):
    scope = {
        "s": BIG_TEXT,
        "ss": "ß" * MAX_STRING,
        "xs": BIG_LIST,
        "o": {"k" * 1000 + str(place): 1 for place in range(300)},
        "digits": "1" * 5000,
        "huge": 10**400,
        "infinite": float("inf"),
    }

    assert refusal(source, scope) == message


@pytest.mark.requirement("expressions.bounded_values")
def test_a_large_value_may_be_passed_on_untouched():
    value = [BIG_TEXT * 2]

    assert compile_expression("v").evaluate({"v": value}) is value
    assert compile_expression("v[0].length").evaluate({"v": value}) == 2 * MAX_STRING


@pytest.mark.requirement("expressions.projection", "expressions.bounded_values")
def test_all_projections_of_one_path_share_one_limit_of_elements():
    scope = {"full": BIG_LIST, "over": [*BIG_LIST, 1], "half": [[1] * (MAX_LIST // 2)] * 2}

    assert len(compile_expression("full[*]").evaluate(scope)) == MAX_LIST
    assert refusal("over[*]", scope) == "[*] at column 5 gives more than 100,000 elements"
    assert refusal("half[*][*]", scope) == "[*] at column 8 gives more than 100,000 elements"


@pytest.mark.requirement("expressions.bounded_work")
@pytest.mark.parametrize(
    "source",
    [
        f"[{','.join(['xs[*]'] * 20)}]",
        " && ".join(["xs == ys"] * 20),
        " && ".join(["(len(xs) > 0)"] * 20),
        " && ".join(["!(-1 in xs)"] * 20),
        " && ".join(["json(xs.slice(0, 30000))"] * 20),
        f"[{','.join(['xs.slice(0, 50000) + xs.slice(50000)'] * 20)}]",
    ],
)
def test_one_evaluation_touches_a_million_elements_at_most(source: str):
    message = refusal(source, {"xs": BIG_LIST, "ys": list(BIG_LIST)})

    assert "evaluation touches more than 1,000,000 list elements and object members" in message


class CountingScope(Mapping[str, Any]):
    """Knows every name, and counts how often one is read."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.reads = 0

    def __contains__(self, key: object) -> bool:
        return True

    def __getitem__(self, key: str) -> Any:
        self.reads += 1
        return self.value

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@pytest.mark.requirement("expressions.bounded_work")
def test_every_node_is_evaluated_at_most_once_also_beside_a_projection():
    scope = CountingScope([{"a": 1}] * 1000)

    compile_expression("[x[*].a, y[0], z[*]['a'], x == y ? 1 : w]").evaluate(scope)

    assert scope.reads == 5


@pytest.mark.requirement("expressions.bounded_work")
def test_values_nested_deeper_than_the_interpreter_s_stack_are_compared_and_refused_as_text():
    scope = {"a": nested(50_000), "b": nested(50_000)}

    assert compile_expression("a == b").evaluate(scope) is True
    assert refusal("json(a)", scope).startswith("json() list cannot be written as JSON")
