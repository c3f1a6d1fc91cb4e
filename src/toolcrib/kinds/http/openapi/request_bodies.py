"""Request bodies as arguments: each property of an object is an argument; any other value is one argument.

Also the encoding of fields in form and multipart bodies, and which of them are files.
"""

from dataclasses import dataclass
from typing import Final, cast

from toolcrib.contracts import JsonSchema
from toolcrib.core.providers.imports import Losses, lean
from toolcrib.kinds.http.openapi.operations.parts import (
    ApiOperation,
    Body,
    Media,
    choose_media,
    content_type,
    encoding_of,
)
from toolcrib.kinds.http.openapi.read.documents import Library
from toolcrib.kinds.http.openapi.read.fields import ENCODING, account
from toolcrib.kinds.http.openapi.read.nodes import Node, child
from toolcrib.kinds.http.openapi.schemas.keywords import Shape, follow_references, shape_of
from toolcrib.kinds.http.openapi.schemas.schemas import SchemaConverter
from toolcrib.kinds.http.shape import BodyEncoding, FieldEncoding, FieldStyle

_STYLES: Final[tuple[FieldStyle, ...]] = ("form", "spaceDelimited", "pipeDelimited", "deepObject")
_FILE: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "base64": {"type": "string", "contentEncoding": "base64"},
        "filename": {"type": "string"},
        "media_type": {"type": "string"},
    },
    "required": ["base64"],
    "additionalProperties": False,
}
_BASE64: Final[JsonSchema] = {"type": "string", "contentEncoding": "base64"}
_NO_FORM: Final = frozenset({"type", "title", "description", "example", "nullable"})
"""Keywords that say nothing of a text's form."""
_PLAIN: Final = FieldEncoding()


def is_file(schema: Node, library: Library) -> bool:
    """Whether a field holds bytes, or a list of them."""
    found = follow_references(library, schema)
    if "items" in found.object:
        return is_file_type(follow_references(library, found.get("items")))
    return is_file_type(found)


def is_file_type(schema: Node) -> bool:
    """Whether a schema, references followed, means bytes (OpenAPI 3.1, section 4.8.14.5)."""
    source = schema.object
    if source.get("type") == "file" or source.get("format") == "binary":
        return True
    return (
        "contentMediaType" in source and "contentEncoding" not in source and not _is_words(source["contentMediaType"])
    )


def file_schema(schema: Node, losses: Losses) -> JsonSchema:
    """What a caller gives for a file: base64 text, or that with a name and a type."""
    one: JsonSchema = {"anyOf": [dict(_BASE64), dict(_FILE)]}
    listed = schema.object.get("type") == "array" or "items" in schema.object
    found: JsonSchema = {"type": "array", "items": one} if listed else one
    for keyword, member in schema.members():
        if keyword == "description" and (text := lean(member.value, member.place, losses)):
            found["description"] = text
        elif keyword == "type" and member.value not in {"string", "file", "array"}:
            losses.add_changed(member.place, "invalid", "keyword type", "taken as a file")
        elif keyword not in {"type", "format", "items", "description", "$ref"}:
            losses.add_dropped(member.place, "unsupported", f"keyword {keyword}", "a file is any bytes")
    return found


def read_encodings(media: Media, shape: Shape, library: Library, losses: Losses) -> dict[str, FieldEncoding]:
    """Encodings by field, those that are as usual left out."""
    way = encoding_of(media.type)
    written = dict(media.encoding.members())
    if way not in {"form", "multipart"}:
        for name, node in written.items():
            losses.add_dropped(node.place, "invalid", f"encoding {name}", f"counts for nothing in {media.type}")
        return {}
    for name in written.keys() - shape.properties.keys():
        losses.add_dropped(written[name].place, "invalid", f"encoding {name}", "names no property of the body")
    found: dict[str, FieldEncoding] = {}
    for name, schema in shape.properties.items():
        file = way == "multipart" and (is_file(schema, library) or _means_file(name, schema, losses))
        node = written.get(name, Node(None, "", ""))
        account(node, ENCODING, losses)
        encoding = _encoding(node, name, file=file, form=way == "form", losses=losses)
        if encoding != _PLAIN:
            found[name] = encoding
    return found


