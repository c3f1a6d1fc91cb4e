r"""Templates: text with `{{ name }}` in prompts or `${ name }` in references, and JSON structures of such texts.

A text that consists of one expression keeps the value's type; mixed text gives a string, with objects and lists as
compact JSON. Rendering is a single pass: values are never parsed as templates. A backslash before the opening mark
makes it literal (`\${`, `\{{`), and a backslash before that backslash is one literal backslash. In a structure, only
values are templates, not the names of members.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Literal, TypeAlias

from toolcrib.contracts import Json, escape_name
from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions.expression import Expression, compile_expression
from toolcrib.core.expressions.suggestions import listing, shorten, suggestion
from toolcrib.core.expressions.values import MAX_SOURCE, MAX_STRING, WorkCounter, is_list, is_object
from toolcrib.core.expressions.values import text as as_text

Style: TypeAlias = Literal["{{}}", "${}"]
"""The marks around an expression."""

MAX_PLACEHOLDERS = 1_000
"""Expressions in one template."""
_CACHED = 4_096
"""Texts whose templates are remembered: a step of a workflow has the same ones in every run."""
_SHORT = 500
"""Characters of the longest text that is."""

_MARKS: dict[Style, tuple[str, str]] = {"{{}}": ("{{", "}}"), "${}": ("${", "}")}
_STRING_OR_BRACKET = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|["'(\[{)\]}]""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One expression in a text."""

    expression: Expression
    source: str
    """With its marks, as it stands in the text."""
    place: str
    """Where it begins, for messages: `column 12`, or `line 3, column 5` in a text of several lines."""
    at: int
    """Where the expression begins in the text, behind its opening mark; counted from 0."""

    def value(self, scope: Mapping[str, Json]) -> Json:
        """The expression's value.

        Raises:
            InvalidExpression: It cannot be evaluated; the message says where it stands.
        """
        try:
            return self.expression.evaluate(scope)
        except InvalidExpression as error:
            raise _error_at(self.source, self.place, error) from None

    def unknown(self, known: Collection[str], style: Style) -> Iterator[str]:
        """What is wrong with each name that it reads and that is not known, as in `Template.check`."""
        opening, closing = _MARKS[style]
        for reference in sorted(self.expression.references):
            if not _is_known(reference, known):
                yield (
                    f"unknown placeholder '{opening}{shorten(reference)}{closing}' at {self.place}; "
                    f"{suggestion(reference, known)}known: {listing(reference, known)}"
                )


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed text; immutable. Made by `Template.parse`."""

    style: Style
    parts: tuple[str | Placeholder, ...]
    """Literal texts and placeholders in their order."""

    @staticmethod
    def parse(text: str, style: Style) -> "Template":
        """Find and compile the expressions of a text.

        Raises:
            InvalidExpression: An expression is never closed or does not compile, or there are too many.
        """
        return _parse_once(text, style) if len(text) <= _SHORT else _parse(text, style)

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """The expressions, in their order."""
        return tuple(part for part in self.parts if isinstance(part, Placeholder))

    @property
    def references(self) -> frozenset[str]:
        """What the expressions read; see `Expression.references`."""
        return frozenset[str]().union(*(placeholder.expression.references for placeholder in self.placeholders))

    def render(self, scope: Mapping[str, Json]) -> Json:
        """The value of a text that is one expression, else a string.

        Raises:
            InvalidExpression: An expression cannot be evaluated, or the text becomes longer than `MAX_STRING`.
        """
        match self.parts:
            case (Placeholder() as only,):
                return only.value(scope)
            case _:
                return self.render_text(scope)

    def render_text(self, scope: Mapping[str, Json]) -> str:
        """Always a string, as a prompt needs it: also a text that is one expression is written out.

        Raises:
            InvalidExpression: As `render`.
        """
        pieces: list[str] = []
        work, length = WorkCounter(), 0
        for part in self.parts:
            if isinstance(part, str):
                piece = part
            else:
                value = part.value(scope)
                try:
                    piece = as_text(value, work)
                except InvalidExpression as error:
                    raise _error_at(part.source, part.place, error) from None
            length += len(piece)
            if length > MAX_STRING and len(self.parts) > 1:
                raise InvalidExpression(f"rendered text would be longer than {MAX_STRING:,} characters")
            pieces.append(piece)
        return "".join(pieces)

    def check(self, known: Collection[str]) -> None:
        """Check at definition time that every expression reads known names only.

        Args:
            known: Names such as `user_task`, and dotted names such as `reference_data.deal_stages`. Below a name for
                which no dotted name is given, anything goes.

        Raises:
            InvalidExpression: A name is not known; the message has its place and the closest known names.
        """
        for placeholder in self.placeholders:
            for problem in placeholder.unknown(known, self.style):
                raise InvalidExpression(problem)


def _parse(text: str, style: Style) -> Template:
    # Literal texts stand between the placeholders, so there are never more of them than one more.
    parts = tuple(islice(_parts(text, style), 2 * MAX_PLACEHOLDERS + 2))
    if sum(isinstance(part, Placeholder) for part in parts) > MAX_PLACEHOLDERS:
        raise InvalidExpression(f"template has more than {MAX_PLACEHOLDERS:,} expressions; split it")
    return Template(style, parts)


_parse_once = lru_cache(_CACHED)(_parse)


def _is_known(reference: str, known: Collection[str]) -> bool:
    root = reference.split(".", 1)[0]
    below = [name for name in known if name.startswith(f"{root}.")]
    if reference == root or not below:
        return root in known or bool(below)
    return any(f"{reference}.".startswith(f"{name}.") or name.startswith(f"{reference}.") for name in below)


def _parts(text: str, style: Style) -> Iterator[str | Placeholder]:
    opening, closing = _MARKS[style]
    literal: list[str] = []
    position = 0
    while (start := text.find(opening, position)) >= 0:
        before = text[position:start]
        bare = before.rstrip("\\")
        slashes = len(before) - len(bare)
        literal.append(bare + "\\" * (slashes // 2))
        position = start + len(opening)
        if slashes % 2:
            literal.append(opening)
            continue
        if joined := "".join(literal):
            yield joined
        literal = []
        end = _end_of_expression(text, position, closing)
        place = _place(text, start)
        if end is None:
            raise InvalidExpression(
                f"{opening!r} at {place} is never closed by {closing!r} within {MAX_SOURCE:,} characters; "
                f"close every quote and bracket in it, or make it shorter; write \\{opening} for the literal text"
            )
        yield _placeholder(text[position:end], text[start : end + len(closing)], place, position)
        position = end + len(closing)
    if joined := "".join([*literal, text[position:]]):
        yield joined


def _end_of_expression(text: str, position: int, closing: str) -> int | None:
    """Where the closing mark begins; the expression's own brackets and strings may contain the same characters."""
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text, position, position + MAX_SOURCE + len(closing)):
        found = match.group()
        if found in ("'", '"'):
            return None
        if found in "([{":
            depth += 1
        elif found in ")]}" and depth:
            depth -= 1
        elif text.startswith(closing, match.start()):
            return match.start()
    return None


