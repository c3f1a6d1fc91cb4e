"""What of an event the world gave, and how the rest, which the code makes again, is held against the recording.

The table below is all that a replay does not derive. Whatever is not in it is made anew by the code and compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final, TypeAlias, cast

from toolcrib.contracts import Contract, Event, Json, JsonObject

Path: TypeAlias = tuple[str, ...]

_ALLOWANCE: Final = ("seconds", "requests")
"""Of what may still be spent: seconds are read from a clock, and HTTP requests are counted inside the tools."""
_GIVEN: Final[Mapping[str, Sequence[Path]]] = {
    "run_started": [("request", "allowance")],
    "run_resumed": [("epoch",), ("cause",)],
    "run_suspended": [("wake_at",), *((part, field) for part in ("spent", "left") for field in _ALLOWANCE)],
    "run_finished": [("metadata",), ("warnings",)],
    "model_failed": [("message",)],
    "model_finished": [("duration_s",)],
    "call_finished": [("envelope", field) for field in ("t_start", "t_end", "timings", "metadata")],
    "call_doubted": [("envelope", field) for field in ("t_start", "t_end", "timings", "metadata")],
    "approval_requested": [("expires_at",)],
    "client_handoff": [
        ("envelope", field) for field in ("t_start", "t_end", "timings", "metadata", "cost_usd", "tainted", "attempts")
    ],
    "signal_awaited": [("wake_at",)],
}
"""By the event's type. Moments and durations are readings of clocks. What a nested run may spend is what its caller had
left at that very moment, in which calls beside it were being begun. `metadata` holds what tools and sandboxes say of
themselves. Warnings tell how tools stood then."""


def adopted(recorded: Event, made: Event) -> JsonObject:
    """An event that was made again, with what the world gave, and with what an older release has not written."""
    expected, got = recorded.model_dump(mode="json"), made.model_dump(mode="json")
    for path in (*_GIVEN.get(recorded.type, ()), *_unwritten(recorded)):
        _take_over(expected, got, path)
    return got


def differences(expected: Json, got: Json, path: str = "") -> Iterator[tuple[str, Json, Json]]:
    """Where two JSON values are not the same: the path, what was expected, what came."""
    if isinstance(expected, dict) and isinstance(got, dict):
        wanted, found = cast("JsonObject", expected), cast("JsonObject", got)
        names = (*wanted, *(extra for extra in found if extra not in wanted))
        pairs = [(f"{path}.{name}" if path else name, wanted.get(name), found.get(name)) for name in names]
    elif isinstance(expected, list) and isinstance(got, list):
        both = zip_longest(cast("list[Json]", expected), cast("list[Json]", got))
        pairs = [(f"{path}[{place}]", one, other) for place, (one, other) in enumerate(both)]
    else:
        pairs = []
    inner = [found for place, one, other in pairs for found in differences(one, other, place)]
    yield from inner
    if not inner and (expected != got or isinstance(expected, bool) != isinstance(got, bool)):
        yield path, expected, got  # also where one of them has null for what the other has not


def written(event: Event) -> JsonObject:
    """An event as it was written: without the fields that the release did not know which has written it."""
    return event.model_dump(mode="json", exclude_unset="type" in event.model_fields_set)


def _unwritten(recorded: Event) -> Iterator[Path]:
    """The fields that there were none of when an event was written; none of one that was not read but made here."""
    if "type" not in recorded.model_fields_set:
        return
    yield from ((name,) for name in type(recorded).model_fields if name not in recorded.model_fields_set)
    for name in recorded.model_fields_set:
        part = getattr(recorded, name)
        if isinstance(part, Contract):
            absent = (field for field in type(part).model_fields.items() if field[0] not in part.model_fields_set)
            yield from ((name, field.serialization_alias or inner) for inner, field in absent)


def _take_over(source: JsonObject, target: JsonObject, path: Path) -> None:
    """Put what one object has at a path there in the other one, if both have something there."""
    for name in path[:-1]:
        source, target = source.get(name) or {}, target.get(name) or {}
    if path[-1] in source and path[-1] in target:
        target[path[-1]] = source[path[-1]]
