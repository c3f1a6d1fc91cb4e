"""The language, by tables: what an expression gives, and what it refuses with which words."""

from typing import Any

import pytest

from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions import compile_expression
from toolcrib.core.expressions.functions import FUNCTIONS

SCOPE: dict[str, Any] = {
    "validate": {"errors": ["missing name", "bad date"], "ok": False, "nothing": None},
    "order": {"id": "o-1", "qty": 3, "price": 2.5, "tags": ["new", "rush"], "length": 7, "two words": "x"},
    "deals": {
        "results": [
            {"id": 1, "owner": {"name": "Ada"}, "contacts": [{"mail": "a@x"}, {"mail": "b@x"}]},
            {"id": 2, "owner": {"name": "Bob"}, "contacts": []},
        ]
    },
    "empty": {"list": [], "text": "", "object": {}},
    "größe": 4,
    "_x$1": 5,
}


def evaluate(source: str, scope: dict[str, Any] = SCOPE) -> Any:
    return compile_expression(source).evaluate(scope)


def refusal(source: str, scope: dict[str, Any] = SCOPE) -> str:
    with pytest.raises(InvalidExpression) as caught:
        evaluate(source, scope)
    return str(caught.value)


@pytest.mark.requirement("expressions.language")
@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("validate.errors.length > 0", True),
        ('order["id"]', "o-1"),
        ('order["two words"]', "x"),
        ("order.tags[0]", "new"),
        ("order.tags[-1]", "rush"),
        ("order.tags[order.qty - 2]", "rush"),
        ("order.id[0]", "o"),
        ("order.length", 7),
        ("order.tags.length", 2),
        ("order.id.length", 3),
        ("empty.object.length", 0),
        ("größe + _x$1", 9),
        ("  order . qty\n", 3),
        ("1.5e2", 150.0),
        ("true", True),
        ("null", None),
        ("'it\\'s' + \" \\u00e9\\n\\ud83d\\ude00\"", "it's é\n😀"),
        ('"a\nb"', "a\nb"),
        ("[1, 'a', [order.qty],]", [1, "a", [3]]),
        ("{a: 1, 'b c': [2], order: order.qty,}", {"a": 1, "b c": [2], "order": 3}),
        ("{a: 1, a: 2}", {"a": 2}),
        ("{}", {}),
        ("1 + 2 * 3 - 4", 3),
        ("(1 + 2) * 3", 9),
        ("10 - 2 - 3", 5),
        ("6 / 3", 2),
        ("7 / 2", 3.5),
        ("1.5 / 2", 0.75),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("-7.5 % 2", -1.5),
        ("--2", 2),
        ("order.id + '/' + order.qty + '/' + true", "o-1/3/true"),
        ("1 + 'a'", "1a"),
        ("[1] + [2]", [1, 2]),
        ("1 == 1.0", True),
        ("1 == true", False),
        ("0 == false", False),
        ("'1' == 1", False),
        ("null == null", True),
        ("[1, {a: [2]}] === [1.0, {a: [2]}]", True),
        ("[1] == [true]", False),
        ("[1] == [1, 2]", False),
        ("{a: 1} == {b: 1}", False),
        ("{a: 1} == {a: 2}", False),
        ("[1] == {a: 1}", False),
        ("1 != 2 && 'a' !== 'b'", True),
        ("1 < 2 && 2 <= 2 && 'b' > 'a' && 3 >= 3", True),
        ("'rush' in order.tags", True),
        ("1 in [true]", False),
        ("'qty' in order", True),
        ("'o-' in order.id", True),
        ("!0 && !'' && !null && !false", True),
        ("![] || !{}", False),
        ("null || 0 || 'last'", "last"),
        ("order && order.qty && 0", 0),
        ("validate.nothing ?? 'fallback'", "fallback"),
        ("false ?? 'fallback'", False),
        ("false && nope", False),
        ("true || nope", True),
        ("1 ?? nope", 1),
        ("order.qty > 2 ? 'many' : nope", "many"),
        ("empty.text ? 1 : empty.list ? 2 : 3", 2),
    ],
)
def test_an_expression_has_the_value_that_javascript_would_give_without_conversions(source: str, value: Any):
    result = evaluate(source)

    assert (result, type(result)) == (value, type(value))


