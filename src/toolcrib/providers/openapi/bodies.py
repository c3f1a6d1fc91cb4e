"""Request bodies as arguments: the properties of a JSON object one by one, any other JSON value as one argument.

Bodies of other types are not read yet; an operation that needs one is left out, and says so.
"""

import re
from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.providers.openapi.document import Document
from toolcrib.providers.openapi.losses import Losses
from toolcrib.providers.openapi.operations import Operation
from toolcrib.providers.openapi.schemas import Schemas
from toolcrib.providers.openapi.shapes import Shape, shape_of
from toolcrib.providers.openapi.views import members

_JSON: Final = re.compile(r"(application/json|[a-z0-9.+-]+/[a-z0-9.-]+\+json)\s*(;.*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Field:
    """One property of the body that becomes an argument."""

    name: str
    schema: JsonSchema
    required: bool


@dataclass(frozen=True, slots=True)
class Body:
    """A JSON body: either its fields, or the whole of it."""

    content_type: str
    required: bool
    fields: tuple[Field, ...] = ()
    whole: JsonSchema | None = None


class UnreadableBody(Exception):
    """The operation needs a body of a type that is not read."""


def is_json(content_type: str) -> bool:
    """Whether a media type is JSON (RFC 6839, section 3.1)."""
    return _JSON.fullmatch(content_type.strip()) is not None


def read_body(operation: Operation, document: Document, schemas: Schemas) -> Body | None:
    """The body that the operation takes, if any.

    Raises:
        UnreadableBody: It needs one, and none of its types is JSON.
    """
    source = document.resolve(operation.source.get("requestBody"))
    content = members(members(source).get("content"))
    if source is None or not content:
        return None
    media = next((name for name in content if is_json(name)), None)
    others = ", ".join(name for name in content if name != media)
    if media is None and source.get("required") is True:
        raise UnreadableBody(f"its body is {others}, and only JSON is read")
    if others:
        operation.losses.note("request body", f"not as {others}; only JSON is read")
    if media is None:
        return None
    schema: Json = members(document.resolve(content[media])).get("schema", {})
    shape = shape_of(document, schema)
    required = source.get("required") is True
    if not shape.plain or not shape.properties:
        return Body(media, required, whole=schemas.convert(schema, operation.losses))
    fields = _fields(shape, source, schemas, operation.losses)
    return Body(media, required or any(field.required for field in fields), fields=fields)


def _fields(shape: Shape, source: JsonObject, schemas: Schemas, losses: Losses) -> tuple[Field, ...]:
    # A body is "not required" by default, which most documents leave in place by oversight.
    needed = frozenset[str]() if source.get("required") is False else shape.required
    if needed != shape.required:
        losses.note("request body", "none of its properties is required, because the body as a whole is not")
    return tuple(
        Field(name, schemas.convert(member, losses), name in needed)
        for name, member in shape.properties.items()
        if members(member).get("readOnly") is not True
    )