def _means_file(name: str, schema: Node, losses: Losses) -> bool:
    """Whether a part that is plain text by its schema is a file by its name: Stripe and others leave the format out."""
    if name.lower() != "file" or schema.object.get("type") != "string" or not schema.object.keys() <= _NO_FORM:
        return False
    losses.add_changed(schema.get("type").place, "invalid", f"property {name}", "taken as a file, as its name says")
    return True


def _encoding(node: Node, name: str, *, file: bool, form: bool, losses: Losses) -> FieldEncoding:
    for header, member in node.get("headers").members():
        losses.add_dropped(member.place, "unsupported", f"part header {header}", "no argument is taken from it")
    style = node.text("style") or "form"
    if style not in _STYLES or (style != "form" and not form):
        losses.add_changed(child(node.place, "style"), "style", f"encoding {name}", f"written as form, not {style!r}")
        style = "form"
    types = [part.strip() for part in node.text("contentType").split(",") if part.strip()]
    if len(types) > 1 or any("*" in part for part in types):
        why = "the file says its own type" if file else "left to the value"
        losses.add_changed(
            child(node.place, "contentType"), "media_type", f"encoding {name}", f"one of several types: {why}"
        )
        types = []
    return FieldEncoding(
        content_type=types[0] if types else None,
        style=cast("FieldStyle", style),
        explode=node.flag("explode", default=style in {"form", "deepObject"}),
        allow_reserved=node.flag("allowReserved"),
        file=file,
    )


def _is_words(media_type: object) -> bool:
    text = str(media_type).lower()
    return text.startswith("text/") or text.endswith(("json", "xml"))


WHOLE: Final = "body"
"""The argument that is a whole body."""

_BYTES: Final[JsonSchema] = {"type": "string", "contentEncoding": "base64"}


@dataclass(frozen=True, slots=True)
class BodyArgument:
    """One property of the body that becomes an argument, or the whole of it."""

    name: str
    schema: JsonSchema
    required: bool
    place: str


@dataclass(frozen=True, slots=True)
class BodyPlan:
    """A body as it is sent: either its fields, or the whole of it."""

    content_type: str
    encoding: BodyEncoding
    required: bool
    fields: tuple[BodyArgument, ...]
    """One, `body`, if it is sent as a whole."""
    whole: bool
    encodings: dict[str, FieldEncoding]


def read_request(operation: ApiOperation, library: Library, schemas: SchemaConverter) -> BodyPlan | None:
    """The body that the operation takes, if any."""
    body, losses = operation.body, operation.losses
    if body is None:
        return None
    if not body.media:
        losses.add_dropped(body.node.place, "invalid", "request body", "has no media type; none is sent")
        return None
    media = choose_media(body.media, files=any(_has_files(found, library) for found in body.media))
    for other in body.media:
        if other is not media:
            losses.add_dropped(other.place, "media_type", f"request body {other.type}", f"sent as {media.type}")
    operation.kept.append(f"body {media.type}")
    encoding = encoding_of(media.type)
    if encoding == "binary" and _is_base64(follow_references(library, media.schema)):
        # OpenAPI 3.0: `format: byte` is base64 text; bytes would be `format: binary`.
        return _opaque(body, media, "text", losses, base64=True)
    if encoding in {"text", "binary"}:
        return _opaque(body, media, encoding, losses)
    return _form2(body, media, schemas, losses) if media.fields else _object(body, media, library, schemas, losses)


def _has_files(media: Media, library: Library) -> bool:
    fields = {field.name: field.schema for field in media.fields} or shape_of(library, media.schema).properties
    return encoding_of(media.type) == "multipart" and any(is_file(schema, library) for schema in fields.values())


def _is_base64(schema: Node) -> bool:
    """Whether a schema is text in base64, which is sent as it is."""
    source = schema.object
    return source.get("format") == "byte" or str(source.get("contentEncoding", "")).lower() == "base64"


def _opaque(body: Body, media: Media, encoding: BodyEncoding, losses: Losses, *, base64: bool = False) -> BodyPlan:
    """Text, and bytes as base64."""
    schema: JsonSchema = dict(_BYTES) if encoding == "binary" or base64 else {"type": "string"}
    schema["contentMediaType"] = media.type
    if text := _description(body, losses):
        schema["description"] = text
    if media.schema.value is not None:
        why = f"what is written as {media.type} is taken as it is"
        losses.add_dropped(media.schema.place, "unsupported", "schema of the request body", why)
    required = body.required is True
    return BodyPlan(
        media.type, encoding, required, (BodyArgument(WHOLE, schema, required, media.place),), whole=True, encodings={}
    )


