"""Reads the operations of a document of OpenAPI 2.0, 3.0, 3.1 or 3.2, in their order, as parts common to all versions.

In OpenAPI 2.0 (Swagger), bodies and forms are parameters, and media types are listed separately.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias, cast

from toolcrib.contracts import Json
from toolcrib.core.providers.imports import Losses
from toolcrib.kinds.http.openapi.operations.parts import (
    FORM,
    JSON_TYPE,
    ApiOperation,
    ApiParameter,
    ApiPath,
    ApiResponse,
    Body,
    BodyField,
    Media,
    read_path,
    with_constants,
)
from toolcrib.kinds.http.openapi.read.documents import Document
from toolcrib.kinds.http.openapi.read.fields import (
    ANY,
    BODY,
    FLAG,
    MEDIA_TYPE,
    OPERATION,
    PARAMETER,
    PATH_ITEM,
    RESPONSE,
    TEXT,
    Fields,
    account,
)
from toolcrib.kinds.http.openapi.read.nodes import Node, child
from toolcrib.kinds.http.shape import FieldEncoding, FieldStyle, HttpMethod, ParameterPlace, ParameterStyle

PLACES: Final[tuple[ParameterPlace, ...]] = ("path", "query", "header", "cookie")
STYLES: Final[dict[ParameterPlace, tuple[ParameterStyle, ...]]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""Styles by place (OpenAPI 3.1, section 4.8.12.2); the first is the default."""


