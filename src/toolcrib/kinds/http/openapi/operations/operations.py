"""Operations of OpenAPI 2.0 (Swagger): bodies and forms are parameters there, and media types stand apart."""

from collections.abc import Iterator
from typing import Final, cast

from toolcrib.contracts import FieldEncoding, FieldStyle, HttpMethod, Json, ParameterPlace, ParameterStyle
from toolcrib.core.providers.losses import Losses
from toolcrib.kinds.http.openapi.operations.media import FORM, JSON_TYPE
from toolcrib.kinds.http.openapi.operations.openapi3 import PLACES
from toolcrib.kinds.http.openapi.operations.parts import Answer, Body, BodyField, Media, Operation, Parameter
from toolcrib.kinds.http.openapi.operations.paths import Path
from toolcrib.kinds.http.openapi.read.document import Document
from toolcrib.kinds.http.openapi.read.fields import ANY, FLAG, RESPONSE, TEXT, Fields, account
from toolcrib.kinds.http.openapi.read.nodes import Node
from toolcrib.kinds.http.openapi.read.pointers import child

_MULTIPART: Final = "multipart/form-data"
_SCHEMA_KEYWORDS: Final = frozenset(
    {
        "type",
        "format",
        "items",
        "default",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "enum",
        "multipleOf",
        "x-nullable",
        "x-example",
    }
)
"""Of a parameter that is no body."""
_PARAMETER: Final = Fields(
    "parameter",
    {
        "name": TEXT,
        "in": TEXT,
        "description": TEXT,
        "required": FLAG,
        "schema": ANY,
        "collectionFormat": TEXT,
        "allowEmptyValue": FLAG,
        **dict.fromkeys(_SCHEMA_KEYWORDS, ANY),
    },
    frozenset({"example", "examples"}),
)
_COLLECTIONS: Final[dict[str, tuple[ParameterStyle, bool]]] = {
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
"""Style and explode by collection format."""


class OpenApi2:
    """Reads the operations of one document."""

    def __init__(self, document: Document) -> None:
        self._library = document.library
        self._root = document.root

    def operation(self, path: Path, method: HttpMethod, node: Node, losses: Losses) -> Operation:
        """One Operation Object with everything that its path and the document add."""
        sources = list(self._sources(path, node, losses))
        return Operation(
            method=method,
            path=path.template,
            node=node,
            parameters=tuple(
                self._parameter(source, losses) for source in sources if source.text("in").lower() in PLACES
            ),
            body=self._body(node, sources, losses),
            answers=tuple(self._answers(node, losses)),
            security=node.get("security") if isinstance(node.object.get("security"), list) else None,
            servers=(),
            losses=losses,
        )

    def _sources(self, path: Path, node: Node, losses: Losses) -> Iterator[Node]:
        """Parameter Objects of the operation and its path; the operation's win."""
        found: dict[tuple[str, str], Node] = {}
        for raw in (*path.item.get("parameters").entries(), *node.get("parameters").entries()):
            source = self._library.resolve(raw, losses)
            place, name = source.text("in").strip().lower(), source.text("name")
            if place == "body":
                name = name or "body"
            if not name or place not in {*PLACES, "formdata", "body"}:
                if source.value is not None:
                    why = "has no name, or a place that is none of path, query, header, formData and body"
                    losses.dropped(source.place, "invalid", f"parameter {name}".rstrip(), why)
                continue
            key = (place, "" if place == "body" else name)
            if key in found:
                why = "declared again, and the later one counts"
                losses.dropped(found[key].place, "duplicate", f"parameter {name}", why)
            found[key] = source
            account(source, _PARAMETER, losses)
        yield from found.values()

    def _parameter(self, source: Node, losses: Losses) -> Parameter:
        place = cast("ParameterPlace", source.text("in").strip().lower())
        style: ParameterStyle = "form" if place in {"query", "cookie"} else "simple"
        explode = style == "form"
        if source.object.get("type") == "array" or "collectionFormat" in source.object:
            style, explode = self._collection(source, losses)
            if place in {"path", "header"}:
                if style != "form" or explode:
                    why = f"written with commas: a {place} parameter has no other way here"
                    losses.changed(child(source.place, "collectionFormat"), "style", "collectionFormat", why)
                style, explode = "simple", False
        return Parameter(
            node=source,
            name=source.text("name"),
            place=place,
            schema=_schema(source),
            style=style,
            explode=explode,
            required=place == "path" or source.flag("required"),
            allow_empty=source.flag("allowEmptyValue"),
        )

    def _collection(self, source: Node, losses: Losses) -> tuple[ParameterStyle, bool]:
        written = source.text("collectionFormat") or "csv"
        if written not in _COLLECTIONS:
            why = f"{written!r} is no format; written with commas"
            losses.changed(child(source.place, "collectionFormat"), "style", "collectionFormat", why)
        return _COLLECTIONS.get(written, _COLLECTIONS["csv"])

    def _body(self, node: Node, sources: list[Node], losses: Losses) -> Body | None:
        form = [source for source in sources if source.text("in").lower() == "formdata"]
        whole = next((source for source in sources if source.text("in").lower() == "body"), None)
        if whole is not None:
            for source in form:
                losses.dropped(source.place, "invalid", f"parameter {source.text('name')}", "stands beside a body")
            types = self._types(node, "consumes", losses) or [Node(JSON_TYPE, whole.place, "")]
            schema = whole.get("schema") if "schema" in whole.object else _schema(whole)
            media = tuple(Media(kind.value, schema, Node(None, whole.place, ""), kind.place) for kind in types)
            losses.dropped(whole.get("name").place, "annotation", "name", "a body has none on the wire")
            required = whole.flag("required") if "required" in whole.object else None
            return Body(whole, media, required)
        types = self._types(node, "consumes", losses)
        if not form:
            self._note_unused(node, types, "no body is sent", losses)
            return None
        fields = tuple(self._field(source, losses) for source in form)
        files = any(source.object.get("type") == "file" for source in form)
        named = [kind.value for kind in types if kind.value in {FORM, _MULTIPART}]
        chosen = _MULTIPART if files else (named or [FORM])[0]
        for kind in types:
            if kind.value != chosen:
                losses.dropped(kind.place, "media_type", f"request body {kind.value}", f"sent as {chosen}")
        empty = Node(None, node.place, node.base)
        media = Media(chosen, empty, empty, form[0].place, fields)
        return Body(empty, (media,), any(field.required for field in fields))

    def _field(self, source: Node, losses: Losses) -> BodyField:
        encoding = None
        if source.object.get("type") == "array":
            style, explode = self._collection(source, losses)
            encoding = FieldEncoding(style=cast("FieldStyle", style), explode=explode)
        name, description = source.text("name"), source.get("description")
        return BodyField(name, _schema(source), source.flag("required"), description, encoding)

    def _answers(self, node: Node, losses: Losses) -> Iterator[Answer]:
        types = self._types(node, "produces", losses)
        if not any(self._library.resolve(raw, Losses()).has("schema") for _, raw in node.get("responses").members()):
            self._note_unused(node, types, "no answer has a body", losses)
        types = types or [Node(JSON_TYPE, node.place, "")]
        for status, raw in node.get("responses").members():
            if status.startswith("x-"):
                losses.dropped(raw.place, "extension", status, "no meaning known")
                continue
            source = self._library.resolve(raw, losses)
            account(source, RESPONSE, losses)
            schema, empty = source.get("schema"), Node(None, source.place, "")
            has_body = source.has("schema")
            media = tuple(Media(kind.value, schema, empty, kind.place) for kind in types) if has_body else ()
            yield Answer(status.strip(), source, media, source.get("headers"))

    def _note_unused(self, node: Node, types: list[Node], why: str, losses: Losses) -> None:
        for kind in types:
            if kind.place.startswith(node.place):
                losses.dropped(kind.place, "annotation", "media type", why)

    def _types(self, node: Node, key: str, losses: Losses) -> list[Node]:
        """Media types of the operation, or of the document."""
        found = node.get(key) if key in node.object else self._root.get(key)
        for entry in found.entries():
            if not isinstance(entry.value, str):
                losses.dropped(entry.place, "invalid", key, "is no media type")
        return [
            Node(entry.value.strip(), entry.place, "")
            for entry in found.entries()
            if isinstance(entry.value, str) and entry.value.strip()
        ]


def _schema(source: Node) -> Node:
    """The Schema Object that a parameter is itself."""
    found: dict[str, Json] = {key: value for key, value in source.object.items() if key in _SCHEMA_KEYWORDS}
    return Node(found, source.place, source.base) if found else Node(None, source.place, source.base)
