"""The successful responses of an operation, and the output schema of its tool."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import JsonSchema
from toolcrib.core.providers.imports import Losses
from toolcrib.kinds.http.openapi.operations.parts import ApiOperation, ApiResponse, Media, is_json, is_lines, is_text
from toolcrib.kinds.http.openapi.read.nodes import Node
from toolcrib.kinds.http.openapi.schemas.schemas import SchemaConverter

_BYTES: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "media_type": {"type": "string"},
        "filename": {"type": ["string", "null"]},
        "size": {"type": ["integer", "null"]},
        "base64": {"type": ["string", "null"], "contentEncoding": "base64"},
    },
    "required": ["media_type"],
}
"""`HttpFile`."""
_DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class Answers:
    """The successful responses of an operation."""

    json: tuple[Node, ...]
    """Schemas of the JSON ones."""
    others: tuple[Media, ...]
    """The media types other than JSON, if there is no JSON."""
    empty: bool
    """Whether one has no content."""
    open: bool
    """Whether one is JSON of any form."""
    headers: frozenset[str]
    """Names of declared headers in lower case."""


def read_answers(operation: ApiOperation) -> Answers:
    """The 2xx responses; the default one if it is the only one that can be a success."""
    losses = operation.losses
    json: dict[str, Node] = {}
    others: list[Media] = []
    empty = opened = False
    headers: set[str] = set()
    for answer in _successes(operation):
        operation.kept.append(f"response {answer.status}")
        headers.update(name.lower() for name in answer.headers.object)
        _note_prose(answer, losses)
        empty = empty or not answer.media
        for media in _choose_media(answer.media, losses):
            if not (is_json(media.type) or is_lines(media.type)):
                others.append(media)
            elif media.schema.value is None:
                opened = True
            elif media.schema.value not in [found.value for found in json.values()]:
                json[media.schema.place] = media.schema
    return Answers(tuple(json.values()), tuple(others), empty, opened, frozenset(headers))


def output_schema(answers: Answers, operation: ApiOperation, schemas: SchemaConverter) -> JsonSchema | None:
    """JSON Schema of the output; `None` where the document does not promise a known form."""
    if answers.open or not (answers.json or answers.others):
        _note_unpromised(answers, operation)
        return None
    alternatives = [schemas.convert(schema, operation.losses) for schema in answers.json]
    for media in answers.others:
        schema = _opaque(media, operation.losses)
        if schema not in alternatives:
            alternatives.append(schema)
    if answers.empty:
        alternatives.append({"type": "null"})
    only = alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}
    return schemas.bundle(only, operation.node.place, operation.losses)


def _successes(operation: ApiOperation) -> list[ApiResponse]:
    found = [answer for answer in operation.answers if answer.status.startswith("2")]
    if not found:
        found = [answer for answer in operation.answers if answer.status.lower() == _DEFAULT]
    for answer in operation.answers:
        if answer not in found:
            why = "no success: it becomes an error with its status and body"
            operation.losses.add_dropped(answer.node.place, "response", f"response {answer.status[:50]}", why)
    return found


def _choose_media(media: Sequence[Media], losses: Losses) -> Sequence[Media]:
    """JSON if it is offered, because requests ask for it; else all."""
    chosen = next((found for found in media if is_json(found.type)), None)
    chosen = chosen or next((found for found in media if is_lines(found.type)), None)
    if chosen is None:
        return media
    for other in media:
        if other is not chosen:
            losses.add_dropped(other.place, "media_type", f"response as {other.type}", f"asked for as {chosen.type}")
    if is_lines(chosen.type):
        lines = Node({"type": "array", "items": chosen.schema.value or {}}, chosen.schema.place, chosen.schema.base)
        return [Media(chosen.type, lines, chosen.encoding, chosen.place)]
    return [chosen]


def _opaque(media: Media, losses: Losses) -> JsonSchema:
    if media.schema.value is not None:
        losses.add_dropped(
            media.schema.place, "response", "schema of the response", f"{media.type} is handed on as it is"
        )
    if is_text(media.type):
        return {"type": "string", "contentMediaType": media.type}
    return dict(_BYTES)


def _note_prose(answer: ApiResponse, losses: Losses) -> None:
    if answer.node.has("description"):
        place = answer.node.get("description").place
        losses.add_dropped(place, "annotation", "description of a response", "the output says what it is by its schema")
    for name, header in answer.headers.members():
        losses.add_dropped(header.place, "response", f"response header {name}", "the output is the body")


def _note_unpromised(answers: Answers, operation: ApiOperation) -> None:
    for schema in answers.json:
        operation.losses.add_dropped(
            schema.place, "response", "schema of a response", "another response may be anything"
        )
