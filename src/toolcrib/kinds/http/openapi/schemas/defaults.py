"""Defaults that their own schema accepts. A wrong one would be filled into a call and refused by it."""

from collections.abc import Iterator
from typing import Final, cast

import jsonschema_rs

from toolcrib.contracts import Json, JsonSchema
from toolcrib.core.providers.losses import Losses
from toolcrib.kinds.http.openapi.read.pointers import child
from toolcrib.kinds.http.openapi.schemas.keywords import LIST_KEYWORDS, MAP_KEYWORDS, SCHEMA_KEYWORDS

_SCALARS: Final[dict[str, type]] = {"string": str, "boolean": bool}


def drop_wrong_defaults(schema: JsonSchema, definitions: dict[str, JsonSchema], place: str, losses: Losses) -> None:
    """Remove, in place, each default that its schema refuses.

    Args:
        schema: As converted.
        definitions: What its references lead to.
        place: Where it stands in the document.
        losses: Takes the defaults that are removed.
    """
    for found, where in list(_with_default(schema, place)):
        if not _fits(found, definitions):
            wrong = found.pop("default")
            why = f"its own schema refuses {str(wrong)[:60]!r}"
            losses.dropped(child(where, "default"), "invalid", "keyword default", why)


def _with_default(schema: Json, place: str) -> Iterator[tuple[JsonSchema, str]]:
    if not isinstance(schema, dict):
        return
    found = cast("JsonSchema", schema)
    if "default" in found:
        yield found, place
    for keyword, value in found.items():
        here = child(place, keyword)
        if keyword in SCHEMA_KEYWORDS:
            yield from _with_default(value, here)
        elif keyword in LIST_KEYWORDS:
            for index, entry in enumerate(value):
                yield from _with_default(entry, child(here, index))
        elif keyword in MAP_KEYWORDS:
            for name, member in value.items():
                yield from _with_default(member, child(here, name))


def _fits(schema: JsonSchema, definitions: dict[str, JsonSchema]) -> bool:
    value = schema["default"]
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _SCALARS and schema.keys() <= {"type", "default", "description"}:
        return isinstance(value, _SCALARS[kind])
    whole = {**schema, "$defs": definitions}
    options = jsonschema_rs.RegexOptions()
    return jsonschema_rs.Draft202012Validator(whole, offline=True, pattern_options=options).is_valid(value)