@pytest.mark.requirement("expressions.language")
@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("abs(-2)", 2),
        ("ceil(1.2)", 2),
        ("floor(-1.2)", -2),
        ("round(2.5)", 3),
        ("round(-2.5)", -3),
        ("round(2.345, 2)", 2.35),
        ("round(7)", 7),
        ("round(1e300, 2)", 1e300),
        ("contains(order.tags, 'new')", True),
        ("order.tags.includes('old')", False),
        ("default(validate.nothing, 4)", 4),
        ("default(0, 4)", 0),
        ("order.id.startsWith('o') && order.id.endsWith('1')", True),
        ("first(order.tags)", "new"),
        ("order.id.last()", "1"),
        ("'abc'.indexOf('c')", 2),
        ("[1, [2], 3].indexOf([2])", 1),
        ("[1].indexOf(true)", -1),
        ("int('12') + int(1.9) + int('-2.5')", 11),
        ("number(' -1.5e1 ')", -15.0),
        ("number(3)", 3),
        ("[1, 'a', {b: null}].join('; ')", '1; a; {"b":null}'),
        ("join(['a', 'b'])", "a,b"),
        ("json([1, 2.0, 'é'])", '[1,2.0,"é"]'),
        ("json('a')", '"a"'),
        ("string('a') + string([true])", "a[true]"),
        ("keys({a: 1, b: 2})", ["a", "b"]),
        ("values({a: 1, b: 2})", [1, 2]),
        ("len('abc') + length([1]) + size({a: 1})", 5),
        ("lower('ABC') + 'abc'.toUpperCase()", "abcABC"),
        ("upper('a') + 'B'.toLowerCase()", "Ab"),
        ("max(1, 2.5) - min([4, 2])", 0.5),
        ("max(['a', 'c', 'b'])", "c"),
        ("replace('a-b-c', '-', '+')", "a+b+c"),
        ("slice([1, 2, 3], 1)", [2, 3]),
        ("'abcdef'.slice(1, -2)", "bcd"),
        ("split('a, b', ', ')", ["a", "b"]),
        ("sum([1, 2.5])", 3.5),
        ("sum([])", 0),
        ("trim(' a ')", "a"),
        ("type(1) + type(null) + type({}) + type([]) + type('') + type(true)", "numbernullobjectliststringboolean"),
        ("unique([1, '1', 1.0, true, 1])", [1, "1", True]),
        ("validate.nothing?.trim()", None),
        ("order.id?.upper()", "O-1"),
    ],
)
def test_functions_are_called_with_the_value_in_front_or_as_the_first_argument(source: str, value: Any):
    result = evaluate(source)

    assert (result, type(result)) == (value, type(value))


@pytest.mark.requirement("expressions.language")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("order.qty > 'a'", "cannot apply '>' to number and string at column 11"),
        ("true + 1", "cannot apply '+' to boolean and number at column 6"),
        ("'a' + null", "cannot apply '+' to string and null at column 5"),
        ("null + 'a'", "cannot apply '+' to null and string at column 6"),
        ("[1] - 1", "cannot apply '-' to list and number at column 5"),
        ("1 / 0", "division by zero at column 3"),
        ("1 % 0.0", "division by zero at column 3"),
        ("-'a'", "cannot negate string at column 1"),
        ("1 in 5", "cannot look for number in number at column 3"),
        ("1 in 'a'", "cannot look for number in string at column 3"),
        ("order.tags[true]", "cannot read an element by boolean of list at column 11"),
        ("order[0]", "cannot read an element by number of object at column 6"),
        ("5[0]", "cannot read an element by number of number at column 2"),
        ("upper(1)", "upper() expects a string, got number at column 1"),
        ("1 + order.qty.trim()", "trim() expects a string, got number at column 15"),
        ("len(1)", "len() expects a string, list or object, got number at column 1"),
        ("abs('a')", "abs() expects a number, got string at column 1"),
        ("round(1.5, 11)", "round() expects 0 to 10 digits, got 11 at column 1"),
        ("slice('a', 1.5)", "slice() expects a whole number, got number at column 1"),
        ("slice('a', true)", "slice() expects a whole number, got boolean at column 1"),
        ("join('a')", "join() expects a list, got string at column 1"),
        ("keys([])", "keys() expects an object, got list at column 1"),
        ("values([])", "values() expects an object, got list at column 1"),
        ("first([])", "first() got an empty list (x?.[0] gives null there) at column 1"),
        ("max([])", "max() got nothing to compare at column 1"),
        ("max(1, 'a')", "max() expects a number, got string at column 1"),
        ("number('nan')", "number() expects the text of a number such as '12' or '-1.5' at column 1"),
        ("split('a', '')", "split() cannot split at an empty string at column 1"),
        ("replace('a', '', 'b')", "replace() cannot replace an empty string at column 1"),
        ("unique([[]])", "unique() expects a list of strings, numbers or booleans, got one of lists at column 1"),
        ("trim()", "trim() takes 1 argument at column 1, 0 given"),
        ("split('a')", "split() takes 2 arguments at column 1, 1 given"),
        ("join(1, 2, 3)", "join() takes 1 to 2 arguments at column 1, 3 given"),
        ("max()", "max() takes 1 or more arguments at column 1, 0 given"),
        (
            "order.tags.map(x)",
            "no function 'map' at column 12: the language has no loops; items[*].id reads from every",
        ),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_name_and_column(source: str, message: str):
    assert refusal(source).startswith(message)