def _form2(body: Body, media: Media, schemas: SchemaConverter, losses: Losses) -> BodyPlan:
    """A form of OpenAPI 2.0."""
    encodings: dict[str, FieldEncoding] = {}
    fields: list[BodyArgument] = []
    encoding = encoding_of(media.type)
    for found in media.fields:
        if encoding == "multipart" and is_file_type(found.schema):
            schema = file_schema(found.schema, losses)
            encodings[found.name] = FieldEncoding(file=True)
        else:
            schema = schemas.convert(found.schema, losses)
            if found.encoding is not None and encoding == "form":
                encodings[found.name] = found.encoding
        if found.description is not None and found.description.value is not None:
            schema = {**schema, "description": lean(found.description.value, found.description.place, losses)}
        fields.append(BodyArgument(found.name, schema, found.required, found.schema.place))
    return BodyPlan(media.type, encoding, body.required is True, tuple(fields), whole=False, encodings=encodings)


def _object(body: Body, media: Media, library: Library, schemas: SchemaConverter, losses: Losses) -> BodyPlan:
    shape = shape_of(library, media.schema)
    encoding = encoding_of(media.type)
    encodings = read_encodings(media, shape, library, losses)
    kind = content_type(media.type)
    # All or nothing: properties that are needed where there is a body, and not without one, do not stand one by one.
    whole = encoding == "json" and body.required is False and bool(shape.required)
    if whole or not shape.plain or not (shape.properties or _is_empty(media.schema, library)):
        schema: JsonSchema = {}
        if media.schema.value is not None:
            schema = schemas.convert(media.schema, losses)
        else:
            losses.add_changed(media.place, "invalid", "request body", "any value: it has no schema")
        if "description" not in schema and (text := _description(body, losses)):
            schema = {**schema, "description": text}
        required = body.required is True
        return BodyPlan(
            kind,
            encoding,
            required,
            (BodyArgument(WHOLE, schema, required, media.place),),
            whole=True,
            encodings=encodings,
        )
    _note_unsaid(body, media.schema, library, losses)
    fields = _fields(shape, body, encodings, schemas, losses)
    required = body.required is True or any(field.required for field in fields)
    if required and body.required is None:
        why = "required: it has required properties, and the document does not say that the body is optional"
        losses.add_changed(body.node.place, "invalid", "request body", why)
    return BodyPlan(kind, encoding, required, fields, whole=False, encodings=encodings)


def _is_empty(schema: Node, library: Library) -> bool:
    """Whether an object schema says that it has no members, instead of leaving them open."""
    source = follow_references(library, schema).object
    return source.get("properties") == {} or source.get("additionalProperties") is False


def _fields(
    shape: Shape, body: Body, encodings: dict[str, FieldEncoding], schemas: SchemaConverter, losses: Losses
) -> tuple[BodyArgument, ...]:
    # A body is "not required" by default, which most documents leave in place by oversight.
    needed = frozenset[str]() if body.required is False else shape.required
    if needed != shape.required:
        why = "none of its properties is required, because the body as a whole is not"
        losses.add_changed(body.node.get("required").place, "invalid", "request body", why)
    fields: list[BodyArgument] = []
    for name, member in shape.properties.items():
        if schemas.hides(member):
            losses.add_dropped(member.place, "direction", f"property {name}", "is readOnly")
        elif name in encodings and encodings[name].file:
            fields.append(BodyArgument(name, file_schema(member, losses), name in needed, member.place))
        else:
            fields.append(BodyArgument(name, schemas.property(member, losses), name in needed, member.place))
    return tuple(fields)


def _note_unsaid(body: Body, schema: Node, library: Library, losses: Losses) -> None:
    """Report keywords about the whole body, which are lost when its properties become separate arguments."""
    for node in (body.node, schema, follow_references(library, schema)):
        for keyword in node.object.keys() & {"description", "title", "example", "examples", "externalDocs", "xml"}:
            why = "of the body as a whole, whose properties are arguments"
            losses.add_dropped(node.get(keyword).place, "annotation", keyword, why)
        for keyword in node.object:
            if keyword.startswith("x-"):
                losses.add_dropped(node.get(keyword).place, "extension", keyword, "no meaning known")


def _description(body: Body, losses: Losses) -> str:
    node = body.node.get("description")
    return lean(node.value, node.place, losses) if node.value is not None else ""