class OpenApi3:
    """Reads the operations of one document."""

    def __init__(self, document: Document) -> None:
        self._library = document.library

    def operation(self, path: ApiPath, method: HttpMethod, node: Node, losses: Losses) -> ApiOperation:
        """One Operation Object with everything that its path adds."""
        servers = tuple(node.get("servers").entries()) or tuple(path.item.get("servers").entries())
        return ApiOperation(
            method=method,
            path=path.template,
            node=node,
            parameters=tuple(self._parameters(path, node, losses)),
            body=self._body(node, losses),
            answers=tuple(self._answers(node, losses)),
            security=node.get("security") if isinstance(node.object.get("security"), list) else None,
            servers=servers,
            losses=losses,
        )

    def _parameters(self, path: ApiPath, node: Node, losses: Losses) -> list[ApiParameter]:
        found: dict[tuple[str, str], ApiParameter] = {}
        for raw in (*path.item.get("parameters").entries(), *node.get("parameters").entries()):
            source = self._library.resolve(raw, losses)
            place = source.text("in").strip().lower()
            name = source.text("name")
            if not name or place not in PLACES:
                if source.value is not None:
                    why = "has no name, or a place other than path, query, header and cookie"
                    losses.add_dropped(source.place, "invalid", f"parameter {name}".rstrip(), why)
                continue
            key = (place, _same(place, name))
            if key in found:
                overridden = found[key].node.place
                losses.add_dropped(
                    overridden, "duplicate", f"parameter {name}", "declared again, and the later one counts"
                )
            found[key] = self._parameter(source, name, place, losses)
        return list(found.values())

    def _parameter(self, source: Node, name: str, place: ParameterPlace, losses: Losses) -> ApiParameter:
        account(source, PARAMETER, losses)
        style = STYLES[place][0]
        written = source.text("style")
        if written in STYLES[place]:
            style = written
        elif written:
            why = f"written in style {style}: a {place} parameter has no {written!r}"
            losses.add_changed(child(source.place, "style"), "style", f"parameter {name}", why)
        schema, content_type = source.get("schema"), None
        if isinstance(source.object.get("content"), dict) and "schema" not in source.object:
            schema, content_type = self._content(source.get("content"), name, losses)
        elif "content" in source.object:
            losses.add_dropped(child(source.place, "content"), "invalid", f"parameter {name}", "has a schema as well")
        return ApiParameter(
            node=source,
            name=name,
            place=place,
            schema=schema,
            style=style,
            explode=source.flag("explode", default=style == "form"),
            required=place == "path" or source.flag("required"),
            allow_reserved=source.flag("allowReserved"),
            allow_empty=source.flag("allowEmptyValue"),
            content_type=content_type,
        )

    def _content(self, content: Node, name: str, losses: Losses) -> tuple[Node, str | None]:
        media = list(self._media(content, losses))
        if not media:
            losses.add_dropped(content.place, "invalid", f"parameter {name}", "has no media type; any text is taken")
            return Node(None, content.place, content.base), None
        for other in media[1:]:
            losses.add_dropped(other.place, "media_type", f"parameter {name}", f"written as {media[0].type}")
        return media[0].schema, media[0].type

    def _body(self, node: Node, losses: Losses) -> Body | None:
        if not isinstance(node.object.get("requestBody"), dict):
            return None
        source = self._library.resolve(node.get("requestBody"), losses)
        if source.value is None:
            return None
        account(source, BODY, losses)
        required = source.flag("required") if "required" in source.object else None
        return Body(source, tuple(self._media(source.get("content"), losses)), required)

    def _answers(self, node: Node, losses: Losses) -> Iterator[ApiResponse]:
        for status, raw in node.get("responses").members():
            if status.startswith("x-"):
                losses.add_dropped(raw.place, "extension", status, "no meaning known")
                continue
            source = self._library.resolve(raw, losses)
            account(source, RESPONSE, losses)
            media = tuple(self._media(source.get("content"), losses))
            yield ApiResponse(status.strip(), source, media, source.get("headers"))

    def _media(self, content: Node, losses: Losses) -> Iterator[Media]:
        for name, raw in content.members():
            source = self._library.resolve(raw, losses)
            if source.value is not None and not isinstance(source.value, dict):
                losses.add_dropped(
                    source.place, "invalid", f"media type {name}", "is not an object; any value is taken"
                )
            account(source, MEDIA_TYPE, losses)
            yield Media(name.strip(), source.get("schema"), source.get("encoding"), raw.place)


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

    def operation(self, path: ApiPath, method: HttpMethod, node: Node, losses: Losses) -> ApiOperation:
        """One Operation Object with everything that its path and the document add."""
        sources = list(self._sources(path, node, losses))
        return ApiOperation(
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

    def _sources(self, path: ApiPath, node: Node, losses: Losses) -> Iterator[Node]:
        """Parameter Objects of the operation and its path; the operation's win."""
        found: dict[tuple[str, str], Node] = {}
        for raw in (*path.item.get("parameters").entries(), *node.get("parameters").entries()):
            source = self._library.resolve(raw, losses)
            place, name = source.text("in").strip().lower(), source.text("name")
            if place == "body":
                name = name or "body"
            if not name or place not in {*PLACES, "formdata", "body"}:
                if source.value is not None:
                    why = "has no name, or a place other than path, query, header, formData and body"
                    losses.add_dropped(source.place, "invalid", f"parameter {name}".rstrip(), why)
                continue
            key = (place, "" if place == "body" else _same(place, name))
            if key in found:
                why = "declared again, and the later one counts"
                losses.add_dropped(found[key].place, "duplicate", f"parameter {name}", why)
            found[key] = source
            account(source, _PARAMETER, losses)
        yield from found.values()

    def _parameter(self, source: Node, losses: Losses) -> ApiParameter:
        place = cast("ParameterPlace", source.text("in").strip().lower())
        style: ParameterStyle = "form" if place in {"query", "cookie"} else "simple"
        explode = style == "form"
        if source.object.get("type") == "array" or "collectionFormat" in source.object:
            style, explode = self._collection(source, losses)
            if place in {"path", "header"}:
                if style != "form" or explode:
                    why = f"written with commas: a {place} parameter has no other way here"
                    losses.add_changed(child(source.place, "collectionFormat"), "style", "collectionFormat", why)
                style, explode = "simple", False
        return ApiParameter(
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
            why = f"{written!r} is not a format; written with commas"
            losses.add_changed(child(source.place, "collectionFormat"), "style", "collectionFormat", why)
        return _COLLECTIONS.get(written, _COLLECTIONS["csv"])

    def _body(self, node: Node, sources: list[Node], losses: Losses) -> Body | None:
        form = [source for source in sources if source.text("in").lower() == "formdata"]
        whole = next((source for source in sources if source.text("in").lower() == "body"), None)
        if whole is not None:
            for source in form:
                losses.add_dropped(source.place, "invalid", f"parameter {source.text('name')}", "stands beside a body")
            types = self._types(node, "consumes", losses) or [Node(JSON_TYPE, whole.place, "")]
            schema = whole.get("schema") if "schema" in whole.object else _schema(whole)
            media = tuple(Media(kind.value, schema, Node(None, whole.place, ""), kind.place) for kind in types)
            losses.add_dropped(whole.get("name").place, "annotation", "name", "a body has none on the wire")
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
                losses.add_dropped(kind.place, "media_type", f"request body {kind.value}", f"sent as {chosen}")
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

    def _answers(self, node: Node, losses: Losses) -> Iterator[ApiResponse]:
        types = self._types(node, "produces", losses)
        if not any(self._library.resolve(raw, Losses()).has("schema") for _, raw in node.get("responses").members()):
            self._note_unused(node, types, "no answer has a body", losses)
        types = types or [Node(JSON_TYPE, node.place, "")]
        for status, raw in node.get("responses").members():
            if status.startswith("x-"):
                losses.add_dropped(raw.place, "extension", status, "no meaning known")
                continue
            source = self._library.resolve(raw, losses)
            account(source, RESPONSE, losses)
            schema, empty = source.get("schema"), Node(None, source.place, "")
            has_body = source.has("schema")
            media = tuple(Media(kind.value, schema, empty, kind.place) for kind in types) if has_body else ()
            yield ApiResponse(status.strip(), source, media, source.get("headers"))

    def _note_unused(self, node: Node, types: list[Node], why: str, losses: Losses) -> None:
        for kind in types:
            if kind.place.startswith(node.place):
                losses.add_dropped(kind.place, "annotation", "media type", why)

    def _types(self, node: Node, key: str, losses: Losses) -> list[Node]:
        """Media types of the operation, or of the document."""
        found = node.get(key) if key in node.object else self._root.get(key)
        for entry in found.entries():
            if not isinstance(entry.value, str):
                losses.add_dropped(entry.place, "invalid", key, "is not a media type")
        return [
            Node(entry.value.strip(), entry.place, "")
            for entry in found.entries()
            if isinstance(entry.value, str) and entry.value.strip()
        ]


def _schema(source: Node) -> Node:
    """The Schema Object that a parameter is itself."""
    found: dict[str, Json] = {key: value for key, value in source.object.items() if key in _SCHEMA_KEYWORDS}
    return Node(found, source.place, source.base) if found else Node(None, source.place, source.base)


def _same(place: str, name: str) -> str:
    """What two names of one parameter have in common: only names of headers ignore case."""
    return name.lower() if place == "header" else name


METHODS: Final[Mapping[str, HttpMethod]] = {
    "get": "GET",
    "put": "PUT",
    "post": "POST",
    "delete": "DELETE",
    "options": "OPTIONS",
    "head": "HEAD",
    "patch": "PATCH",
    "trace": "TRACE",
}

Reader: TypeAlias = Callable[[ApiPath, HttpMethod, Node, Losses], ApiOperation]


def read_operations(document: Document, losses: Losses, max_operations: int) -> Iterator[ApiOperation]:
    """Every operation in the document's order.

    Args:
        document: The document.
        losses: Receives invalid paths; the losses of an operation are recorded with it.
        max_operations: Those of the paths after as many are left out.
    """
    reader: Reader = (OpenApi2 if document.dialect == "2.0" else OpenApi3)(document).operation
    count = 0
    for written, node in document.root.get("paths").members():
        if written.startswith("x-"):
            losses.add_dropped(node.place, "extension", written, "no meaning known")
            continue
        shared = Losses()
        item = _item(document, node, shared)
        account(item, PATH_ITEM, shared)
        path = read_path(written, item, shared)
        found = [name for name in METHODS if isinstance(item.object.get(name), dict)]
        count += len(found)
        if not found:
            losses.add_dropped(node.place, "invalid", f"path {written[:200]}", "has no operation")
            losses.uses(path.place, shared)
        if count > max_operations:
            why = f"more than {max_operations} operations; raise the bound max_operations of the import"
            losses.add_dropped(node.place, "bound", f"path {written[:200]}", why)
            continue
        for name in found:
            own = Losses()
            own.uses(path.place, shared)
            operation = document.library.resolve(item.get(name), own)
            account(operation, OPERATION, own)
            yield with_constants(replace(reader(path, METHODS[name], operation, own), fragment=path.fragment))


def _item(document: Document, node: Node, losses: Losses) -> Node:
    """A Path Item Object; the fields beside its `$ref` are added to the referenced object."""
    if not isinstance(node.object.get("$ref"), str):
        return node
    target = document.library.resolve(Node({"$ref": node.object["$ref"]}, node.place, node.base), losses)
    own = {key: value for key, value in node.object.items() if key != "$ref"}
    if not own:
        return target
    both = sorted(own.keys() & target.object.keys())
    for key in both:
        losses.add_dropped(
            f"{target.place}/{key}", "duplicate", f"path item field {key}", "stands beside the $ref as well"
        )
    return Node({**target.object, **own}, target.place, target.base)
