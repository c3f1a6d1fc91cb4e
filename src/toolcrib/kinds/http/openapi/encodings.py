"""How single fields of form and multipart bodies are written, and which of them are files."""

from typing import Final, cast

from toolcrib.contracts import FieldEncoding, FieldStyle, JsonSchema
from toolcrib.core.providers.losses import Losses
from toolcrib.core.providers.prose import lean
from toolcrib.kinds.http.openapi.operations.media import encoding_of
from toolcrib.kinds.http.openapi.operations.parts import Media
from toolcrib.kinds.http.openapi.read.fields import ENCODING, account
from toolcrib.kinds.http.openapi.read.library import Library
from toolcrib.kinds.http.openapi.read.nodes import Node
from toolcrib.kinds.http.openapi.read.pointers import child
from toolcrib.kinds.http.openapi.schemas.shapes import Shape, followed

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
    found = followed(library, schema)
    if "items" in found.object:
        return is_file_type(followed(library, found.get("items")))
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
            losses.changed(member.place, "invalid", "keyword type", "taken as a file")
        elif keyword not in {"type", "format", "items", "description", "$ref"}:
            losses.dropped(member.place, "unsupported", f"keyword {keyword}", "a file is any bytes")
    return found


def read_encodings(media: Media, shape: Shape, library: Library, losses: Losses) -> dict[str, FieldEncoding]:
    """Encodings by field, those that are as usual left out."""
    way = encoding_of(media.type)
    written = dict(media.encoding.members())
    if way not in {"form", "multipart"}:
        for name, node in written.items():
            losses.dropped(node.place, "invalid", f"encoding {name}", f"counts for nothing in {media.type}")
        return {}
    for name in written.keys() - shape.properties.keys():
        losses.dropped(written[name].place, "invalid", f"encoding {name}", "names no property of the body")
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
    losses.changed(schema.get("type").place, "invalid", f"property {name}", "taken as a file, as its name says")
    return True


def _encoding(node: Node, name: str, *, file: bool, form: bool, losses: Losses) -> FieldEncoding:
    for header, member in node.get("headers").members():
        losses.dropped(member.place, "unsupported", f"part header {header}", "no argument is taken from it")
    style = node.text("style") or "form"
    if style not in _STYLES or (style != "form" and not form):
        losses.changed(child(node.place, "style"), "style", f"encoding {name}", f"written as form, not {style!r}")
        style = "form"
    types = [part.strip() for part in node.text("contentType").split(",") if part.strip()]
    if len(types) > 1 or any("*" in part for part in types):
        why = "the file says its own type" if file else "left to the value"
        losses.changed(
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