def _placeholder(expression: str, source: str, place: str, at: int) -> Placeholder:
    try:
        return Placeholder(compile_expression(expression), shorten(source), place, at)
    except InvalidExpression as error:
        raise _error_at(shorten(source), place, error) from None


def _place(text: str, offset: int) -> str:
    column = offset - text.rfind("\n", 0, offset)
    return f"line {text.count(chr(10), 0, offset) + 1}, column {column}" if "\n" in text else f"column {column}"


def _error_at(source: str, place: str, error: InvalidExpression) -> InvalidExpression:
    return InvalidExpression(f"in {source!r} at {place}: {error}")


MAX_NESTING = 100
"""Levels of a structure."""

_Scope: TypeAlias = Mapping[str, Json]
_Resolve: TypeAlias = Callable[[_Scope], Json]


@dataclass(frozen=True, slots=True)
class Structure:
    """A compiled structure; immutable, safe to share between threads and tasks. Made by `compile_structure`."""

    source: Json
    references: frozenset[str]
    """What all its expressions read; see `Expression.references`."""
    _resolve: _Resolve | None = field(repr=False, compare=False)

    def resolve(self, scope: Mapping[str, Json]) -> Json:
        """The structure with every string's `${}` replaced; a string that is one expression gives a typed value.

        It shares what has no expressions with its source, and values with the scope: do not modify it.

        Raises:
            InvalidExpression: An expression fails; the message has its JSON pointer.
        """
        return self.source if self._resolve is None else self._resolve(scope)


def compile_structure(value: Json) -> Structure:
    """Compile all expressions of a structure.

    Raises:
        InvalidExpression: One does not compile (the message has its JSON pointer), or the nesting exceeds 100 levels.
    """
    references: set[str] = set()
    return Structure(value, _resolve=_compile_value(value, (), references), references=frozenset(references))


def resolve(value: Json, scope: Mapping[str, Json]) -> Json:
    """The structure resolved once; see `Structure.resolve`.

    Raises:
        InvalidExpression: As `compile_structure` and `Structure.resolve`.
    """
    return compile_structure(value).resolve(scope)


def references_of(value: Json) -> frozenset[str]:
    """What all expressions in the structure read; see `Expression.references`.

    Raises:
        InvalidExpression: As `compile_structure`.
    """
    return compile_structure(value).references


def _compile_value(value: Json, path: tuple[str, ...], references: set[str]) -> _Resolve | None:
    """What makes the value in a scope; null if it is the same in all."""
    if len(path) > MAX_NESTING:
        raise InvalidExpression(f"structure is nested deeper than {MAX_NESTING} levels; flatten it")
    if isinstance(value, str):
        return _of_text(value, path, references)
    if is_object(value):
        members = {name: _compile_value(member, (*path, name), references) for name, member in value.items()}
        return _of_object(value, {name: made for name, made in members.items() if made is not None})
    if is_list(value):
        elements = [_compile_value(element, (*path, str(place)), references) for place, element in enumerate(value)]
        return _of_list(value, {place: made for place, made in enumerate(elements) if made is not None})
    return None


def _of_text(text: str, path: tuple[str, ...], references: set[str]) -> _Resolve | None:
    if "${" not in text:
        return None
    try:
        template = Template.parse(text, "${}")
    except InvalidExpression as error:
        raise _error_in_structure(error, path) from None
    references |= template.references

    def render(scope: _Scope) -> Json:
        try:
            return template.render(scope)
        except InvalidExpression as error:
            raise _error_in_structure(error, path) from None

    return render


def _of_object(source: dict[str, Json], changing: Mapping[str, _Resolve]) -> _Resolve | None:
    if not changing:
        return None
    return lambda scope: {**source, **{name: made(scope) for name, made in changing.items()}}


def _of_list(source: list[Json], changing: Mapping[int, _Resolve]) -> _Resolve | None:
    if not changing:
        return None

    def fill(scope: _Scope) -> Json:
        filled = [*source]
        for place, made in changing.items():
            filled[place] = made(scope)
        return filled

    return fill


def _error_in_structure(error: InvalidExpression, path: tuple[str, ...]) -> InvalidExpression:
    """Name the place as a JSON pointer (RFC 6901); the root needs none."""
    pointer = "".join(f"/{escape_name(step)}" for step in path)
    return InvalidExpression(f"{pointer}: {error}") if pointer else error
