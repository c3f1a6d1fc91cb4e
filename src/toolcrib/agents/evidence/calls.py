"""The values of one call that a model wants to make, held against what it may know: the task, and earlier results."""

from collections.abc import Iterable, Iterator
from typing import cast

from toolcrib.agents.evidence.inputs import Step
from toolcrib.agents.evidence.judgement import Finding, Said, open_values
from toolcrib.contracts import Json, JsonObject


def seen_in(outputs: Iterable[Json]) -> frozenset[str]:
    """The values that stand in some results, as texts."""
    return frozenset(text for output in outputs for text in _scalars(output))


def doubts_of_call(step: Step, said: Said, seen: frozenset[str]) -> tuple[Finding, ...]:
    """The values of a call that come neither from the task, nor from the author, nor from a result.

    Args:
        step: The call.
        said: The task, and what else counts.
        seen: Of `seen_in`.
    """
    return open_values(step, said, seen)


def _scalars(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for item in cast("JsonObject", value).values():
            yield from _scalars(item)
    elif isinstance(value, list):
        for item in cast("list[Json]", value):
            yield from _scalars(item)
    elif value is not None:
        yield str(value)
