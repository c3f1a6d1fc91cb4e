"""Texts with expressions: types, escapes, places, single pass, and the check against known names."""

from typing import Any

import pytest

from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions import Style, Template
from toolcrib.core.expressions.values import MAX_STRING

SCOPE: dict[str, Any] = {
    "user_task": "Update all deals",
    "reference_data": {"deal_stages": ["new", "won"], "none": None},
    "count": 3,
    "evil": "${count} {{count}} \\${count}",
}


def refusal(text: str, style: Style, scope: dict[str, Any] = SCOPE) -> str:
    with pytest.raises(InvalidExpression) as caught:
        Template.parse(text, style).render(scope)
    return str(caught.value)


@pytest.mark.requirement("expressions.template")
@pytest.mark.parametrize(
    ("text", "style", "value"),
    [
        ("", "{{}}", ""),
        ("no marks", "${}", "no marks"),
        ("{{reference_data}}", "{{}}", {"deal_stages": ["new", "won"], "none": None}),
        ("${ count }", "${}", 3),
        ("${reference_data.none}", "${}", None),
        ("n=${count}", "${}", "n=3"),
        ("${count} ", "${}", "3 "),
        ("${count}${count}", "${}", "33"),
        ("Task: {{user_task}}!", "{{}}", "Task: Update all deals!"),
        ("Stages: {{reference_data.deal_stages}}", "{{}}", 'Stages: ["new","won"]'),
        ("{{reference_data.none}}{{true}}{{1.0}}", "{{}}", "nulltrue1.0"),
        ("${count} stays in a prompt", "{{}}", "${count} stays in a prompt"),
        ("{{count}} stays in a reference", "${}", "{{count}} stays in a reference"),
        ('${ {"a": {"b": "}"}}.a.b }', "${}", "}"),
        ("{{ {a: {b: 1}} }}", "{{}}", {"a": {"b": 1}}),
        ('{{\'}}\' + "{{\\""}}', "{{}}", '}}{{"'),
        ('{"json": {"in": "a prompt"}}', "{{}}", '{"json": {"in": "a prompt"}}'),
        ("cost: $5 {x} $", "${}", "cost: $5 {x} $"),
    ],
)
def test_a_single_expression_keeps_its_type_and_mixed_text_is_a_string(text: str, style: Style, value: Any):
    result = Template.parse(text, style).render(SCOPE)

    assert (result, type(result)) == (value, type(value))


@pytest.mark.requirement("expressions.template")
@pytest.mark.parametrize(
    ("text", "style", "value"),
    [
        ("\\${count}", "${}", "${count}"),
        ("\\{{count}} {{count}}", "{{}}", "{{count}} 3"),
        ("\\\\${count}", "${}", "\\3"),
        ("\\\\\\${count}", "${}", "\\${count}"),
        ("a\\b \\\\ c\\", "${}", "a\\b \\\\ c\\"),
        ("\\${", "${}", "${"),
        ("C:\\dir\\${count}", "${}", "C:\\dir${count}"),
    ],
)
def test_a_backslash_before_a_mark_makes_it_literal(text: str, style: Style, value: str):
    assert Template.parse(text, style).render(SCOPE) == value


@pytest.mark.requirement("expressions.template")
def test_a_prompt_is_always_text():
    assert Template.parse("{{reference_data.deal_stages}}", "{{}}").render_text(SCOPE) == '["new","won"]'
    assert Template.parse("{{user_task}}", "{{}}").render_text(SCOPE) == "Update all deals"


@pytest.mark.requirement("expressions.single_pass")
@pytest.mark.parametrize("text", ["{{evil}}", "${evil}", "say {{evil}}", "say ${evil}", "{{ evil + '{{count}}' }}"])
def test_a_value_with_marks_is_never_expanded(text: str):
    style: Style = "{{}}" if "{{" in text else "${}"

    assert SCOPE["evil"] in Template.parse(text, style).render(SCOPE)


