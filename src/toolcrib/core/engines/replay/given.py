"""What of an event the world gave, and how the rest, which the code makes again, is held against the recording.

The table below is all that a replay does not derive. Whatever is not in it is made anew by the code and compared.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final, TypeAlias, cast

from toolcrib.contracts import (
    PLANNED_ANEW,
    Contract,
    Event,
    Json,
    JsonObject,
    LimitReached,
    ModelDenied,
    ModelStarted,
    ProgressMade,
    Run,
    RunEvent,
)

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


_ASKED: Final = (ModelStarted, ModelDenied)
_ESTIMATED: Final[Sequence[Path]] = [("decision", "inputs", "input_tokens"), ("decision", "inputs", "cost_usd")]
"""What a request may use at most is expected by the lengths of those before it."""
_FIXES: Final = ("", ".fix1", ".fix2")


def old_plans(run: Run, events: Iterable[RunEvent]) -> frozenset[str] | None:
    """Positions of the model calls by which an older release has planned; null for a run of this one's."""
    if run.request.plan_format != 1 or run.request.kind not in {"agentic", "workflow"}:
        return None
    told = [entry.event for entry in events]
    anew = {event.key for event in told if isinstance(event, ProgressMade) and event.kind == PLANNED_ANEW}
    asked = {event.position for event in told if isinstance(event, _ASKED) and event.purpose == "planning"}
    return frozenset(f"{position}{fix}" for position in asked - anew for fix in _FIXES)


def adopted(recorded: Event, made: Event, planned: frozenset[str] | None = None) -> JsonObject:
    """An event that was made again, with what the world gave, and with what an older release has not written.

    Args:
        recorded: As it was.
        made: As it is now.
        planned: What `old_plans` says of its run.
    """
    expected, got = recorded.model_dump(mode="json"), made.model_dump(mode="json")
    of_plan = () if planned is None else _given_of_plan(recorded, planned)
    for path in (*_GIVEN.get(recorded.type, ()), *_unwritten(recorded), *of_plan):
        _take_over(expected, got, path)
    return got


def _given_of_plan(recorded: Event, planned: frozenset[str]) -> Sequence[Path]:
    """What an older release asked for a plan, and what it expected the next requests to use by that."""
    match recorded:
        case ModelStarted(position=position) if position in planned:
            return [(name,) for name in ("system", "messages", "tools", "history", "request_hash", "decision")]
        case ModelDenied(position=position) if position in planned:
            return [("decision", "inputs")]
        case ModelStarted() if planned:
            return _ESTIMATED
        case LimitReached(limit="max_total_tokens" | "max_cost_usd"):
            return [("value",), ("message",)]
        case _:
            return ()


def reworded(made: JsonObject, limits: Mapping[str, str]) -> JsonObject:
    """An event with what limits said then in place of what they say now."""
    return cast("JsonObject", _reworded(made, limits)) if limits else made


def _reworded(value: Json, limits: Mapping[str, str]) -> Json:
    if isinstance(value, dict):
        return {name: _reworded(item, limits) for name, item in cast("JsonObject", value).items()}
    if isinstance(value, list):
        return [_reworded(item, limits) for item in cast("list[Json]", value)]
    for now, then in limits.items() if isinstance(value, str) else ():
        value = cast("str", value).replace(now, then)
    return value


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
