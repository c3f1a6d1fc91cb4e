"""Parameters as arguments: which of them a caller gives, and the schema of each."""

import re
from typing import Final

from toolcrib.contracts import HttpParameter, JsonSchema
from toolcrib.core.providers.prose import lean
from toolcrib.kinds.http.openapi.operations.media import is_json
from toolcrib.kinds.http.openapi.operations.openapi3 import PLACES
from toolcrib.kinds.http.openapi.operations.parts import Operation, Parameter
from toolcrib.kinds.http.openapi.operations.paths import placeholders
from toolcrib.kinds.http.openapi.operations.security import Credential
from toolcrib.kinds.http.openapi.read.nodes import Node
from toolcrib.kinds.http.openapi.schemas.schemas import Schemas

KEY_HEADER: Final = "Idempotency-Key"
"""The header that takes a call's key (draft-ietf-httpapi-idempotency-key-header). It is no argument."""

_NEGOTIATED: Final = frozenset({"accept", "authorization", "content-type"})
"""Header parameters that the specification says to ignore."""
_FRAMING: Final = frozenset({"host", "content-length", "transfer-encoding"})
"""Headers that follow from the URL and the body."""
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""Names that a header can have (RFC 9110, section 5.6.2)."""


def takes_key(operation: Operation) -> bool:
    """Whether the operation declares the header that makes repeating it safe."""
    return any(_is_header(parameter, KEY_HEADER) for parameter in operation.parameters)


def given_parameters(operation: Operation, credentials: frozenset[Credential]) -> list[Parameter]:
    """The operation's parameters by place, as the caller gives them: without credentials, key and content types.

    Args:
        operation: Its losses take the parameters that are left out.
        credentials: What authentication fills in.
    """
    names = placeholders(operation.path)
    for parameter in operation.parameters:
        if parameter.place == "path" and not parameter.node.flag("required"):
            place = parameter.node.get("required").place
            operation.losses.changed(
                place, "invalid", f"parameter {parameter.name}", "required: it is part of the path"
            )
    found = [parameter for parameter in operation.parameters if _is_given(parameter, operation, credentials, names)]
    declared = {parameter.name for parameter in found if parameter.place == "path"}
    for name in names:
        if name not in declared:
            why = "taken as text: the path names it and nothing declares it"
            operation.losses.changed(operation.node.place, "invalid", f"parameter {name}", why)
            found.append(_undeclared(operation, name))
    return sorted(found, key=lambda parameter: PLACES.index(parameter.place))


def parameter_schema(parameter: Parameter, operation: Operation, schemas: Schemas) -> JsonSchema:
    """What a parameter's argument may be, with its own description."""
    losses = operation.losses
    if parameter.schema.value is None:
        schema: JsonSchema = {}
        if parameter.place == "path" or parameter.content_type is None:
            losses.changed(
                parameter.node.place, "invalid", f"parameter {parameter.name}", "any value: it has no schema"
            )
    elif parameter.content_type is not None and not is_json(parameter.content_type):
        why = f"taken as text of {parameter.content_type}"
        losses.changed(parameter.schema.place, "unsupported", f"parameter {parameter.name}", why)
        schema = {"type": "string", "contentMediaType": parameter.content_type}
    else:
        schema = schemas.convert(parameter.schema, losses)
    node = parameter.node
    text = lean(node.object["description"], node.get("description").place, losses) if node.has("description") else ""
    if text and "description" in schema and parameter.schema.place != node.place:
        why = "the parameter's own description stands for it"
        losses.dropped(parameter.schema.get("description").place, "text", "description", why)
    flag: JsonSchema = {"deprecated": True} if node.flag("deprecated") else {}
    return {**schema, **flag, **({"description": text} if text else {})}


def http_parameter(parameter: Parameter, argument: str) -> HttpParameter:
    """How a parameter's argument travels."""
    return HttpParameter(
        name=parameter.name,
        argument=argument,
        place=parameter.place,
        style=parameter.style,
        explode=parameter.explode,
        required=parameter.required,
        allow_reserved=parameter.allow_reserved,
        allow_empty=parameter.allow_empty,
        content_type=parameter.content_type,
    )


def _is_given(
    parameter: Parameter, operation: Operation, credentials: frozenset[Credential], names: tuple[str, ...]
) -> bool:
    what, place, losses = f"parameter {parameter.name}", parameter.node.place, operation.losses
    lower = parameter.name.lower() if parameter.place == "header" else parameter.name
    if parameter.place == "path" and parameter.name not in names:
        losses.dropped(place, "invalid", what, "the path has no place for it")
    elif _is_header(parameter, KEY_HEADER):
        losses.changed(place, "annotation", what, "filled in with the key of the call")
    elif parameter.place == "header" and lower in _NEGOTIATED:
        losses.dropped(place, "annotation", what, "OpenAPI says to ignore header parameters of this name")
    elif parameter.place == "header" and lower in _FRAMING:
        losses.dropped(place, "annotation", what, "follows from the URL and the body")
    elif parameter.place == "header" and not _TOKEN.fullmatch(lower):
        losses.dropped(place, "invalid", what, "no header can have this name")
    elif (parameter.place, lower) in credentials:
        losses.changed(place, "annotation", what, "filled in by authentication")
    else:
        return True
    return False


def _undeclared(operation: Operation, name: str) -> Parameter:
    schema = Node({"type": "string"}, operation.node.place, operation.node.base)
    node = Node(None, operation.node.place, operation.node.base)
    return Parameter(node, name, "path", schema, "simple", explode=False, required=True)


def _is_header(parameter: Parameter, name: str) -> bool:
    return parameter.place == "header" and parameter.name.lower() == name.lower()
