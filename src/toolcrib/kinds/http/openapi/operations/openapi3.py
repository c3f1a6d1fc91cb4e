"""Operations of OpenAPI 3.0, 3.1 and 3.2."""

from collections.abc import Iterator
from typing import Final

from toolcrib.contracts import HttpMethod, ParameterPlace, ParameterStyle
from toolcrib.core.providers.losses import Losses
from toolcrib.kinds.http.openapi.operations.parts import Answer, Body, Media, Operation, Parameter
from toolcrib.kinds.http.openapi.operations.paths import Path
from toolcrib.kinds.http.openapi.read.document import Document
from toolcrib.kinds.http.openapi.read.fields import BODY, MEDIA_TYPE, PARAMETER, RESPONSE, account
from toolcrib.kinds.http.openapi.read.nodes import Node
from toolcrib.kinds.http.openapi.read.pointers import child

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

    def operation(self, path: Path, method: HttpMethod, node: Node, losses: Losses) -> Operation:
        """One Operation Object with everything that its path adds."""
        servers = tuple(node.get("servers").entries()) or tuple(path.item.get("servers").entries())
        return Operation(
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

    def _parameters(self, path: Path, node: Node, losses: Losses) -> list[Parameter]:
        found: dict[tuple[str, str], Parameter] = {}
        for raw in (*path.item.get("parameters").entries(), *node.get("parameters").entries()):
            source = self._library.resolve(raw, losses)
            place = source.text("in").strip().lower()
            name = source.text("name")
            if not name or place not in PLACES:
                if source.value is not None:
                    why = "has no name, or a place that is none of path, query, header and cookie"
                    losses.dropped(source.place, "invalid", f"parameter {name}".rstrip(), why)
                continue
            if (place, name) in found:
                overridden = found[place, name].node.place
                losses.dropped(overridden, "duplicate", f"parameter {name}", "declared again, and the later one counts")
            found[place, name] = self._parameter(source, name, place, losses)
        return list(found.values())

    def _parameter(self, source: Node, name: str, place: ParameterPlace, losses: Losses) -> Parameter:
        account(source, PARAMETER, losses)
        style = STYLES[place][0]
        written = source.text("style")
        if written in STYLES[place]:
            style = written
        elif written:
            why = f"written in style {style}: a {place} parameter has no {written!r}"
            losses.changed(child(source.place, "style"), "style", f"parameter {name}", why)
        schema, content_type = source.get("schema"), None
        if isinstance(source.object.get("content"), dict) and "schema" not in source.object:
            schema, content_type = self._content(source.get("content"), name, losses)
        elif "content" in source.object:
            losses.dropped(child(source.place, "content"), "invalid", f"parameter {name}", "has a schema as well")
        return Parameter(
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
            losses.dropped(content.place, "invalid", f"parameter {name}", "has no media type; any text is taken")
            return Node(None, content.place, content.base), None
        for other in media[1:]:
            losses.dropped(other.place, "media_type", f"parameter {name}", f"written as {media[0].type}")
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

    def _answers(self, node: Node, losses: Losses) -> Iterator[Answer]:
        for status, raw in node.get("responses").members():
            if status.startswith("x-"):
                losses.dropped(raw.place, "extension", status, "no meaning known")
                continue
            source = self._library.resolve(raw, losses)
            account(source, RESPONSE, losses)
            media = tuple(self._media(source.get("content"), losses))
            yield Answer(status.strip(), source, media, source.get("headers"))

    def _media(self, content: Node, losses: Losses) -> Iterator[Media]:
        for name, raw in content.members():
            source = self._library.resolve(raw, losses)
            if source.value is not None and not isinstance(source.value, dict):
                losses.dropped(source.place, "invalid", f"media type {name}", "is not an object; any value is taken")
            account(source, MEDIA_TYPE, losses)
            yield Media(name.strip(), source.get("schema"), source.get("encoding"), raw.place)
