"""A JSON structure with `${}` in its strings: the parameters of a step that refer to earlier results.

Only values are templates; the names of members are taken as they are. A structure is compiled once, and resolved as
often as there are scopes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from toolcrib.contracts import Json, escaped
from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions.template import Template
from toolcrib.core.expressions.values import is_list, is_object

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
    return Structure(value, _resolve=_compiled(value, (), references), references=frozenset(references))


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


def _compiled(value: Json, path: tuple[str, ...], references: set[str]) -> _Resolve | None:
    """What makes the value in a scope; null if it is the same in all."""
    if len(path) > MAX_NESTING:
        raise InvalidExpression(f"structure is nested deeper than {MAX_NESTING} levels; flatten it")
    if isinstance(value, str):
        return _of_text(value, path, references)
    if is_object(value):
        members = {name: _compiled(member, (*path, name), references) for name, member in value.items()}
        return _of_object(value, {name: made for name, made in members.items() if made is not None})
    if is_list(value):
        elements = [_compiled(element, (*path, str(place)), references) for place, element in enumerate(value)]
        return _of_list(value, {place: made for place, made in enumerate(elements) if made is not None})
    return None


def _of_text(text: str, path: tuple[str, ...], references: set[str]) -> _Resolve | None:
    if "${" not in text:
        return None
    try:
        template = Template.parse(text, "${}")
    except InvalidExpression as error:
        raise _located(error, path) from None
    references |= template.references

    def render(scope: _Scope) -> Json:
        try:
            return template.render(scope)
        except InvalidExpression as error:
            raise _located(error, path) from None

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


def _located(error: InvalidExpression, path: tuple[str, ...]) -> InvalidExpression:
    """Name the place as a JSON pointer (RFC 6901); the root needs none."""
    pointer = "".join(f"/{escaped(step)}" for step in path)
    return InvalidExpression(f"{pointer}: {error}") if pointer else error
