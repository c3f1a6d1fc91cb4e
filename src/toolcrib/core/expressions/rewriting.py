"""Rewrites sources with `${}`: renames a reference, or replaces it by a literal. Nothing is evaluated.

The rest of a source stays exactly as its author wrote it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from toolcrib.contracts import Json, escape_name
from toolcrib.core.expressions.expression import compile_expression
from toolcrib.core.expressions.parser import Token, tokenize
from toolcrib.core.expressions.syntax import Constant, FieldAccess, Name, Node, Part, PathExpression, Step
from toolcrib.core.expressions.template import Template
from toolcrib.core.expressions.values import is_list, is_object

_MARK = re.compile(r"(\\*)\$\{")


class _Edit(NamedTuple):
    """A part of a text that becomes another one."""

    start: int
    end: int
    text: str


def rename_reference(text: str, path: Sequence[str], name: str) -> str:
    """A text in which every expression that reads a path reads a name instead, and what it reads below it, below that.

    Only a path that is written out is found: `a.b`, `a?.b`, `a["b"]`, `(a).b`. An expression that reads `a` as a whole
    or at a computed place still does.

    Args:
        text: With `${}` in it.
        path: A name and the fields below it.
        name: What is read instead.

    Raises:
        InvalidExpression: An expression of the text does not compile.
    """
    if "${" not in text:
        return text
    edits = [
        _Edit(placeholder.at + edit.start, placeholder.at + edit.end, edit.text)
        for placeholder in Template.parse(text, "${}").placeholders
        for edit in _edits(placeholder.expression.source, path, name)
    ]
    return _apply_edits(text, edits)


def rename_references(value: Json, path: Sequence[str], name: str) -> tuple[Json, tuple[str, ...]]:
    """A structure in whose strings a reference is renamed, and JSON pointers to those that have become others.

    Raises:
        InvalidExpression: As `rename_reference`.
    """
    pointers: list[str] = []

    def rename(text: str, pointer: str) -> str:
        renamed = rename_reference(text, path, name)
        if renamed != text:
            pointers.append(pointer)
        return renamed

    return _map_strings(value, rename, ""), tuple(pointers)


def literal(value: Json) -> Json:
    """A structure that gives this value in every scope, whatever its strings look like."""
    return _map_strings(value, lambda text, _: _MARK.sub(r"\1\1\\${", text), "")


_Rewrite: TypeAlias = Callable[[str, str], str]
"""Of a string and its JSON pointer."""


def _map_strings(value: Json, rewrite: _Rewrite, pointer: str) -> Json:
    """A copy with other strings; names of members are no templates and stay."""
    if isinstance(value, str):
        return rewrite(value, pointer)
    if is_object(value):
        return {name: _map_strings(member, rewrite, f"{pointer}/{escape_name(name)}") for name, member in value.items()}
    if is_list(value):
        return [_map_strings(element, rewrite, f"{pointer}/{place}") for place, element in enumerate(value)]
    return value


def _edits(source: str, path: Sequence[str], name: str) -> Iterator[_Edit]:
    """What has to be written in another way in one expression, in no order."""
    columns = set(_roots(compile_expression(source).tree, path))
    tokens = tokenize(source)
    for place, token in enumerate(tokens):
        if token.column not in columns:
            continue
        behind = place + 1
        while len(path) > 1 and tokens[behind].text == ")":  # brackets around the name alone
            behind += 1
        last = behind
        for _ in path[1:]:
            last = _behind_accessor(tokens, last)
        end = _end(tokens[last - 1])
        # What stood apart from the brackets of `a["b"]` would grow together with the name.
        space = " " if last > behind and source[end : end + 1].isidentifier() else ""
        yield _Edit(token.column - 1, _end(token), name)
        yield _Edit(_end(tokens[behind - 1]), end, space)


def _roots(tree: Node, path: Sequence[str]) -> Iterator[int]:
    """Columns of the names with which an expression begins to read the path."""
    parts: list[Part] = [tree]
    while parts:
        part = parts.pop()
        if isinstance(part, PathExpression):
            named = [_name_of(step) for step in part.steps[: len(path) - 1]]
            if isinstance(part.root, Name) and [part.root.name, *named] == [*path]:
                yield part.root.column
                parts.extend(child for child in part.children if child is not part.root)
                continue
        elif isinstance(part, Name) and [part.name] == [*path]:
            yield part.column
        parts.extend(part.children)


def _name_of(step: Step) -> Json:
    if isinstance(step, FieldAccess):
        return step.name
    return step.index.value if isinstance(step.index, Constant) else None


def _behind_accessor(tokens: Sequence[Token], place: int) -> int:
    """The token behind `.name`, `?.name`, `["name"]` or `?.["name"]`."""
    if tokens[place].text in {".", "?."}:
        place += 1
    if tokens[place].text != "[":
        return place + 1
    depth = 1
    while depth:
        place += 1
        depth += {"[": 1, "]": -1}.get(tokens[place].text, 0) if tokens[place].kind == "operator" else 0
    return place + 1


def _end(token: Token) -> int:
    return token.column - 1 + len(token.text)


def _apply_edits(text: str, edits: Sequence[_Edit]) -> str:
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text