@pytest.mark.requirement("expressions.strict_access")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "validate.eror",
            "no field 'eror' at column 10; fields: errors, ok, nothing",
        ),
        ("validate['eror']", "no field 'eror' at column 9; fields: errors, ok, nothing"),
        ("empty.object.x", "no field 'x' at column 14; fields: none"),
        ("order.id.nope", "cannot read field 'nope' of string at column 10"),
        ("validate.nothing.x", "cannot read field 'x' of null at column 18"),
        ("deals.results.id", "cannot read field 'id' of list at column 15; read it from each element with [*]"),
        ("order.tags[2]", "no element 2 at column 11; the list has 2"),
        ("order.tags[-3]", "no element -3 at column 11; the list has 2"),
        ("order.id?.nope", "cannot read field 'nope' of string at column 11"),
        ("order?.[0]", "cannot read an element by number of object at column 8"),
    ],
)
def test_what_is_not_there_is_an_error_with_what_is_there(source: str, message: str):
    assert refusal(source) == message


@pytest.mark.requirement("expressions.strict_access")
def test_an_unknown_name_is_an_error_with_the_closest_known_names_first():
    message = refusal("deal.results", {"orders": 1, "deals": 2, "x": 3})

    assert message == "unknown name 'deal' at column 1; did you mean 'deals'? known: deals, orders, x"


@pytest.mark.requirement("expressions.strict_access")
def test_a_message_shows_few_and_short_names_however_many_and_long_they_are():
    message = refusal("nope", {f"{place}-{'n' * 500}": 1 for place in range(1000)})

    assert message.endswith(", …")
    assert len(message) < 800


@pytest.mark.requirement("expressions.strict_access")
@pytest.mark.parametrize(
    "source",
    [
        "validate?.nope",
        "validate?.nope.deeper[0].still",
        "validate.nothing?.x",
        "validate.nothing?.[0]",
        "order.tags?.[9]",
        "order?.['nope'].x",
        "null?.x.y",
        "order?.nope[*].id",
    ],
)
def test_an_optional_accessor_ends_the_path_with_null(source: str):
    assert evaluate(source) is None


@pytest.mark.requirement("expressions.strict_access")
def test_an_optional_first_accessor_does_not_excuse_an_unknown_name():
    assert refusal("nope?.x").startswith("unknown name 'nope'")


@pytest.mark.requirement("expressions.projection")
@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("deals.results[*].id", [1, 2]),
        ("deals.results[*]['id']", [1, 2]),
        ("deals.results[*].owner.name", ["Ada", "Bob"]),
        ("deals.results[*].contacts[*].mail", ["a@x", "b@x"]),
        ("deals.results[*].contacts.length", [2, 0]),
        ("deals.results[*].owner?.nick", [None, None]),
        ("deals.results[*].contacts?.[0]", [{"mail": "a@x"}, None]),
        ("[[1, 2], [3]][*][*]", [1, 2, 3]),
        ("[[1, 2], [3]][*][-1]", [2, 3]),
        ("empty.list[*].id", []),
        ("deals.results[*].id.join('+')", "1+2"),
        ("len(deals.results[*].id) + 1", 3),
        ("deals.results[*].id.last()", 2),
    ],
)
def test_a_projection_reads_from_every_element_into_one_flat_list(source: str, value: Any):
    assert evaluate(source) == value


@pytest.mark.requirement("expressions.projection")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("deals.results[*].idd", "no field 'idd' at column 18; fields: id, "),
        ("deals[*]", "[*] at column 6 needs a list, got object"),
        ("deals.results[*][order.qty]", "computed index at column 17: behind [*] an index must be a literal number"),
        ("deals.results?.[*]", "unexpected '*' at column 17"),
    ],
)
def test_a_projection_that_cannot_be_read_is_refused(source: str, message: str):
    assert refusal(source).startswith(message)


