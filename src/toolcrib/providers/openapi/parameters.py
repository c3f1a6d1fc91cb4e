"""Parameter Objects as arguments: where a value goes, how it is written there, and what it may be."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, cast

from toolcrib.contracts import (
    ApiKeyAuth,
    Json,
    JsonObject,
    JsonSchema,
    ParameterPlace,
    ParameterStyle,
    ProviderAuth,
)
from toolcrib.providers.openapi.losses import Losses
from toolcrib.providers.openapi.operations import Operation
from toolcrib.providers.openapi.schemas import Schemas
from toolcrib.providers.openapi.text import lean

KEY_HEADER: Final = "Idempotency-Key"
"""The header that takes a call's key (draft-ietf-httpapi-idempotency-key-header). It is no argument."""

PLACES: Final[tuple[ParameterPlace, ...]] = ("path", "query", "header", "cookie")
"""In order of precedence for argument names."""

_STYLES: Final[dict[ParameterPlace, tuple[ParameterStyle, ...]]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""Styles by place (OpenAPI 3.1, section 4.8.12.2); the first is the default."""

_NEGOTIATED: Final = frozenset({"accept", "authorization", "content-type"})
"""Header parameters that the specification says to ignore."""
_PLACEHOLDER: Final = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that becomes an argument."""

    name: str
    place: ParameterPlace
    style: ParameterStyle
    explode: bool
    required: bool
    allow_reserved: bool
    schema: JsonSchema


def takes_key(operation: Operation) -> bool:
    """Whether the operation declares the header that makes repeating it safe."""
    return any(_is_header(source, KEY_HEADER) for source in operation.parameters)


def read_parameters(operation: Operation, schemas: Schemas, auth: ProviderAuth) -> list[Parameter]:
    """The operation's parameters by place, as the caller gives them: without credentials, key and content types."""
    placeholders = frozenset(_PLACEHOLDER.findall(operation.path))
    found = [_parameter(source, schemas, operation.losses) for source in _given(operation, auth, placeholders)]
    missing = placeholders - {parameter.name for parameter in found if parameter.place == "path"}
    for name in sorted(missing, key=operation.path.index):
        operation.losses.note(f"parameter {name}", "taken as text: the path names it and nothing declares it")
        found.append(_parameter({"name": name, "in": "path", "schema": {"type": "string"}}, schemas, operation.losses))
    return sorted(found, key=lambda parameter: PLACES.index(parameter.place))


def _given(operation: Operation, auth: ProviderAuth, placeholders: frozenset[str]) -> Iterable[JsonObject]:
    for source in operation.parameters:
        name, place = str(source["name"]), str(source["in"])
        if place == "path" and name not in placeholders:
            operation.losses.note(f"parameter {name}", "left out: the path has no place for it")
        elif not (_is_header(source, KEY_HEADER, *_NEGOTIATED) or _is_credential(name, place, auth)):
            yield source


def _parameter(source: JsonObject, schemas: Schemas, losses: Losses) -> Parameter:
    name, place = str(source["name"]), cast("ParameterPlace", source["in"])
    style = _STYLES[place][0]
    if source.get("style") in _STYLES[place]:
        style = cast("ParameterStyle", source["style"])
    elif "style" in source:
        losses.note(f"parameter {name}", f"written in style {style}: {place} parameters have no {source['style']!r}")
    explode = source.get("explode")
    return Parameter(
        name=name,
        place=place,
        style=style,
        explode=explode if isinstance(explode, bool) else style == "form",
        required=place == "path" or source.get("required") is True,
        allow_reserved=source.get("allowReserved") is True,
        schema=_described(_schema(source, schemas, losses), source, losses),
    )


def _schema(source: JsonObject, schemas: Schemas, losses: Losses) -> JsonSchema:
    content: Json = source.get("content")
    if not isinstance(content, dict) or "schema" in source:
        return schemas.convert(source.get("schema", {}), losses)
    media = next(iter(cast("JsonObject", content)), "text/plain")
    losses.note(f"parameter {source['name']}", f"taken as text: its value is {media} inside of one string")
    return {"type": "string", "contentMediaType": media}


def _described(schema: JsonSchema, source: JsonObject, losses: Losses) -> JsonSchema:
    text = lean(source.get("description"), losses)
    flag: JsonSchema = {"deprecated": True} if source.get("deprecated") is True else {}
    return {**schema, **flag, **({"description": text} if text else {})}


def _is_header(source: JsonObject, *names: str) -> bool:
    return source["in"] == "header" and str(source["name"]).lower() in {name.lower() for name in names}


def _is_credential(name: str, place: str, auth: ProviderAuth) -> bool:
    if not isinstance(auth, ApiKeyAuth) or place != auth.place:
        return False
    return name.lower() == auth.name.lower() if place == "header" else name == auth.name
