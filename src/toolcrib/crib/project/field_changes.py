"""The fields in which two documents differ, one by one."""

from collections.abc import Iterator, Sequence
from typing import cast

from toolcrib.contracts import Json, JsonObject
from toolcrib.contracts.projects import FieldChange


def field_changes(before: JsonObject, after: JsonObject, place: str = "") -> Iterator[FieldChange]:
    """Each field that is different, by its dotted path; a list of another length is one field.

    Args:
        before: A document.
        after: The same, later.
        place: Where both stand.
    """
    for name in dict.fromkeys((*before, *after)):
        where = f"{place}.{name}" if place else name
        yield from _value(before.get(name), after.get(name), where)


def _value(before: Json, after: Json, place: str) -> Iterator[FieldChange]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from field_changes(cast("JsonObject", before), cast("JsonObject", after), place)
        return
    olds, news = _items(before), _items(after)
    if olds is None or news is None or len(olds) != len(news):
        yield FieldChange(place=place, before=before, after=after)
        return
    for number, (old, new) in enumerate(zip(olds, news, strict=True)):
        yield from _value(old, new, f"{place}[{number}]")


def _items(value: Json) -> Sequence[Json] | None:
    return cast("Sequence[Json]", value) if isinstance(value, list | tuple) else None