@pytest.mark.requirement("expressions.projection")
def test_an_error_in_a_projection_names_the_element():
    assert refusal("xs[*].a", {"xs": [{"a": 1}, {"b": 2}]}).endswith("fields: b (in element 1 of [*])")


@pytest.mark.requirement("expressions.repairable_errors")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "unexpected end of expression at column 1"),
        ("1 +", "unexpected end of expression at column 4"),
        ("a b", "unexpected 'b' at column 3"),
        ("a and b", "unexpected 'and' at column 3; write &&"),
        ("a = 1", "unexpected '=' at column 3; write =="),
        ("a & b", "unexpected '&' at column 3; write &&"),
        ("a # b", "unexpected '#' at column 3"),
        ("in", "unexpected 'in' at column 1"),
        ("a. > 1", "expected a name after '.' but found '>' at column 4"),
        ("a?.", "expected a name after '?.' but found end of expression at column 4"),
        ("(1", "expected ')' but found end of expression at column 3"),
        ("[1 2]", "expected ',' but found '2' at column 4"),
        ("a ? 1", "expected ':' but found end of expression at column 6"),
        ("{1: 2}", "expected the name of a member but found '1' at column 2"),
        ("{a 2}", "expected ':' but found '2' at column 4"),
        ("f(1", "expected ',' but found end of expression at column 4"),
        ("a[0", "expected ']' but found end of expression at column 4"),
        ("a[*", "expected ']' but found end of expression at column 4"),
        ("(a)(b)", "unexpected '(' at column 4"),
        ("x => x", "unexpected '=' at column 3; write =="),
        ("'abc", "string at column 1 is never closed"),
        ("'a\\x'", "unknown escape '\\x' in the string at column 1; escapes are those of JSON and \\'"),
        ("'\\ud83d'", "half a surrogate pair in the string at column 1"),
        ("1 + 9223372036854775809", "number at column 5 is too large; integers reach 2**63"),
        ("1e999", "number at column 1 is too large; integers reach 2**63"),
    ],
)
def test_a_malformed_source_is_refused_with_its_column(source: str, message: str):
    assert refusal(source) == message


@pytest.mark.requirement("expressions.repairable_errors")
def test_an_unknown_function_is_refused_when_compiled_with_the_closest_known_ones():
    with pytest.raises(InvalidExpression, match=r"unknown function 'tolower' at column 3; did you mean 'lower'\?"):
        compile_expression("x.tolower()")


@pytest.mark.requirement("expressions.no_host_access")
@pytest.mark.parametrize(
    "source",
    [
        "order.__class__",
        "order.id.__class__",
        "order.tags.append(1)",
        "order.keys",
        "__import__('os')",
        "order.id.format(1)",
        "'{0.__class__}'.format(order)",
        "eval('1')",
        "__builtins__",
        "self",
        "thing.danger",
        "thing.danger()",
        "thing[0]",
        "thing == 1 || thing.danger",
        "json(thing)",
        "'' + thing",
    ],
)
def test_nothing_of_the_host_can_be_reached(source: str):
    class Thing:
        danger = "reached"

    assert "reached" not in refusal(source, {**SCOPE, "thing": Thing()})


@pytest.mark.requirement("expressions.references")
@pytest.mark.parametrize(
    ("source", "references"),
    [
        ("search_deals.results[*].id", {"search_deals.results"}),
        ("validate.errors.length > 0 && order.id", {"validate.errors", "order.id"}),
        ("steps.a.out[input.i].x", {"steps.a.out", "input.i"}),
        ("a['b'].c[0].d", {"a.b.c"}),
        ("a['b c'].d", {"a"}),
        ("a?.b", {"a.b"}),
        ("(x ? a.b : {k: c}).d", {"x", "a.b", "c"}),
        ("a.b.split(c.d)[e] + -f.g", {"a.b", "c.d", "e", "f.g"}),
        ("!a ?? [b][0]", {"a", "b"}),
        ("1 + 'a.b'", set[str]()),
    ],
)
def test_what_an_expression_reads_is_known_without_data(source: str, references: set[str]):
    assert compile_expression(source).references == references


@pytest.mark.requirement("expressions.language")
def test_every_function_is_documented():
    from pathlib import Path

    text = (Path(__file__).parents[3] / "docs" / "expressions.md").read_text(encoding="utf-8")

    assert [name for name in FUNCTIONS if f"`{name}(" not in text] == []