@pytest.mark.requirement("expressions.repairable_errors")
@pytest.mark.parametrize(
    ("text", "style", "message"),
    [
        (
            "ask {{ user_tsk }}",
            "{{}}",
            "in '{{ user_tsk }}' at column 5: unknown name 'user_tsk' at column 2; did you mean 'user_task'? known: ",
        ),
        ("a\nb ${1 / 0}", "${}", "in '${1 / 0}' at line 2, column 3: division by zero at column 3"),
        ("x {{}}", "{{}}", "in '{{}}' at column 3: unexpected end of expression at column 1"),
        ("x {{ a } }}", "{{}}", "in '{{ a } }}' at column 3: unexpected '}' at column 4"),
        ("{{a.b c}}", "{{}}", "in '{{a.b c}}' at column 1: unexpected 'c' at column 5"),
        (
            "x ${count",
            "${}",
            "'${' at column 3 is never closed by '}' within 2,000 characters; close every quote and bracket in it, or",
        ),
        ("x\n${'count}", "${}", "'${' at line 2, column 1 is never closed by '}' within 2,000 characters; close every"),
        ("${(count}", "${}", "'${' at column 1 is never closed"),
        ("${" + " " * 2001 + "}", "${}", "'${' at column 1 is never closed by '}' within 2,000 characters"),
        ("${1}" * 1001, "${}", "template has more than 1,000 expressions; split it"),
    ],
)
def test_a_failing_expression_is_named_with_its_place(text: str, style: Style, message: str):
    assert refusal(text, style).startswith(message)


@pytest.mark.requirement("expressions.bounded_values")
def test_a_rendered_text_has_a_limit_but_a_passed_value_has_none():
    scope = {"half": "x" * (MAX_STRING // 2), "list": ["x" * MAX_STRING], "long": "x" * (2 * MAX_STRING)}

    assert Template.parse("${long}", "${}").render(scope) is scope["long"]
    assert refusal("${half}${half}-", "${}", scope) == "rendered text would be longer than 262,144 characters"
    assert refusal("-${list}", "${}", scope) == "in '${list}' at column 2: text would be longer than 262,144 characters"


@pytest.mark.requirement("expressions.bounded_source")
def test_a_thousand_expressions_are_allowed_and_any_length_of_plain_text():
    assert Template.parse("${1}" * 1000, "${}").render({}) == "1" * 1000
    assert Template.parse("x" * (MAX_STRING * 2), "${}").render({}) == "x" * (MAX_STRING * 2)


@pytest.mark.requirement("expressions.references")
def test_a_template_reads_what_its_expressions_read():
    template = Template.parse("{{a.b}} and {{c[*].d + e}} \\{{f}}", "{{}}")

    assert template.references == {"a.b", "c", "e"}
    assert Template.parse("none", "{{}}").references == frozenset()


@pytest.mark.requirement("expressions.template_check")
@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("{{user_task}} {{reference_data.anything.below}}", ["user_task", "reference_data"]),
        ("{{reference_data.deal_stages.length}}", ["reference_data.deal_stages"]),
        ("{{reference_data.deal_stages.first}}", ["reference_data.deal_stages"]),
        ("{{reference_data}}", ["reference_data.deal_stages"]),
        ("{{reference_data.crm}}", ["reference_data.crm.stages"]),
        ("{{1 + 1}}", []),
    ],
)
def test_known_names_pass_the_check(text: str, known: list[str]):
    Template.parse(text, "{{}}").check(known)


@pytest.mark.requirement("expressions.template_check")
@pytest.mark.parametrize(
    ("text", "style", "known", "message"),
    [
        (
            "Hello there{{user_tsk}}",
            "{{}}",
            ["user_task", "reference_data"],
            "'{{user_tsk}}' at column 12; did you mean 'user_task'? known: user_task, reference_data",
        ),
        (
            "a\n{{data.stage.join()}}",
            "{{}}",
            ["data", "data.stages"],
            "'{{data.stage}}' at line 2, column 1; did you mean 'data.stages'? known: data.stages, data",
        ),
        ("${xyz}", "${}", ["a"], "'${xyz}' at column 1; known: a"),
        ("${xyz}", "${}", [], "'${xyz}' at column 1; known: none"),
    ],
)
def test_an_unknown_name_is_refused_when_defined(text: str, style: Style, known: list[str], message: str):
    with pytest.raises(InvalidExpression) as caught:
        Template.parse(text, style).check(known)

    assert str(caught.value) == f"unknown placeholder {message}"
