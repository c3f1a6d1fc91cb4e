"""Properties of the expression language: nothing but InvalidExpression, bounded work, and never a second expansion."""

import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions import Template, compile_expression, references_of, resolve
from toolcrib.core.expressions.functions import FUNCTIONS
from toolcrib.core.expressions.jsonpath import select
from toolcrib.core.expressions.syntax import Name, Part

NAMES = ("a", "b", "items", "evil")
EVIL = "${b} {{b}} \\${b} \\{{b}} ${"
SCOPE: dict[str, Any] = {
    "a": {"b": {"c": [1, 2.5, -3]}, "length": 4, "t": True},
    "b": "text",
    "items": [{"id": 1, "b": ["x"]}, {"id": "2", "b": []}, {"id": None, "b": ["y", "z"]}],
    "evil": EVIL,
}

SEEDS = (
    "a.b.c.length > 0",
    "items[*].b[*].upper()",
    "a?.x?.[0] ?? 'none' + 1",
    "!a.t && (b == 'text' || b in ['x', \"y\"]) ? {k: -1} : [1.5e3, null]",
    "round(sum(a.b.c) / 2 % 7, 2) <= max(1, 2) - 3 * 4",
    "items[*].id.join(', ').replace('1', '\\u00e9\\n\\'').split(',')[-1]",
    "json({a: items, 'b c': evil}).slice(1, -1).indexOf('x') !== 3",
    "unique(keys(a) + values({a: 1}))[0].trim?.()",
)
ALPHABET = "abx01 .?![](){}*+-/%<>=&|:,'\"\\$_\n\té😀\ud83d#`;"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["id", "b", "c"]), inner, max_size=3),
    max_leaves=12,
)
"""JSON, with integers and infinite floats beyond what an expression would make."""


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "in", "&&", "||", "??"])
    two = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(inner, binary, inner).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(st.sampled_from(["!", "-"]), inner).map("".join),
        st.tuples(inner, st.sampled_from([".b", "?.c", "[0]", "?.[-1]", "[*]", "[*].id", "['b']", ".length"])).map(
            "".join
        ),
        two.map(lambda parts: f"{parts[0]}[{parts[1]}]"),
        two.map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[0]})"),
        two.map(lambda parts: f"[{parts[0]}, {parts[1]}]"),
        two.map(lambda parts: f"{{k: {parts[0]}, 'l': {parts[1]}}}"),
        st.tuples(st.sampled_from(sorted(FUNCTIONS)), inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
        st.tuples(inner, st.sampled_from(sorted(FUNCTIONS)), inner).map(
            lambda parts: f"{parts[0]}.{parts[1]}({parts[2]})"
        ),
    )


sources = st.recursive(
    st.sampled_from([*NAMES, "1", "2.5", "'x'", "true", "null", "[]", "{}"]), _combined, max_leaves=12
)
"""Well-formed expressions over `NAMES`."""


class CountingScope(Mapping[str, Any]):
    """A scope that counts how often a name is read."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self.reads = 0

    def __getitem__(self, key: str) -> Any:
        self.reads += 1
        return self._names[key]

    def __contains__(self, key: object) -> bool:
        return key in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _parts(part: Part) -> Iterator[Part]:
    yield part
    for child in part.children:
        yield from _parts(child)


@pytest.mark.requirement("expressions.only_invalid_expression")
@given(st.text(max_size=60) | st.text(alphabet=ALPHABET, max_size=60))
def test_random_text_raises_nothing_but_invalid_expression(text: str):
    with suppress(InvalidExpression):
        compile_expression(text).evaluate(SCOPE)
    for candidate in (text, f"{{{{{text}}}}}"):
        with suppress(InvalidExpression):
            Template.parse(candidate, "{{}}").render(SCOPE)
    for candidate in (text, f"${{{text}}}"):
        with suppress(InvalidExpression):
            resolve([candidate], SCOPE)


@pytest.mark.requirement("expressions.only_invalid_expression", "expressions.bounded_work")
@settings(max_examples=300)
@given(sources, st.fixed_dictionaries(dict.fromkeys(NAMES, json_values)))
def test_a_well_formed_expression_reads_every_name_once_at_most_whatever_the_data(source: str, data: dict[str, Any]):
    scope = CountingScope(data)
    try:
        expression = compile_expression(source)
    except InvalidExpression:
        return
    with suppress(InvalidExpression):
        expression.evaluate(scope)

    names = [part.name for part in _parts(expression.tree) if isinstance(part, Name)]
    assert scope.reads <= len(names)
    assert {reference.split(".")[0] for reference in expression.references} == set(names)


@pytest.mark.requirement("expressions.single_pass")
@given(st.text(max_size=40), st.text(alphabet="ab ${}\\", max_size=40))
def test_marks_in_values_are_never_expanded(text: str, marks: str):
    scope = {"value": f"{EVIL}{text}{marks}", "b": "EXPANDED"}

    assert Template.parse("<${value}>", "${}").render(scope) == f"<{scope['value']}>"
    assert Template.parse("<{{value}}>", "{{}}").render(scope) == f"<{scope['value']}>"
    assert resolve(["${value}"], scope) == [scope["value"]]


@pytest.mark.requirement("expressions.template")
@given(st.text(alphabet="ab {}$\\'", max_size=30))
def test_text_without_marks_is_its_own_rendering(text: str):
    plain = text.replace("{", "")

    assert Template.parse(plain, "${}").render({}) == plain
    assert references_of([plain]) == frozenset()


@pytest.mark.requirement("expressions.jsonpath_bounded", "expressions.only_invalid_expression")
@given(st.text(alphabet="$@.[]()?*!&|=<>,:'\"\\ 019-+eablengthcou_v", max_size=40), json_values)
def test_random_paths_raise_nothing_but_invalid_expression(tail: str, document: Any):
    with suppress(InvalidExpression):
        select(f"${tail}", document)


def _mutated(source: str, chance: random.Random) -> str:
    characters = list(source)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(characters) + 1)
        match chance.randrange(4):
            case 0:
                characters.insert(place, chance.choice(ALPHABET))
            case 1:
                del characters[place : place + chance.randint(1, 3)]
            case 2:
                characters[place : place + 1] = chance.choice(ALPHABET)
            case _:
                other = chance.choice(SEEDS)
                start = chance.randrange(len(other))
                characters[place:place] = other[start : start + chance.randint(1, 12)]
    return "".join(characters)


def _fuzz(count: int, seed: int) -> int:
    """Evaluate mutated expressions, alone and in the texts of a structure; returns how many had a value."""
    chance = random.Random(seed)
    values = 0
    for _ in range(count):
        source = _mutated(chance.choice(SEEDS), chance)
        with suppress(InvalidExpression):
            if chance.random() < 0.5:
                compile_expression(source).evaluate(SCOPE)
            else:
                mapping = {"whole": f"${{{source}}}", "text": [f"<${{{source}}}", source]}
                references_of(mapping)
                resolve(mapping, SCOPE)
            values += 1
    return values


@pytest.mark.requirement("expressions.only_invalid_expression")
def test_twenty_thousand_mutated_expressions_raise_nothing_but_invalid_expression():
    assert _fuzz(20_000, seed=1) > 500


@pytest.mark.soak
@pytest.mark.requirement("expressions.only_invalid_expression")
def test_a_million_mutated_expressions_raise_nothing_but_invalid_expression():
    assert _fuzz(1_000_000, seed=2) > 25_000
