"""What an operation answers when it works: the schema of its output, and whether the answer comes in pages."""

from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import CursorPaging, Json, JsonSchema
from toolcrib.providers.openapi.arguments import Arguments
from toolcrib.providers.openapi.bodies import is_json
from toolcrib.providers.openapi.document import Document
from toolcrib.providers.openapi.operations import Operation
from toolcrib.providers.openapi.schemas import Schemas
from toolcrib.providers.openapi.shapes import shape_of
from toolcrib.providers.openapi.views import members

_CURSOR: Final = "after"
_LIMIT: Final = "limit"
_RESULTS: Final = "results"


@dataclass(frozen=True, slots=True)
class Answers:
    """The successful responses of an operation."""

    schemas: tuple[Json, ...]
    """Raw schemas of the JSON ones."""
    empty: bool
    """Whether one has no content."""
    opaque: bool
    """Whether one is something else than JSON, or JSON of any form."""


def read_answers(operation: Operation, document: Document) -> Answers:
    """The 2xx responses."""
    schemas: list[Json] = []
    empty = opaque = False
    for status, value in (document.resolve(operation.source.get("responses")) or {}).items():
        if not status.startswith("2"):
            continue
        content = members(members(document.resolve(value)).get("content"))
        empty = empty or not content
        for media, source in content.items():
            schema: Json = (document.resolve(source) or {}).get("schema")
            if is_json(media) and schema is not None:
                schemas.extend([schema] if schema not in schemas else [])
            else:
                opaque = True
    return Answers(tuple(schemas), empty, opaque)


def output_schema(answers: Answers, operation: Operation, schemas: Schemas) -> JsonSchema | None:
    """JSON Schema of the output; `None` where the document does not promise JSON of a known form."""
    if answers.opaque or not answers.schemas:
        return None
    alternatives = [schemas.convert(schema, operation.losses) for schema in answers.schemas]
    if answers.empty:
        alternatives.append({"type": "null"})
    only = alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}
    return schemas.bundle(only, operation.losses)


def find_paging(answers: Answers, document: Document, arguments: Arguments, requests: Schemas) -> CursorPaging | None:
    """Cursor paging as HubSpot and others do it: `paging.next.after` in the answer, `after` in the request."""
    cursor, limit = arguments.named(_CURSOR), arguments.named(_LIMIT)
    if cursor is None or len(answers.schemas) != 1:
        return None
    properties = shape_of(document, answers.schemas[0]).properties
    paging = shape_of(document, properties.get("paging")).properties
    if _CURSOR not in shape_of(document, paging.get("next")).properties:
        return None
    lists = [name for name, schema in properties.items() if (document.resolve(schema) or {}).get("type") == "array"]
    if len(lists) != 1 and _RESULTS not in lists:
        return None
    size = requests.follow(arguments.properties[limit]).get("maximum") if limit else None
    return CursorPaging(
        cursor_in=cursor,
        cursor_out="$.paging.next.after",
        items=_RESULTS if _RESULTS in lists else lists[0],
        limit_argument=limit,
        page_size=size if isinstance(size, int) else None,
    )
