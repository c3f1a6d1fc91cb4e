"""A JSON structure with `${}` in its strings: the parameters of a step that refer to earlier results.

Only values are templates; the names of members are taken as they are.
"""

from collections.abc import Iterator, Mapping

from toolcrib.contracts import Json
from toolcrib.contracts.errors import InvalidExpression
from toolcrib.expressions.template import Template
from toolcrib.expressions.values import is_list, is_object

MAX_NESTING = 100
"""Levels of a structure."""


def resolve(value: Json, scope: Mapping[str, Json]) -> Json:
    """A copy of the structure with every string's `${}` replaced; a string that is one expression gives a typed value.

    Raises:
        InvalidExpression: An expression fails (the message has its JSON pointer), or the nesting exceeds 100 levels.
    """
    return _resolved(value, scope, ())


def references_of(value: Json) -> frozenset[str]:
    """What all expressions in the structure read; see `Expression.references`.

    Raises:
        InvalidExpression: An expression does not compile, or the nesting exceeds 100 levels.
    """
    return frozenset[str]().union(*(template.references for template in _templates(value, ())))


def _resolved(value: Json, scope: Mapping[str, Json], path: tuple[str, ...]) -> Json:
    if isinstance(value, str):
        template = _template(value, path)
        return value if template is None else _rendered(template, scope, path)
    _check_nesting(path)
    if is_object(value):
        return {name: _resolved(member, scope, (*path, name)) for name, member in value.items()}
    if is_list(value):
        return [_resolved(element, scope, (*path, str(place))) for place, element in enumerate(value)]
    return value


def _templates(value: Json, path: tuple[str, ...]) -> Iterator[Template]:
    _check_nesting(path)
    if isinstance(value, str):
        template = _template(value, path)
        if template is not None:
            yield template
    elif is_object(value):
        for name, member in value.items():
            yield from _templates(member, (*path, name))
    elif is_list(value):
        for place, element in enumerate(value):
            yield from _templates(element, (*path, str(place)))


def _template(text: str, path: tuple[str, ...]) -> Template | None:
    if "${" not in text:
        return None
    try:
        return Template.parse(text, "${}")
    except InvalidExpression as error:
        raise _located(error, path) from None


def _rendered(template: Template, scope: Mapping[str, Json], path: tuple[str, ...]) -> Json:
    try:
        return template.render(scope)
    except InvalidExpression as error:
        raise _located(error, path) from None


def _check_nesting(path: tuple[str, ...]) -> None:
    if len(path) > MAX_NESTING:
        raise InvalidExpression(f"structure is nested deeper than {MAX_NESTING} levels; flatten it")


def _located(error: InvalidExpression, path: tuple[str, ...]) -> InvalidExpression:
    """Name the place as a JSON pointer (RFC 6901); the root needs none."""
    pointer = "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)
    return InvalidExpression(f"{pointer}: {error}") if pointer else error
