"""Expressions written in another way: a reference renamed, a value made literal."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.contracts import InvalidExpression, Json
from toolcrib.core.expressions import literal, rename_reference, rename_references, resolve

pytestmark = pytest.mark.requirement("workflow_agents.rewriting")

PIN = ("node", "handles", "pin")
SCOPE: dict[str, Any] = {
    "node": {"handles": {"pin": {"rows": [{"id": 1}, {"id": 2}], "n": 3}, "other": 4}},
    "new": {"rows": [{"id": 1}, {"id": 2}], "n": 3},
    "x": {"node": {"handles": {"pin": 5}}, "in": 1, "key": "pin"},
}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("${node.handles.pin}", "${new}"),
        ("${ node . handles . pin }", "${ new }"),
        ("${node?.handles?.pin?.rows}", "${new?.rows}"),
        ("${node.handles.pin.rows[*].id}", "${new.rows[*].id}"),
        ("""${node["handles"]['pin'].n}""", "${new.n}"),
        ("""${node?.["handles"][("pin")].n}""", "${new.n}"),
        ("""${3 in[node.handles["pin"]["n"]]}""", """${3 in[new["n"]]}"""),
        ("""${'n' in node["handles"]["pin"]}""", "${'n' in new}"),
        ("${(node).handles.pin.n}", "${(new).n}"),
        ("${((node))['handles'].pin.n}", "${((new)).n}"),
        (
            "${node.handles.pin.n + node.handles.pin.n} of ${node.handles.pin.rows.length}",
            "${new.n + new.n} of ${new.rows.length}",
        ),
        ("${node.handles.pin.rows[node.handles.pin.n - 3].id}", "${new.rows[new.n - 3].id}"),
        ("${max(node.handles.pin.n, 1)}", "${max(new.n, 1)}"),
        ("${ {node: node.handles.pin} }", "${ {node: new} }"),
        ("é ${node.handles.pin}\n${node.handles.pin.n}", "é ${new}\n${new.n}"),
    ],
)
def test_what_reads_the_path_reads_the_name_instead(before: str, after: str):
    assert rename_reference(before, PIN, "new") == after
    assert resolve(after, SCOPE) == resolve(before, SCOPE)


@pytest.mark.parametrize(
    "text",
    [
        "${node.handles.pink}",
        "${node.handles.other}",
        "${node.handles}",
        "${node}",
        "${node.handles[x.key]}",
        "${(node.handles).pin}",
        "${x.node.handles.pin}",
        "${'node.handles.pin'}",
        "${ {node: 1} }",
        r"\${node.handles.pin}",
        "node.handles.pin",
        "$ {node.handles.pin}",
    ],
)
def test_what_reads_something_else_stays_as_it_was_written(text: str):
    assert rename_reference(text, PIN, "new") == text


def test_a_name_without_fields_is_renamed_wherever_it_stands():
    assert rename_reference("${a + a.b + (a)[0] + b.a + f} a", ("a",), "new") == "${new + new.b + (new)[0] + b.a + f} a"


def test_a_keyword_behind_a_bracket_does_not_grow_together_with_the_name():
    renamed = rename_reference("""${node["handles"]["pin"]in [1]}""", PIN, "new")

    assert renamed == "${new in [1]}"


def test_a_structure_tells_where_it_has_changed():
    before: Json = {"a/b": ["${node.handles.pin}", "x", 1], "c": {"~": "${node.handles.pin.n}", "d": "${node}"}}

    renamed, pointers = rename_references(before, PIN, "new")

    assert renamed == {"a/b": ["${new}", "x", 1], "c": {"~": "${new.n}", "d": "${node}"}}
    assert pointers == ("/a~1b/0", "/c/~0")


def test_a_text_that_does_not_compile_is_refused():
    with pytest.raises(InvalidExpression, match="never closed"):
        rename_reference("${node.handles.pin", PIN, "new")


@given(st.lists(st.sampled_from(["\\", "$", "{", "}", "${", "\\${", "a", "${a}"])).map("".join))
def test_a_literal_text_is_itself_in_every_scope(text: str):
    assert resolve(literal(text), {}) == text


def test_a_literal_structure_is_itself_and_its_names_stay():
    value: Json = {"${x}": ["${x}", {"a": "\\${y}", "b": [1, None, True, "plain"]}]}

    assert resolve(literal(value), {}) == value


READS = st.sampled_from(
    [
        "node.handles.pin",
        "node.handles.pin.n",
        "node['handles'].pin",
        "(node).handles['pin']",
        "node.handles.other",
        "x.in",
    ]
)
EXPRESSIONS = st.recursive(
    READS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["==", "!=", "??", "&&", "||"]), inner).map(" ".join),
        inner.map(lambda source: f"({source})"),
        inner.map(lambda source: f"!{source}"),
        st.tuples(inner, inner).map(lambda two: f"[{two[0]},{two[1]}]"),
        st.tuples(inner, inner, inner).map(lambda three: f"({three[0]}) ? {three[1]} : {three[2]}"),
        inner.map(lambda source: f"{{node: {source}}}"),
    ),
    max_leaves=8,
)


@given(EXPRESSIONS)
def test_an_expression_means_the_same_with_the_name_and_reads_the_path_no_more(source: str):
    renamed = rename_reference(f"${{ {source} }}", PIN, "new")

    assert resolve(renamed, SCOPE) == resolve(f"${{ {source} }}", SCOPE)
    assert rename_reference(renamed, PIN, "again") == renamed
